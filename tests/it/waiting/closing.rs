//! A closed queue: pushes are refused, pops drain the remaining items and then return `Closed`.

use std::mem;
use std::time::Duration;

use crate::common::events::Event;
use crate::common::futures::{all_rings, Task};
use crate::common::waits::{
    async_pops, blocking_pops, poppers, pushers, Pop, Push, ASYNC_PUSHES, BLOCKING_PUSHES,
};
use crate::common::{drain, ends};
use requeue::{commit_all, Handle, Item, PopError, PushError, Queue, Transaction};

fn handles(queue: &Queue<u32>, count: usize) -> Vec<Handle<u32>> {
    (0..count).map(|_| queue.handle()).collect()
}

/// All ways to push one item by a handle.
fn pushes() -> impl Iterator<Item = Push> {
    let at_once: [Push; 4] = [
        Handle::push,
        |handle, item| handle.push_timeout(item, Duration::ZERO),
        |handle, item| handle.transact(|tx| tx.push(item)),
        |handle, item| handle.transact(|tx| tx.push_timeout(item, Duration::ZERO)),
    ];
    let blocking = BLOCKING_PUSHES.map(|(_, push)| push);
    at_once.into_iter().chain(blocking)
}

/// All ways to pop one item by a handle.
fn pops() -> impl Iterator<Item = Pop> {
    let at_once: [Pop; 4] = [
        Handle::pop,
        |handle| handle.pop_timeout(Duration::ZERO),
        |handle| handle.transact(|tx| tx.pop().map(|item| *item)),
        |handle| handle.transact(|tx| tx.pop_timeout(Duration::ZERO).map(|item| *item)),
    ];
    let blocking = blocking_pops().map(|(_, pop)| pop);
    at_once.into_iter().chain(blocking)
}

#[test]
fn only_the_first_close_returns_true() {
    let queue = Queue::<u32>::unbounded();
    let clone = queue.clone();
    assert!(!queue.is_closed());
    assert!(clone.close());
    assert!(queue.is_closed() && clone.is_closed());
    assert!(!queue.close());
    assert!(!clone.close());
}

#[test]
fn dropping_queues_and_handles_is_not_a_close() {
    let queue = Queue::unbounded();
    drop(queue.clone());
    drop(queue.handle());
    let mut handle = queue.handle();
    drop(handle.begin());
    drop(queue);
    assert_eq!(handle.push(1), Ok(()));
    assert_eq!((handle.pop(), handle.pop()), (Ok(1), Err(PopError::Empty)));
}

#[test]
fn every_push_is_refused_with_its_item() {
    ends(|| {
        for queue in [Queue::unbounded(), Queue::bounded(8)] {
            queue.close();
            let mut handle = queue.handle();
            assert_eq!(queue.push(1), Err(PushError::Closed(1)));
            for push in pushes() {
                assert_eq!(push(&mut handle, 2), Err(PushError::Closed(2)));
            }
            let closed = Err(PushError::Closed(vec![3, 4, 5]));
            assert_eq!(handle.push_batch(3..6), closed);
            assert_eq!(handle.push_batch_blocking(3..6), closed);
            assert_eq!(Task::new(handle.push_batch_async(3..6)).output(), closed);
            let tx = handle.begin();
            assert_eq!(tx.push_batch(3..6), closed);
            assert_eq!(tx.push_batch_blocking(3..6), closed);
            assert_eq!(tx.push_batch_timeout(3..6, Duration::MAX), closed);
            assert_eq!(queue.pop(), Err(PopError::Closed));
        }
    });
}

#[test]
fn closed_is_said_before_full() {
    ends(|| {
        let queue = Queue::bounded(1);
        queue.push(0).unwrap();
        queue.close();
        let mut handle = queue.handle();
        assert_eq!(queue.push(1), Err(PushError::Closed(1)));
        for push in pushes() {
            assert_eq!(push(&mut handle, 2), Err(PushError::Closed(2)));
        }
        let too_many = Err(PushError::Closed(vec![1, 2, 3]));
        assert_eq!(handle.push_batch(1..4), too_many);
        assert_eq!(handle.push_batch_blocking(1..4), too_many);
    });
}

