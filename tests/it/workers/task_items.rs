//! The item and the transaction of a task's run, and what happens if they are kept. Feature `tokio`.

use std::cell::Cell;
use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex};
use std::thread;

use super::tasks::on_tokio;
use crate::common::{assert_at_rest, drain, filled, panics};
use requeue::{PriorityQueue, Queue, TaskItem, TaskTransaction, Transaction, Workers};
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::yield_now;

type Handles = (TaskItem<u32>, TaskTransaction<u32>);

/// Runs the items 1 and 2 on one task, which keeps the part of item 1 that `keep` returns. Then checks the reports of
/// the runs, each by its item, and drops the kept part.
async fn keeping<K: Send + 'static>(
    keep: fn(Handles) -> Option<K>,
    check: fn(&Queue<u32>, &mut K),
) {
    let queue = filled([1, 2]);
    let kept = Arc::new(Mutex::new(None));
    let keeps = Arc::clone(&kept);
    let (tell, mut told) = unbounded_channel();
    let tasks = Workers::builder(&queue)
        .tasks(1)
        .on_error(move |failure| tell.send(failure.clone()).unwrap())
        .run_async(move |item, tx| {
            let kept = Arc::clone(&keeps);
            async move {
                tx.push(*item + 10).unwrap();
                yield_now().await;
                if *item == 1 && item.attempts() == 1 {
                    *kept.lock().unwrap() = keep((item, tx));
                } else if *item > 10 {
                    tx.retry(item).unwrap();
                    return Err("leaves its push behind");
                }
                Ok(())
            }
        });
    let failure = told.recv().await.unwrap();
    assert_eq!(&*failure.worker, "worker-0");
    assert_eq!(
        &*failure.error,
        "the run's item or transaction is kept after its end"
    );
    assert_eq!((failure.items, failure.panicked), (0, false));
    // The task goes on, with another handle of its name.
    assert_eq!(
        &*told.recv().await.unwrap().error,
        "\"leaves its push behind\""
    );
    let report = tasks.stop().await;
    assert!(report.done >= 1 && report.failed >= 2, "{report:?}");
    assert_eq!(queue.stats().held, 1);
    assert_eq!(queue.held()[0].worker.as_deref(), Some("worker-0"));
    let mut kept = kept.lock().unwrap().take().unwrap();
    check(&queue, &mut kept);
    assert_eq!(queue.stats().held, 1);
    thread::spawn(move || drop(kept)).join().unwrap();
    let left = drain(&queue);
    assert!(left.contains(&1) && !left.contains(&11), "{left:?}");
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn an_item_that_is_kept_fails_its_run_and_goes_back_when_it_is_dropped() {
    on_tokio(|| {
        keeping(
            |(item, _tx)| Some(item),
            |_, item| {
                assert_eq!((**item, item.attempts()), (1, 1));
                **item = 5;
                **item = 1;
            },
        )
    });
}

#[test]
fn a_transaction_that_is_kept_fails_its_run_and_aborts_when_it_is_dropped() {
    on_tokio(|| {
        keeping(
            |(_item, tx)| Some(tx),
            |queue, tx| {
                let ready = queue.len();
                tx.push(11).unwrap();
                assert_eq!((tx.held(), queue.len()), (1, ready));
            },
        )
    });
}

#[test]
fn both_that_are_kept_go_back_with_the_last() {
    on_tokio(|| {
        keeping(Some, |queue, (item, tx)| {
            assert_eq!((**item, tx.held(), queue.stats().held), (1, 1, 1));
        })
    });
}

/// A forgotten item stays held, and can be used forever.
#[test]
fn a_forgotten_item_fails_its_run_and_stays_held() {
    on_tokio(|| async {
        let queue = filled([1, 2]);
        let tasks = Workers::builder(&queue).tasks(1);
        let tasks = tasks.run_async(|mut item, tx| async move {
            if *item == 1 {
                *item = 3;
                mem::forget(item);
            } else {
                mem::forget(tx);
            }
            Ok::<(), ()>(())
        });
        while tasks.status()[0].failed < 2 {
            yield_now().await;
        }
        assert_eq!(tasks.stop().await.done, 0);
        assert_eq!(queue.stats().held, 2);
        assert_eq!(drain(&queue), []);
    });
}

/// An error that holds the run's item is reported, and dropped before anyone waits for the item.
#[test]
fn an_error_may_hold_the_item_of_its_run() {
    on_tokio(|| async {
        let queue = filled([1]);
        let (tell, mut told) = unbounded_channel();
        let tasks = Workers::builder(&queue)
            .tasks(1)
            .on_error(move |failure| tell.send(failure.error.to_string()).unwrap())
            .run_async(|item, _tx| async move {
                match item.attempts() {
                    1 => Err(item),
                    _ => Ok(()),
                }
            });
        queue.wait_idle_async().await;
        assert_eq!(told.recv().await.as_deref(), Some("1"));
        let report = tasks.stop().await;
        assert_eq!((report.done, report.failed), (1, 1));
        assert_at_rest(&queue, 0, 0);
    });
}

/// Other tasks can have both, if they drop them before the run ends.
#[test]
fn other_tasks_may_use_what_a_run_owns() {
    on_tokio(|| async {
        let queue = filled([1]);
        queue.close();
        let tasks = Workers::builder(&queue).tasks(2);
        let tasks = tasks.run_async(|mut item, tx| async move {
            if *item > 1 {
                return Ok(());
            }
            let reader = thread::spawn(move || {
                *item += 1;
                *item
            });
            let writer = tokio::spawn(async move { tx.push_async(5).await });
            writer.await.unwrap().unwrap();
            assert_eq!(reader.join().unwrap(), 2);
            Ok::<(), ()>(())
        });
        assert_eq!(tasks.join().await.done, 2);
        assert_at_rest(&queue, 0, 0);
    });
}

/// All methods of a transaction are available, including those that wait and those of the queue's order.
#[test]
fn a_run_waits_and_pushes_as_its_queue_does() {
    on_tokio(|| async {
        let queue = PriorityQueue::by_priority();
        queue.push("first").unwrap();
        let tasks = Workers::builder(&queue).tasks(1);
        let (send, mut seen) = unbounded_channel();
        let tasks = tasks.run_async(move |item, tx| {
            let send = send.clone();
            async move {
                if *item == "first" {
                    let second = tx.pop_async().await.unwrap();
                    assert_eq!((*second, tx.held()), ("second", 2));
                    Transaction::retry(&tx, second).unwrap();
                    tx.priority(1).push("soon").unwrap();
                    tx.priority(9).push_async("late").await.unwrap();
                    assert_eq!(tx.staged(), 2);
                }
                send.send(format!("{item}")).unwrap();
                Ok::<(), ()>(())
            }
        });
        while queue.stats().held == 0 {
            yield_now().await;
        }
        queue.push("second").unwrap();
        queue.wait_idle_async().await;
        tasks.stop().await;
        let mut order = Vec::new();
        while let Some(item) = seen.recv().await {
            order.push(item);
        }
        assert_eq!(order.len(), 4, "{order:?}");
        let at = |name| order.iter().position(|seen| seen == name);
        assert!(at("soon") < at("late"), "{order:?}");
    });
}

/// The item of one run cannot be returned by another run.
#[test]
fn an_item_of_another_run_is_refused() {
    on_tokio(|| async {
        let queue = filled([1, 2]);
        let tasks = Workers::builder(&queue).tasks(1);
        let first = Arc::new(Mutex::new(None));
        let tasks = tasks.run_async(move |item, tx| {
            let first = Arc::clone(&first);
            async move {
                let before = first.lock().unwrap().take();
                match before {
                    None if item.attempts() == 1 => *first.lock().unwrap() = Some(item),
                    Some(before) => assert!(panics(move || tx.retry(before))),
                    None => {}
                }
                Ok::<(), ()>(())
            }
        });
        queue.wait_idle_async().await;
        let report = tasks.stop().await;
        assert_eq!((report.done, report.failed, report.panicked), (2, 1, 0));
        assert_at_rest(&queue, 0, 0);
    });
}

/// Items and runs that are not `Sync`, errors that are neither `Sync` nor `Send`.
#[test]
fn runs_need_not_be_sync() {
    struct Odd(#[allow(dead_code)] *const u8);
    impl fmt::Debug for Odd {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("odd")
        }
    }
    on_tokio(|| async {
        let queue = filled([Cell::new(1)]);
        queue.close();
        let tasks = Workers::builder(&queue).tasks(1);
        let tasks = tasks.run_async(|item, tx| async move {
            let held = Cell::new(tx.held());
            yield_now().await;
            item.set(held.get() + item.get());
            Ok::<(), Odd>(())
        });
        assert_eq!(tasks.join().await.done, 1);
    });
}
