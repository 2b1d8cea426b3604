//! Handles: their order, their threads, their drop, and the counts.

use std::cell::RefCell;
use std::sync::mpsc;
use std::thread;

use crate::common::futures::Task;
use crate::common::{assert_at_rest, drain, filled};
use requeue::{Handle, PopError, Queue};

/// Runs `f` on its own thread and returns its result.
fn elsewhere<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    thread::scope(|scope| scope.spawn(f).join().unwrap())
}

#[test]
fn items_of_one_handle_leave_in_order() {
    let queue = Queue::unbounded();
    let mut handle = queue.handle();
    for round in 0..300 {
        let first = 4 * round;
        handle.push(first).unwrap();
        handle.push_batch([first + 1, first + 2]).unwrap();
        handle.transact(|tx| tx.push(first + 3)).unwrap();
    }
    assert_eq!(drain(&queue), (0..1_200).collect::<Vec<_>>());
}

#[test]
fn every_handle_keeps_its_own_order() {
    let queue = Queue::unbounded();
    let mut handles: Vec<_> = (0..5).map(|_| queue.handle()).collect();
    for item in 0..200 {
        for (source, handle) in handles.iter_mut().enumerate() {
            handle.push((source, item)).unwrap();
        }
    }
    let mut consumer = queue.handle();
    let mut next = [0; 5];
    while let Ok((source, item)) = consumer.pop() {
        assert_eq!(item, next[source]);
        next[source] += 1;
    }
    assert_eq!(next, [200; 5]);
}

#[test]
fn pushes_without_a_handle_keep_the_order_of_their_thread() {
    let queue = Queue::unbounded();
    let (to_other, from_main) = mpsc::channel();
    let (to_main, from_other) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            for item in from_main {
                queue.push((1, item)).unwrap();
                to_main.send(item + 1).unwrap();
            }
        });
        to_other.send(0).unwrap();
        for _ in 0..100 {
            let item = from_other.recv().unwrap();
            queue.push((0, item)).unwrap();
            to_other.send(item + 1).unwrap();
        }
        drop(to_other);
    });
    let popped = drain(&queue);
    let of = |thread| popped.iter().filter(move |item| item.0 == thread);
    assert!(of(0).map(|item| item.1).eq((1..200).step_by(2)));
    assert!(of(1).map(|item| item.1).eq((0..=200).step_by(2)));
}

#[test]
fn all_verbs_without_a_handle_keep_one_order() {
    let queue = Queue::unbounded();
    for first in (0..100).step_by(5) {
        queue.push(first).unwrap();
        queue.push_batch([first + 1, first + 2]).unwrap();
        queue.push_blocking(first + 3).unwrap();
        assert_eq!(Task::new(queue.push_async(first + 4)).output(), Ok(()));
    }
    assert_eq!(drain(&queue), (0..100).collect::<Vec<_>>());
}

#[test]
fn items_outlive_the_threads_that_have_pushed_them() {
    let queue = Queue::unbounded();
    for item in 0..1_000 {
        elsewhere(|| queue.push(item).unwrap());
    }
    // Most threads take the handle of the one before over; a test that runs beside this one may be faster.
    let mut popped = drain(&queue);
    popped.sort_unstable();
    assert_eq!(popped, (0..1_000).collect::<Vec<_>>());
}

/// Pushes to a queue when its thread ends.
struct PushesLast(Queue<u32>, u32);

impl Drop for PushesLast {
    fn drop(&mut self) {
        self.0.push(self.1).unwrap();
        self.0.push(self.1 + 1).unwrap();
        assert!(self.0.pop().is_ok());
    }
}

#[test]
fn destructors_of_thread_locals_use_the_queue() {
    thread_local! {
        static EARLY: RefCell<Option<PushesLast>> = const { RefCell::new(None) };
        static LATE: RefCell<Option<PushesLast>> = const { RefCell::new(None) };
    }
    let queue = Queue::unbounded();
    elsewhere(|| {
        EARLY.with(|early| *early.borrow_mut() = Some(PushesLast(queue.clone(), 10)));
        queue.push(0).unwrap();
        LATE.with(|late| *late.borrow_mut() = Some(PushesLast(queue.clone(), 20)));
    });
    assert_eq!(drain(&queue).len(), 3);
    queue.stats().check().unwrap();
}

#[test]
fn a_handle_may_move_between_operations() {
    let queue = Queue::unbounded();
    let mut handle = queue.handle();
    for item in 0..50 {
        handle = elsewhere(move || {
            handle.push(2 * item).unwrap();
            handle
        });
        handle.push(2 * item + 1).unwrap();
    }
    for item in 0..100 {
        let (popped, moved) = elsewhere(move || (handle.pop(), handle));
        assert_eq!(popped, Ok(item));
        handle = moved;
    }
}

#[test]
fn an_open_transaction_may_move_to_another_thread() {
    let queue = filled([1, 2]);
    let mut handle = queue.handle();
    let tx = handle.begin();
    tx.push(3).unwrap();
    tx.pop().unwrap();
    let taken: Vec<_> = elsewhere(move || {
        tx.pop().unwrap();
        tx.commit().collect()
    });
    assert_eq!(taken, [1, 2]);
    assert_eq!(drain(&queue), [3]);
}

