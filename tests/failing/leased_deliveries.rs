//! Deliveries whose items are leased: a lease that ends before its delivery takes the item from it.

use crate::common::cloned::Cloned;
use crate::common::failing::{assert_room, clocked, leased, letters, INSTANT, NEARLY, SECOND};
use crate::common::panics;
use requeue::{Delivery, Fifo, Leased, Order, Queue, Reason};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::Arc;
use std::thread;

/// Does something with a delivery whose item was taken back.
type Use<T> = fn(Delivery<T, Leased<Fifo>>);

#[test]
fn a_delivery_that_lost_its_item_can_do_nothing() {
    let uses: [Use<Cloned>; 8] = [
        |late| assert!(late.try_ack().is_err()),
        |late| assert!(late.try_into_transaction().is_err()),
        |late| {
            assert!(late.extend(SECOND).is_err());
            assert!(late.try_ack().is_err());
        },
        drop,
        Delivery::nack,
        Delivery::release,
        |late| late.nack_after(SECOND),
        |late| late.fail("too late"),
    ];
    for uses in uses {
        let item = Cloned::new(7, || {});
        let alive = Arc::clone(&item.alive);
        let (clock, queue) = leased([item]);
        let late = queue.take().unwrap();
        clock.advance(SECOND);
        let again = queue.take().unwrap();
        assert_eq!((again.number, again.attempts()), (7, 2));
        uses(late);
        let stats = queue.stats();
        assert_eq!((stats.held, stats.expired, stats.aborted), (1, 1, 0));
        assert!(again.try_ack().is_ok());
        assert_eq!(alive.load(Ordering::SeqCst), 0);
        queue.stats().check().unwrap();
        assert!(queue.dead_letters().next().is_none());
    }
}

#[test]
fn a_delivery_that_ends_in_time_leaves_no_copy() {
    let uses: [Use<Cloned>; 6] = [
        |held| assert!(held.try_ack().is_ok()),
        drop,
        |held| held.nack_after(SECOND),
        |held| held.fail("failed"),
        |held| assert!(held.try_into_transaction().unwrap().try_commit().is_ok()),
        |held| drop(held.try_into_transaction().unwrap()),
    ];
    for uses in uses {
        let item = Cloned::new(7, || {});
        let alive = Arc::clone(&item.alive);
        let (clock, queue) = leased([item]);
        let held = queue.take().unwrap();
        assert_eq!(alive.load(Ordering::SeqCst), 2);
        uses(held);
        assert!(alive.load(Ordering::SeqCst) <= 1);
        clock.advance(2 * SECOND);
        assert_eq!(queue.stats().expired, 0);
        drop(queue.take());
        drop(queue);
        assert_eq!(alive.load(Ordering::SeqCst), 0);
    }
}

#[test]
fn only_the_late_ones_expire() {
    let (clock, queue) = leased(1..=6);
    let mut open = queue.take_batch(3);
    clock.advance(NEARLY);
    open.extend(queue.take_batch(2));
    open[1].extend(2 * SECOND).unwrap();
    assert!(open[1].extend(SECOND).is_ok()); // no shorter
    clock.advance(INSTANT);
    let again = queue.take_batch(3);
    assert!(again.iter().map(|item| **item).eq([1, 3, 6]));
    let ends = open.into_iter().map(|item| (*item, item.try_ack().is_ok()));
    assert!(ends.eq([(1, false), (2, true), (3, false), (4, true), (5, true)]));
    assert_eq!(queue.held().iter().map(|held| held.items).sum::<usize>(), 3);
    for item in again {
        assert!(item.try_ack().is_ok());
    }
    assert!(queue.is_empty());
    queue.stats().check().unwrap();
}

#[test]
fn a_lease_goes_on_in_a_transaction() {
    let (clock, queue) = leased([1, 2]);
    let late = queue.take().unwrap();
    clock.advance(NEARLY);
    let late = late.try_into_transaction().unwrap();
    let tx = queue.take().unwrap().try_into_transaction().unwrap();
    clock.advance(INSTANT);
    assert_eq!(queue.take().unwrap().try_ack(), Ok(1));
    assert!(late.try_commit().is_err());
    tx.renew().unwrap();
    clock.advance(NEARLY);
    assert!(tx.try_commit().unwrap().eq([2]));
    queue.stats().check().unwrap();
}

