//! Deliveries: they end one by one, in any order, anywhere.

use crate::common::rng::Rng;
use crate::common::{panics, Ledger};
use futures::FutureExt;
use requeue::{
    Backoff, Clock, Delivery, FairQueue, ManualClock, Order, Pace, PopError, PriorityQueue, Queue,
    Reason, ReturnTo, Unleased,
};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;
use std::time::Instant;
use std::{mem, thread};

fn of<O: Order<u32> + Unleased>(queue: Queue<u32, O>, items: u32) -> Queue<u32, O> {
    let mut handle = queue.handle();
    handle.push_batch(1..=items).unwrap();
    queue
}

fn filled(items: u32) -> Queue<u32> {
    of(Queue::unbounded(), items)
}

fn drained<O: Order<u32>>(queue: &Queue<u32, O>) -> Vec<u32> {
    queue.stats().check().unwrap();
    queue.drain().collect()
}

#[test]
fn deliveries_and_their_futures_may_go_anywhere() {
    fn is_free<F: Send + 'static>(future: F) -> F {
        future
    }
    fn is_shared<D: Send + Sync + 'static>(delivery: D) -> D {
        delivery
    }
    let queue = filled(1);
    let taken = is_free(queue.take_async()).now_or_never().unwrap();
    assert_eq!(is_shared(taken.unwrap()).ack(), 1);
}

#[test]
fn an_open_delivery_takes_little_memory() {
    fn is_small<const BYTES: usize>() -> bool {
        mem::size_of::<Delivery<[u8; BYTES]>>() <= 2 * BYTES + 100
    }
    assert!(is_small::<0>() && is_small::<8>() && is_small::<1000>());
    assert!(mem::size_of::<Delivery<u64, requeue::ByKey<u64, u64>>>() <= 116);
}

/// Whatever comes back is next, the least one first; others in their order.
fn comes_back_in_order(ends: &[(bool, usize)]) {
    const ITEMS: u32 = 12;
    let queue = filled(ITEMS);
    let mut ready: BTreeSet<u32> = (1..=ITEMS).collect();
    let mut open: Vec<Delivery<u32>> = Vec::new();
    for &(takes, index) in ends {
        if takes || open.is_empty() {
            let taken = queue.take().ok();
            assert_eq!(taken.as_deref().copied(), ready.pop_first());
            open.extend(taken);
        } else {
            let ended = open.swap_remove(index % open.len());
            if index % 5 == 0 {
                ended.ack();
            } else {
                ready.insert(*ended);
                drop(ended);
            }
        }
        assert_eq!(queue.len(), ready.len());
        assert_eq!(queue.is_empty(), ready.is_empty());
    }
    ready.extend(open.iter().map(|delivery| **delivery));
    drop(open);
    assert!(drained(&queue).into_iter().eq(ready));
}

#[test]
fn items_come_back_in_their_order() {
    let mut rng = Rng::new(7);
    for _ in 0..if cfg!(miri) { 10 } else { 500 } {
        let ends: Vec<_> = (0..40)
            .map(|_| (rng.below(2) == 0, rng.below(100)))
            .collect();
        comes_back_in_order(&ends);
    }
}

fn some_come_back_in_order<O: Order<u32> + Unleased>(queue: Queue<u32, O>) {
    let queue = of(queue, 6);
    let order = {
        let taken = queue.take_batch(6);
        taken.iter().map(|item| **item).collect::<Vec<_>>()
    };
    for reversed in [false, true] {
        let mut taken = queue.take_batch(5);
        assert_eq!(queue.stats().held, 5);
        if reversed {
            taken.reverse();
        }
        drop(taken);
    }
    assert_eq!(drained(&queue), order);
}

#[test]
fn items_come_back_in_order_in_any_queue() {
    some_come_back_in_order(Queue::unbounded());
    some_come_back_in_order(Queue::bounded(6));
    some_come_back_in_order(Queue::builder().timestamps().build());
    some_come_back_in_order(Queue::builder().lifo().build());
    some_come_back_in_order(FairQueue::by(|item: &u32| item % 2));
    some_come_back_in_order(PriorityQueue::by_priority());
}

