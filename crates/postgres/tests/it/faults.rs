//! A server that fails under load.

use crate::server::Server;
use crate::{until, LONG};
use requeue_postgres::{Backoff, Error, PgQueue, Postgres, Tasks};
use std::time::Duration;

const ITEMS: i64 = 200;

/// The server is stopped at once, as by a loss of power, and started again, while workers of both ways of holding run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_done_twice_when_the_server_restarts() {
    let server = Server::start("on");
    let db = Postgres::connect(&server.url()).await.unwrap();
    db.install().await.unwrap();
    let (client, connection) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    client
        .batch_execute("create table done (item bigint)")
        .await
        .unwrap();
    let backoff = Backoff::fixed(Duration::ZERO);
    let locked: PgQueue<i64> = db.builder("locked").backoff(backoff).build();
    let leased: PgQueue<i64> = db
        .builder("leased")
        .backoff(backoff)
        .leased(Duration::from_secs(2))
        .build();
    locked.push_batch(0..ITEMS).await.unwrap();
    leased.push_batch(ITEMS..2 * ITEMS).await.unwrap();
    let pools = [&locked, &leased].map(|queue| {
        queue.workers().tasks(4).run_async(|item, tx| async move {
            let mut tx = tx.lock().await?;
            tx.client()
                .execute("insert into done values ($1)", &[&*item])
                .await?;
            Ok::<_, Error>(())
        })
    });
    for done in [10, 30] {
        until(|| async { pools.iter().all(|pool| runs(pool) >= done) }).await;
        server.control(&["restart", "-m", "immediate"], "-c fsync=on");
    }
    let is_idle = |queue: PgQueue<i64>| async move {
        let stats = queue.stats().await;
        stats.is_ok_and(|stats| stats.ready + stats.delayed + stats.held == 0)
    };
    until(|| is_idle(locked.clone())).await;
    until(|| is_idle(leased.clone())).await;
    for pool in pools {
        pool.shutdown(LONG).await;
    }
    let (client, connection) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    let row = client
        .query_one("select count(*), count(distinct item) from done", &[])
        .await
        .unwrap();
    assert_eq!((row.get(0), row.get(1)), (2 * ITEMS, 2 * ITEMS));
}

/// The runs that a pool has committed.
fn runs(pool: &Tasks) -> u64 {
    pool.status().iter().map(|worker| worker.done).sum()
}