#[test]
fn an_extended_lease_in_a_transaction_keeps_no_later_one() {
    let (clock, queue) = leased([1, 2]);
    let first = queue.take().unwrap();
    first.extend(2 * SECOND).unwrap();
    let tx = first.try_into_transaction().unwrap();
    assert_eq!(*tx.pop().unwrap(), 2);
    clock.advance(SECOND);
    assert_eq!(queue.take().unwrap().try_ack(), Ok(2));
    assert!(tx.try_commit().is_err());
    assert_eq!(queue.pop(), Ok(1));
    queue.stats().check().unwrap();
}

fn keeps_room_and_limits<O: Order<u32>>(queue: &Queue<u32, O>, clock: &requeue::ManualClock) {
    queue.push_batch([1, 2]).unwrap();
    let late = queue.take_batch(2);
    assert_eq!(late.len(), 2);
    assert!(queue.take().is_err() && queue.push(3).is_err());
    clock.advance(SECOND);
    let again = queue.take_batch(2);
    assert_eq!(again.len(), 2);
    drop(late);
    assert!(queue.take().is_err() && queue.push(3).is_err());
    let acked = again.into_iter().map(Delivery::try_ack);
    assert!(acked.map(Result::unwrap).eq([1, 2]));
    assert_room(queue);
}

#[test]
fn a_lost_item_keeps_its_permit_and_its_place_among_the_held_ones() {
    let (clock, builder) = clocked::<u32>();
    let builder = builder.leased(SECOND).max_held(2);
    keeps_room_and_limits(&builder.capacity(2).build(), &clock);
    let queue = Queue::builder().by_priority().clock(clock.clone());
    let queue = queue.leased(SECOND).max_held(2).capacity(2).build();
    keeps_room_and_limits(&queue, &clock);
}

#[test]
fn an_item_that_expires_too_often_is_a_dead_letter() {
    let (clock, builder) = clocked();
    let queue = builder.leased(SECOND).max_attempts(2).build();
    queue.push(7).unwrap();
    let late = [(); 2].map(|()| {
        let late = queue.take().unwrap();
        clock.advance(SECOND);
        late
    });
    assert!(queue.take().is_err());
    assert!(late.map(Delivery::try_ack).iter().all(Result::is_err));
    assert_eq!(letters(&queue), [(7, 2, Reason::Expired)]);
}

#[test]
fn a_copy_whose_clone_or_destructor_panics_loses_no_item() {
    let breaks = Arc::new(AtomicBool::new(true));
    let fuse = Arc::clone(&breaks);
    let hook = move || assert!(!fuse.load(Ordering::SeqCst), "the clone fails");
    let (clock, queue) = leased([Cloned::new(7, hook)]);
    assert!(panics(|| queue.take().is_ok()));
    assert_eq!(queue.stats().held, 0);
    breaks.store(false, Ordering::SeqCst);
    let held = queue.take().unwrap();
    assert_eq!(held.attempts(), 2);
    assert!(held.try_ack().is_ok());
    clock.advance(SECOND);
    assert_eq!(queue.stats().expired, 0);
}

#[test]
fn deliveries_end_once_while_others_reclaim_them() {
    const ITEMS: u32 = if cfg!(miri) { 50 } else { 2_000 };
    let (clock, queue) = leased(1..=ITEMS);
    queue.close(); // the workers end when nothing can come back any more
    let acked = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while let Ok(job) = queue.take_blocking() {
                    if *job % 7 == 0 {
                        clock.advance(SECOND);
                    }
                    let is_mine = job.try_ack().is_ok();
                    acked.fetch_add(is_mine.into(), Ordering::SeqCst);
                }
            });
        }
    });
    assert_eq!(acked.into_inner(), ITEMS);
    queue.stats().check().unwrap();
    assert_eq!(queue.stats().held, 0);
}
