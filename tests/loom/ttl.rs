//! Items whose time to live is over, with a manual clock.

use super::{large_model, model, warm};
use loom::thread;
use requeue::{Builder, Fifo, Handle, ManualClock, PopError, Queue};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// Longer than a queue takes to be made.
const TTL: Duration = Duration::from_secs(1);

fn living() -> (Builder<u32>, ManualClock) {
    let clock = ManualClock::new();
    let builder = Queue::builder().ttl(TTL).clock(clock.clone());
    (builder, clock)
}

/// A queue with an item whose time is over, and two handles.
fn with_one(builder: Builder<u32>, clock: &ManualClock) -> (Queue<u32>, [Handle<u32, Fifo>; 2]) {
    let queue = builder.build();
    let mut handles = [warm(&queue), warm(&queue)];
    handles[0].push(1).unwrap();
    clock.advance(TTL);
    (queue, handles)
}

#[test]
fn a_sweep_against_a_pop() {
    large_model(|| {
        let (builder, clock) = living();
        let (queue, [mut popper, other]) = with_one(builder, &clock);
        let sweeps = queue.clone();
        let sweep = thread::spawn(move || sweeps.len());
        assert_eq!(popper.pop(), Err(PopError::Empty));
        sweep.join().unwrap(); // that counts it, if it has not gone yet
        let stats = queue.stats();
        assert_eq!((stats.timed_out, stats.check()), (1, Ok(())));
        drop((popper, other));
    });
}

/// The pop decides, also if the sweep comes too late.
#[test]
fn a_return_against_a_pop() {
    large_model(|| {
        let (builder, clock) = living();
        let queue = builder.build();
        let (mut holder, mut popper) = (warm(&queue), warm(&queue));
        holder.push(1).unwrap();
        let tx = holder.begin();
        tx.pop().unwrap();
        clock.advance(TTL);
        let other = thread::spawn(move || (popper.pop(), popper));
        tx.abort();
        let (popped, popper) = other.join().unwrap();
        assert_eq!(popped, Err(PopError::Empty));
        assert_eq!((queue.len(), queue.stats().timed_out), (0, 1));
        drop((holder, popper));
    });
}

#[test]
fn a_sweep_against_a_sleeper_for_room() {
    large_model(|| {
        let (builder, clock) = living();
        let queue = builder.capacity(1).build();
        let (mut pusher, mut popper) = (warm(&queue), warm(&queue));
        popper.push(1).unwrap();
        let other = thread::spawn(move || {
            pusher.push_blocking(2).unwrap();
            pusher
        });
        clock.advance(TTL);
        let _ = queue.len();
        let pusher = other.join().unwrap();
        assert_eq!(popper.pop(), Ok(2));
        drop((pusher, popper));
    });
}

/// The wait begins before or after the item is pushed, or is over.
#[test]
fn a_sweep_against_a_wait_for_idle() {
    large_model(|| {
        let (builder, clock) = living();
        let (queue, handles) = with_one(builder, &clock);
        let waits = queue.clone();
        let other = thread::spawn(move || waits.wait_idle());
        let _ = queue.len();
        other.join().unwrap();
        assert_eq!(queue.stats().timed_out, 1);
        drop(handles);
    });
}

#[test]
fn a_sweep_against_a_close() {
    large_model(|| {
        let (builder, clock) = living();
        let (queue, [mut popper, other]) = with_one(builder, &clock);
        let sweeps = queue.clone();
        let sweep = thread::spawn(move || sweeps.len());
        queue.close();
        assert_eq!(popper.pop_blocking(), Err(PopError::Closed));
        sweep.join().unwrap();
        drop((popper, other));
    });
}

/// The plan of the pushed item is not erased with that of the one that is over.
#[test]
fn a_sweep_against_a_push() {
    model(|| {
        let (builder, clock) = living();
        let (queue, [mut pusher, other]) = with_one(builder, &clock);
        let sweeps = queue.clone();
        let sweep = thread::spawn(move || sweeps.len());
        pusher.push(2).unwrap();
        sweep.join().unwrap();
        assert!(queue.next_due().is_some());
        drop((pusher, other));
    });
}