#[test]
fn ready_items_are_popped_before_the_end() {
    ends(|| {
        for (item, pop) in (0..).zip(pops()) {
            let queue = Queue::unbounded();
            queue.push(item).unwrap();
            queue.close();
            let mut handle = queue.handle();
            assert_eq!(pop(&mut handle), Ok(item));
            assert_eq!(pop(&mut handle), Err(PopError::Closed));
            assert_eq!(pop(&mut handle), Err(PopError::Closed));
            assert_eq!(queue.pop(), Err(PopError::Closed));
        }
    });
}

#[test]
fn batches_of_pops_end_short() {
    ends(|| {
        let queue = Queue::unbounded();
        let mut handle = queue.handle();
        handle.push_batch(0..3).unwrap();
        queue.close();
        let mut items = Vec::new();
        let popped = handle.pop_batch_blocking(5, 9, &mut items);
        assert_eq!((popped, items), (3, vec![0, 1, 2]));
        let tx = handle.begin();
        assert_eq!(tx.pop_batch_blocking(5, 9).len(), 0);
        assert_eq!(tx.pop_batch(9).len(), 0);
    });
}

#[test]
fn items_staged_before_the_close_are_committed_after_it() {
    ends(|| {
        let queue = Queue::bounded(2);
        let mut handle = queue.handle();
        let tx = handle.begin();
        tx.push(1).unwrap();
        queue.close();
        assert_eq!(tx.push(2), Err(PushError::Closed(2)));
        assert_eq!(tx.push_blocking(2), Err(PushError::Closed(2)));
        let refused = Task::new(tx.push_async(2)).output();
        assert_eq!(refused, Err(PushError::Closed(2)));
        assert_eq!((tx.staged(), queue.pop()), (1, Err(PopError::Empty)));
        tx.commit();
        assert_eq!((queue.pop(), queue.pop()), (Ok(1), Err(PopError::Closed)));
    });
}