fn some_go_to_the_tail<O: Order<u32> + Unleased>(queue: Queue<u32, O>, order: [u32; 3]) {
    let queue = of(queue, 3);
    let first = queue.take().unwrap();
    assert_eq!(*first, order[0]);
    first.nack_to(ReturnTo::Tail);
    queue.stats().check().unwrap();
    let again = queue.take_batch(3);
    let attempts = again
        .iter()
        .find(|item| ***item == order[0])
        .unwrap()
        .attempts();
    assert_eq!((attempts, again.len()), (2, 3));
    for item in again {
        item.ack();
    }
    assert_eq!(queue.stats().pushed, 3);
    assert!(drained(&queue).is_empty());
}

#[test]
fn items_go_to_the_tail_of_any_queue() {
    some_go_to_the_tail(Queue::unbounded(), [1, 2, 3]);
    some_go_to_the_tail(Queue::bounded(3), [1, 2, 3]);
    some_go_to_the_tail(Queue::builder().timestamps().build(), [1, 2, 3]);
    some_go_to_the_tail(Queue::builder().lifo().build(), [3, 2, 1]);
    some_go_to_the_tail(FairQueue::by(|item: &u32| item % 2), [1, 2, 3]);
    some_go_to_the_tail(PriorityQueue::by_priority(), [1, 2, 3]);
}

#[test]
fn a_serial_key_goes_on_when_its_item_is_acknowledged_or_goes_to_the_tail() {
    let queue = of(Queue::builder().fair_by(|_: &u32| 0).serial().build(), 3);
    let first = queue.take().unwrap();
    assert!(queue.take().is_err());
    let mut waits = queue.take_async();
    assert!((&mut waits).now_or_never().is_none());
    first.nack_to(ReturnTo::Tail);
    let second = waits.now_or_never().unwrap().unwrap();
    assert_eq!(second.ack(), 2);
    assert_eq!(queue.take().unwrap().ack(), 3);
    assert_eq!(queue.take().unwrap().ack(), 1);
}

#[test]
fn a_scheduled_item_goes_to_the_tail_of_its_priority() {
    let clock = ManualClock::new();
    let queue = Queue::builder().by_priority().clock(clock.clone()).build();
    queue.after(Duration::from_secs(1)).push(1).unwrap();
    queue.push(2).unwrap();
    clock.advance(Duration::from_secs(1));
    let mut order = Vec::new();
    for _ in 0..4 {
        let taken = queue.take().unwrap();
        order.push(*taken);
        taken.nack_to(ReturnTo::Tail);
    }
    assert_eq!(
        order.iter().filter(|item| **item == 1).count(),
        2,
        "{order:?}"
    );
}

#[test]
fn attempts_and_times_survive_a_return_to_the_tail() {
    let clock = ManualClock::new();
    let queue = Queue::builder().timestamps().clock(clock.clone()).build();
    queue.push(1).unwrap();
    for attempt in 1..=300 {
        clock.advance(Duration::from_secs(1));
        let taken = queue.take().unwrap();
        assert_eq!(taken.attempts(), attempt);
        assert_eq!(taken.waited(), Some(Duration::from_secs(attempt.into())));
        taken.nack_to(ReturnTo::Tail);
    }
}

#[test]
fn an_abort_returns_to_the_tail_if_the_queue_says_so() {
    let queue = of(Queue::builder().on_failure(ReturnTo::Tail).build(), 4);
    let mut handle = queue.handle();
    let tx = handle.begin();
    assert_eq!(tx.pop_batch(2).len(), 2);
    tx.abort();
    queue.take().unwrap().nack();
    let order: Vec<_> = queue
        .take_batch(4)
        .iter()
        .map(|it| (**it, it.attempts()))
        .collect();
    assert_eq!(order, [(4, 1), (1, 2), (2, 2), (3, 2)]);
}

