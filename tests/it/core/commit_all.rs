//! One transaction over several queues.

use std::collections::HashSet;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use crate::common::failing::{leased, SECOND};
use crate::common::{assert_at_rest, drain, filled, panics};
use requeue::{commit_all, try_commit_all, Expired, Queue};

#[test]
fn two_queues_of_different_types() {
    let (numbers, words) = (filled([1, 2]), filled(["one"]));
    let (mut a, mut b) = (numbers.handle(), words.handle());
    let (tx_a, tx_b) = (a.begin(), b.begin());
    assert_eq!(tx_a.pop_batch(2).len(), 2);
    tx_a.push(3).unwrap();
    tx_b.pop().unwrap();
    tx_b.push("three").unwrap();
    tx_b.push("four").unwrap();
    assert_at_rest(&numbers, 0, 2);
    assert_at_rest(&words, 0, 1);
    let (taken_a, taken_b) = commit_all((tx_a, tx_b));
    assert_eq!(taken_a.collect::<Vec<_>>(), [1, 2]);
    assert_eq!(taken_b.collect::<Vec<_>>(), ["one"]);
    assert_at_rest(&numbers, 1, 0);
    assert_at_rest(&words, 2, 0);
    assert_eq!(drain(&numbers), [3]);
    assert_eq!(drain(&words), ["three", "four"]);
}

#[test]
fn three_queues_of_which_one_only_gives_and_one_does_nothing() {
    let (jobs, done, idle) = (filled([5_u8]), Queue::unbounded(), Queue::<()>::unbounded());
    let (mut a, mut b, mut c) = (jobs.handle(), done.handle(), idle.handle());
    let (tx_a, tx_b, tx_c) = (a.begin(), b.begin(), c.begin());
    tx_b.push(format!("job {}", *tx_a.pop().unwrap())).unwrap();
    let (taken, pushed, nothing) = commit_all((tx_a, tx_b, tx_c));
    assert_eq!((taken.len(), pushed.len(), nothing.len()), (1, 0, 0));
    assert!(taken.eq([5]));
    assert!(jobs.is_empty() && idle.is_empty());
    assert_eq!(drain(&done), ["job 5"]);
}

#[test]
fn six_queues_of_different_types() {
    let (bytes, words, letters) = (filled([1_u8]), filled([2_u64]), filled(['c']));
    let (slices, strings) = (filled(["slice"]), filled([String::from("string")]));
    let arrays = filled([[6; 9]]);
    let (mut one, mut two, mut three) = (bytes.handle(), words.handle(), letters.handle());
    let (mut four, mut five, mut six) = (slices.handle(), strings.handle(), arrays.handle());
    let (one, two, three) = (one.begin(), two.begin(), three.begin());
    let (four, five, six) = (four.begin(), five.begin(), six.begin());
    one.push(*one.pop().unwrap() + 10).unwrap();
    two.push(*two.pop().unwrap() + 10).unwrap();
    three
        .push(three.pop().unwrap().to_ascii_uppercase())
        .unwrap();
    four.push(&four.pop().unwrap()[1..]).unwrap();
    five.push(five.pop().unwrap().repeat(2)).unwrap();
    six.push(six.pop().unwrap().map(|n| n + 1)).unwrap();
    let taken = commit_all((one, two, three, four, five, six));
    assert!(taken.0.eq([1]) && taken.1.eq([2]) && taken.2.eq(['c']));
    assert!(taken.3.eq(["slice"]) && taken.4.eq(["string"]) && taken.5.eq([[6; 9]]));
    assert_eq!((drain(&bytes), drain(&words)), (vec![11], vec![12]));
    assert_eq!((drain(&letters), drain(&slices)), (vec!['C'], vec!["lice"]));
    assert_eq!(drain(&strings), ["stringstring"]);
    assert_eq!(drain(&arrays), [[7; 9]]);
}

#[test]
fn one_queue_twice_through_two_handles() {
    let queue = filled([1, 2]);
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let (tx_a, tx_b) = (a.begin(), b.begin());
    assert_eq!(tx_a.pop().as_deref(), Ok(&1));
    assert_eq!(tx_b.pop().as_deref(), Ok(&2));
    tx_a.push(10).unwrap();
    tx_b.push(20).unwrap();
    assert!(queue.is_empty());
    let (taken_a, taken_b) = commit_all((tx_a, tx_b));
    assert!(taken_a.eq([1]) && taken_b.eq([2]));
    assert_at_rest(&queue, 2, 0);
    let mut left = drain(&queue);
    left.sort_unstable();
    assert_eq!(left, [10, 20]);
}

