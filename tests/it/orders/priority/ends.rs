//! Transactions with priorities, over one queue and several.

use std::thread;

use super::{clocked, filled};
use crate::common::failing::SECOND;
use crate::common::{assert_at_rest, drain, ends};
use requeue::{commit_all, PopError, PriorityQueue, Queue};

#[test]
fn staged_items_are_invisible_until_the_commit() {
    let (clock, queue) = clocked();
    let mut handle = queue.handle();
    let tx = handle.begin();
    tx.priority(2).push(2).unwrap();
    tx.priority(1).push(1).unwrap();
    tx.after(SECOND).push(3).unwrap();
    tx.push(4).unwrap();
    assert_eq!(tx.staged(), 4);
    assert_at_rest(&queue, 0, 0);
    assert_eq!(queue.next_scheduled(), None);
    assert_eq!(queue.pop(), Err(PopError::Empty));
    tx.commit();
    assert_at_rest(&queue, 3, 0);
    assert_eq!(queue.next_scheduled(), Some(clock.now() + SECOND));
    assert_eq!(drain(&queue), [1, 2, 4]);
}

#[test]
fn an_abort_drops_staged_items() {
    let (clock, queue) = clocked();
    let mut handle = queue.handle();
    let tx = handle.begin();
    tx.priority(1).push(1).unwrap();
    tx.after(SECOND).push(2).unwrap();
    drop(tx);
    clock.advance(SECOND);
    assert_at_rest(&queue, 0, 0);
    assert_eq!((queue.stats().delayed, queue.next_scheduled()), (0, None));
}

#[test]
fn a_full_queue_lets_a_job_push_its_follow_up() {
    let queue = Queue::builder().by_priority().capacity(1).build();
    queue.priority(5).push(1).unwrap();
    let mut handle = queue.handle();
    let tx = handle.begin();
    tx.pop().unwrap();
    tx.priority(3).push(2).unwrap();
    assert!(tx.priority(3).push(3).unwrap_err().is_full());
    tx.commit();
    assert_at_rest(&queue, 1, 0);
    assert_eq!(drain(&queue), [2]);
}

#[test]
fn a_commit_after_the_close_still_publishes() {
    let (clock, queue) = clocked();
    let mut handle = queue.handle();
    let tx = handle.begin();
    tx.priority(1).push(1).unwrap();
    tx.after(SECOND).push(2).unwrap();
    queue.close();
    assert!(tx.priority(1).push(3).unwrap_err().is_closed());
    tx.commit();
    assert_eq!(queue.pop(), Ok(1));
    assert_eq!(queue.pop(), Err(PopError::Empty));
    clock.advance(SECOND);
    assert_eq!(queue.iter().collect::<Vec<_>>(), [2]);
    assert_eq!(queue.pop(), Err(PopError::Closed));
}

#[test]
fn one_transaction_over_queues_of_different_orders() {
    let (jobs, _) = filled(&[2, 1]);
    let done = Queue::unbounded();
    let (mut a, mut b, mut c) = (jobs.handle(), done.handle(), jobs.handle());
    let (tx_a, tx_b, tx_c) = (a.begin(), b.begin(), c.begin());
    assert_eq!(*tx_a.pop().unwrap(), 1);
    tx_a.priority(3).push(3).unwrap();
    tx_b.push("done").unwrap();
    tx_c.priority(1).push(4).unwrap();
    let (taken, _, _) = commit_all((tx_a, tx_b, tx_c));
    assert_eq!(taken.collect::<Vec<_>>(), [1]);
    assert_eq!(drain(&jobs), [4, 0, 3]);
    assert_eq!(drain(&done), ["done"]);
    assert_at_rest(&jobs, 0, 0);
}

#[test]
fn items_of_one_commit_become_visible_together() {
    ends(|| {
        let queue = PriorityQueue::by_priority();
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut handle = queue.handle();
                for pair in 0..1000 {
                    let tx = handle.begin();
                    tx.priority(u16::MAX).push(pair).unwrap();
                    tx.priority(1).push(pair).unwrap();
                    tx.commit();
                }
                queue.close();
            });
            let mut handle = queue.handle();
            let mut open = 0_u32;
            while let Ok(pair) = handle.pop_blocking() {
                // The first item of a pair precedes all second ones, so none of these is popped alone.
                if pair == open {
                    open += 1;
                } else {
                    assert!(pair < open, "{pair} came before its other half");
                }
            }
            assert_eq!(open, 1000);
        });
        queue.stats().check().unwrap();
    });
}

#[test]
fn clones_and_debug() {
    let (queue, _) = filled(&[2]);
    let clone = queue.clone();
    assert!(format!("{clone:?}").starts_with("Queue"));
    let named = clone.named_handle("mailer");
    assert_eq!(named.name(), Some("mailer"));
    drop(queue);
    assert_eq!(clone.pop(), Ok(0));
}
