//! Loom models of whole queues: waiting, capacity and closing together with the shards.
//!
//! Built under `--cfg loom` only. The handles are warmed up first, so that the threads have few steps.

#![cfg(loom)]

mod closing;
mod discard;
mod drained;
mod due;
mod failing;
mod idle;
mod items;
mod lent;
mod pace;
mod retain;
mod schedule;
mod ttl;
mod unique;
mod waits;
mod weights;

use loom::thread;
use requeue::{Handle, Order, PopError, Queue};
use std::mem;

/// Explores all executions with at most `LOOM_MAX_PREEMPTIONS` preemptions, or two.
fn model(run: impl Fn() + Sync + Send + 'static) {
    model_of(2, run);
}

/// Like [`model`], with another default.
fn model_of(preemptions: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 50_000;
    builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
    builder.check(run);
}

/// Like [`model`], for models that are too large for more than one preemption.
fn large_model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 50_000;
    builder.preemption_bound = Some(1);
    builder.check(run);
}

/// A handle that has pushed and popped once, and has room for one item without a new segment.
fn warm<O: Order<u32>>(queue: &Queue<u32, O>) -> Handle<u32, O> {
    let mut handle = queue.handle();
    handle.push(100).unwrap();
    assert_eq!(handle.pop(), Ok(100));
    handle
}

#[test]
fn a_sleeper_against_a_commit() {
    model(|| {
        let queue = Queue::unbounded();
        let (mut pusher, mut popper) = (warm(&queue), warm(&queue));
        let other = thread::spawn(move || {
            let tx = pusher.begin();
            tx.push(1).unwrap();
            drop(tx.commit());
            pusher
        });
        assert_eq!(popper.pop_blocking(), Ok(1));
        drop(other.join().unwrap());
    });
}

#[test]
fn a_sleeper_against_an_abort() {
    model(|| {
        let queue = Queue::unbounded();
        let (mut holder, mut popper) = (warm(&queue), warm(&queue));
        popper.push(1).unwrap();
        let tx = holder.begin();
        assert!(tx.pop().is_ok());
        mem::forget(tx);
        let other = thread::spawn(move || {
            drop(holder.begin());
            holder
        });
        assert_eq!(popper.pop_blocking(), Ok(1));
        drop(other.join().unwrap());
    });
}

/// The handle has no shard: `raw::models::retire` covers handles that retire one.
#[test]
fn a_sleeper_against_a_handle_that_is_dropped() {
    model(|| {
        let queue = Queue::unbounded();
        let (mut holder, mut popper) = (queue.handle(), warm(&queue));
        popper.push(1).unwrap();
        let tx = holder.begin();
        assert!(tx.pop().is_ok());
        mem::forget(tx);
        let other = thread::spawn(move || drop(holder));
        assert_eq!(popper.pop_blocking(), Ok(1));
        other.join().unwrap();
    });
}

#[test]
fn a_sleeper_against_a_close() {
    model(|| {
        let queue = Queue::unbounded();
        let mut popper = warm(&queue);
        let other = thread::spawn({
            let queue = queue.clone();
            move || assert!(queue.close())
        });
        assert_eq!(popper.pop_blocking(), Err(PopError::Closed));
        other.join().unwrap();
    });
}

#[test]
fn a_closed_queue_waits_for_the_transaction_that_holds() {
    model_of(1, || {
        // two take a minute
        let queue = Queue::unbounded();
        let (mut holder, mut popper) = (warm(&queue), warm(&queue));
        popper.push(1).unwrap();
        let tx = holder.begin();
        assert!(tx.pop().is_ok());
        mem::forget(tx);
        queue.close();
        let other = thread::spawn(move || {
            drop(holder.begin());
            holder
        });
        assert_eq!(popper.pop_blocking(), Ok(1));
        drop(other.join().unwrap());
    });
}

#[test]
fn a_push_against_a_close() {
    model(|| {
        let queue = Queue::unbounded();
        let (mut pusher, mut popper) = (warm(&queue), warm(&queue));
        let other = thread::spawn(move || (pusher.push(1).is_ok(), pusher));
        queue.close();
        let received = popper.pop_blocking().is_ok();
        let (pushed, pusher) = other.join().unwrap();
        assert_eq!(pushed, received || popper.pop().is_ok());
        assert_eq!(popper.pop(), Err(PopError::Closed));
        assert!(received || !pushed, "a pop said Closed before");
        drop(pusher);
    });
}

#[test]
fn a_requeue_against_a_close() {
    large_model(|| {
        let queue = Queue::builder().max_attempts(1).build();
        let mut popper = queue.handle();
        popper.push(1).unwrap();
        let tx = popper.begin();
        tx.pop().unwrap();
        tx.abort();
        let other = thread::spawn({
            let letters = queue.dead_letters();
            move || letters.requeue_all()
        });
        queue.close();
        let received = popper.pop_blocking().is_ok();
        let requeued = other.join().unwrap();
        assert_eq!(requeued == 1, received);
    });
}

#[test]
fn a_commit_against_a_close() {
    large_model(|| {
        let queue = Queue::unbounded();
        let (mut pusher, mut popper) = (warm(&queue), warm(&queue));
        let other = thread::spawn(move || {
            let tx = pusher.begin();
            let staged = tx.push(1).is_ok();
            drop(tx.commit());
            (staged, pusher)
        });
        queue.close();
        let received = popper.pop_blocking().is_ok();
        let (staged, pusher) = other.join().unwrap();
        assert_eq!(staged, received);
        drop(pusher);
    });
}

#[test]
fn a_pusher_sleeps_until_there_is_room() {
    large_model(|| {
        let queue = Queue::bounded(1);
        let (mut pusher, mut popper) = (warm(&queue), warm(&queue));
        pusher.push(1).unwrap();
        let other = thread::spawn(move || {
            assert_eq!(popper.pop(), Ok(1));
            popper
        });
        assert_eq!(pusher.push_blocking(2), Ok(()));
        let mut popper = other.join().unwrap();
        assert_eq!(popper.pop(), Ok(2));
    });
}

#[test]
fn a_count_is_within_the_capacity() {
    model(|| {
        let queue = Queue::bounded(1);
        let (mut first, mut second) = (warm(&queue), warm(&queue));
        first.push(1).unwrap();
        let other = thread::spawn(move || {
            assert_eq!(first.pop(), Ok(1));
            second.push(2).unwrap();
            (first, second)
        });
        let (len, ready) = (queue.len(), queue.stats().ready);
        assert!(len <= 1 && ready <= 1, "{len} and {ready} of 1");
        drop(other.join().unwrap());
    });
}

#[test]
fn an_abort_frees_no_room() {
    model(|| {
        let queue = Queue::bounded(1);
        let (mut pusher, mut holder) = (warm(&queue), warm(&queue));
        pusher.push(1).unwrap();
        let tx = holder.begin();
        assert!(tx.pop().is_ok());
        mem::forget(tx);
        let other = thread::spawn(move || {
            drop(holder.begin());
            holder
        });
        assert!(pusher.push(2).unwrap_err().is_full());
        drop(other.join().unwrap());
        assert_eq!(pusher.pop(), Ok(1));
        assert_eq!(pusher.push(2), Ok(()));
    });
}
