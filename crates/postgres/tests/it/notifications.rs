//! Notifications of other processes: no commit waits for their lock.

use crate::server::{Server, SERVER};
use crate::{until, Db, LONG};
use requeue_postgres::{PgQueue, Postgres};
use tokio::time::timeout;
use tokio_postgres::{Client, NoTls};

async fn client(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn count(client: &Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.unwrap().get(0)
}

/// The server lets one transaction with notifications commit at a time, and the next one waits until the commit is on the disk,
/// here until a standby has it, which is not there.
#[tokio::test]
async fn commits_do_not_wait_for_the_lock_of_notifications() {
    let server = Server::start("off");
    let url = server.url();
    let settings = "options='-c synchronous_commit=local -c lock_timeout=10ms'";
    let db = Postgres::connect(&format!("{url} {settings}"))
        .await
        .unwrap();
    db.install().await.unwrap();
    let queue: PgQueue<i64> = db.queue("q");
    queue.push(1).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    tx.pop(&queue).await.unwrap().unwrap();
    let admin = client(&url).await;
    let listens = "insert into requeue.listeners select id, -1, 'infinity' from requeue.queues";
    admin.batch_execute(listens).await.unwrap(); // another process
    admin
        .batch_execute("alter system set synchronous_standby_names = 'nobody'")
        .await
        .unwrap();
    admin
        .batch_execute("select pg_reload_conf()")
        .await
        .unwrap();
    let holder = client(&url).await;
    let commits = tokio::spawn(async move {
        while holder.batch_execute("notify other").await.is_ok() {} // until the server knows the setting
    });
    let lock = "select count(*) from pg_locks l join pg_stat_activity a using (pid) where a.wait_event = 'SyncRep'
        and locktype = 'object' and classid = 'pg_database'::regclass and mode = 'AccessExclusiveLock' and granted";
    until(|| async { count(&admin, lock).await == 1 }).await;
    queue.push(2).await.unwrap(); // of a group
    tx.push(&queue, 3).await.unwrap();
    tx.commit().await.unwrap(); // of its own
    assert_eq!(count(&admin, "select count(*) from requeue.ready").await, 2);
    assert_eq!(count(&admin, lock).await, 1);
    // A push is over before its notification is.
    let notifies = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'
        and query like '%pg_notify%lock_timeout%'";
    until(|| async {
        queue.push(4).await.unwrap();
        count(&admin, notifies).await == 1
    })
    .await;
    commits.abort();
}

/// What was given back is announced only to others that wait.
#[tokio::test]
async fn an_abort_sends_no_notification_if_nobody_listens() {
    let db = Db::new().await;
    let application = format!("{}_aborts", db.schema);
    let url = format!("{} application_name={application}", SERVER.url());
    let process = Postgres::options(&url).schema(&db.schema);
    let process = process.connect().await.unwrap();
    let queue: PgQueue<i64> = process.builder("q").leased(LONG).build();
    queue.push(1).await.unwrap();
    let told = format!(
        "select count(*) from pg_stat_activity where application_name = '{application}'
            and query like '%pg_notify%lock_timeout%'"
    );
    let abort = || async {
        let mut tx = process.begin().await.unwrap();
        tx.pop(&queue).await.unwrap().unwrap();
        tx.abort().await.unwrap();
        db.number(&told).await // the last statement of a session is shown
    };
    assert_eq!(abort().await, 0);
    let listens = "insert into @.listeners select id, -1, 'infinity' from @.queues";
    db.execute(listens).await; // another process
    until(|| async { abort().await > 0 }).await;
}

#[tokio::test]
async fn a_process_that_listens_alone_notifies_nobody() {
    let db = Db::new().await;
    let other = db.other().await;
    let (queue, others): (PgQueue<i64>, PgQueue<i64>) = (db.queue("q"), other.queue("q"));
    let waiting = queue.clone();
    let waits = tokio::spawn(async move {
        let tx = waiting.begin().await.unwrap();
        for expected in [1, 2, 3] {
            let item = tx.pop_wait(LONG).await.unwrap().unwrap();
            assert_eq!(*item, expected);
        }
    });
    until(|| async { db.number("select count(*) from @.listeners").await == 1 }).await;
    let channel = format!("requeue_{}", db.schema);
    let (_session, mut notified) = crate::listener(&channel).await;
    queue.push(1).await.unwrap();
    others.push_batch([2, 3]).await.unwrap();
    let first = timeout(LONG, notified.recv()).await.unwrap().unwrap();
    assert_eq!(first.split(' ').nth(1), Some("2"), "{first}"); // items of the other process
    waits.await.unwrap();
}