type Stage = fn(&Transaction<'_, u32>, u32) -> Result<(), PushError<u32>>;

/// All ways to push one item in a transaction that return at once.
const STAGES: [Stage; 5] = [
    |tx, item| tx.push(item),
    |tx, item| tx.push_timeout(item, Duration::ZERO),
    |tx, item| tx.push_timeout(item, Duration::MAX),
    |tx, item| tx.push_blocking(item),
    |tx, item| Task::new(tx.push_async(item)).output(),
];

#[test]
fn follow_ups_are_accepted_from_a_transaction_that_holds() {
    ends(|| {
        for stage in STAGES {
            for queue in [Queue::unbounded(), Queue::bounded(2)] {
                queue.push(1).unwrap();
                let mut handle = queue.handle();
                let tx = handle.begin();
                tx.pop().unwrap();
                queue.close();
                assert_eq!((stage(&tx, 2), stage(&tx, 3)), (Ok(()), Ok(())));
                assert_eq!(queue.push(4), Err(PushError::Closed(4)));
                assert_eq!(queue.pop(), Err(PopError::Empty));
                tx.commit();
                assert_eq!(drain(&queue), [2, 3]);
                assert_eq!(queue.pop(), Err(PopError::Closed));
            }
        }
    });
}

/// A tree of work: the seed is pushed, the queue closed, and each transaction pushes the children.
#[test]
fn work_until_closed_ends_by_itself() {
    ends(|| {
        let queue = Queue::bounded(64);
        queue.push(5).unwrap();
        queue.close();
        let (mut handle, mut done) = (queue.handle(), 0);
        loop {
            let tx = handle.begin();
            let Ok(item) = tx.pop_blocking() else { break };
            (0..*item).for_each(|child| tx.push(child).unwrap());
            tx.commit();
            done += 1;
        }
        assert_eq!(done, 32);
        assert_eq!(queue.pop(), Err(PopError::Closed));
    });
}

type GiveBack = fn(&Transaction<'_, u32>, Item<'_, u32>);

#[test]
fn a_transaction_that_has_given_back_all_is_refused() {
    ends(|| {
        let ways: [GiveBack; 2] = [
            |tx, item| tx.retry(item).unwrap(),
            |tx, item| tx.fail(item, "broken").unwrap(),
        ];
        for (way, give_back) in ways.into_iter().enumerate() {
            for stage in STAGES {
                let queue = Queue::unbounded();
                queue.push(1).unwrap();
                let (mut a, mut b) = (queue.handle(), queue.handle());
                let (tx, idle) = (a.begin(), b.begin());
                let item = tx.pop().unwrap();
                queue.close();
                stage(&tx, 2).unwrap();
                give_back(&tx, item);
                assert_eq!(stage(&tx, 3), Err(PushError::Closed(3)));
                assert_eq!(stage(&idle, 3), Err(PushError::Closed(3)));
                let again = [Ok(1), Err(PopError::Empty)][way];
                assert_eq!(queue.pop(), again, "what is staged keeps the end back");
                tx.commit();
                assert_eq!(drain(&queue), [2]);
                assert_eq!(queue.pop(), Err(PopError::Closed));
            }
        }
    });
}

/// The follow-up items of an aborted transaction are dropped, and those of the next attempt count.
#[test]
fn follow_ups_of_an_aborted_transaction_are_dropped() {
    let queue = Queue::unbounded();
    queue.push(1).unwrap();
    queue.close();
    let mut handle = queue.handle();
    for _ in 0..2 {
        let tx = handle.begin();
        tx.pop().unwrap();
        tx.push(2).unwrap();
        tx.abort();
        assert_eq!(queue.len(), 1);
    }
    assert_eq!(drain(&queue), [1]);
    assert_eq!(queue.pop(), Err(PopError::Closed));
}

#[test]
fn more_follow_ups_than_room_are_refused_at_once() {
    ends(|| {
        for stage in STAGES {
            let queue = Queue::bounded(2);
            queue.handle().push_batch([1, 2]).unwrap();
            let mut handle = queue.handle();
            let tx = handle.begin();
            tx.pop().unwrap();
            queue.close();
            stage(&tx, 3).unwrap();
            assert_eq!(stage(&tx, 4), Err(PushError::Full(4)));
            assert_eq!(queue.pop(), Ok(2));
            stage(&tx, 4).unwrap();
            tx.commit();
            assert_eq!(drain(&queue), [3, 4]);
        }
    });
}

#[test]
fn close_ends_the_wait_for_room_of_a_transaction_that_holds() {
    let queue = Queue::bounded(2);
    queue.handle().push_batch([1, 2]).unwrap();
    let mut handle = queue.handle();
    let tx = handle.begin();
    tx.pop().unwrap();
    tx.push(3).unwrap();
    let mut task = Task::waiting(tx.push_async(4));
    queue.close();
    assert!(task.was_woken());
    assert_eq!(task.output(), Err(PushError::Full(4)));
    drop(task);
    tx.commit();
    assert_eq!(drain(&queue).len(), 2);
    assert_eq!(queue.pop(), Err(PopError::Closed));
}

#[test]
fn a_commit_over_several_queues_after_the_close_of_one() {
    let (open, closed) = (Queue::unbounded(), Queue::unbounded());
    let (mut a, mut b) = (open.handle(), closed.handle());
    let (tx_a, tx_b) = (a.begin(), b.begin());
    tx_a.push(1).unwrap();
    tx_b.push(2).unwrap();
    closed.close();
    commit_all((tx_a, tx_b));
    assert_eq!((closed.pop(), closed.pop()), (Ok(2), Err(PopError::Closed)));
    assert_eq!((open.pop(), open.pop()), (Ok(1), Err(PopError::Empty)));
}

#[test]
fn a_pop_says_empty_while_a_transaction_may_give_something_back() {
    let queue = Queue::unbounded();
    queue.push(1).unwrap();
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let tx = a.begin();
    tx.pop().unwrap();
    queue.close();
    assert_eq!(queue.pop(), Err(PopError::Empty));
    assert_eq!(b.pop(), Err(PopError::Empty));
    assert_eq!(b.pop_timeout(Duration::ZERO), Err(PopError::Empty));
    assert_eq!(b.begin().pop().err(), Some(PopError::Empty));
    assert_eq!(tx.pop().err(), Some(PopError::Empty));
    tx.abort();
    assert_eq!(b.pop(), Ok(1));
    assert_eq!(b.pop(), Err(PopError::Closed));
}

type End = fn(Transaction<'_, u32>);

/// Ends of a transaction that holds 1 and has staged 2, and the items left by them.
const ENDS: [(End, &[u32]); 4] = [
    (|tx| drop(tx.commit()), &[2]),
    (|tx| tx.abort(), &[1]),
    (|tx| drop(tx), &[1]),
    (|tx| mem::forget(tx.commit()), &[2]),
];

#[test]
fn the_end_of_the_last_transaction_decides() {
    for (end, left) in ENDS {
        let queue = Queue::unbounded();
        queue.push(1).unwrap();
        let mut handle = queue.handle();
        let tx = handle.begin();
        tx.pop().unwrap();
        tx.push(2).unwrap();
        queue.close();
        assert_eq!(queue.pop(), Err(PopError::Empty));
        end(tx);
        assert_eq!(drain(&queue), left);
        assert_eq!(queue.pop(), Err(PopError::Closed));
    }
}

#[test]
fn staged_items_alone_keep_the_end_back() {
    let queue = Queue::unbounded();
    let mut handle = queue.handle();
    let tx = handle.begin();
    tx.push(1).unwrap();
    queue.close();
    assert_eq!(queue.pop(), Err(PopError::Empty));
    tx.abort();
    assert_eq!(queue.pop(), Err(PopError::Closed));
}

#[test]
fn an_unused_transaction_does_not_delay_the_end() {
    ends(|| {
        let queue = Queue::<u32>::unbounded();
        let (mut a, mut b) = (queue.handle(), queue.handle());
        let (tx_a, tx_b) = (a.begin(), b.begin());
        assert_eq!(tx_a.pop().err(), Some(PopError::Empty));
        mem::forget(tx_b);
        queue.close();
        assert_eq!(queue.pop(), Err(PopError::Closed));
        assert_eq!(tx_a.pop_blocking().err(), Some(PopError::Closed));
    });
}

#[test]
fn a_forgotten_transaction_delays_the_end_until_its_handle_is_used() {
    let uses: [fn(Handle<u32>); 2] = [drop, |mut handle| drop(handle.begin())];
    for end in uses {
        let queue = Queue::unbounded();
        queue.push(1).unwrap();
        let mut handle = queue.handle();
        let tx = handle.begin();
        tx.pop().unwrap();
        mem::forget(tx);
        queue.close();
        assert_eq!(queue.pop(), Err(PopError::Empty));
        end(handle);
        assert_eq!((queue.pop(), queue.pop()), (Ok(1), Err(PopError::Closed)));
    }
}

#[test]
fn close_wakes_all_waiters_for_items() {
    let queue = Queue::unbounded();
    let mut handles = handles(&queue, 64);
    let mut tasks = poppers(&mut handles);
    assert!(queue.close());
    for task in &mut tasks {
        assert_eq!(
            (task.was_woken(), task.output()),
            (true, Err(PopError::Closed))
        );
    }
    assert!(!queue.close());
}

#[test]
fn close_wakes_all_waiters_for_room() {
    let queue = Queue::bounded(1);
    queue.push(99).unwrap();
    let mut handles = handles(&queue, 64);
    let mut tasks = pushers(&mut handles);
    queue.close();
    for (number, task) in (0..).zip(&mut tasks) {
        let refused = Err(PushError::Closed(number));
        assert_eq!((task.was_woken(), task.output()), (true, refused));
    }
    assert_eq!((queue.pop(), queue.pop()), (Ok(99), Err(PopError::Closed)));
}

/// A push that was woken for room and finds the queue closed has pushed nothing.
#[test]
fn close_overtakes_a_pusher_on_its_way() {
    for push in ASYNC_PUSHES {
        let queue = Queue::bounded(1);
        queue.push(0).unwrap();
        let mut handle = queue.handle();
        let mut task = Task::waiting(push(&mut handle, 1));
        queue.pop().unwrap();
        assert!(task.was_woken());
        queue.close();
        assert_eq!(task.output(), Err(PushError::Closed(1)));
        assert_eq!(queue.pop(), Err(PopError::Closed));
    }
}

#[test]
fn a_future_from_before_the_close_is_refused_after() {
    for push in ASYNC_PUSHES {
        let queue = Queue::unbounded();
        let mut handle = queue.handle();
        let mut task = Task::new(push(&mut handle, 1));
        queue.close();
        assert_eq!(task.output(), Err(PushError::Closed(1)));
    }
    for pop in async_pops() {
        let queue = Queue::unbounded();
        let mut handle = queue.handle();
        let mut task = Task::new(pop(&mut handle));
        queue.close();
        assert_eq!(task.output(), Err(PopError::Closed));
    }
}

/// All waiters learn how a transaction with held or staged items ended.
#[test]
fn waiters_learn_the_end_from_the_last_transaction() {
    for (end, left) in ENDS {
        let queue = Queue::unbounded();
        queue.push(1).unwrap();
        let mut last = queue.handle();
        let tx = last.begin();
        tx.pop().unwrap();
        tx.push(2).unwrap();
        let mut handles = handles(&queue, 8);
        let mut tasks = poppers(&mut handles);
        queue.close();
        tasks.iter_mut().for_each(Task::assert_waits);
        let before: Vec<usize> = tasks.iter().map(Task::rings).collect();
        end(tx);
        assert!(tasks[0].rings() > before[0]);
        assert_eq!(tasks[0].output(), Ok(left[0]));
        tasks.remove(0);
        for (task, before) in tasks.iter_mut().zip(&before[1..]) {
            assert!(task.rings() > *before);
            assert_eq!(task.output(), Err(PopError::Closed));
        }
    }
}

/// Ends a transaction that has only held and committed, or only staged and aborted: no item is left.
#[test]
fn waiters_learn_the_end_from_a_transaction_that_leaves_nothing() {
    let ends: [Event; 4] = [
        |queue, meanwhile| {
            let mut handle = queue.handle();
            handle.push(1).unwrap();
            let tx = handle.begin();
            tx.pop().unwrap();
            meanwhile();
            tx.commit();
        },
        |queue, meanwhile| {
            let mut handle = queue.handle();
            let tx = handle.begin();
            tx.push(1).unwrap();
            meanwhile();
            tx.abort();
        },
        |queue, meanwhile| {
            let mut handle = queue.handle();
            let tx = handle.begin();
            tx.push(1).unwrap();
            mem::forget(tx);
            meanwhile();
            drop(handle);
        },
        |queue, meanwhile| {
            let mut handle = queue.handle();
            let tx = handle.begin();
            tx.push(1).unwrap();
            mem::forget(tx);
            meanwhile();
            assert_eq!(handle.pop(), Err(PopError::Closed));
        },
    ];
    for end in ends {
        let queue = Queue::unbounded();
        let mut handles = handles(&queue, 8);
        let mut tasks = Vec::new();
        let mut before = 0;
        let mut line = Some(&mut handles);
        end(&queue, &mut || {
            tasks = poppers(line.take().expect("closed once"));
            queue.close();
            tasks.iter_mut().for_each(Task::assert_waits);
            before = all_rings(&tasks);
        });
        assert!(all_rings(&tasks) >= before + tasks.len());
        for task in &mut tasks {
            assert_eq!(task.output(), Err(PopError::Closed));
        }
    }
}

/// `Closed` is returned only after the last of several transactions.
#[test]
fn one_of_two_transactions_does_not_bring_the_end() {
    let queue = Queue::unbounded();
    queue.handle().push_batch([1, 2]).unwrap();
    let (mut a, mut b, mut c) = (queue.handle(), queue.handle(), queue.handle());
    let (tx_a, tx_b) = (a.begin(), b.begin());
    tx_a.pop().unwrap();
    tx_b.pop().unwrap();
    let mut task = Task::waiting(c.pop_async());
    queue.close();
    task.assert_waits();
    tx_a.commit();
    task.assert_waits();
    let before = task.rings();
    tx_b.commit();
    assert!(task.rings() > before);
    assert_eq!(task.output(), Err(PopError::Closed));
}

type Wait = fn(&Transaction<'_, u32>) -> Option<PopError>;

/// Pops that wait inside a transaction.
const WAITS_INSIDE: [Wait; 3] = [
    |tx| tx.pop_blocking().err(),
    |tx| tx.pop_timeout(Duration::MAX).err(),
    |tx| Task::new(tx.pop_async()).output().err(),
];

#[test]
fn a_transaction_that_holds_does_not_wait_on_a_closed_queue() {
    ends(|| {
        for wait in WAITS_INSIDE {
            let queue = Queue::unbounded();
            queue.handle().push_batch([1, 2]).unwrap();
            let (mut a, mut b) = (queue.handle(), queue.handle());
            let (tx_a, tx_b) = (a.begin(), b.begin());
            tx_a.pop().unwrap();
            queue.close();
            assert_eq!(tx_b.pop_blocking().as_deref(), Ok(&2));
            assert_eq!(wait(&tx_a), Some(PopError::Empty));
            assert_eq!(wait(&tx_b), Some(PopError::Empty));
            assert_eq!(tx_a.pop_batch_blocking(2, 4).len(), 0);
            tx_a.abort();
            assert_eq!(wait(&tx_b), None);
            assert_eq!(wait(&tx_b), Some(PopError::Empty));
            tx_b.commit();
            assert_eq!(queue.pop(), Err(PopError::Closed));
        }
    });
}

#[test]
fn a_transaction_that_has_staged_does_not_wait_on_a_closed_queue() {
    ends(|| {
        for wait in WAITS_INSIDE {
            let queue = Queue::unbounded();
            let (mut a, mut b) = (queue.handle(), queue.handle());
            let (tx_a, tx_b) = (a.begin(), b.begin());
            tx_a.push(1).unwrap();
            tx_b.push(2).unwrap();
            queue.close();
            assert_eq!(wait(&tx_a), Some(PopError::Empty));
            assert_eq!(wait(&tx_b), Some(PopError::Empty));
            tx_a.commit();
            assert_eq!(wait(&tx_b), None);
            assert!(tx_b.commit().eq([1]));
            assert_eq!((queue.pop(), queue.pop()), (Ok(2), Err(PopError::Closed)));
        }
    });
}

/// They wait since before the close: the close ends the wait.
#[test]
fn close_ends_the_wait_of_transactions_that_hold() {
    let queue = Queue::unbounded();
    queue.handle().push_batch([1, 2]).unwrap();
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let (tx_a, tx_b) = (a.begin(), b.begin());
    tx_a.pop().unwrap();
    tx_b.pop().unwrap();
    let mut wait_a = Task::waiting(tx_a.pop_async());
    let mut wait_b = Task::waiting(tx_b.pop_async());
    queue.close();
    assert!(wait_a.was_woken() && wait_b.was_woken());
    assert_eq!(wait_a.output().err(), Some(PopError::Empty));
    assert_eq!(wait_b.output().err(), Some(PopError::Empty));
}

#[test]
fn a_drain_ends_when_all_is_popped() {
    ends(|| {
        let queue = Queue::unbounded();
        let mut handle = queue.handle();
        handle.push_batch(0..10).unwrap();
        let mut drain = queue.iter();
        assert!(drain.by_ref().take(4).eq(0..4));
        assert!(!queue.is_closed(), "a drain does not close");
        handle.push(10).unwrap();
        handle.begin().pop_batch(3);
        queue.close();
        assert!(drain.by_ref().eq(4..=10));
        assert_eq!(drain.next(), None);
        assert_eq!(queue.iter().count(), 0);
    });
}

#[test]
fn a_drain_goes_on_when_all_else_is_dropped() {
    ends(|| {
        let queue = Queue::unbounded();
        queue.push(1).unwrap();
        queue.close();
        let drain = queue.iter();
        drop(queue);
        assert!(drain.eq([1]));
    });
}
