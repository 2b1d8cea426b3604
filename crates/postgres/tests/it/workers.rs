//! Worker pools, and the traits of backends.

use crate::{until, Db, LONG};
use requeue::backend::{AbortCause, Backend, Tx};
use requeue::{Reason, Wait};
use requeue_postgres::{Backoff, PgQueue};
use std::future::{poll_fn, Future};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::sleep;

/// How the pools of a test hold their items.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Locked,
    Leased,
    /// With completions that may be written later.
    Late,
}

const MODES: [Mode; 3] = [Mode::Locked, Mode::Leased, Mode::Late];

fn queue(db: &Db, mode: Mode, max_attempts: u32) -> PgQueue<u32> {
    let builder = db
        .builder("q")
        .max_attempts(max_attempts)
        .backoff(Backoff::fixed(Duration::ZERO));
    match mode {
        Mode::Locked => builder.build(),
        Mode::Leased => builder.leased(LONG).build(),
        Mode::Late => builder.leased(LONG).repeats_after_crash(100).build(),
    }
}

async fn is_idle(queue: &PgQueue<u32>) -> bool {
    let stats = queue.stats().await.unwrap();
    stats.ready + stats.delayed + stats.held == 0
}

#[tokio::test]
async fn workers_commit_what_succeeds() {
    for mode in MODES {
        let db = Db::new().await;
        let (queue, out) = (queue(&db, mode, 3), db.queue::<u32>("out"));
        queue.push_batch([3, 3]).await.unwrap();
        let to = out.clone();
        let workers = queue.workers().tasks(3).run_async(move |item, tx| {
            let to = to.clone();
            async move {
                if *item > 0 {
                    tx.push(*item - 1).await?;
                }
                tx.push_to(&to, *item).await?;
                tx.lock().await?.client().batch_execute("select 1").await
            }
        });
        until(|| is_idle(&queue)).await;
        assert_eq!(workers.stop().await.done, 8);
        assert_eq!(out.stats().await.unwrap().ready, 8);
    }
}

#[tokio::test]
async fn failed_and_panicked_runs_are_undone_retried_and_become_dead_letters() {
    for mode in MODES {
        let db = Db::new().await;
        db.execute("create table @.seen (item int)").await;
        let queue = queue(&db, mode, 3);
        queue.push_batch([1, 2, 3]).await.unwrap();
        let failures = Arc::new(Mutex::new(Vec::new()));
        let (kept, schema) = (Arc::clone(&failures), db.schema.clone());
        let workers = queue
            .workers()
            .tasks(2)
            .on_error(move |failure| kept.lock().unwrap().push(failure.clone()))
            .run_async(move |item, tx| {
                let insert = format!("insert into {schema}.seen values ({})", *item);
                async move {
                    tx.push(99).await.unwrap();
                    let mut guard = tx.lock().await.unwrap();
                    guard.client().batch_execute(&insert).await.unwrap();
                    let _ = guard.client().batch_execute("not sql").await;
                    drop(guard);
                    match *item {
                        1 if item.attempts() < 3 => Err("not yet"),
                        1 => Err("never"),
                        _ => panic!("oh {}", *item),
                    }
                }
            });
        until(|| async { queue.stats().await.unwrap().dead == 3 }).await;
        let report = workers.stop().await;
        assert_eq!((report.done, report.failed, report.panicked), (0, 3, 6));
        assert!(is_idle(&queue).await);
        assert_eq!(db.number("select count(*) from @.seen").await, 0);
        let letters = queue.dead_letters().list(10).await.unwrap();
        let errors: Vec<_> = letters
            .iter()
            .map(|letter| letter.error.as_deref().unwrap())
            .collect();
        assert_eq!(errors, ["\"never\"", "oh 2", "oh 3"]);
        let reasons: Vec<_> = letters.iter().map(|letter| &*letter.reason).collect();
        assert_eq!(reasons, ["failed", "panicked", "panicked"]);
        let failures = failures.lock().unwrap();
        assert_eq!(failures.len(), 9);
        assert!(
            failures.iter().all(|failure| failure.items == 1),
            "{failures:?}"
        );
    }
}

