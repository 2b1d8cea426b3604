//! Worker pools, and the trait of transactions.

use crate::{until, Db, LONG};
use requeue::workers::AsyncTransaction;
use requeue_postgres::{Backoff, Error, PgQueue};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, Semaphore};

fn queue(db: &Db, leased: bool, max_attempts: u32) -> PgQueue<u32> {
    let builder = db
        .builder("q")
        .max_attempts(max_attempts)
        .backoff(Backoff::fixed(Duration::ZERO));
    if leased {
        builder.leased(LONG).build()
    } else {
        builder.build()
    }
}

async fn is_idle(queue: &PgQueue<u32>) -> bool {
    let stats = queue.stats().await.unwrap();
    stats.ready + stats.delayed + stats.held == 0
}

#[tokio::test]
async fn workers_commit_what_succeeds() {
    for leased in [false, true] {
        let db = Db::new().await;
        let (queue, out) = (queue(&db, leased, 3), db.queue::<u32>("out"));
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
    for leased in [false, true] {
        let db = Db::new().await;
        db.execute("create table @.seen (item int)").await;
        let queue = queue(&db, leased, 3);
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
        assert_eq!(reasons, ["aborted", "panicked", "panicked"]);
        let failures = failures.lock().unwrap();
        assert_eq!(failures.len(), 9);
        assert!(
            failures.iter().all(|failure| failure.database.is_none()),
            "{failures:?}"
        );
    }
}

#[tokio::test]
async fn other_items_that_a_failed_run_took_are_given_back() {
    for leased in [false, true] {
        let db = Db::new().await;
        let queue = queue(&db, leased, 9);
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

#[tokio::test]
async fn no_more_items_are_in_work_than_there_are_tasks_and_a_stop_finishes_them() {
    let db = Db::new().await;
    let queue = queue(&db, false, 3);
    queue.push_batch(0..10).await.unwrap();
    let (busy, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let gate = Arc::new(Semaphore::new(0));
    let (in_run, at_most, closed) = (Arc::clone(&busy), Arc::clone(&most), Arc::clone(&gate));
    let workers = queue.workers().tasks(3).run_async(move |_, _| {
        let (busy, most, gate) = (
            Arc::clone(&in_run),
            Arc::clone(&at_most),
            Arc::clone(&closed),
        );
        async move {
            most.fetch_max(busy.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            gate.acquire().await.unwrap().forget();
            busy.fetch_sub(1, Ordering::SeqCst);
            Ok::<_, ()>(())
        }
    });
    until(|| async { busy.load(Ordering::SeqCst) == 3 }).await;
    let opens = async { gate.add_permits(100) };
    let (report, ()) = tokio::join!(biased; workers.stop(), opens);
    assert_eq!((report.done, report.stuck), (3, 0));
    assert_eq!(most.load(Ordering::SeqCst), 3);
    assert_eq!(queue.stats().await.unwrap().ready, 7);
}

#[tokio::test]
async fn a_shutdown_aborts_what_is_stuck_and_its_items_are_given_back() {
    for leased in [false, true] {
        let db = Db::new().await;
        let queue = queue(&db, leased, 3);
        queue.push(1).await.unwrap();
        let (send, mut begun) = mpsc::unbounded_channel();
        let workers = queue.workers().tasks(2).run_async(move |_, _| {
            send.send(()).unwrap();
            std::future::pending::<Result<(), ()>>()
        });
        begun.recv().await.unwrap();
        assert_eq!(workers.shutdown(Duration::ZERO).await.stuck.clamp(1, 2), 1);
        let mut tx = db.begin().await.unwrap();
        assert!(tx.pop_wait(&queue, LONG).await.unwrap().is_some());
    }
}

#[tokio::test]
async fn a_finish_does_what_is_left() {
    for leased in [false, true] {
        let db = Db::new().await;
        let queue = queue(&db, leased, 3);
        queue.push_batch(0..30).await.unwrap();
        let workers = queue.workers().tasks(3).run_async(|number, tx| async move {
            if *number == 29 {
                tx.push(30).await.map_err(|error| error.to_string())?;
            }
            if *number == 0 && number.attempts() == 1 {
                return Err("again".to_owned()); // delayed
            }
            Ok(())
        });
        let report = workers.finish(LONG).await;
        assert_eq!((report.done, report.failed, report.stuck), (31, 1, 0));
        assert_eq!(report.left, Some(0));
    }
}

/// A task in a run is stuck at the deadline, one that waits for an item is not.
#[tokio::test]
async fn a_finish_that_is_over_says_what_is_left() {
    for leased in [false, true] {
        let db = Db::new().await;
        let queue = queue(&db, leased, 3);
        queue.push(1).await.unwrap();
        let (send, mut begun) = mpsc::unbounded_channel();
        let workers = queue.workers().tasks(3).run_async(move |_, _| {
            send.send(()).unwrap();
            std::future::pending::<Result<(), ()>>()
        });
        begun.recv().await.unwrap();
        let report = workers.finish(Duration::ZERO).await;
        assert_eq!((report.done, report.stuck, report.left), (0, 1, Some(1)));
    }
}

#[tokio::test]
async fn a_transaction_that_a_run_keeps_has_ended() {
    let db = Db::new().await;
    let queue = queue(&db, false, 3);
    queue.push(1).await.unwrap();
    let (send, mut kept) = mpsc::unbounded_channel();
    let workers = queue.workers().tasks(1).run_async(move |_, tx| {
        send.send(tx).map_err(drop).unwrap();
        async { Ok::<_, ()>(()) }
    });
    let tx = kept.recv().await.unwrap();
    until(|| is_idle(&queue)).await;
    assert_eq!(workers.stop().await.done, 1);
    assert!(matches!(tx.push(2).await, Err(Error::Ended)));
}

/// Written for any queue.
async fn push_both<X: AsyncTransaction<Item = u32>>(
    mut tx: X,
    commits: bool,
) -> Result<(), X::Error> {
    tx.push(1).await?;
    tx.push(2).await?;
    if commits {
        tx.commit().await
    } else {
        tx.abort().await
    }
}

#[tokio::test]
async fn the_trait_of_transactions_works_for_both_kinds_of_queues() {
    let db = Db::new().await;
    let queue = queue(&db, false, 3);
    let in_memory = requeue::Queue::unbounded();
    for commits in [false, true] {
        tokio::spawn(push_both(queue.begin().await.unwrap(), commits))
            .await
            .unwrap()
            .unwrap();
        push_both(in_memory.begin_owned(), commits).await.unwrap();
        let expected = if commits { 2 } else { 0 };
        assert_eq!(queue.stats().await.unwrap().ready, expected);
        assert_eq!(in_memory.len() as u64, expected);
    }
    let mut tx = queue.begin().await.unwrap();
    assert_eq!(*tx.pop().await.unwrap().unwrap(), 1);
    assert_eq!(*tx.pop_wait(LONG).await.unwrap().unwrap(), 2);
    AsyncTransaction::commit(tx).await.unwrap();
    assert!(is_idle(&queue).await);
}
