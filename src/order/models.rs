//! Loom models of disciplines: an Empty that is true although items move between lanes and racks.
//!
//! | model | file | ordering | weakened to |
//! |---|---|---|---|
//! | an_item_that_changes | sorted.rs | `let remainder = self.lanes.remainder(|| { let mut racks = 0..self.racks.len(); found = racks.find_map(|number| self.take_if_ready(number, for_good)); found.is_none() });` | `let mut racks = 0..self.racks.len(); found = racks.find_map(|number| self.take_if_ready(number, for_good)); let remainder = if found.is_none() { Remainder::Nothing } else { Remainder::Ready };` |

use super::lifo;
use crate::{Handle, PopError, Queue};
use loom::thread;
use std::mem;

/// Explores all executions with one preemption: the models are large.
fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 50_000;
    builder.preemption_bound = Some(1);
    builder.check(run);
}

/// A handle that has used the queue before.
fn warm(queue: &Queue<u32>) -> Handle<u32> {
    let mut handle = queue.handle();
    handle.push(100).unwrap();
    assert_eq!(handle.pop(), Ok(100));
    handle
}

#[test]
fn two_who_pop_find_two_items() {
    model(|| {
        let queue = lifo::queue(2);
        let (mut one, mut other) = (warm(&queue), warm(&queue));
        one.push_batch([1, 2]).unwrap();
        let popped = thread::spawn(move || other.pop().unwrap());
        let sum = one.pop().unwrap() + popped.join().unwrap();
        assert_eq!(sum, 3);
        assert_eq!(queue.pop(), Err(PopError::Empty));
    });
}

#[test]
fn an_item_that_changes_its_rack_is_not_missed() {
    model(|| {
        let queue = lifo::queue(3);
        // Each has a rack of its own.
        let [mut first, mut second, mut third] = [(); 3].map(|()| warm(&queue));
        second.push(1).unwrap();
        let tx = second.begin();
        assert!(tx.pop().is_ok());
        mem::forget(tx);
        third.push_batch([2, 3]).unwrap();
        assert_eq!(third.pop(), Ok(3));
        // 2 is in the third rack until the second handle pops it, and then 1 is in the second one.
        let thread = thread::spawn(move || {
            drop(second.begin());
            second.pop().unwrap()
        });
        let sum = first.pop().unwrap() + thread.join().unwrap();
        assert_eq!(sum, 3);
        drop(third);
    });
}

#[test]
fn a_commit_against_a_pop() {
    model(|| {
        let queue = lifo::queue(2);
        let (mut one, mut other) = (warm(&queue), warm(&queue));
        let thread = thread::spawn(move || {
            let tx = other.begin();
            tx.push(1).unwrap();
            tx.push(2).unwrap();
            drop(tx.commit());
        });
        // Who has seen one of them finds the other one.
        if let Ok(item) = one.pop() {
            assert_eq!(one.pop(), Ok(3 - item));
        }
        thread.join().unwrap();
    });
}

#[test]
fn a_closed_queue_waits_for_what_is_held() {
    model(|| {
        let queue = lifo::queue(2);
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