#[test]
fn joint_commits_keep_their_place_in_the_order_of_a_handle() {
    let (queue, other) = (Queue::unbounded(), Queue::unbounded());
    let (mut a, mut b) = (queue.handle(), other.handle());
    for round in 0..100 {
        a.push(2 * round).unwrap();
        let (tx_a, tx_b) = (a.begin(), b.begin());
        tx_a.push(2 * round + 1).unwrap();
        tx_b.push(round).unwrap();
        commit_all((tx_a, tx_b));
    }
    assert_eq!(drain(&queue), (0..200).collect::<Vec<_>>());
    assert_eq!(drain(&other), (0..100).collect::<Vec<_>>());
}

#[test]
fn the_other_queue_may_be_gone_when_the_items_are_read() {
    let kept = Queue::unbounded();
    let mut handle = kept.handle();
    for item in 0..10 {
        let gone = Queue::unbounded();
        let mut other = gone.handle();
        let (tx, tx_gone) = (handle.begin(), other.begin());
        tx.push(item).unwrap();
        tx_gone.push(Box::new(item)).unwrap();
        commit_all((tx, tx_gone));
    }
    assert_eq!(drain(&kept), (0..10).collect::<Vec<_>>());
}

#[test]
fn a_panic_between_two_begins_aborts_both() {
    for panic_after in [1, 2] {
        let (numbers, words) = (filled([1, 2]), filled(["one", "two"]));
        let (mut a, mut b) = (numbers.handle(), words.handle());
        assert!(panics(|| {
            let tx_a = a.begin();
            tx_a.pop().unwrap();
            tx_a.push(3).unwrap();
            assert_ne!(panic_after, 1, "before the second begin");
            let tx_b = b.begin();
            tx_b.pop().unwrap();
            tx_b.push("three").unwrap();
            assert_ne!(panic_after, 2, "before the commit");
            commit_all((tx_a, tx_b));
        }));
        assert_eq!(drain(&numbers), [1, 2]);
        assert_eq!(drain(&words), ["one", "two"]);
        a.push(4).unwrap();
        assert_eq!(a.pop(), Ok(4));
    }
}

/// Collects the items of two queues and checks that no item of a pair arrives without the other.
struct Pairs<'q> {
    queues: [&'q Queue<u32>; 2],
    seen: [HashSet<u32>; 2],
}

impl Pairs<'_> {
    fn pop_pair(&mut self, first: usize) -> bool {
        let Ok(item) = self.queues[first].pop() else {
            return false;
        };
        self.seen[first].insert(item);
        let second = 1 - first;
        while !self.seen[second].contains(&item) {
            let other = self.queues[second].pop();
            self.seen[second].insert(other.expect("the other half of a pair is visible"));
        }
        true
    }
}

#[test]
fn opposite_naming_orders_neither_lock_up_nor_show_halves() {
    const ITEMS: u32 = 2_000;
    let (left, right) = (Queue::unbounded(), Queue::unbounded());
    let start = Barrier::new(3);
    let push_pairs = |first: &Queue<u32>, second: &Queue<u32>, ids: std::ops::Range<u32>| {
        let (mut a, mut b) = (first.handle(), second.handle());
        start.wait();
        for id in ids {
            let (tx_a, tx_b) = (a.begin(), b.begin());
            tx_a.push(id).unwrap();
            tx_b.push(id).unwrap();
            commit_all((tx_a, tx_b));
        }
    };
    thread::scope(|scope| {
        let one = scope.spawn(|| push_pairs(&left, &right, 0..ITEMS));
        let two = scope.spawn(|| push_pairs(&right, &left, ITEMS..2 * ITEMS));
        let mut pairs = Pairs {
            queues: [&left, &right],
            seen: Default::default(),
        };
        start.wait();
        let mut stopped = false;
        while pairs.pop_pair(0) | pairs.pop_pair(1) || !stopped {
            stopped = one.is_finished() && two.is_finished();
        }
        assert!((0..2 * ITEMS).all(|id| pairs.seen.iter().all(|seen| seen.contains(&id))));
    });
    assert_at_rest(&left, 0, 0);
    assert_at_rest(&right, 0, 0);
}