#[test]
fn a_thread_that_ends_in_a_transaction_gives_its_items_back() {
    let queue = filled([1, 2]);
    let mut handle = queue.handle();
    elsewhere(move || {
        let tx = handle.begin();
        tx.push(3).unwrap();
        assert_eq!(tx.pop_batch(2).len(), 2);
    });
    assert_at_rest(&queue, 2, 0);
    assert_eq!(drain(&queue), [1, 2]);
}

#[test]
fn a_dropped_handle_leaves_its_items() {
    let queue = Queue::unbounded();
    for source in 0..100 {
        let mut handle = queue.handle();
        handle
            .push_batch((0..10).map(|item| (source, item)))
            .unwrap();
    }
    let items = drain(&queue);
    for source in 0..100 {
        let of_source = items.iter().filter(|item| item.0 == source);
        assert!(of_source.map(|item| item.1).eq(0..10));
    }
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn a_shard_changes_hands_while_its_items_are_held() {
    let queue = filled(0..10);
    let mut consumer = queue.handle();
    let tx = consumer.begin();
    assert_eq!(tx.pop_batch(5).len(), 5);
    for round in 1..=3 {
        queue
            .handle()
            .push_batch(10 * round..10 * round + 10)
            .unwrap();
    }
    tx.abort();
    let items: Vec<i32> = drain(&queue);
    for round in 0..=3 {
        let of_round = items.iter().filter(|item| *item / 10 == round);
        assert!(of_round.copied().eq(10 * round..10 * round + 10));
    }
    assert_eq!(items.len(), 40);
}

#[test]
fn a_handle_outlives_every_clone_of_its_queue() {
    let mut handle = Queue::unbounded().handle();
    handle.push_batch(0..3).unwrap();
    let popped: Vec<_> = std::iter::from_fn(|| handle.pop().ok()).collect();
    assert_eq!(popped, [0, 1, 2]);
}

#[test]
fn clones_are_the_same_queue() {
    let queue = Queue::unbounded();
    let clone = queue.clone();
    clone.push(1).unwrap();
    assert_eq!(queue.len(), 1);
    assert_eq!(queue.handle().pop(), Ok(1));
    assert_eq!(clone.pop(), Err(PopError::Empty));
}

#[test]
fn counts_are_exact_at_rest() {
    let queue = Queue::unbounded();
    let (mut a, mut b) = (queue.handle(), queue.handle());
    assert_at_rest(&queue, 0, 0);
    a.push_batch(0..10).unwrap();
    queue.push(10).unwrap();
    assert_at_rest(&queue, 11, 0);
    a.pop().unwrap();
    queue.pop().unwrap();
    let tx = b.begin();
    assert_eq!(tx.pop_batch(4).len(), 4);
    tx.push(11).unwrap();
    assert_at_rest(&queue, 5, 4);
    tx.abort();
    assert_at_rest(&queue, 9, 0);
    let tx = b.begin();
    assert_eq!(tx.pop_batch(3).len(), 3);
    tx.push(12).unwrap();
    tx.commit();
    assert_at_rest(&queue, 7, 0);
    drop((a, b));
    let stats = queue.stats();
    assert_eq!((stats.pushed, stats.ready, stats.held), (12, 7, 0));
    assert_eq!((stats.committed, stats.aborted), (5, 4));
}

#[test]
fn counts_add_up_after_many_threads() {
    let queue = Queue::unbounded();
    let work = |mut handle: Handle<u32>, thread: u32| {
        for item in 0..300 {
            handle.push(item).unwrap();
            let tx = handle.begin();
            assert!(tx.pop_batch(2).len() <= 2);
            tx.push(item).unwrap();
            if (item + thread) % 2 == 0 {
                tx.commit();
            }
        }
    };
    thread::scope(|scope| {
        for thread in 0..4 {
            let handle = queue.handle();
            scope.spawn(move || work(handle, thread));
        }
    });
    let stats = queue.stats();
    assert_eq!(stats.pushed, 4 * (300 + 150));
    let ready = queue.len();
    assert_at_rest(&queue, ready, 0);
    assert_eq!(drain(&queue).len(), ready);
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn an_item_that_always_fails_does_not_hide_the_other_shards() {
    [0, 1, 10].into_iter().for_each(fail_beside_idle);
}

/// One item fails always, and another one never. The shards of `handles` idle handles are between theirs.
fn fail_beside_idle(handles: usize) {
    let queue = Queue::unbounded();
    let mut bad = queue.handle();
    bad.push("first").unwrap();
    let idle: Vec<_> = (0..handles)
        .map(|_| {
            let mut idle = queue.handle();
            idle.push("idle").unwrap();
            idle
        })
        .collect();
    let mut good = queue.handle();
    assert_eq!(drain(&queue).len(), 1 + idle.len());
    let mut worker = queue.handle();
    let mut try_one = || {
        worker.transact(|tx| match *tx.pop().unwrap() {
            "good" => Ok(()),
            _ => Err("cannot be done"),
        })
    };
    bad.push("bad").unwrap();
    assert!(try_one().is_err());
    good.push("good").unwrap();
    assert!((0..100).any(|_| try_one().is_ok()));
    assert_eq!(queue.pop(), Ok("bad"));
}
