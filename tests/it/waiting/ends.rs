//! How many waiters the end of a transaction wakes, on a closed queue as on an open one: one for each item that it
//! publishes, and all when nothing is left.

use crate::common::futures::{all_rings, woken, Task};
use crate::common::waits::{async_pops, poppers, PopTask};
use requeue::{Handle, OwnedTransaction, PopError, Queue};
use std::future::{poll_fn, Future};
use std::mem;
use std::task::Poll;
use std::time::Duration;

const WAITERS: usize = 100;

/// An open queue with one item, or the same closed.
fn with_item(closed: bool) -> Queue<u32> {
    let queue = Queue::unbounded();
    queue.push(1).unwrap();
    if closed {
        queue.close();
    }
    queue
}

fn handles(queue: &Queue<u32>, count: usize) -> Vec<Handle<u32>> {
    (0..count).map(|_| queue.handle()).collect()
}

type Act = fn(&Queue<u32>, &mut Handle<u32>);

/// What another handle does although there is nothing to do.
const NOTHINGS: [Act; 7] = [
    |_, handle| drop(handle.begin()),
    |_, handle| drop(handle.begin().commit()),
    |_, handle| assert_eq!(handle.begin().pop().err(), Some(PopError::Empty)),
    |_, handle| assert_eq!(handle.pop(), Err(PopError::Empty)),
    |_, handle| assert!(handle.push(2).is_err()),
    |_, handle| assert!(handle.push_batch([2, 3]).is_err()),
    |queue, _| assert!(queue.push(2).is_err()),
];

#[test]
fn a_transaction_that_did_nothing_wakes_nobody() {
    let queue = with_item(true);
    let (mut holder, mut other) = (queue.handle(), queue.handle());
    let tx = holder.begin();
    tx.pop().unwrap();
    let mut handles = handles(&queue, WAITERS);
    let tasks = poppers(&mut handles);
    for nothing in NOTHINGS {
        nothing(&queue, &mut other);
        assert_eq!(all_rings(&tasks), 0);
    }
}

#[test]
fn an_end_wakes_one_waiter_for_each_item() {
    for closed in [false, true] {
        let queue = Queue::unbounded();
        let mut holder = queue.handle();
        holder.push_batch(0..4).unwrap();
        let tx = holder.begin();
        tx.pop_batch(4);
        if closed {
            queue.close();
        }
        let mut handles = handles(&queue, WAITERS);
        let tasks = poppers(&mut handles);
        tx.push(9).unwrap();
        tx.commit();
        assert_eq!((woken(&tasks), all_rings(&tasks)), (vec![0], 1), "{closed}");
        drop(tasks);
        let tx = holder.begin();
        assert_eq!(tx.pop().as_deref(), Ok(&9));
        let tasks = poppers(&mut handles);
        tx.abort();
        assert_eq!((woken(&tasks), all_rings(&tasks)), (vec![0], 1), "{closed}");
    }
}

/// A task is woken for an aborted item, and not polled: a later end that publishes nothing wakes the next one.
#[test]
fn an_end_wakes_a_waiter_if_the_one_that_was_woken_has_not_come() {
    let ends: [fn(OwnedTransaction<u32>); 3] = [
        |tx| drop(tx.commit()),
        |mut tx| tx.fail_all("broken").unwrap(),
        |mut tx| tx.retry_all_after(Duration::from_secs(60)).unwrap(),
    ];
    for end in ends {
        let queue = Queue::unbounded();
        queue.push(1).unwrap();
        queue.push(2).unwrap();
        queue.close();
        let (first, second) = (queue.begin_owned(), queue.begin_owned());
        first.pop().unwrap();
        second.pop().unwrap();
        let mut handles = handles(&queue, 3);
        let mut tasks = poppers(&mut handles);
        first.abort();
        assert_eq!(woken(&tasks), [0]);
        end(second);
        assert!(tasks[1].was_woken());
        assert_eq!(tasks[1].output(), Ok(1));
    }
}

