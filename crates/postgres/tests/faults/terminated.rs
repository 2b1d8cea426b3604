//! Sessions that the server terminates: `pg_terminate_backend`.

use crate::base::{options, Db, Mode, LONG, MODES, TERM};
use crate::child::name;
use requeue_postgres::{Error, PgQueue, Postgres};
use std::time::Duration;
use tokio::time::timeout;

const ROLE: &str = "victim";

/// A process whose sessions are terminated by `terminate(&db)`.
async fn victim(db: &Db) -> Postgres {
    let url = format!("{} application_name={}", db.url, name(db, ROLE));
    options(&url, &db.schema).connect().await.unwrap()
}

/// Terminates its sessions. A pool that has lost some already may have none for a moment.
async fn terminate(db: &Db) {
    crate::base::until(|| async { db.terminate(&name(db, ROLE)).await > 0 }).await;
}

/// Runs a transaction until it ends without an error that may be retried.
async fn pop_again(db: &Postgres, jobs: &PgQueue<i64>) -> (i64, u32) {
    loop {
        let popped = async {
            let mut tx = db.begin().await?;
            let item = tx.pop(jobs).await?.expect("an item");
            tx.commit().await?;
            Ok::<_, Error>((*item, item.attempts()))
        };
        match popped.await {
            Ok(popped) => return popped,
            Err(error) => assert!(error.is_retryable(), "{error}"),
        }
    }
}

#[tokio::test]
async fn a_terminated_transaction_is_undone() {
    let db = Db::new().await;
    let jobs = Mode::Locked.jobs(&db);
    jobs.push_batch(0..2).await.unwrap();
    let victim = victim(&db).await;
    let (own, receipts): (_, PgQueue<i64>) = (Mode::Locked.jobs(&victim), victim.queue("receipts"));
    let mut tx = victim.begin().await.unwrap();
    let item = tx.pop(&own).await.unwrap().unwrap();
    tx.push(&receipts, *item).await.unwrap();
    terminate(&db).await;
    let error = tx.commit().await.unwrap_err();
    assert!(
        error.is_retryable() || matches!(error, Error::InDoubt(_)),
        "{error}"
    );
    assert_eq!(receipts.stats().await.map_or(0, |stats| stats.ready), 0);
    assert_eq!(pop_again(&victim, &own).await, (0, 2)); // the pool opens new sessions
    assert_eq!(pop_again(&victim, &own).await, (1, 1));
}

#[tokio::test]
async fn a_statement_in_a_terminated_session_fails_and_may_be_retried() {
    let db = Db::new().await;
    let victim = victim(&db).await;
    let mut tx = victim.begin().await.unwrap();
    tx.client().batch_execute("select 1").await.unwrap();
    terminate(&db).await;
    let error = tx.client().batch_execute("select 1").await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    let error = tx.commit().await.unwrap_err();
    assert!(
        error.is_retryable() || matches!(error, Error::InDoubt(_)),
        "{error}"
    );
}

#[tokio::test]
async fn a_statement_that_is_terminated_while_it_runs_may_be_retried() {
    let db = Db::new().await;
    let victim = victim(&db).await;
    let mut tx = victim.begin().await.unwrap();
    let (ended, ()) = tokio::join!(tx.client().batch_execute("select pg_sleep(60)"), async {
        let sleeps = "select count(*) from pg_stat_activity where query like '%pg_sleep(60)'
            and state = 'active' and application_name like '@%'";
        crate::base::until(|| async { db.number(sleeps).await == 1 }).await;
        terminate(&db).await;
    });
    let error = ended.unwrap_err();
    assert!(error.is_retryable(), "{error}");
}

#[tokio::test]
async fn a_lease_outlives_the_sessions_of_its_process() {
    let db = Db::new().await;
    let jobs = Mode::Leased.jobs(&db);
    jobs.push(0).await.unwrap();
    let victim = victim(&db).await;
    let own = Mode::Leased.jobs(&victim);
    let mut tx = victim.begin().await.unwrap();
    assert_eq!(*tx.pop(&own).await.unwrap().unwrap(), 0);
    terminate(&db).await;
    let mut other = db.begin().await.unwrap();
    assert!(other.pop(&jobs).await.unwrap().is_none()); // still held
    tx.commit().await.unwrap(); // by a new session
    assert_eq!(jobs.stats().await.unwrap().held, 0);
}

#[tokio::test]
async fn a_waiter_outlives_the_sessions_of_its_process() {
    for mode in MODES {
        let db = Db::new().await;
        let victim = victim(&db).await;
        let own = mode.jobs(&victim);
        let waits = tokio::spawn(async move {
            loop {
                let mut tx = victim.begin().await.unwrap();
                match tx.pop_wait(&own, LONG).await {
                    Ok(item) => {
                        tx.commit().await.unwrap();
                        return item.map(|item| *item);
                    }
                    Err(error) => assert!(error.is_retryable(), "{error}"),
                }
            }
        });
        let listens = "select count(*) from @.listeners";
        crate::base::until(|| async { db.number(listens).await > 0 }).await;
        terminate(&db).await;
        mode.jobs(&db).push(7).await.unwrap();
        assert_eq!(waits.await.unwrap(), Some(7), "{mode:?}");
    }
}

#[tokio::test]
async fn workers_go_on_after_their_sessions_were_terminated() {
    for mode in MODES {
        let db = Db::new().await;
        let victim = victim(&db).await;
        let own = mode.jobs(&victim);
        own.push_batch(0..200).await.unwrap();
        let done: PgQueue<i64> = victim.queue("done");
        let results: PgQueue<i64> = db.queue("done");
        let workers = own.workers().tasks(3).run_async(move |job, tx| {
            let done = done.clone();
            async move { tx.push_to(&done, *job).await }
        });
        let mut found = Vec::new();
        while found.len() < 200 {
            let mut tx = db.begin().await.unwrap();
            found.push(
                *tx.pop_wait(&results, LONG)
                    .await
                    .unwrap()
                    .expect("a result"),
            );
            tx.commit().await.unwrap();
            if found.len() % 20 == 0 {
                db.terminate(&name(&db, ROLE)).await;
            }
        }
        workers.shutdown(Duration::MAX).await;
        found.sort_unstable();
        assert_eq!(found, (0..200).collect::<Vec<_>>(), "{mode:?}");
    }
}

/// The completions that wait are written in another session, once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn completions_that_are_written_later_survive_terminated_sessions() {
    const COUNT: i64 = 3000;
    let db = Db::new().await;
    let victim = victim(&db).await;
    let builder = victim.builder("jobs").max_attempts(100).leased(TERM);
    let own: PgQueue<i64> = builder.repeats_after_crash(200).build();
    let jobs = Mode::Leased.jobs(&db);
    jobs.push_batch(0..COUNT).await.unwrap();
    let (send, mut runs) = tokio::sync::mpsc::unbounded_channel();
    let pool = own.workers().tasks(4).run_async(move |item, _| {
        let told = send.send(*item);
        async move { told }
    });
    let mut seen = Vec::new();
    while seen.len() < usize::try_from(COUNT).unwrap() {
        seen.extend(timeout(LONG, runs.recv()).await.expect("a run"));
        if seen.len() % 1000 == 500 {
            terminate(&db).await;
        }
    }
    pool.stop().await;
    seen.sort_unstable();
    assert_eq!(seen, (0..COUNT).collect::<Vec<_>>());
    let stats = jobs.stats().await.unwrap();
    assert_eq!((stats.ready, stats.held, stats.dead), (0, 0, 0));
}
