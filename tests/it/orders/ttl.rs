//! Items whose time to live is over, in queues of all orders.

use crate::common::failing::{NEARLY, SECOND};
use crate::common::futures::Task;
use crate::common::{assert_at_rest, drain, Ledger, Tracked};
use requeue::{AfterTtl, Builder, Handle, ManualClock, Order, PopError, Queue, Reason, ReturnTo};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

/// The time to live.
const TTL: Duration = Duration::from_secs(10);

/// What is missing to a second of a time that is [`NEARLY`] one.
const NANO: Duration = Duration::from_nanos(1);

/// Takes an item in some way.
type Take<O> = fn(&Queue<u32, O>) -> Option<u32>;

/// Holds an item for as long as it lives, and then gives it back.
type Back<O> = fn(&ManualClock, &mut Handle<u32, O>);

fn builder<T>() -> (ManualClock, Builder<T>) {
    let clock = ManualClock::new();
    let builder = Queue::builder().clock(clock.clone()).ttl(TTL);
    (clock, builder)
}

/// Runs a check with a queue of each order, leased or not, with these settings.
macro_rules! in_all_orders {
    ($check:ident, |$builder:ident| $with:expr) => {{
        in_all_orders!($check, $builder, $with, it => it);
        in_all_orders!($check, $builder, $with, it => it.lifo());
        in_all_orders!($check, $builder, $with, it => it.fair_by(|item: &u32| item % 3));
        in_all_orders!($check, $builder, $with, it => it.fair_by(|item: &u32| *item).serial());
        in_all_orders!($check, $builder, $with, it => it.by_priority());
        in_all_orders!($check, $builder, $with, it => it.by_priority().age_after(SECOND));
    }};
    ($check:ident, $builder:ident, $with:expr, $it:ident => $order:expr) => {{
        let (clock, $builder) = builder();
        let $it = $with;
        $check(&clock, &$order.build());
        let (clock, $builder) = builder();
        let $it = $with;
        $check(&clock, &$order.leased(TTL * 5).build());
    }};
}

fn timed_out<O: Order<u32>>(queue: &Queue<u32, O>) -> u64 {
    let stats = queue.stats();
    stats.check().unwrap();
    stats.timed_out
}

#[test]
fn what_is_over_is_not_delivered() {
    fn check<O: Order<u32>>(clock: &ManualClock, queue: &Queue<u32, O>) {
        let mut handle = queue.handle();
        let takes: [Take<O>; 6] = [
            |queue| queue.pop().ok(),
            |queue| {
                let mut items = Vec::new();
                assert_eq!(queue.pop_batch(9, &mut items), items.len());
                items.pop()
            },
            |queue| queue.take().ok()?.try_ack().ok(),
            |queue| {
                let mut handle = queue.handle();
                let tx = handle.begin();
                let item = *tx.pop().ok()?;
                tx.try_commit().ok()?;
                Some(item)
            },
            |queue| {
                let mut handle = queue.handle();
                let tx = handle.begin();
                let item = tx.pop_batch(9).map(|item| *item).max();
                tx.try_commit().ok()?;
                item
            },
            |queue| {
                let mut handle = queue.handle();
                let tx = handle.begin();
                let item = *tx.peek().ok()?;
                assert_eq!(tx.pop().as_deref(), Ok(&item));
                tx.try_commit().ok()?;
                Some(item)
            },
        ];
        for (nth, take) in takes.into_iter().enumerate() {
            handle.push_batch(1..=4).unwrap();
            queue.push(5).unwrap();
            clock.advance(TTL / 2);
            handle.push(6).unwrap();
            clock.advance(TTL / 2);
            assert_eq!(take(queue), Some(6), "{nth}");
            assert_eq!(take(queue), None, "{nth}");
            assert_eq!(timed_out(queue), 5 * (nth as u64 + 1));
            assert_at_rest(queue, 0, 0);
        }
    }
    in_all_orders!(check, |builder| builder);
}

/// Without a sweep in between: the taker decides.
#[test]
fn the_instant_of_the_end_is_exact() {
    fn check<O: Order<u32>>(clock: &ManualClock, queue: &Queue<u32, O>) {
        let nano = Duration::from_nanos(1);
        queue.push(1).unwrap();
        queue.push(2).unwrap();
        clock.advance(9 * SECOND + NEARLY);
        assert_at_rest(queue, 2, 0);
        assert!(queue.pop().is_ok());
        clock.advance(nano);
        assert_at_rest(queue, 0, 0);
        assert_eq!((queue.pop(), timed_out(queue)), (Err(PopError::Empty), 1));
    }
    in_all_orders!(check, |builder| builder);
}

