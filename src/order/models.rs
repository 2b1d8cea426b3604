//! Loom models of sorting orders: Empty is linearizable although items are pushed concurrently.

use crate::sync::model::large_model;
use crate::{Handle, Lifo, PopError, Queue};
use loom::thread;
use std::mem;

fn queue() -> Queue<u32, Lifo> {
    Queue::builder().lifo().build()
}

/// A handle that has used the queue before.
fn warm(queue: &Queue<u32, Lifo>) -> Handle<u32, Lifo> {
    let mut handle = queue.handle();
    handle.push(100).unwrap();
    assert_eq!(handle.pop(), Ok(100));
    handle
}

#[test]
fn two_pops_find_two_items() {
    large_model(|| {
        let queue = queue();
        let (mut one, mut other) = (warm(&queue), warm(&queue));
        one.push_batch([1, 2]).unwrap();
        let popped = thread::spawn(move || other.pop().unwrap());
        let sum = one.pop().unwrap() + popped.join().unwrap();
        assert_eq!(sum, 3);
        assert_eq!(queue.pop(), Err(PopError::Empty));
    });
}

/// An owner takes its last item out of its shard, while another handle takes in what is there.
#[test]
fn an_owner_and_another_handle_pop_an_item_once() {
    large_model(|| {
        let queue = queue();
        let (mut owner, mut other) = (warm(&queue), warm(&queue));
        owner.push(1).unwrap();
        let thread = thread::spawn(move || other.pop());
        let popped = [owner.pop(), thread.join().unwrap()];
        assert!(popped == [Ok(1), Err(PopError::Empty)] || popped == [Err(PopError::Empty), Ok(1)]);
    });
}

/// One item is ready all the time, and the owner pushes and pops another one past it.
#[test]
fn what_an_owner_takes_past_the_stack_hides_no_item() {
    large_model(|| {
        let queue = queue();
        let (mut owner, mut other) = (warm(&queue), warm(&queue));
        owner.push_batch([1, 2]).unwrap();
        assert_eq!(owner.pop(), Ok(2));
        let thread = thread::spawn(move || other.pop());
        owner.push(3).unwrap();
        let popped = owner.pop().unwrap();
        assert_eq!(popped + thread.join().unwrap().unwrap(), 4);
    });
}

/// Two pops make the partitions, if one has to wait for the other: see `Sorted::divide`. Items that were taken in before, and
/// after, are found.
#[test]
fn partitions_are_made_while_items_are_popped() {
    large_model(|| {
        let queue = queue();
        let (mut one, mut other) = (warm(&queue), warm(&queue));
        one.push_batch([1, 2]).unwrap();
        let thread = thread::spawn(move || {
            other.push(4).unwrap();
            other.pop().unwrap()
        });
        let popped = one.pop().unwrap() + thread.join().unwrap();
        assert_eq!(popped + queue.pop().unwrap(), 7);
        assert_eq!(queue.pop(), Err(PopError::Empty));
    });
}

/// One item is ready all the time: first in the partition that the search visits last, and then in the other one.
#[test]
fn an_item_is_found_in_some_partition() {
    large_model(|| {
        let queue = queue();
        // Those of the first and the last one are in one partition.
        let (mut searching, mut last, mut other) = (warm(&queue), warm(&queue), warm(&queue));
        queue.shared().source.divide_now();
        last.push_batch([1, 2]).unwrap();
        assert_eq!(last.pop(), Ok(2)); // 1 is taken in
        let thread = thread::spawn(move || {
            other.push_batch([3, 4]).unwrap();
            other.pop().unwrap() + last.pop().unwrap() // the first one takes 3 in
        });
        let found = searching.pop().unwrap();
        assert_eq!(found + thread.join().unwrap(), 8);
    });
}

/// The intake of a shard stops where it finds items returned by an abort.
#[test]
fn an_abort_that_hides_a_shard_hides_no_item() {
    large_model(|| {
        let queue = queue();
        let (mut one, mut other) = (warm(&queue), warm(&queue));
        other.push(1).unwrap();
        let tx = other.begin();
        assert!(tx.pop().is_ok());
        mem::forget(tx);
        // A dead letter is pushed again where the aborted item will be returned.
        one.push(2).unwrap();
        let tx = one.begin();
        tx.fail(tx.pop().unwrap(), "").unwrap();
        drop(tx.commit());
        assert_eq!(queue.dead_letters().requeue_all(), 1);
        let thread = thread::spawn(move || drop(other.begin()));
        // 2 is ready all the time.
        assert!(one.pop().is_ok());
        thread.join().unwrap();
    });
}

#[test]
fn a_commit_against_a_pop() {
    large_model(|| {
        let queue = queue();
        let (mut one, mut other) = (warm(&queue), warm(&queue));
        let thread = thread::spawn(move || {
            let tx = other.begin();
            tx.push(1).unwrap();
            tx.push(2).unwrap();
            drop(tx.commit());
        });
        // A pop that follows one that has seen the first of them finds the other one.
        if let Ok(item) = one.pop() {
            assert_eq!(one.pop(), Ok(3 - item));
        }
        thread.join().unwrap();
    });
}

#[test]
fn a_closed_queue_waits_for_what_is_held() {
    large_model(|| {
        let queue = queue();
        let (mut one, mut other) = (warm(&queue), warm(&queue));
        one.push(1).unwrap();
        queue.close();
        let thread = thread::spawn(move || {
            let tx = other.begin();
            let popped = tx.pop().is_ok();
            tx.abort();
            popped
        });
        let popped = one.pop_blocking();
        thread.join().unwrap();
        assert_eq!(popped, Ok(1));
    });
}
