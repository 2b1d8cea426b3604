//! The order of fair queues.
//!
//! Nondeterministic tests with several threads are in `threads`, unusual keys in `keys`, limits in `limits`, and
//! queues that are serial per key in `serial`.

mod keys;
mod limited;
mod limits;
mod serial;
mod threads;
mod visits;

use std::time::Duration;

use crate::common::failing::{letters, SECOND};
use crate::common::{assert_at_rest, drain, panics};
use requeue::{
    commit_all, Backoff, Builder, ByKey, FairQueue, FairSnapshot, ManualClock, Order, PopError,
    Queue, Reason,
};

pub(crate) type Names = FairQueue<char, &'static str>;

const _: () = {
    const fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<FairQueue<String, std::cell::Cell<u8>>>();
    is_send_and_sync::<Builder<std::cell::Cell<u8>, ByKey<String, std::cell::Cell<u8>>>>();
    is_send_and_sync::<FairSnapshot<String>>();
};

/// The key of an item is the first letter of its name.
pub(crate) fn names() -> Builder<&'static str, ByKey<char, &'static str>> {
    Queue::builder().fair_by(|name: &&str| name.chars().next().unwrap())
}

/// A queue of names, separated by blanks, pushed in that order by one handle.
pub(crate) fn filled<O: Order<&'static str>>(
    builder: Builder<&'static str, O>,
    items: &'static str,
) -> Queue<&'static str, O> {
    let queue = builder.build();
    push(&queue, items);
    queue
}

pub(crate) fn push<O: Order<&'static str>>(queue: &Queue<&'static str, O>, items: &'static str) {
    queue.handle().push_batch(items.split_whitespace()).unwrap();
}

/// Takes the next item, and aborts.
#[track_caller]
pub(crate) fn abort_one(queue: &Names) {
    let mut worker = queue.handle();
    let tx = worker.begin();
    tx.pop().unwrap();
    tx.abort();
}

/// Takes as many items as there are names, and compares them.
#[track_caller]
pub(crate) fn pull<O: Order<&'static str>>(queue: &Queue<&'static str, O>, items: &str) {
    for item in items.split_whitespace() {
        assert_eq!(queue.pop(), Ok(item));
    }
}

/// Like [`pull`], and then the queue is empty.
#[track_caller]
pub(crate) fn pull_all<O: Order<&'static str>>(queue: &Queue<&'static str, O>, items: &str) {
    pull(queue, items);
    assert_eq!(queue.pop(), Err(PopError::Empty));
    assert_at_rest(queue, 0, 0);
}

#[test]
fn each_round_serves_each_key_once() {
    let queue = filled(names(), "A1 B1 A2 A3 B2 C1 C2 C3 C4");
    pull_all(&queue, "A1 B1 C1 A2 B2 C2 A3 C3 C4");
}

/// The traces in the documentation of clj-queue-by.
mod traces {
    use super::{names, pull, pull_all, push};

    #[test]
    fn many_items_of_one_key_do_not_delay_another_key() {
        let queue = names().build();
        push(&queue, "a1 a2 a3 bx");
        pull_all(&queue, "a1 bx a2 a3");
    }

    #[test]
    fn a_served_key_that_returns_is_served_in_the_next_round() {
        let queue = names().build();
        push(&queue, "a1 bx");
        pull(&queue, "a1");
        push(&queue, "a2 a3");
        pull_all(&queue, "bx a2 a3");
    }

    #[test]
    fn a_round_continues_while_keys_arrive() {
        let queue = names().build();
        push(&queue, "a1 bx a2");
        pull(&queue, "a1");
        push(&queue, "a3 a4");
        pull(&queue, "bx");
        push(&queue, "by");
        pull_all(&queue, "a2 by a3 a4");
    }
}