/// Lets the other tasks run, as a job does that takes some time.
async fn give_way() {
    let mut waits = true;
    poll_fn(|context| {
        if !mem::take(&mut waits) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// A job is a number: each but 0 pushes the next smaller one.
async fn work(handle: &mut Handle<u32>) {
    loop {
        let tx = handle.begin();
        let Ok(job) = tx.pop_async().await.map(|job| *job) else {
            return;
        };
        give_way().await;
        if job > 0 {
            tx.push(job - 1).unwrap();
        }
        tx.commit();
    }
}

/// Polls each task that was woken, in turns, until nobody is; returns the number of polls.
fn run<F: Future + Unpin>(tasks: &mut [Task<F>]) -> usize {
    let (mut seen, mut polls) = (vec![Some(0); tasks.len()], 0);
    loop {
        let before = polls;
        for (task, seen) in tasks.iter_mut().zip(&mut seen) {
            if seen.is_some_and(|seen| task.rings() > seen) {
                let rings = task.rings();
                polls += 1;
                *seen = task.poll().is_pending().then_some(rings);
            }
        }
        if polls == before {
            return polls;
        }
    }
}

#[test]
fn a_chain_of_jobs_polls_no_more_on_a_closed_queue_than_on_an_open_one() {
    const JOBS: u32 = 500;
    let polls = [false, true].map(|closed| {
        let queue = Queue::<u32>::unbounded();
        let mut handles = handles(&queue, WAITERS);
        let line = handles
            .iter_mut()
            .map(|handle| Task::new(Box::pin(work(handle))));
        let mut tasks: Vec<_> = line.collect();
        tasks.iter_mut().for_each(Task::assert_waits);
        queue.push(JOBS).unwrap();
        if closed {
            queue.close();
        }
        let polls = run(&mut tasks);
        assert!(queue.is_empty());
        polls
    });
    assert!(polls[1] <= polls[0] + 3 * WAITERS, "{polls:?}");
}

/// Neither of two woken tasks that are never polled keeps anything from the others: each further item, the close, and
/// the end, wakes the next.
#[test]
fn a_woken_task_that_is_never_polled_keeps_nothing_from_the_others() {
    for pop in async_pops() {
        let queue = Queue::unbounded();
        let mut handles = handles(&queue, 8);
        let mut line = handles.iter_mut().map(|handle| Task::waiting(pop(handle)));
        let deaf = line.next().unwrap();
        let mut tasks: Vec<PopTask<'_>> = line.collect();
        for item in 0..4 {
            queue.push(item).unwrap();
        }
        assert_eq!((deaf.rings(), woken(&tasks)), (1, vec![0, 1, 2]));
        let mut popped: Vec<_> = tasks.drain(..3).map(|mut task| task.output()).collect();
        queue.close();
        assert_eq!(all_rings(&tasks), tasks.len());
        popped.extend(tasks.drain(..1).map(|mut task| task.output()));
        assert_eq!(popped, [Ok(0), Ok(1), Ok(2), Ok(3)]);
        for task in &mut tasks {
            assert_eq!(task.output(), Err(PopError::Closed));
        }
    }
}

/// The same after the close: who is woken for what an abort returns is not polled, and others take it.
#[test]
fn the_end_is_told_although_the_woken_task_is_never_polled() {
    let takes: [Act; 5] = [
        |queue, _| assert_eq!(queue.pop(), Ok(1)),
        |_, handle| assert_eq!(handle.pop(), Ok(1)),
        |_, handle| assert_eq!(handle.pop_blocking(), Ok(1)),
        |_, handle| assert_eq!(handle.pop_batch(2, &mut Vec::new()), 1),
        |_, handle| assert_eq!(handle.transact(|tx| tx.pop().map(|item| *item)), Ok(1)),
    ];
    for take in takes {
        let queue = with_item(true);
        let (mut holder, mut other) = (queue.handle(), queue.handle());
        let tx = holder.begin();
        tx.pop().unwrap();
        let mut handles = handles(&queue, 8);
        let mut tasks = poppers(&mut handles);
        tx.abort();
        assert_eq!(woken(&tasks), [0]);
        let _deaf = tasks.remove(0);
        take(&queue, &mut other);
        assert_eq!(woken(&tasks).len(), tasks.len());
        for task in &mut tasks {
            assert_eq!(task.output(), Err(PopError::Closed));
        }
    }
}
