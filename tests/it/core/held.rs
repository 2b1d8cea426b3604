//! `Queue::held`: the holders of a queue's items.

use std::mem;
use std::sync::mpsc::channel;
use std::thread;

use crate::common::failing::{clocked, SECOND};
use crate::common::{filled, panics};
use requeue::{Builder, Held, ManualClock, Order, Queue};

/// A queue of this many items whose handles are watched only if they have a name, and its clock.
fn with_clock(items: u32) -> (ManualClock, Queue<u32>) {
    let (clock, builder) = clocked();
    let queue = builder.build();
    queue.handle().push_batch(0..items).unwrap();
    (clock, queue)
}

fn names(held: &[Held]) -> Vec<Option<&str>> {
    held.iter().map(|held| held.worker.as_deref()).collect()
}

#[test]
fn each_transaction_that_holds_something_is_listed() {
    let (_clock, queue) = with_clock(10);
    let mut handles = [
        queue.named_handle("a"),
        queue.handle(),
        queue.named_handle("a"),
        queue.named_handle("idle"),
    ];
    let mut txs = Vec::new();
    for (handle, count) in handles.iter_mut().zip([1, 2, 3, 0]) {
        let tx = handle.begin();
        assert_eq!(tx.pop_batch(count).len(), count);
        tx.push(99).unwrap();
        txs.push(tx);
    }
    let mut held = queue.held();
    held.sort_by_key(|held| held.items);
    assert_eq!(names(&held), [Some("a"), None, Some("a")]);
    assert!(held.iter().map(|held| held.items).eq([1, 2, 3]));
    drop(txs.remove(2));
    txs.remove(0).commit();
    assert_eq!(names(&queue.held()), [None]);
    txs.clear();
    assert!(queue.held().is_empty());
}

#[test]
fn since_when_and_on_which_thread_is_known_of_those_with_a_name() {
    let (clock, queue) = with_clock(5);
    let mut named = queue.named_handle("worker");
    let mut nameless = queue.handle();
    clock.advance(SECOND);
    let since = queue.now();
    let (tx, other) = (named.begin(), nameless.begin());
    let first = tx.pop().unwrap();
    other.pop().unwrap();
    clock.advance(SECOND);
    tx.pop().unwrap();
    tx.retry_after(first, 10 * SECOND).unwrap();
    let held = queue.held();
    assert_eq!(names(&held), [Some("worker"), None]);
    assert_eq!((held[0].items, held[0].since), (1, Some(since)));
    assert_eq!(held[0].thread, Some(thread::current().id()));
    assert_eq!((held[1].since, held[1].thread), (None, None));
    drop(other);
    tx.commit();
    let tx = named.begin();
    tx.peek().unwrap().take();
    assert_eq!(queue.held()[0].since, Some(queue.now()));
}

#[test]
fn a_peek_is_listed_since_it_began() {
    let (clock, queue) = with_clock(2);
    let mut handle = queue.named_handle("observer");
    drop(handle.begin().pop());
    for _ in 0..2 {
        clock.advance(SECOND);
        let since = queue.now();
        let tx = handle.begin();
        let _peek = tx.peek().unwrap();
        clock.advance(SECOND);
        let held = queue.held();
        assert_eq!(names(&held), [Some("observer")]);
        assert_eq!((held[0].items, held[0].since), (1, Some(since)));
    }
}

#[test]
fn a_queue_with_leases_or_times_knows_all_its_workers() {
    fn knows<O: Order<u32>>(clock: &ManualClock, builder: Builder<u32, O>) {
        let queue = builder.build();
        queue.push(7).unwrap();
        let mut handle = queue.handle();
        clock.advance(SECOND);
        let tx = handle.begin();
        assert_eq!(tx.pop_batch(3).len(), 1);
        let held = queue.held();
        assert_eq!(names(&held), [None]);
        assert_eq!(held[0].since, Some(queue.now()));
        assert_eq!(held[0].thread, Some(thread::current().id()));
    }
    let (clock, builder) = clocked();
    knows(&clock, builder.clone().leased(10 * SECOND));
    knows(&clock, builder.timestamps());
}

#[test]
fn the_thread_is_the_one_that_took_the_item() {
    let queue = filled([1, 2]);
    let mut handle = queue.named_handle("wanderer");
    let (sender, receiver) = channel();
    thread::scope(|scope| {
        let taker = scope.spawn(|| {
            let tx = handle.begin();
            tx.pop().unwrap();
            sender.send(tx).unwrap();
            thread::current().id()
        });
        let tx = receiver.recv().unwrap();
        tx.pop().unwrap();
        let taker = taker.join().unwrap();
        let held = queue.held();
        assert_eq!((held[0].items, held[0].thread), (2, Some(taker)));
        drop(tx);
    });
}

#[test]
fn a_handle_that_moves_is_listed_with_its_new_thread() {
    let queue = filled([1]);
    let mut handle = queue.named_handle("wanderer");
    let mut holder = || {
        let tx = handle.begin();
        tx.pop().unwrap();
        assert_eq!(queue.held()[0].thread, Some(thread::current().id()));
    };
    holder();
    thread::scope(|scope| scope.spawn(&mut holder).join().unwrap());
    holder();
}

#[test]
fn a_forgotten_transaction_is_listed_until_it_ends() {
    let queue = filled([1, 2]);
    let mut handle = queue.named_handle("forgetful");
    let tx = handle.begin();
    assert_eq!(tx.pop_batch(2).len(), 2);
    mem::forget(tx);
    assert_eq!(names(&queue.held()), [Some("forgetful")]);
    drop(handle);
    assert!(queue.held().is_empty());
}

#[test]
fn a_handle_that_lost_its_items_is_not_listed() {
    let (clock, builder) = clocked();
    let queue = builder.leased(SECOND).build();
    queue.handle().push_batch([1, 2]).unwrap();
    let mut handle = queue.named_handle("late");
    let tx = handle.begin();
    assert_eq!(tx.pop_batch(2).len(), 2);
    assert_eq!(queue.held()[0].items, 2);
    clock.advance(SECOND);
    assert!(queue.held().is_empty());
    tx.abort();
    assert!(queue.held().is_empty());
}

#[test]
fn names_go_with_their_handles() {
    let queue = filled([1]);
    drop(queue.named_handle("gone"));
    // This handle has the same counters.
    let mut handle = queue.handle();
    let tx = handle.begin();
    tx.pop().unwrap();
    assert_eq!(names(&queue.held()), [None]);
}

#[test]
fn a_panic_ends_the_entry() {
    let queue = filled([1]);
    let mut handle = queue.named_handle("worker");
    assert!(panics(|| {
        let tx = handle.begin();
        tx.pop().unwrap();
        assert_eq!(queue.held().len(), 1);
        panic!("the worker fails");
    }));
    assert!(queue.held().is_empty());
    assert_eq!(handle.name(), Some("worker"));
    assert_eq!(queue.handle().name(), None);
}