#[test]
fn a_poison_item_at_the_tail_blocks_nobody() {
    let queue = Queue::builder()
        .on_failure(ReturnTo::Tail)
        .max_attempts(3)
        .build();
    let queue = of(queue, 1000);
    let (mut done, mut before) = (0, Vec::new());
    while let Ok(job) = queue.take() {
        if *job == 1 {
            before.push(done);
            continue;
        }
        job.ack();
        done += 1;
    }
    assert_eq!(before[0], 0);
    assert!(before[1..].iter().all(|done| *done > 500), "{before:?}");
    assert_eq!((done, queue.dead_letters().len()), (999, 1));
}

#[test]
fn a_return_needs_no_room_and_no_open_queue() {
    for to in [ReturnTo::Head, ReturnTo::Tail] {
        let queue = of(Queue::bounded(2), 2);
        let taken = queue.take().unwrap();
        assert!(queue.push(3).unwrap_err().is_full());
        queue.close();
        taken.nack_to(to);
        assert_eq!(queue.stats().ready, 2);
        assert_eq!(drained(&queue).len(), 2);
        assert!(matches!(queue.take(), Err(PopError::Closed)));
    }
}

#[test]
fn an_acknowledged_item_makes_room() {
    let queue = of(Queue::bounded(1), 1);
    let taken = queue.take().unwrap();
    assert!(queue.push(2).is_err());
    let mut push = queue.push_async(2);
    assert!((&mut push).now_or_never().is_none());
    assert_eq!(taken.ack(), 1);
    assert!(push.now_or_never().unwrap().is_ok());
}

#[test]
fn a_closed_queue_is_drained_after_its_deliveries() {
    let queue = filled(2);
    let [first, second] = [queue.take().unwrap(), queue.take().unwrap()];
    queue.close();
    let mut idle = queue.wait_idle_async();
    let mut take = queue.take_async();
    assert!((&mut take).now_or_never().is_none());
    first.ack();
    assert!((&mut take).now_or_never().is_none() && (&mut idle).now_or_never().is_none());
    thread::spawn(|| second.ack()).join().unwrap();
    assert!(matches!(take.now_or_never(), Some(Err(PopError::Closed))));
    assert!(idle.now_or_never().is_some());
}

#[test]
fn a_return_wakes_a_waiter() {
    for to in [ReturnTo::Head, ReturnTo::Tail] {
        let queue = filled(1);
        let taken = queue.take().unwrap();
        thread::scope(|scope| {
            let again = scope.spawn(|| queue.take_blocking().unwrap().ack());
            taken.nack_to(to);
            assert_eq!(again.join().unwrap(), 1);
        });
    }
}

#[test]
fn failures_follow_the_rules_of_the_queue() {
    let clock = ManualClock::new();
    let builder = Queue::builder().clock(clock.clone()).max_attempts(3);
    let queue = of(
        builder
            .backoff(Backoff::fixed(Duration::from_secs(5)))
            .build(),
        1,
    );
    drop(queue.take().unwrap());
    assert_eq!(queue.stats().delayed, 1);
    clock.advance(Duration::from_secs(5));
    queue.take().unwrap().nack_after(Duration::from_secs(1));
    clock.advance(Duration::from_secs(1));
    queue.take().unwrap().nack();
    let letter = queue.dead_letters().next().unwrap();
    assert_eq!((letter.attempts, letter.reason), (3, Reason::Retried));
    queue.stats().check().unwrap();
}

#[test]
fn a_failed_delivery_is_a_dead_letter_and_frees_its_permit() {
    let queue = of(Queue::bounded(1), 1);
    queue.take().unwrap().fail("no");
    queue.push(2).unwrap();
    let letter = queue.dead_letters().next().unwrap();
    assert_eq!((letter.item, letter.error()), (1, Some("no")));
    queue.stats().check().unwrap();
}