#[tokio::test]
async fn other_items_that_a_failed_run_took_are_given_back() {
    for mode in MODES {
        let db = Db::new().await;
        let queue = queue(&db, mode, 9);
        queue.push_batch([1, 2]).await.unwrap();
        let (send, mut seen) = mpsc::unbounded_channel();
        let of_run = queue.clone();
        let workers = queue.workers().tasks(1).run_async(move |item, tx| {
            let (queue, send) = (of_run.clone(), send.clone());
            async move {
                let first = item.attempts() == 1 && *item == 1;
                let second = tx.lock().await.unwrap().pop(&queue).await.unwrap();
                let second = second.map(|second| second.attempts());
                send.send((*item, second)).unwrap();
                if first {
                    Err("no")
                } else {
                    Ok(())
                }
            }
        });
        assert_eq!(seen.recv().await, Some((1, Some(1))));
        until(|| is_idle(&queue)).await;
        let report = workers.stop().await;
        assert_eq!(report.failed, 1);
        assert!((1..=2).contains(&report.done));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn threads_outside_of_the_runtime_work_too() {
    for mode in MODES {
        let db = Db::new().await;
        let queue = queue(&db, mode, 3);
        queue.push_batch(0..10).await.unwrap();
        let builder = queue.workers().threads(2);
        let workers = builder.run(|number, _| match (*number, number.attempts()) {
            (7, 1) => Err("again"),
            _ => Ok(()),
        });
        let finished = tokio::task::spawn_blocking(|| workers.finish(LONG));
        let report = finished.await.unwrap();
        assert_eq!((report.done, report.failed, report.left), (10, 1, 0));
    }
}

/// Written for any queue.
async fn push_both<B: Backend<Item = u32>>(queue: B, commits: bool) -> Result<(), B::Error> {
    let mut tx = queue.begin(None);
    tx.push(1, Wait::Forever).await?;
    tx.push(2, Wait::Forever).await?;
    if commits {
        tx.commit().await.map(drop)
    } else {
        let cause = AbortCause::new(Reason::Aborted, "no", Backoff::fixed(Duration::ZERO));
        tx.abort(cause).await
    }
}

/// Written for any queue: the items that are taken, the last one after a pop that was dropped.
async fn take_all<B: Backend<Item = u32>>(queue: B) -> Result<Vec<u32>, B::Error> {
    let mut tx = queue.begin(None);
    let mut taken = Vec::new();
    while let Some(item) = tx.pop(Wait::Never).await? {
        taken.push(*item);
        drop(item);
        let mut popping = Box::pin(tx.pop(Wait::Forever));
        for _ in 0..taken.len() {
            let polled = poll_fn(|context| Poll::Ready(popping.as_mut().poll(context))).await;
            if let Poll::Ready(popped) = polled {
                taken.extend(popped?.map(|item| *item));
                break;
            }
            tokio::task::yield_now().await;
        }
    }
    tx.commit().await?;
    Ok(taken)
}

#[tokio::test]
async fn the_traits_work_for_both_kinds_of_queues() {
    let db = Db::new().await;
    let queue = queue(&db, Mode::Locked, 3);
    let in_memory = requeue::Queue::unbounded();
    for commits in [false, true] {
        tokio::spawn(push_both(queue.clone(), commits))
            .await
            .unwrap()
            .unwrap();
        push_both(in_memory.clone(), commits).await.unwrap();
        let expected = if commits { 2 } else { 0 };
        assert_eq!(queue.stats().await.unwrap().ready, expected);
        assert_eq!(in_memory.len() as u64, expected);
    }
    let mut tx = queue.begin().await.unwrap();
    assert_eq!(*tx.pop().await.unwrap().unwrap(), 1);
    assert_eq!(*tx.pop_wait(LONG).await.unwrap().unwrap(), 2);
    Tx::commit(&mut tx).await.unwrap();
    assert!(is_idle(&queue).await);
}

/// Whatever the pops were doing when they were dropped: nothing is lost, and the transaction goes on.
#[tokio::test]
async fn pops_that_are_dropped_have_taken_nothing() {
    for mode in MODES {
        let db = Db::new().await;
        let queue = queue(&db, mode, 99);
        queue.push_batch(0..20).await.unwrap();
        let mut taken = Vec::new();
        for _ in 0..100 {
            let more = tokio::spawn(take_all(queue.clone())).await.unwrap();
            taken.extend(more.unwrap());
            if taken.len() == 20 {
                break;
            }
            sleep(Duration::from_millis(10)).await; // leased items return in the background
        }
        taken.sort_unstable();
        assert_eq!(taken, (0..20).collect::<Vec<_>>());
        assert!(is_idle(&queue).await);
    }
}
