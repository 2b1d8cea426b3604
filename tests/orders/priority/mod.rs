//! Queues by priority and schedule.

mod ends;
mod order;
mod reschedule;
mod schedule;
mod threads;
mod tickets;
mod waiting;

use std::time::{Duration, Instant};

use crate::common::futures::block_on;
use requeue::{ByPriority, Handle, ManualClock, PriorityError, PriorityQueue, Queue, Ticket};

/// A form of a push with a priority.
type Push = fn(
    &PriorityQueue<u32>,
    &mut Handle<u32, ByPriority>,
    u16,
    Option<Instant>,
    u32,
) -> Result<Ticket, PriorityError<u32>>;

/// All forms: without a handle, through one, and in a transaction; the first [`TRYING`] do not wait for room.
const PUSHES: [Push; 9] = [
    |queue, _, priority, not_before, item| queue.push_with(priority, not_before, item),
    |_, handle, priority, not_before, item| handle.push_with(priority, not_before, item),
    |_, handle, priority, not_before, item| {
        let tx = handle.begin();
        let ticket = tx.push_with(priority, not_before, item);
        tx.commit();
        ticket
    },
    |_, handle, priority, not_before, item| {
        handle.push_with_timeout(priority, not_before, item, Duration::ZERO)
    },
    |_, handle, priority, not_before, item| {
        let tx = handle.begin();
        let ticket = tx.push_with_timeout(priority, not_before, item, Duration::ZERO);
        tx.commit();
        ticket
    },
    |_, handle, priority, not_before, item| handle.push_with_blocking(priority, not_before, item),
    |_, handle, priority, not_before, item| {
        let tx = handle.begin();
        let ticket = tx.push_with_blocking(priority, not_before, item);
        tx.commit();
        ticket
    },
    |_, handle, priority, not_before, item| {
        block_on(handle.push_with_async(priority, not_before, item))
    },
    |_, handle, priority, not_before, item| {
        let tx = handle.begin();
        let ticket = block_on(tx.push_with_async(priority, not_before, item));
        tx.commit();
        ticket
    },
];

const TRYING: usize = 5;

/// A queue with a clock that stands still.
fn clocked() -> (ManualClock, PriorityQueue<u32>) {
    let clock = ManualClock::new();
    let queue = Queue::builder().by_priority().clock(clock.clone()).build();
    (clock, queue)
}

/// A queue of items that were pushed with these priorities, in this order; items are numbered.
fn filled(priorities: &[u16]) -> (PriorityQueue<u32>, Vec<Ticket>) {
    let queue = PriorityQueue::by_priority();
    let tickets = fill(&queue, priorities);
    (queue, tickets)
}

fn fill(queue: &PriorityQueue<u32>, priorities: &[u16]) -> Vec<Ticket> {
    let numbered = (0..).zip(priorities);
    let tickets = numbered.map(|(item, &priority)| queue.push_with(priority, None, item));
    tickets.collect::<Result<_, _>>().unwrap()
}