#[test]
fn all_ways_to_push_and_to_pop_keep_the_order() {
    let queue = names().build();
    let mut handle = queue.handle();
    handle.push("a1").unwrap();
    let tx = handle.begin();
    tx.push("a2").unwrap();
    tx.push("b1").unwrap();
    tx.commit();
    handle.push_batch(["b2", "c1"]).unwrap();
    handle.push_blocking("c2").unwrap();
    assert_eq!(handle.pop(), Ok("a1"));
    let mut batch = Vec::new();
    assert_eq!(handle.pop_batch(2, &mut batch), 2);
    assert_eq!(batch, ["b1", "c1"]);
    let tx = handle.begin();
    assert_eq!(*tx.pop_blocking().unwrap(), "a2");
    let held: Vec<_> = tx.pop_batch(9).map(|item| *item).collect();
    assert_eq!(held, ["b2", "c2"]);
    assert!(tx.commit().eq(["a2", "b2", "c2"]));
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn staged_and_aborted_pushes_do_not_affect_the_round() {
    let queue = names().build();
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let tx = a.begin();
    tx.push("a1").unwrap();
    b.push("b1").unwrap();
    assert_eq!(drain(&queue), ["b1"]);
    tx.abort();
    assert!(queue.is_empty());
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn aborted_items_keep_their_position_in_the_round() {
    let queue = filled(names(), "a1 a2 b1 b2 c1");
    let mut worker = queue.handle();
    for taken in 1..=5 {
        let tx = worker.begin();
        assert_eq!(tx.pop_batch(taken).len(), taken);
        tx.abort();
        assert_at_rest(&queue, 5, 0);
    }
    pull_all(&queue, "a1 b1 c1 a2 b2");
}

#[test]
fn items_returned_late_are_served_at_once_at_no_cost_for_their_key() {
    let queue = filled(names(), "a1 a2 a3 b1 b2 b3");
    let mut worker = queue.handle();
    let tx = worker.begin();
    assert_eq!(*tx.pop().unwrap(), "a1");
    pull(&queue, "b1 a2");
    drop(tx);
    pull_all(&queue, "a1 b2 a3 b3");
}

#[test]
fn two_aborted_transactions_restore_the_round() {
    let queue = filled(names(), "a1 a2 b1 b2");
    let (mut first, mut second) = (queue.handle(), queue.handle());
    let (first, second) = (first.begin(), second.begin());
    first.pop().unwrap();
    second.pop().unwrap();
    second.abort();
    first.abort();
    let mut left = drain(&queue);
    left[..2].sort_unstable();
    assert_eq!(left, ["a1", "b1", "a2", "b2"]);
}

#[test]
fn a_peek_does_not_affect_the_round() {
    let queue = filled(names(), "a1 a2 b1");
    let mut handle = queue.handle();
    for _ in 0..3 {
        assert_eq!(handle.peek_with(|item| *item), Ok("a1"));
        let mut seen = Vec::new();
        assert_eq!(queue.peek_each(|item| seen.push(*item)), 3);
        seen.sort_unstable();
        assert_eq!(seen, ["a1", "a2", "b1"]);
    }
    pull_all(&queue, "a1 b1 a2");
}

#[test]
fn a_key_is_served_as_often_in_a_row_as_its_weight() {
    let weigh = |key: &char| match key {
        'a' => 3,
        'z' => 0,
        _ => 1,
    };
    let queue = filled(
        names().weight(weigh),
        "a1 a2 a3 a4 a5 a6 a7 b1 b2 b3 z1 z2 z3",
    );
    let mut worker = queue.handle();
    let tx = worker.begin();
    assert_eq!(tx.pop_batch(2).len(), 2);
    tx.abort();
    pull_all(&queue, "a1 a2 a3 b1 z1 a4 a5 a6 b2 z2 a7 b3 z3");
}

#[test]
fn any_weight_works_for_returned_items() {
    let queue = filled(names().weight(|_| u32::MAX), "a1");
    let mut handles = [(); 4].map(|()| queue.handle());
    let [first, second, third, last] = &mut handles;
    let mut held = Vec::new();
    for (handle, next) in [(first, "a2"), (second, "a3"), (third, "a4")] {
        let tx = handle.begin();
        tx.pop().unwrap();
        held.push(tx);
        queue.push(next).unwrap();
    }
    queue.push("a5").unwrap();
    let tx = last.begin();
    assert_eq!(*tx.pop().unwrap(), "a4");
    held.push(tx);
    while let Some(tx) = held.pop() {
        tx.abort();
    }
    pull_all(&queue, "a1 a2 a3 a4 a5");
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn a_retry_comes_first_when_its_time_has_come() {
    let clock = ManualClock::new();
    let queue = filled(names().clock(clock.clone()), "a1 a2 b1 b2");
    let mut worker = queue.handle();
    let tx = worker.begin();
    tx.retry_after(tx.pop().unwrap(), SECOND).unwrap();
    tx.commit();
    pull(&queue, "b1 a2");
    clock.advance(SECOND);
    pull_all(&queue, "a1 b2");
}

#[test]
fn the_oldest_item_is_that_in_the_order() {
    let clock = ManualClock::new();
    let queue = names().clock(clock.clone()).timestamps().build();
    clock.advance(SECOND);
    queue.push("a1").unwrap();
    clock.advance(SECOND);
    queue.push("a2").unwrap();
    clock.advance(SECOND);
    assert_eq!(queue.stats().oldest, Some(2 * SECOND));
    pull(&queue, "a1");
    assert_eq!(queue.stats().oldest, Some(SECOND));
    pull(&queue, "a2");
    assert_eq!(queue.stats().oldest, None);
}

#[test]
fn backoff_attempts_and_dead_letters_are_those_of_any_queue() {
    let clock = ManualClock::new();
    let builder = names().clock(clock.clone()).timestamps();
    let builder = builder.max_attempts(2).backoff(Backoff::fixed(SECOND));
    let queue = filled(builder, "a1 a2 b1");
    assert_eq!(queue.stats().oldest, Some(Duration::ZERO));
    abort_one(&queue);
    assert_eq!(queue.stats().delayed, 1);
    pull(&queue, "b1");
    clock.advance(SECOND);
    assert_eq!(queue.stats().oldest, Some(SECOND));
    let mut worker = queue.handle();
    let tx = worker.begin();
    let item = tx.pop().unwrap();
    assert_eq!((*item, item.attempts()), ("a1", 2));
    drop(tx);
    pull_all(&queue, "a2");
    assert_eq!(queue.dead_letters().len(), 1);
    queue.dead_letters().requeue_all();
    pull_all(&queue, "a1");
    assert!(letters(&queue).is_empty());
}

#[test]
fn a_panic_restores_the_round() {
    let queue = filled(names(), "a1 b1 a2");
    let mut worker = queue.handle();
    assert!(panics(|| {
        let tx = worker.begin();
        tx.pop_batch(2);
        panic!("the worker fails");
    }));
    pull_all(&queue, "a1 b1 a2");
}

#[test]
fn an_expired_lease_restores_the_round() {
    let clock = ManualClock::new();
    let builder = names().clock(clock.clone()).leased(SECOND);
    let queue = filled(builder, "a1 a2 b1 b2");
    let mut slow = queue.handle();
    let tx = slow.begin();
    assert_eq!(*tx.pop().unwrap(), "a1");
    pull(&queue, "b1");
    clock.advance(SECOND);
    pull_all(&queue, "a1 b2 a2");
    assert!(tx.try_commit().is_err());
    queue.stats().check().unwrap();
}

#[test]
fn a_bounded_queue_has_room_for_all_keys_together() {
    let queue = filled(names().capacity(3), "a1 a2 b1");
    let refused = queue.push("c1").unwrap_err();
    assert!(refused.is_full());
    assert_eq!(queue.key_at_limit(&refused.into_inner()), None);
    pull(&queue, "a1");
    queue.push("c1").unwrap();
    pull_all(&queue, "b1 a2 c1");
}

#[test]
fn a_closed_queue_is_drained_in_order() {
    let queue = filled(names(), "a1 a2 b1");
    let mut worker = queue.handle();
    let tx = worker.begin();
    tx.pop().unwrap();
    queue.close();
    assert!(queue.push("c1").unwrap_err().is_closed());
    assert_eq!(queue.pop(), Ok("b1"));
    assert_eq!(queue.pop(), Ok("a2"));
    assert_eq!(queue.pop(), Err(PopError::Empty));
    tx.abort();
    assert!(queue.iter().eq(["a1"]));
    assert_eq!(queue.pop(), Err(PopError::Closed));
    queue.stats().check().unwrap();
}

#[test]
fn a_fair_queue_and_a_plain_one_commit_together() {
    let fair = filled(names(), "a1 a2 b1");
    let plain = Queue::unbounded();
    plain.push(1).unwrap();
    let (mut worker, mut other) = (fair.handle(), plain.handle());
    let (tx, other_tx) = (worker.begin(), other.begin());
    assert_eq!(*tx.pop().unwrap(), "a1");
    tx.push("c1").unwrap();
    assert_eq!(*other_tx.pop().unwrap(), 1);
    other_tx.push(2).unwrap();
    let (names, numbers) = commit_all((tx, other_tx));
    assert!(names.eq(["a1"]) && numbers.eq([1]));
    pull_all(&fair, "b1 a2 c1");
    assert_eq!(drain(&plain), [2]);
    plain.stats().check().unwrap();
}

#[test]
fn a_snapshot_shows_the_round_and_the_items_of_each_key() {
    let queue = filled(names(), "a1 b1 c1 a2 a3");
    let tell = || {
        let snapshot = queue.keys();
        let round: String = snapshot.round().collect();
        let keys: Vec<_> = snapshot.iter().map(|(key, items)| (*key, items)).collect();
        (round, keys)
    };
    assert_eq!(tell(), (String::new(), vec![('a', 3), ('b', 1), ('c', 1)]));
    pull(&queue, "a1");
    push(&queue, "d1");
    let keys = vec![('b', 1), ('c', 1), ('a', 2), ('d', 1)];
    assert_eq!(tell(), ("bc".to_owned(), keys));
    let mut worker = queue.handle();
    let tx = worker.begin();
    tx.pop_batch(3);
    assert_eq!(tell(), ("d".to_owned(), vec![('d', 1), ('a', 1)]));
    tx.abort();
    let keys = vec![('b', 1), ('c', 1), ('a', 2), ('d', 1)];
    assert_eq!(tell().1, keys);
    assert!(format!("{:?}", queue.keys()).contains("('b', 1)"));
    pull_all(&queue, "b1 c1 a2 d1 a3");
    assert_eq!(tell(), (String::new(), vec![]));
}

#[test]
fn clones_are_the_same_queue_and_builders_make_others() {
    let builder = names().name("names");
    let queue = filled(builder.clone(), "a1");
    assert_eq!(builder.build().pop(), Err(PopError::Empty));
    assert!(format!("{queue:?}").contains("names"));
    pull_all(&queue.clone(), "a1");
    assert_eq!(queue.key_of(&"xyz"), 'x');
}

#[test]
fn dead_letters_leave_their_key() {
    let queue = filled(names().max_attempts(1).key_capacity(1), "a1");
    queue.push("a2").unwrap_err();
    abort_one(&queue);
    queue.push("a2").unwrap();
    let [(letter, 1, Reason::Aborted)] = letters(&queue)[..] else {
        panic!("one item died");
    };
    assert_eq!(letter, "a1");
    pull_all(&queue, "a2");
}