#[test]
fn any_number_in_a_vec() {
    for count in [0, 1, 2, 8, 9, 40] {
        let queues: Vec<_> = (0..count).map(|number| filled([number])).collect();
        let mut handles: Vec<_> = queues.iter().map(Queue::handle).collect();
        let transactions: Vec<_> = handles.iter_mut().map(|handle| handle.begin()).collect();
        for tx in &transactions {
            tx.push(*tx.pop().unwrap() + 100).unwrap();
        }
        assert!(queues.iter().all(Queue::is_empty));
        let taken = commit_all(transactions);
        assert!(taken.into_iter().flatten().eq(0..count));
        for (number, queue) in (100..).zip(&queues) {
            assert_eq!(drain(queue), [number]);
            assert_at_rest(queue, 0, 0);
        }
    }
}

#[test]
fn several_handles_of_one_queue_in_a_vec() {
    let queue = filled(0..20);
    let mut handles = vec![queue.handle(); 20];
    let transactions: Vec<_> = handles.iter_mut().map(|handle| handle.begin()).collect();
    for tx in &transactions {
        tx.push(*tx.pop().unwrap()).unwrap();
    }
    assert_eq!(
        commit_all(transactions).into_iter().flatten().sum::<i32>(),
        190
    );
    let mut left = drain(&queue);
    left.sort_unstable();
    assert!(left.into_iter().eq(0..20));
}

#[test]
fn a_vec_with_an_expired_lease_aborts_them_all() {
    let (clock, leased) = leased([1]);
    let other = Queue::builder().leased(Duration::MAX).build();
    other.push(2).unwrap();
    let mut handles = [other.handle(), leased.handle()];
    let transactions: Vec<_> = handles.iter_mut().map(|handle| handle.begin()).collect();
    for tx in &transactions {
        tx.push(*tx.pop().unwrap() + 10).unwrap();
    }
    clock.advance(SECOND);
    assert_eq!(leased.pop(), Ok(1));
    assert_eq!(try_commit_all(transactions).err(), Some(Expired));
    assert_eq!((drain(&other), drain(&leased)), (vec![2], vec![]));
}

#[test]
fn a_vec_of_leased_queues_commits_in_time() {
    let (clock, queue) = leased([1, 2]);
    let mut handles = [queue.handle(), queue.handle()];
    let transactions: Vec<_> = handles.iter_mut().map(|handle| handle.begin()).collect();
    for tx in &transactions {
        tx.pop().unwrap();
    }
    let taken = try_commit_all(transactions).unwrap();
    assert_eq!(taken.into_iter().flatten().sum::<u32>(), 3);
    clock.advance(SECOND);
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn a_vec_of_transactions_releases_its_places_under_limits() {
    let queue = Queue::builder().max_held(2).build();
    queue.push_batch(0..4).unwrap();
    let mut handles = [queue.handle(), queue.handle()];
    for _ in 0..2 {
        let transactions: Vec<_> = handles.iter_mut().map(|handle| handle.begin()).collect();
        for tx in &transactions {
            tx.pop().unwrap();
        }
        assert!(queue.pop().is_err());
        commit_all(transactions);
    }
    assert_at_rest(&queue, 0, 0);
}

/// A consumer that has popped the item of one queue finds those of all others, for more queues than a tuple has.
#[test]
fn a_vec_becomes_visible_at_once() {
    let queues: Vec<_> = (0..12).map(|_| Queue::unbounded()).collect();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut handles: Vec<_> = queues.iter().map(Queue::handle).collect();
            for round in 0..2_000 {
                let all: Vec<_> = handles.iter_mut().map(|handle| handle.begin()).collect();
                for tx in &all {
                    tx.push(round).unwrap();
                }
                commit_all(all);
            }
        });
        for round in 0..2_000 {
            // The tail of the first is published before those of the others.
            assert_eq!(queues[0].pop_blocking(), Ok(round));
            for queue in queues[1..].iter().rev() {
                assert_eq!(queue.pop(), Ok(round));
            }
        }
    });
    assert!(queues.iter().all(Queue::is_empty));
}
