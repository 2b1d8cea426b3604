//! Futures that are dropped or forgotten before they are ready: no item and no wake-up is lost.

use std::mem;

use crate::common::futures::{all_rings, woken, Bell, Task};
use crate::common::waits::{async_pops, poppers, pushers, ASYNC_PUSHES};
use crate::common::Ledger;
use requeue::{Handle, PopError, PushError, Queue};
use std::sync::Arc;

fn handles(queue: &Queue<u32>, count: usize) -> Vec<Handle<u32>> {
    (0..count).map(|_| queue.handle()).collect()
}

#[test]
fn a_cancelled_pop_passes_its_wake_up_on() {
    for pop in async_pops() {
        for next in async_pops() {
            let queue = Queue::unbounded();
            let (mut a, mut b) = (queue.handle(), queue.handle());
            let first = Task::waiting(pop(&mut a));
            let mut second = Task::waiting(next(&mut b));
            queue.push(1).unwrap();
            assert_eq!((first.rings(), second.rings()), (1, 0));
            drop(first);
            assert_eq!((second.rings(), second.output()), (1, Ok(1)));
        }
    }
}

#[test]
fn a_cancelled_push_passes_its_wake_up_on() {
    for push in ASYNC_PUSHES {
        for next in ASYNC_PUSHES {
            let queue = Queue::bounded(1);
            queue.push(0).unwrap();
            let (mut a, mut b) = (queue.handle(), queue.handle());
            let first = Task::waiting(push(&mut a, 1));
            let mut second = Task::waiting(next(&mut b, 2));
            queue.pop().unwrap();
            assert_eq!((first.rings(), second.rings()), (1, 0));
            drop(first);
            assert_eq!((second.rings(), second.output()), (1, Ok(())));
            assert_eq!(queue.pop(), Ok(2));
            assert_eq!(queue.pop(), Err(PopError::Empty));
        }
    }
}

#[test]
fn a_wake_up_passes_through_63_cancelled_waiters() {
    let queue = Queue::unbounded();
    let mut handles = handles(&queue, 64);
    let mut tasks = poppers(&mut handles);
    queue.push(1).unwrap();
    while tasks.len() > 1 {
        assert_eq!(woken(&tasks), [0]);
        tasks.remove(0);
    }
    assert_eq!((tasks[0].rings(), tasks[0].output()), (1, Ok(1)));
}

#[test]
fn room_passes_through_63_cancelled_pushers() {
    let queue = Queue::bounded(1);
    queue.push(0).unwrap();
    let mut handles = handles(&queue, 64);
    let mut tasks = pushers(&mut handles);
    queue.pop().unwrap();
    while tasks.len() > 1 {
        assert_eq!(woken(&tasks), [0]);
        tasks.remove(0);
    }
    assert_eq!((tasks[0].rings(), tasks[0].output()), (1, Ok(())));
}

#[test]
fn a_cancelled_waiter_that_was_not_woken_wakes_no_other() {
    let queue = Queue::unbounded();
    let mut handles = handles(&queue, 8);
    let mut tasks = poppers(&mut handles);
    drop(tasks.drain(..4));
    assert_eq!(all_rings(&tasks), 0);
    queue.push(1).unwrap();
    assert_eq!(woken(&tasks), [0]);
}

/// The wake-up belongs to another waiter: a cancelled waiter behind it does not consume it.
#[test]
fn a_cancelled_waiter_consumes_no_wake_up_of_others() {
    let queue = Queue::unbounded();
    let mut handles = handles(&queue, 4);
    let mut tasks = poppers(&mut handles);
    queue.handle().push_batch([1, 2]).unwrap();
    tasks.remove(3);
    tasks.remove(2);
    assert_eq!(all_rings(&tasks), 2);
    assert!(tasks.iter_mut().all(|task| task.output().is_ok()));
}

#[test]
fn a_pop_that_was_ready_passes_nothing_on() {
    let queue = Queue::unbounded();
    let mut handles = handles(&queue, 3);
    let mut tasks = poppers(&mut handles);
    queue.push(1).unwrap();
    assert_eq!(tasks[0].output(), Ok(1));
    tasks.remove(0);
    assert_eq!(all_rings(&tasks), 0);
}