#[test]
fn what_is_held_ends_when_it_comes_back() {
    fn check<O: Order<u32>>(clock: &ManualClock, queue: &Queue<u32, O>) {
        let mut handle = queue.handle();
        let returns: [Back<O>; 5] = [
            |clock, worker| {
                let tx = worker.begin();
                tx.pop().unwrap();
                clock.advance(TTL);
                tx.abort();
            },
            |clock, worker| {
                let tx = worker.begin();
                assert_eq!(tx.pop_batch(2).len(), 1);
                clock.advance(TTL);
                drop(tx);
            },
            |clock, worker| {
                let tx = worker.begin();
                let item = tx.pop().unwrap();
                clock.advance(TTL);
                tx.retry(item).unwrap();
            },
            |clock, worker| {
                let tx = worker.begin();
                tx.pop().unwrap();
                clock.advance(TTL);
                mem::forget(tx);
                assert!(worker.pop().is_err());
            },
            |clock, worker| {
                let tx = worker.begin();
                let item = tx.peek().unwrap();
                clock.advance(TTL);
                drop(item);
                assert_eq!(tx.pop().err(), Some(PopError::Empty));
            },
        ];
        for (nth, back) in returns.into_iter().enumerate() {
            handle.push(7).unwrap();
            back(clock, &mut queue.handle());
            assert_at_rest(queue, 0, 0);
            assert_eq!(timed_out(queue), nth as u64 + 1, "{nth}");
        }
        handle.push(7).unwrap();
        let delivery = queue.take().unwrap();
        clock.advance(TTL);
        drop(delivery);
        assert_eq!(queue.pop(), Err(PopError::Empty));
        assert_eq!(timed_out(queue), 6);
    }
    in_all_orders!(check, |builder| builder);
    in_all_orders!(check, |builder| builder.on_failure(ReturnTo::Tail));
}

#[test]
fn what_is_held_can_be_committed() {
    let (clock, builder) = builder();
    let queue = builder.build();
    let mut handle = queue.handle();
    handle.push(1).unwrap();
    let tx = handle.begin();
    assert_eq!(tx.pop().as_deref(), Ok(&1));
    clock.advance(TTL);
    assert!(tx.commit().eq([1]));
    assert_eq!((timed_out(&queue), queue.stats().committed), (0, 1));
}

#[test]
fn a_delayed_item_ends_when_it_is_due() {
    fn check<O: Order<u32>>(clock: &ManualClock, queue: &Queue<u32, O>) {
        let mut handle = queue.handle();
        handle.push(1).unwrap();
        let tx = handle.begin();
        tx.retry_after(tx.pop().unwrap(), TTL + SECOND).unwrap();
        drop(tx);
        clock.advance(TTL);
        assert_eq!((queue.stats().delayed, timed_out(queue)), (1, 0));
        clock.advance(SECOND);
        assert_eq!((queue.stats().delayed, timed_out(queue)), (0, 1));
        assert_at_rest(queue, 0, 0);
    }
    in_all_orders!(check, |builder| builder);
}

#[test]
fn a_scheduled_item_lives_from_its_due_time_on() {
    fn check<O: Order<u32>>(clock: &ManualClock, queue: &Queue<u32, O>) {
        queue.after(3 * TTL).push(1).unwrap();
        queue.after(TTL).push(2).unwrap();
        clock.advance(3 * TTL);
        assert_eq!((drain(queue), timed_out(queue)), (vec![1], 1));
    }
    in_all_orders!(check, |builder| builder);
}

#[test]
fn a_push_that_waits_for_room_goes_on_when_an_item_ends() {
    fn waits<O: Order<u32>>(clock: &ManualClock, queue: &Queue<u32, O>) {
        let (mut first, mut second, mut third) = (queue.handle(), queue.handle(), queue.handle());
        first.push(1).unwrap();
        clock.advance(SECOND);
        first.push(2).unwrap();
        let mut pushes = [
            Task::waiting(second.push_async(3)),
            Task::waiting(third.push_async(4)),
        ];
        clock.advance(8 * SECOND);
        assert!(pushes.iter().all(|push| !push.was_woken()));
        clock.advance(SECOND);
        assert!(pushes[0].was_woken());
        pushes[0].output().unwrap();
        pushes[1].assert_waits();
        clock.advance(SECOND);
        pushes[1].output().unwrap();
        drop(pushes);
        let mut left = drain(queue);
        left.sort_unstable();
        assert_eq!((left, timed_out(queue)), (vec![3, 4], 2));
    }
    in_all_orders!(waits, |builder| builder.capacity(2));
}

