//! A full pool.

use crate::base::{until, Db, Mode, LONG, MODES, ON_DEMAND};
use crate::proxy::{Direction, Proxy};
use requeue_postgres::deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use requeue_postgres::{Error, Options, PgQueue, Postgres};
use std::time::Duration;
use tokio::time::timeout;
use tokio_postgres::NoTls;

/// A pool whose callers do not wait for a connection.
fn impatient(db: &Db, size: usize) -> Postgres {
    let manager = Manager::new(db.url.parse().unwrap(), NoTls);
    let pool = Pool::builder(manager)
        .max_size(size)
        .runtime(Runtime::Tokio1);
    let pool = pool.wait_timeout(Some(Duration::ZERO)).build().unwrap();
    Postgres::from_pool_with(pool, &db.schema).unwrap()
}

#[tokio::test]
async fn a_full_pool_is_an_error_and_the_open_transaction_goes_on() {
    for mode in ON_DEMAND {
        let db = Db::new().await;
        mode.jobs(&db).push_batch(0..3).await.unwrap();
        let small = impatient(&db, 1); // besides the one for short statements
        let (jobs, results): (_, PgQueue<i64>) = (mode.jobs(&small), small.queue("results"));
        let mut tx = small.begin().await.unwrap();
        assert_eq!(*tx.pop(&jobs).await.unwrap().unwrap(), 0);
        tx.client().batch_execute("select 1").await.unwrap();
        let mut other = small.begin().await.unwrap();
        let error = other.pop(&jobs).await.unwrap_err();
        assert!(
            matches!(error, Error::Pool(_)) && error.is_retryable(),
            "{error}"
        );
        let error = results.push(7).await.unwrap_err();
        assert!(
            matches!(error, Error::Pool(_)) && error.is_retryable(),
            "{error}"
        );
        assert_eq!(*tx.pop(&jobs).await.unwrap().unwrap(), 1);
        tx.push(&results, 1).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(*other.pop(&jobs).await.unwrap().unwrap(), 2);
        other.commit().await.unwrap();
        assert_eq!(results.stats().await.unwrap().ready, 1);
    }
}

#[tokio::test]
async fn an_abort_needs_no_connection_of_a_full_pool() {
    for mode in [Mode::Leased, Mode::Prefetched] {
        let db = Db::new().await;
        mode.jobs(&db).push(0).await.unwrap();
        let small = impatient(&db, 1);
        let jobs = mode.jobs(&small);
        let (mut leased, mut other) = (small.begin().await.unwrap(), small.begin().await.unwrap());
        assert_eq!(*leased.pop(&jobs).await.unwrap().unwrap(), 0);
        other.client().batch_execute("select 1").await.unwrap();
        leased.abort().await.unwrap();
        assert_eq!(jobs.stats().await.unwrap().ready, 1, "{mode:?}");
    }
}

#[tokio::test]
async fn callers_wait_for_a_connection() {
    for mode in MODES {
        let db = Db::new().await;
        let manager = Manager::new(db.url.parse().unwrap(), NoTls);
        let pool = Pool::builder(manager).max_size(2).build().unwrap();
        let small = Postgres::from_pool_with(pool, &db.schema).unwrap();
        let (jobs, results): (_, PgQueue<i64>) = (mode.jobs(&small), small.queue("results"));
        jobs.push_batch(0..50).await.unwrap();
        let done = results.clone();
        // More tasks than connections, each of which needs several.
        let workers = jobs.workers().tasks(8).run_async(move |job, tx| {
            let done = done.clone();
            async move {
                tx.lock().await?.client().batch_execute("select 1").await?;
                tx.push_to(&done, *job).await
            }
        });
        let results: PgQueue<i64> = db.queue("results");
        let mut found = Vec::new();
        while found.len() < 50 {
            let mut tx = db.begin().await.unwrap();
            found.push(
                *tx.pop_wait(&results, LONG)
                    .await
                    .unwrap()
                    .expect("a result"),
            );
            tx.commit().await.unwrap();
        }
        assert_eq!(workers.stop().await.done, 50, "{mode:?}");
        found.sort_unstable();
        assert_eq!(found, (0..50).collect::<Vec<_>>());
        assert_eq!(Mode::Leased.jobs(&db).stats().await.unwrap().held, 0);
    }
}

/// A pool that asks its connections whether they are alive, and has no limits.
#[tokio::test]
async fn the_limits_of_calls_hold_with_a_pool_that_has_none() {
    let (db, proxy) = (Db::new().await, Proxy::start().await);
    let recycling_method = RecyclingMethod::Verified;
    let config = ManagerConfig { recycling_method };
    let manager = Manager::from_config(proxy.url().parse().unwrap(), NoTls, config);
    let pool = Pool::builder(manager).runtime(Runtime::Tokio1).max_size(2);
    let options = Options::default().schema(&db.schema);
    let options = options.statement_timeout(Duration::from_secs(2));
    let process = options.with_pool(pool.build().unwrap()).unwrap();
    let queue: PgQueue<i64> = process.queue("q");
    for _ in 0..2 {
        until(|| async { queue.push(1).await.is_ok() }).await;
        proxy.hang(Direction::ToClient);
    }
    until(|| async { queue.push(1).await.is_ok() }).await;
}

/// A pool without a timer, whose only connection is used: the one for short statements cannot be opened.
#[tokio::test]
async fn a_call_does_not_wait_for_ever_for_the_connection_for_short_statements() {
    let db = Db::new().await;
    let manager = Manager::new(db.url.parse().unwrap(), NoTls);
    let pool = Pool::builder(manager).max_size(1).build().unwrap();
    let options = Options::default().schema(&db.schema);
    let options = options.statement_timeout(Duration::from_secs(2));
    let process = options.with_pool(pool.clone()).unwrap();
    let queue: PgQueue<i64> = process.queue("q");
    let used = pool.get().await.unwrap();
    let called = timeout(LONG, queue.stats()).await.expect("it ends");
    let error = called.unwrap_err();
    assert!(matches!(error, Error::Pool(_)), "{error}");
    drop(used);
    until(|| async { queue.stats().await.is_ok() }).await;
}