/// The transaction of a cancelled pop stays open, and can be used and committed.
#[test]
fn a_transaction_outlives_its_cancelled_futures() {
    let queue = Queue::bounded(2);
    queue.push(1).unwrap();
    let mut handle = queue.handle();
    let tx = handle.begin();
    tx.pop().unwrap();
    for _ in 0..3 {
        Task::waiting(tx.pop_async());
        drop(tx.pop_async());
    }
    queue.push(2).unwrap();
    assert_eq!(Task::new(tx.pop_async()).output().as_deref(), Ok(&2));
    tx.push(3).unwrap();
    tx.push(4).unwrap();
    drop(tx.push_async(5));
    assert!(tx.commit().eq([1, 2]));
    assert_eq!((queue.pop(), queue.pop()), (Ok(3), Ok(4)));
}

#[test]
fn a_cancelled_push_drops_its_item() {
    let ledger = Ledger::new(8);
    let queue = Queue::bounded(2);
    let mut handle = queue.handle();
    handle.push(ledger.item(0)).unwrap();
    handle.push(ledger.item(1)).unwrap();
    drop(handle.push_async(ledger.item(2)));
    drop(Task::waiting(handle.push_async(ledger.item(3))));
    let batch = [4, 5].map(|id| ledger.item(id));
    drop(Task::waiting(handle.push_batch_async(batch)));
    let tx = handle.begin();
    drop(Task::waiting(tx.push_async(ledger.item(6))));
    drop(tx.push_async(ledger.item(7)));
    tx.commit();
    assert_eq!(ledger.drops(), [0, 0, 1, 1, 1, 1, 1, 1]);
    for id in 0..2 {
        assert_eq!(queue.pop().map(|item| item.id), Ok(id));
    }
    assert!(queue.is_empty());
    ledger.assert_each_dropped_once();
}

#[test]
fn a_cancelled_push_that_was_woken_pushes_nothing() {
    let queue = Queue::bounded(1);
    queue.push(0).unwrap();
    for push in ASYNC_PUSHES {
        let mut handle = queue.handle();
        let task = Task::waiting(push(&mut handle, 1));
        assert_eq!(queue.pop(), Ok(0));
        assert!(task.was_woken());
        drop(task);
        assert_eq!(queue.pop(), Err(PopError::Empty));
        assert_eq!(queue.push(0), Ok(()));
        assert_eq!(queue.push(1), Err(PushError::Full(1)));
    }
}

type Use = fn(Handle<u32>) -> Option<Handle<u32>>;

/// The uses of a handle that settle forgotten state.
const USES: [Use; 8] = [
    |_| None,
    |mut handle| {
        handle.begin().abort();
        Some(handle)
    },
    |mut handle| {
        assert_eq!(handle.pop_batch(0, &mut Vec::new()), 0);
        Some(handle)
    },
    |mut handle| {
        assert_eq!(handle.push_batch([]), Ok(0));
        Some(handle)
    },
    |mut handle| {
        drop(handle.pop_async());
        Some(handle)
    },
    |mut handle| {
        drop(handle.push_async(9));
        Some(handle)
    },
    |mut handle| {
        drop(handle.push_batch_async([9]));
        Some(handle)
    },
    |mut handle| {
        handle.transact(|_| Err::<(), _>(())).unwrap_err();
        Some(handle)
    },
];

type Forget = fn(&mut Handle<u32>) -> Arc<Bell>;

/// Forgets a future that waits for an item, with its transaction if it has one.
const FORGOTTEN_POPS: [Forget; 2] = [
    |handle| Task::waiting(handle.pop_async()).forget(),
    |handle| {
        let tx = handle.begin();
        let bell = Task::waiting(tx.pop_async()).forget();
        mem::forget(tx);
        bell
    },
];

#[test]
fn a_forgotten_pop_keeps_its_waiter_until_its_handle_is_used() {
    for forget in FORGOTTEN_POPS {
        for use_again in USES {
            let queue = Queue::unbounded();
            let (mut a, mut b) = (queue.handle(), queue.handle());
            let bell = forget(&mut a);
            let mut next = Task::waiting(b.pop_async());
            queue.push(1).unwrap();
            assert_eq!((bell.rings(), next.rings()), (1, 0));
            let _a = use_again(a);
            assert_eq!((bell.rings(), next.rings()), (1, 1));
            assert_eq!(next.output(), Ok(1));
        }
    }
}

