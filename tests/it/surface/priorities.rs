//! Methods of priority queues only, leased or not.

use std::time::Duration;

use futures::executor::block_on;
use requeue::schedule::{PushTo, PushWith};
use requeue::{Prioritized, PriorityQueue, PushError, Queue, Ticket};

const ZERO: Duration = Duration::ZERO;

/// A view with a priority and a time, of a queue, a handle or a transaction.
fn view<P: PushTo<Item = u8>>(view: PushWith<P>) -> PushWith<P>
where
    P::Order: Prioritized<u8>,
{
    view.priority(7)
}

/// The views of a queue, a handle or a transaction, in all forms of waiting: 9 pushes.
macro_rules! views {
    ($target:expr, $now:expr) => {{
        let mut tickets: Vec<Ticket> = Vec::new();
        let pushed: Result<Ticket, PushError<u8>> = $target.priority(1).push(0);
        tickets.push(pushed.unwrap());
        tickets.push($target.at($now).push_blocking(1).unwrap());
        tickets.push($target.after(ZERO).push_timeout(2, ZERO).unwrap());
        let pushed = block_on(view($target.priority(5).after(ZERO)).push_async(3));
        tickets.push(pushed.unwrap());
        let pushed: Result<Vec<Ticket>, PushError<Vec<u8>>> =
            $target.priority(2).push_batch([4, 5]);
        tickets.extend(pushed.unwrap());
        tickets.extend($target.at($now).push_batch_blocking([6]).unwrap());
        tickets.extend($target.after(ZERO).push_batch_timeout([7], ZERO).unwrap());
        tickets.extend(block_on($target.priority(3).at($now).push_batch_async([8])).unwrap());
        tickets
    }};
}

fn all_views<O: Prioritized<u8>>(queue: &Queue<u8, O>) {
    let now = queue.now();
    let mut handle = queue.handle();
    let mut tickets = views!(queue, now);
    tickets.extend(views!(handle, now));
    let tx = handle.begin();
    tickets.extend(views!(tx, now));
    tx.try_commit().unwrap();
    assert_eq!(tickets.len(), 27);
    let cancelled = tickets
        .into_iter()
        .filter_map(|ticket| queue.cancel(ticket));
    assert_eq!(cancelled.count(), 27);
}

fn short_forms<O: Prioritized<u8>>(queue: &Queue<u8, O>) {
    let now = queue.now();
    let ticket: Result<Ticket, PushError<u8>> = queue.priority(1).at(now).push(1);
    let ticket = ticket.unwrap();
    assert!(queue.reprioritize(ticket, 2));
    assert!(queue.reschedule(ticket, now));
    assert_eq!(queue.cancel(ticket), Some(1));
    let _: [Ticket; 2] = [
        queue.at(now).push(2).unwrap(),
        queue.after(ZERO).push(3).unwrap(),
    ];
    let mut handle = queue.handle();
    handle
        .priority(Queue::<u8, O>::DEFAULT_PRIORITY)
        .push(4)
        .unwrap();
    let _: [Ticket; 2] = [
        handle.at(now).push(5).unwrap(),
        handle.after(ZERO).push(6).unwrap(),
    ];
    let tx = handle.begin();
    tx.priority(1).push(7).unwrap();
    let _: [Ticket; 2] = [tx.at(now).push(8).unwrap(), tx.after(ZERO).push(9).unwrap()];
    tx.try_commit().unwrap();
    assert_eq!(queue.pop(), Ok(7));
}

#[test]
fn priorities_and_times_are_given() {
    all_views(&PriorityQueue::by_priority());
    all_views(&Queue::builder().by_priority().leased(Duration::MAX).build());
    short_forms(&PriorityQueue::by_priority());
    short_forms(&Queue::builder().by_priority().leased(Duration::MAX).build());
}