#[test]
fn a_push_finds_the_room_of_items_that_have_ended() {
    fn check<O: Order<u32>>(clock: &ManualClock, queue: &Queue<u32, O>) {
        let mut handle = queue.handle();
        handle.push_batch(0..3).unwrap();
        assert!(queue.push(3).is_err());
        clock.advance(TTL);
        queue.push(3).unwrap();
        handle.push_batch(4..6).unwrap();
        assert!(handle.push(6).is_err());
        assert_eq!(timed_out(queue), 3);
    }
    in_all_orders!(check, |builder| builder.capacity(3));
}

/// The room of an item that comes back when its time is over.
#[test]
fn a_push_that_waits_for_room_goes_on_when_an_item_that_has_ended_comes_back() {
    fn check<O: Order<u32>>(clock: &ManualClock, queue: &Queue<u32, O>) {
        let (mut worker, mut pusher) = (queue.handle(), queue.handle());
        queue.push(1).unwrap();
        let tx = worker.begin();
        tx.pop().unwrap();
        let mut push = Task::waiting(pusher.push_async(2));
        clock.advance(TTL);
        push.assert_waits();
        tx.abort();
        assert!(push.was_woken());
        push.output().unwrap();
    }
    in_all_orders!(check, |builder| builder.capacity(1).max_attempts(9));
}

/// Its items are staged for as long as they live.
#[test]
fn a_push_that_waits_for_room_goes_on_when_a_late_commit_has_published_what_has_ended() {
    fn check<O: Order<u32>>(clock: &ManualClock, queue: &Queue<u32, O>) {
        let (mut worker, mut pusher) = (queue.handle(), queue.handle());
        let tx = worker.begin();
        tx.push(1).unwrap();
        let mut push = Task::waiting(pusher.push_async(2));
        clock.advance(2 * TTL);
        push.assert_waits();
        assert!(tx.try_commit().is_ok());
        assert!(push.was_woken());
        push.output().unwrap();
        assert_eq!((drain(queue), timed_out(queue)), (vec![2], 1));
    }
    in_all_orders!(check, |builder| builder.capacity(1));
}

#[test]
fn waits_for_an_idle_or_drained_queue_end_with_the_last_item() {
    fn check<O: Order<u32>>(clock: &ManualClock, queue: &Queue<u32, O>) {
        let mut handle = queue.handle();
        let mut pop = Task::waiting(handle.pop_async());
        queue.pause();
        queue.push(1).unwrap();
        let mut idle = Task::waiting(queue.wait_idle_async());
        clock.advance(SECOND);
        queue.push(2).unwrap();
        pop.assert_waits();
        queue.close();
        pop.assert_waits();
        clock.advance(9 * SECOND);
        pop.assert_waits();
        idle.assert_waits();
        clock.advance(SECOND);
        assert!(idle.was_woken() && pop.was_woken());
        assert_eq!(pop.output(), Err(PopError::Closed));
        idle.output();
        assert_eq!(timed_out(queue), 2);
    }
    in_all_orders!(check, |builder| builder);
}

/// Also if the wait for an idle queue is the only one.
#[test]
fn a_wait_for_an_idle_queue_needs_nobody_else() {
    fn check<O: Order<u32>>(clock: &ManualClock, queue: &Queue<u32, O>) {
        queue.push(1).unwrap();
        let mut idle = Task::waiting(queue.wait_idle_async());
        clock.advance(TTL);
        assert!(idle.was_woken());
        idle.output();
    }
    in_all_orders!(check, |builder| builder);
}

#[test]
fn a_waiter_gets_no_item_that_has_ended() {
    let (clock, builder) = builder();
    let queue = builder.build();
    let mut handle = queue.handle();
    let mut worker = queue.handle();
    let tx = handle.begin();
    tx.push(1).unwrap();
    let mut pop = Task::waiting(worker.pop_async());
    clock.advance(TTL);
    tx.commit();
    pop.assert_waits();
    queue.push(2).unwrap();
    assert_eq!(pop.output(), Ok(2));
}

