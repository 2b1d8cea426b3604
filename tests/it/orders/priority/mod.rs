//! Queues ordered by priority and schedule.

mod ends;
mod order;
mod reschedule;
mod schedule;
mod threads;
mod tickets;
mod views;
mod waiting;

use std::time::{Duration, Instant};

use crate::common::futures::block_on;
use requeue::priority::{PushTo, PushWith};
use requeue::{ByPriority, Handle, ManualClock, PriorityQueue, PushError, Queue, Ticket};

/// A form of a push with a priority.
type Push = fn(
    &PriorityQueue<u32>,
    &mut Handle<u32, ByPriority>,
    u16,
    Option<Instant>,
    u32,
) -> Result<Ticket, PushError<u32>>;

/// A view for items with a priority, and a time if there is one.
fn not_before<P: PushTo>(view: PushWith<P>, at: Option<Instant>) -> PushWith<P> {
    match at {
        Some(at) => view.at(at),
        None => view,
    }
}

/// Converts the error of a batch of one item.
fn only(pushed: Result<Vec<Ticket>, PushError<Vec<u32>>>) -> Result<Ticket, PushError<u32>> {
    match pushed {
        Ok(tickets) => Ok(tickets[0]),
        Err(PushError::Full(items)) => Err(PushError::Full(items[0])),
        Err(PushError::Closed(items)) => Err(PushError::Closed(items[0])),
        Err(refused) => panic!("neither full nor closed: {refused:?}"),
    }
}

/// Each form without a handle, by one, and in a transaction.
macro_rules! forms {
    ($(|$view:ident, $item:ident| $push:expr),+ $(,)?) => {[$(
        |queue, _, priority, at, $item| {
            let $view = not_before(queue.priority(priority), at);
            $push
        },
        |_, handle, priority, at, $item| {
            let $view = not_before(handle.priority(priority), at);
            $push
        },
        |_, handle, priority, at, $item| {
            let tx = handle.begin();
            let $view = not_before(tx.priority(priority), at);
            let pushed = $push;
            tx.commit();
            pushed
        },
    )+]};
}

/// Forms that do not wait for room.
const TRYING: [Push; 12] = forms![
    |view, item| view.push(item),
    |view, item| view.push_timeout(item, Duration::ZERO),
    |view, item| only(view.push_batch([item])),
    |view, item| only(view.push_batch_timeout([item], Duration::ZERO)),
];

/// Forms that wait for room.
const WAITING: [Push; 12] = forms![
    |view, item| view.push_blocking(item),
    |view, item| block_on(view.push_async(item)),
    |view, item| only(view.push_batch_blocking([item])),
    |view, item| only(block_on(view.push_batch_async([item]))),
];

/// All forms.
fn pushes() -> impl Iterator<Item = Push> {
    TRYING.into_iter().chain(WAITING)
}

/// A queue with a manual clock.
fn clocked() -> (ManualClock, PriorityQueue<u32>) {
    let clock = ManualClock::new();
    let queue = Queue::builder().by_priority().clock(clock.clone()).build();
    (clock, queue)
}

/// A queue of items that were pushed with these priorities, in this order; the items are their indices.
fn filled(priorities: &[u16]) -> (PriorityQueue<u32>, Vec<Ticket>) {
    let queue = PriorityQueue::by_priority();
    let tickets = fill(&queue, priorities);
    (queue, tickets)
}

fn fill(queue: &PriorityQueue<u32>, priorities: &[u16]) -> Vec<Ticket> {
    let numbered = (0..).zip(priorities);
    let tickets = numbered.map(|(item, &priority)| queue.priority(priority).push(item));
    tickets.collect::<Result<_, _>>().unwrap()
}