#[test]
fn a_forgotten_pop_loses_its_waiter_when_its_handle_is_used() {
    for forget in FORGOTTEN_POPS {
        for use_again in USES {
            let queue = Queue::unbounded();
            let (mut a, mut b) = (queue.handle(), queue.handle());
            let bell = forget(&mut a);
            let mut next = Task::waiting(b.pop_async());
            let _a = use_again(a);
            assert_eq!((bell.rings(), next.rings()), (0, 0));
            queue.push(1).unwrap();
            assert_eq!((bell.rings(), next.rings()), (0, 1));
            assert_eq!(next.output(), Ok(1));
        }
    }
}

/// Forgets a future that waits for room, with its transaction if it has one.
const FORGOTTEN_PUSHES: [Forget; 3] = [
    |handle| Task::waiting(handle.push_async(8)).forget(),
    |handle| Task::waiting(handle.push_batch_async([8])).forget(),
    |handle| {
        let tx = handle.begin();
        let bell = Task::waiting(tx.push_async(8)).forget();
        mem::forget(tx);
        bell
    },
];

#[test]
fn a_forgotten_push_keeps_its_waiter_until_its_handle_is_used() {
    for forget in FORGOTTEN_PUSHES {
        for use_again in USES {
            let queue = Queue::bounded(1);
            queue.push(0).unwrap();
            let (mut a, mut b) = (queue.handle(), queue.handle());
            let bell = forget(&mut a);
            let mut next = Task::waiting(b.push_async(2));
            queue.pop().unwrap();
            assert_eq!((bell.rings(), next.rings()), (1, 0));
            let _a = use_again(a);
            assert_eq!((bell.rings(), next.rings()), (1, 1));
            assert_eq!(next.output(), Ok(()));
            assert_eq!((queue.pop(), queue.pop()), (Ok(2), Err(PopError::Empty)));
        }
    }
}

#[test]
fn a_forgotten_future_leaves_with_its_transaction() {
    let ends: [fn(requeue::Transaction<'_, u32>); 3] =
        [|tx| drop(tx.commit()), |tx| tx.abort(), |tx| drop(tx)];
    for end in ends {
        let queue = Queue::unbounded();
        let (mut a, mut b) = (queue.handle(), queue.handle());
        let tx = a.begin();
        let bell = Task::waiting(tx.pop_async()).forget();
        let mut next = Task::waiting(b.pop_async());
        queue.push(1).unwrap();
        assert_eq!((bell.rings(), next.rings()), (1, 0));
        end(tx);
        assert_eq!((next.rings(), next.output()), (1, Ok(1)));
    }
}

/// The transaction had taken and staged an item before: both take effect, and the wake-up is passed on.
#[test]
fn a_forgotten_future_leaves_with_a_transaction_that_was_used() {
    let queue = Queue::unbounded();
    queue.push(0).unwrap();
    let (mut a, mut b, mut c) = (queue.handle(), queue.handle(), queue.handle());
    let tx = a.begin();
    tx.push(2).unwrap();
    tx.pop().unwrap();
    let bell = Task::waiting(tx.pop_async()).forget();
    let mut others = [Task::waiting(b.pop_async()), Task::waiting(c.pop_async())];
    queue.push(1).unwrap();
    assert_eq!((bell.rings(), all_rings(&others)), (1, 0));
    assert!(tx.commit().eq([0]));
    assert_eq!(all_rings(&others), 2);
    assert!(others.iter_mut().all(|task| task.output().is_ok()));
}

/// A leaked future that was never polled has no waiter.
#[test]
fn a_future_that_was_never_polled_is_not_in_the_wait_queue() {
    let queue = Queue::unbounded();
    let (mut a, mut b) = (queue.handle(), queue.handle());
    mem::forget(a.pop_async());
    let next = Task::waiting(b.pop_async());
    queue.push(1).unwrap();
    assert_eq!(next.rings(), 1);
}

#[test]
fn a_handle_waits_again_after_a_forgotten_future() {
    let queue = Queue::unbounded();
    let mut handle = queue.handle();
    let bell = Task::waiting(handle.pop_async()).forget();
    let mut again = Task::waiting(handle.pop_async());
    queue.push(1).unwrap();
    assert_eq!((bell.rings(), again.rings()), (0, 1));
    assert_eq!(again.output(), Ok(1));
}