#[test]
fn what_has_ended_can_become_a_dead_letter_and_live_again() {
    fn check<O: Order<u32>>(clock: &ManualClock, queue: &Queue<u32, O>) {
        queue.push(1).unwrap();
        clock.advance(TTL);
        assert_eq!(queue.pop(), Err(PopError::Empty));
        let stats = queue.stats();
        assert_eq!((stats.dead, stats.timed_out), (1, 0));
        stats.check().unwrap();
        {
            let mut letters = queue.dead_letters();
            assert_eq!(letters.len(), 1);
            let letter = letters.next().unwrap();
            assert_eq!((letter.item, letter.attempts), (1, 0));
            assert_eq!(letter.reason, Reason::TimedOut);
        }
        queue.push(2).unwrap();
        clock.advance(TTL);
        assert!(queue.is_empty());
        assert_eq!(queue.dead_letters().requeue_all(), 1);
        clock.advance(TTL / 2);
        assert_eq!(queue.pop(), Ok(2));
    }
    in_all_orders!(check, |builder| builder.on_expired(AfterTtl::DeadLetter));
}

#[test]
fn without_room_for_letters_items_are_dropped() {
    let (clock, builder) = builder();
    let builder = builder.on_expired(AfterTtl::DeadLetter).max_dead_letters(1);
    let queue = builder.capacity(3).build();
    queue.handle().push_batch(0..3).unwrap();
    clock.advance(TTL);
    assert!(queue.is_empty());
    let stats = queue.stats();
    assert_eq!((stats.dead, stats.timed_out), (1, 2));
    stats.check().unwrap();
    queue.handle().push_batch(0..3).unwrap();
}

/// Without any call but pushes.
#[test]
fn pushes_alone_keep_few_items_that_have_ended() {
    fn check<O: Order<Tracked>>(clock: &ManualClock, queue: &Queue<Tracked, O>) {
        const ITEMS: usize = 1_000;
        let ledger = Ledger::new(ITEMS);
        let mut handle = queue.handle();
        for (nth, item) in ledger.items().enumerate() {
            match nth % 2 {
                0 => handle.push(item).ok().unwrap(),
                _ => queue.push(item).ok().unwrap(),
            }
            clock.advance(TTL / 100);
        }
        let alive = ledger.drops().iter().filter(|&&drops| drops == 0).count();
        assert!((100..=102).contains(&alive), "{alive}");
    }
    let (clock, builder) = builder();
    check(&clock, &builder.build());
    let (clock, builder) = self::builder();
    check(&clock, &builder.lifo().build());
    let (clock, builder) = self::builder();
    check(
        &clock,
        &builder.fair_by(|item: &Tracked| item.id % 10).build(),
    );
    let (clock, builder) = self::builder();
    check(&clock, &builder.fair_by(|item: &Tracked| item.id).build());
    let (clock, builder) = self::builder();
    check(&clock, &builder.by_priority().age_after(SECOND).build());
}

#[test]
fn many_items_end_at_once() {
    fn check<O: Order<u32>>(clock: &ManualClock, queue: &Queue<u32, O>) {
        let mut handle = queue.handle();
        handle.push_batch(0..1_000).unwrap();
        clock.advance(TTL);
        assert_at_rest(queue, 0, 0);
        handle.push_batch(0..1_000).unwrap();
        clock.advance(TTL);
        handle.push(7).unwrap();
        assert_eq!((drain(queue), timed_out(queue)), (vec![7], 2_000));
    }
    in_all_orders!(check, |builder| builder);
}

/// Its destructor pushes another one.
struct Pushes(Option<Arc<Queue<Pushes>>>);
impl Drop for Pushes {
    fn drop(&mut self) {
        if let Some(queue) = self.0.take() {
            queue.push(Pushes(None)).ok().unwrap();
        }
    }
}

#[test]
fn a_destructor_may_panic_and_use_the_queue() {
    let (clock, builder) = builder();
    let queue = builder.capacity(9).build();
    let ledger = Ledger::new(9);
    queue
        .handle()
        .push_batch(ledger.items_with_bomb(4))
        .ok()
        .unwrap();
    clock.advance(TTL);
    assert_eq!(queue.pop().err(), Some(PopError::Empty));
    ledger.assert_each_dropped_once();
    assert_at_rest(&queue, 0, 0);

    let (clock, builder) = self::builder();
    let queue = Arc::new(builder.capacity(1).build());
    queue.push(Pushes(Some(Arc::clone(&queue)))).ok().unwrap();
    clock.advance(TTL);
    assert_eq!(queue.len(), 1); // the one that the destructor has pushed
}

