//! Connections that hang: nothing comes through, and nobody says so.

use crate::base::{client, options, until, Db, Mode, MODES, TERM};
use crate::proxy::Proxy;
use requeue_postgres::{Error, PgQueue, Postgres};

/// A process whose connections go through a proxy: one, and one for short statements.
async fn behind(proxy: &Proxy, db: &Db) -> Postgres {
    let path = db.url.split_once("options=").map_or("", |(_, path)| path);
    let url = format!(
        "{} application_name={} options={path}",
        proxy.url(),
        application(db)
    );
    let url = url.trim_end_matches("options=");
    options(url, &db.schema)
        .max_connections(1)
        .connect()
        .await
        .unwrap()
}

fn application(db: &Db) -> String {
    format!("{}_hangs", db.schema)
}

#[tokio::test]
async fn a_lease_whose_heartbeat_hangs_expires_and_its_commit_fails() {
    let (db, proxy) = (Db::with_clock().await, Proxy::start().await);
    let hanging = behind(&proxy, &db).await;
    let own = Mode::Leased.jobs(&hanging);
    own.push_batch(0..2).await.unwrap();
    let mut tx = hanging.begin().await.unwrap();
    assert_eq!(*tx.pop(&own).await.unwrap().unwrap(), 0);
    proxy.stop_requests();
    db.advance(TERM).await;
    db.promote().await;
    let jobs = Mode::Leased.jobs(&db);
    let mut other = db.begin().await.unwrap();
    let item = other.pop(&jobs).await.unwrap().unwrap();
    assert_eq!((*item, item.attempts()), (0, 2)); // in its place
    let commit = tokio::spawn(tx.commit());
    other.commit().await.unwrap();
    proxy.resume();
    let error = commit.await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Expired), "{error}");
    assert_eq!(db.drain().await, [1]);
}

#[tokio::test]
async fn a_lock_is_held_until_the_server_sees_the_connection_closed() {
    let (db, proxy) = (Db::new().await, Proxy::start().await);
    let hanging = behind(&proxy, &db).await;
    let own = Mode::Locked.jobs(&hanging);
    own.push_batch(0..2).await.unwrap();
    let mut tx = hanging.begin().await.unwrap();
    assert_eq!(*tx.pop(&own).await.unwrap().unwrap(), 0);
    proxy.stop_requests();
    let commit = tokio::spawn(tx.commit());
    let mut other = db.begin().await.unwrap();
    assert_eq!(*other.pop(&db.uncounted()).await.unwrap().unwrap(), 1);
    other.abort().await.unwrap();
    proxy.cut();
    let error = commit.await.unwrap().unwrap_err();
    let unknown = matches!(error, Error::InDoubt(_)) || error.is_retryable();
    assert!(unknown, "{error}");
    drop((own, hanging));
    db.until_gone(&application(&db)).await;
    assert_eq!(db.drain().await, [0, 1]); // the commit did not come through
}

#[tokio::test]
async fn a_commit_whose_answer_hangs_is_in_doubt_and_has_committed_once() {
    for mode in MODES {
        let (db, proxy) = (Db::new().await, Proxy::start().await);
        let hanging = behind(&proxy, &db).await;
        let own = mode.jobs(&hanging);
        let receipts: PgQueue<i64> = hanging.queue("receipts");
        own.push_batch(0..2).await.unwrap();
        receipts.push(-1).await.unwrap(); // the commit has its statements prepared
        let mut warm = hanging.begin().await.unwrap();
        warm.pop(&receipts).await.unwrap().unwrap();
        warm.pop(&own).await.unwrap().unwrap();
        warm.push(&receipts, 0).await.unwrap();
        warm.commit().await.unwrap();
        let mut tx = hanging.begin().await.unwrap();
        let item = tx.pop(&own).await.unwrap().unwrap();
        tx.push(&receipts, *item).await.unwrap();
        proxy.stop_answers();
        let commit = tokio::spawn(tx.commit());
        let results: PgQueue<i64> = db.queue("receipts");
        until(|| async { results.stats().await.unwrap().ready == 2 }).await;
        proxy.cut();
        let error = commit.await.unwrap().unwrap_err();
        assert!(matches!(error, Error::InDoubt(_)), "{mode:?}: {error}");
        drop((own, receipts, hanging));
        db.until_gone(&application(&db)).await;
        assert!(db.drain().await.is_empty(), "{mode:?}");
        assert_eq!(mode.jobs(&db).stats().await.unwrap().held, 0);
    }
}

#[tokio::test]
async fn the_sessions_notice_dead_clients() {
    let db = Db::new().await;
    let mut tx = db.begin().await.unwrap();
    let row = tx
        .client()
        .query_one("show client_connection_check_interval", &[])
        .await;
    assert_eq!(row.unwrap().get::<_, &str>(0), "1s");
    let client = client(&db.url).await;
    let others = client
        .query_one("show client_connection_check_interval", &[])
        .await;
    assert_eq!(others.unwrap().get::<_, &str>(0), "0");
}