#[test]
fn an_error_that_panics_gives_the_item_back() {
    struct Bad;
    impl std::fmt::Display for Bad {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            panic!("bad error")
        }
    }
    let queue = of(Queue::builder().max_attempts(2).build(), 1);
    assert!(panics(|| queue.take().unwrap().fail(Bad)));
    assert!(panics(|| {
        let _taken = queue.take().unwrap();
        panic!("bad worker")
    }));
    let letter = queue.dead_letters().next().unwrap();
    assert_eq!((letter.attempts, letter.reason), (2, Reason::Panicked));
}

#[test]
fn deliveries_count_against_the_limit_of_held_items() {
    let queue = of(
        Queue::builder().max_held(1).pace(Pace::unlimited()).build(),
        3,
    );
    let first = queue.take().unwrap();
    assert!(queue.take().is_err_and(|error| error.is_empty()));
    first.release();
    let first = queue.take().unwrap();
    assert_eq!((*first, first.attempts()), (1, 1));
    first.ack();
    let second = queue.take().unwrap().into_transaction();
    assert!(queue.take().is_err());
    drop(second);
    assert_eq!(*queue.take().unwrap(), 2);
}

#[test]
fn a_delivery_becomes_a_transaction() {
    let queue = of(Queue::bounded(2), 2);
    let tx = queue.take().unwrap().into_transaction();
    assert_eq!((queue.stats().held, tx.held()), (1, 1));
    queue.close();
    tx.push(3).unwrap(); // a follow-up
    assert_eq!(tx.commit().next(), Some(1));
    let tx = queue.take().unwrap().into_transaction();
    tx.abort();
    assert_eq!(drained(&queue), [2, 3]);
    let stats = queue.stats();
    assert_eq!((stats.committed, stats.aborted, stats.held), (3, 1, 0));
}

#[test]
fn deliveries_outlive_their_queue_and_their_thread() {
    let ledger = Ledger::new(3);
    let queue = Queue::unbounded();
    ledger.items().for_each(|item| queue.push(item).unwrap());
    let take = || thread::scope(|scope| scope.spawn(|| queue.take().unwrap()).join().unwrap());
    let [acked, dropped, moved] = [take(), take(), take()];
    drop(queue);
    drop(acked.ack());
    assert_eq!(ledger.drops(), [1, 0, 0]);
    drop(dropped);
    drop(moved.into_transaction());
    ledger.assert_each_dropped_once();
}

#[test]
fn ids_are_unique_and_held_shows_the_deliveries() {
    let queue = filled(100);
    let mut ids = BTreeSet::new();
    for _ in 0..20 {
        let spawn = || thread::scope(|scope| scope.spawn(|| queue.take_batch(3)).join().unwrap());
        for delivery in spawn() {
            assert!(ids.insert(delivery.id()));
        }
        let mine = queue.take_batch(2);
        assert!(mine.iter().all(|delivery| ids.insert(delivery.id())));
        assert_eq!(queue.held().iter().map(|held| held.items).sum::<usize>(), 2);
    }
}

/// A clock that panics if it is told to.
#[derive(Clone)]
struct Failing(ManualClock, Arc<AtomicBool>);

impl Clock for Failing {
    fn now(&self) -> Instant {
        assert!(!self.1.load(Ordering::Relaxed), "bad clock");
        self.0.now()
    }

    fn wake_at(&self, at: Instant, waker: &Waker) {
        self.0.wake_at(at, waker);
    }
}

#[test]
fn a_clock_that_panics_loses_no_item() {
    let clock = Failing(ManualClock::new(), Arc::default());
    let backoff = Backoff::fixed(Duration::from_secs(5));
    let builder = Queue::builder().timestamps().backoff(backoff);
    let queue = of(builder.clock(clock.clone()).build(), 1);
    let taken = queue.take().unwrap();
    clock.1.store(true, Ordering::Relaxed);
    taken.nack(); // at once, since nothing can be delayed
    assert!(panics(|| queue.take()));
    clock.1.store(false, Ordering::Relaxed);
    assert_eq!((queue.stats().held, queue.stats().delayed), (0, 0));
    assert_eq!(drained(&queue), [1]);
}