/// An item that is shown is in the queue, and ends afterwards.
#[test]
fn what_is_shown_when_it_ends_is_dropped_afterwards() {
    fn check<O: Order<u32>>(clock: &ManualClock, queue: &Queue<u32, O>) {
        queue.handle().push_batch(0..100).unwrap();
        let mut first = true;
        let shown = queue.peek_each(|_| {
            if mem::take(&mut first) {
                clock.advance(TTL);
                assert!(queue.pop().is_err());
            }
        });
        assert!(shown >= 1);
        assert_at_rest(queue, 0, 0);
        assert_eq!(timed_out(queue), 100);
    }
    in_all_orders!(check, |builder| builder);
}

#[test]
fn an_item_whose_lease_expires_ends_then() {
    fn check<O: Order<u32>>(clock: &ManualClock, queue: &Queue<u32, O>) {
        let (mut worker, mut pusher) = (queue.handle(), queue.handle());
        queue.push(1).unwrap();
        clock.advance(SECOND);
        let tx = worker.begin();
        tx.pop().unwrap();
        let mut push = Task::waiting(pusher.push_async(2));
        clock.advance(TTL);
        assert!(push.was_woken());
        push.output().unwrap();
        assert!(tx.try_commit().is_err());
        assert_eq!((drain(queue), timed_out(queue)), (vec![2], 1));
    }
    let leased = || {
        let (clock, builder) = builder();
        (clock, builder.capacity(1))
    };
    let (clock, builder) = leased();
    check(&clock, &builder.leased(TTL).build());
    let (clock, builder) = leased();
    check(&clock, &builder.lifo().leased(TTL).build());
    let (clock, builder) = leased();
    let builder = builder.fair_by(|item: &u32| *item).leased(TTL);
    check(&clock, &builder.serial().build());
}

/// Whoever takes an item decides: a sweep does not find one that is behind a younger one.
#[test]
fn what_is_behind_a_younger_item_is_not_delivered() {
    fn check<O: Order<u32>>(clock: &ManualClock, queue: &Queue<u32, O>) {
        let takes: [Take<O>; 3] = [
            |queue| queue.pop().ok(),
            |queue| queue.take().ok()?.try_ack().ok(),
            |queue| {
                let mut handle = queue.handle();
                let tx = handle.begin();
                let item = *tx.pop().ok()?;
                tx.try_commit().ok()?;
                Some(item)
            },
        ];
        for take in takes {
            let before = timed_out(queue);
            queue.push(0).unwrap();
            let mut held = vec![queue.take().unwrap()];
            clock.advance(TTL / 2);
            queue.push(3).unwrap();
            held.push(queue.take().unwrap());
            // The older one is at the tail, or below.
            for delivery in held.into_iter().rev() {
                delivery.nack_to(ReturnTo::Tail);
            }
            clock.advance(TTL / 2);
            let found = [take(queue), take(queue)];
            assert_eq!(found, [Some(3), None]);
            assert_at_rest(queue, 0, 0);
            assert_eq!(timed_out(queue), before + 1);
        }
    }
    in_all_orders!(check, |builder| builder);
    in_all_orders!(check, |builder| builder.capacity(2));
}

/// The first item is removed, or the second one: the times of the others are found, and the timer waits for them.
#[test]
fn what_was_removed_hides_no_item_that_ends() {
    fn check<O: Order<u32>>(clock: &ManualClock, queue: &Queue<u32, O>) {
        for removed in [3, 6] {
            let start = clock.now();
            for item in [3, 6, 9] {
                queue.push(item).unwrap();
                clock.advance(SECOND);
            }
            assert_eq!(queue.retain(|item, _| *item != removed), 1);
            assert_eq!(queue.len(), 2);
            let mut left = 2;
            for (pushed, item) in (0..).zip([3, 6, 9]) {
                clock.advance(start + SECOND * pushed + TTL - clock.now());
                left -= usize::from(item != removed);
                assert_eq!(queue.len(), left);
                let due = queue.next_due();
                assert!(left == 0 || due >= Some(clock.now() + SECOND), "{due:?}");
            }
        }
        assert_eq!(timed_out(queue), 4);
    }
    in_all_orders!(check, |it| it);
}

#[test]
fn items_have_times_of_their_own() {
    fn check<O: Order<u32>>(clock: &ManualClock, queue: &Queue<u32, O>) {
        let mut handle = queue.handle();
        for _ in 0..3 {
            let before = timed_out(queue);
            handle.expires_in(SECOND).push(1).unwrap();
            handle.expires_in(2 * SECOND).push_batch([2, 3]).unwrap();
            let tx = handle.begin();
            tx.expires_in(3 * SECOND).push(4).unwrap();
            tx.try_commit().unwrap();
            handle.push(5).unwrap();
            handle.expires_in(TTL * 9).push(6).unwrap(); // no longer than others
            let left = |time: Duration, count: usize| {
                clock.advance(time);
                assert_at_rest(queue, 6 - count, 0);
                assert_eq!(timed_out(queue) - before, count as u64);
            };
            left(NEARLY, 0);
            left(NANO, 1);
            left(SECOND, 3);
            left(SECOND, 4);
            left(6 * SECOND, 4);
            left(SECOND, 6);
            queue.expires_in(SECOND).push(7).unwrap();
            queue.push(8).unwrap();
            clock.advance(SECOND);
            assert_eq!(drain(queue), [8]);
        }
    }
    in_all_orders!(check, |builder| builder.max_ttl(TTL));
}

/// Behind an item that lives longer.
#[test]
fn an_item_that_is_over_is_dropped_where_it_would_be_next() {
    let (clock, builder) = builder();
    let queue = builder.max_ttl(TTL).capacity(2).build();
    queue.push(1).unwrap();
    queue.expires_in(SECOND).push(2).unwrap();
    clock.advance(SECOND);
    assert!(queue.push(3).unwrap_err().is_full());
    assert_eq!(queue.pop(), Ok(1));
    assert_eq!(queue.pop(), Err(PopError::Empty));
    assert_at_rest(&queue, 0, 0);
    assert_eq!(timed_out(&queue), 1);
}

#[test]
fn the_times_of_pushes_are_those_of_the_clock() {
    fn check<O: Order<u32>>(clock: &ManualClock, queue: &Queue<u32, O>) {
        let pushed = clock.now();
        queue.expires_in(4 * SECOND).push(1).unwrap();
        clock.advance(SECOND);
        assert_eq!(queue.stats().oldest, Some(SECOND));
        queue.retain(|_, queued| queued.waited == Some(SECOND));
        let delivery = queue.take().unwrap();
        assert_eq!(delivery.waited(), Some(SECOND));
        delivery.nack();
        clock.advance(3 * SECOND);
        assert_at_rest(queue, 0, 0);
        let letter = queue.dead_letters().next().unwrap();
        assert_eq!((letter.item, letter.pushed_at), (1, Some(pushed)));
    }
    in_all_orders!(check, |builder| builder
        .max_ttl(TTL)
        .on_expired(AfterTtl::DeadLetter));
}

#[test]
fn a_scheduled_item_with_a_time_of_its_own_lives_from_its_due_time_on() {
    fn check<O: Order<u32>>(clock: &ManualClock, queue: &Queue<u32, O>) {
        let due = queue.now() + SECOND;
        queue.at(due).expires_in(2 * SECOND).push(1).unwrap();
        queue.expires_in(TTL / 2).at(due).push(2).unwrap();
        clock.advance(SECOND);
        assert_at_rest(queue, 2, 0);
        clock.advance(SECOND + NEARLY);
        assert_at_rest(queue, 2, 0);
        clock.advance(NANO);
        assert_at_rest(queue, 1, 0);
        clock.advance(3 * SECOND);
        assert_at_rest(queue, 0, 0);
    }
    in_all_orders!(check, |builder| builder.max_ttl(TTL));
}

#[test]
#[should_panic(expected = "expires_in in a queue that was built without `max_ttl`")]
fn times_of_their_own_are_an_option() {
    let (_clock, builder) = builder::<u32>();
    let _ = builder.unique_by(|item| *item).build().expires_in(SECOND);
}

/// An item with a time of its own is kept as if pushed earlier, when another one was.
#[test]
fn items_of_the_same_age_are_told_apart() {
    fn check<O: Order<u32>>(clock: &ManualClock, queue: &Queue<u32, O>) {
        queue.push(1).unwrap();
        clock.advance(TTL / 2);
        queue.expires_in(TTL / 2).push(2).unwrap();
        clock.advance(SECOND);
        let held = [(); 2].map(|()| queue.take().unwrap());
        let mut waited = held.map(|it| (*it, it.waited().unwrap().as_secs()));
        waited.sort_unstable();
        assert_eq!(waited, [(1, 6), (2, 1)]);
    }
    in_all_orders!(check, |builder| builder.max_ttl(TTL));
}
