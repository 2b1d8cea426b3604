//! Waits for items.

use crate::{until, Db, LONG};
use requeue_postgres::{PgQueue, Postgres};
use std::future::{poll_fn, Future};
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant, SystemTime};
use tokio::task::JoinHandle;

/// A task that waits for an item and commits it.
fn wait(db: &Postgres, queue: &PgQueue<u32>) -> JoinHandle<Option<u32>> {
    let (db, queue) = (db.clone(), queue.clone());
    tokio::spawn(async move {
        let mut tx = db.begin().await.unwrap();
        let item = tx.pop_wait(&queue, LONG).await.unwrap();
        tx.commit().await.unwrap();
        item.map(|item| *item)
    })
}

async fn waiters(queue: &PgQueue<u32>, count: usize) {
    until(|| async { queue.stats().await.unwrap().waiting == count }).await;
}

#[tokio::test]
async fn a_wait_ends_at_its_deadline() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db.queue("q");
    let mut tx = db.begin().await.unwrap();
    let deadline = Instant::now() + Duration::from_millis(50);
    assert!(tx.pop_deadline(&queue, deadline).await.unwrap().is_none());
    assert!(Instant::now() >= deadline);
    queue.push(1).await.unwrap();
    let item = tx.pop_deadline(&queue, deadline).await.unwrap();
    assert_eq!(item.map(|item| *item), Some(1));
    tx.commit().await.unwrap();
}

/// As in a branch of `select!` that does not drop the pop of another one.
#[tokio::test]
async fn a_pop_that_is_polled_no_more_holds_up_no_other_call() {
    for polls in 1..=24 {
        let db = Db::new().await;
        let (queue, other): (PgQueue<u32>, PgQueue<u32>) = (db.queue("q"), db.queue("other"));
        let mut pop = pin!(async {
            let tx = queue.begin().await.unwrap();
            tx.pop_wait(LONG).await.unwrap().map(|item| *item)
        });
        let mut polled = 0;
        poll_fn(|context| {
            assert!(pop.as_mut().poll(context).is_pending());
            polled += 1;
            if polled == polls {
                return Poll::Ready(());
            }
            Poll::Pending
        })
        .await;
        let mut tx = db.begin().await.unwrap();
        let waited = tx.pop_wait(&other, Duration::from_millis(1)).await;
        assert!(waited.unwrap().is_none(), "after {polls} polls");
        queue.push(1).await.unwrap();
        assert_eq!(pop.await, Some(1));
    }
}

#[tokio::test]
async fn a_waiter_gets_what_another_process_pushes() {
    let (db, other) = {
        let db = Db::new().await;
        let other = db.other().await;
        (db, other)
    };
    let queue: PgQueue<u32> = db.queue("q");
    let waiter = wait(&db, &queue);
    waiters(&queue, 1).await;
    other.queue::<u32>("q").push(1).await.unwrap();
    assert_eq!(waiter.await.unwrap(), Some(1));
}

/// Other processes notify each other, and only of queues with waiters.
#[tokio::test]
async fn a_commit_notifies_only_if_a_process_waits() {
    let db = Db::new().await;
    let (queue, idle): (PgQueue<u32>, PgQueue<u32>) = (db.queue("q"), db.queue("idle"));
    let waiter = wait(&db, &queue);
    until(|| async { db.number("select count(*) from @.listeners").await == 1 }).await;
    let (send, mut notified) = tokio::sync::mpsc::unbounded_channel();
    let (client, mut connection) =
        tokio_postgres::connect(&crate::server::SERVER.url(), tokio_postgres::NoTls)
            .await
            .unwrap();
    tokio::spawn(async move {
        while let Some(Ok(message)) =
            std::future::poll_fn(|context| connection.poll_message(context)).await
        {
            if let tokio_postgres::AsyncMessage::Notification(notification) = message {
                send.send(notification.payload().to_string()).unwrap();
            }
        }
    });
    client
        .batch_execute(&format!("listen \"requeue_{}\"", db.schema))
        .await
        .unwrap();
    idle.push_batch([1, 2]).await.unwrap();
    let other = db.other().await;
    let mut tx = other.begin().await.unwrap();
    tx.push_batch(&other.queue("q"), [1, 2, 3]).await.unwrap();
    tx.commit().await.unwrap();
    let payload = notified.recv().await.unwrap();
    let items: Vec<&str> = payload.split(' ').collect();
    assert_eq!((items.len(), items[1]), (3, "3"), "{payload}");
    assert_eq!(waiter.await.unwrap(), Some(1));
}

#[tokio::test]
async fn the_first_waiter_is_served_first() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db.queue("q");
    let mut tasks = Vec::new();
    for count in 1..=5 {
        tasks.push(wait(&db, &queue));
        waiters(&queue, count).await;
    }
    for (number, task) in (1..).zip(tasks) {
        queue.push(number).await.unwrap();
        assert_eq!(task.await.unwrap(), Some(number));
    }
}

#[tokio::test]
async fn each_of_several_items_wakes_a_waiter() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db.queue("q");
    let tasks: Vec<_> = (0..5).map(|_| wait(&db, &queue)).collect();
    waiters(&queue, 5).await;
    db.other()
        .await
        .queue::<u32>("q")
        .push_batch(1..=5)
        .await
        .unwrap();
    let mut got = Vec::new();
    for task in tasks {
        got.push(task.await.unwrap().unwrap());
    }
    got.sort_unstable();
    assert_eq!(got, [1, 2, 3, 4, 5]);
}

#[tokio::test]
async fn a_wait_ends_with_its_timeout_and_with_its_drop() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db.queue("q");
    let mut tx = db.begin().await.unwrap();
    assert!(tx.pop_wait(&queue, Duration::ZERO).await.unwrap().is_none());
    let waiter = wait(&db, &queue);
    waiters(&queue, 1).await;
    waiter.abort();
    waiters(&queue, 0).await;
    queue.push(1).await.unwrap();
    assert!(tx.pop_wait(&queue, Duration::MAX).await.unwrap().is_some());
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn a_scheduled_item_wakes_a_waiter_of_another_process() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db.queue("q");
    let waiter = wait(&db, &queue);
    waiters(&queue, 1).await;
    let other = db.other().await;
    let at = SystemTime::now() + Duration::from_millis(200);
    other.queue::<u32>("q").at(at).push(1).await.unwrap();
    assert_eq!(waiter.await.unwrap(), Some(1));
    assert!(SystemTime::now() >= at);
}

#[tokio::test]
async fn without_a_listening_connection_waiters_poll() {
    let db = Db::new().await;
    let config = crate::server::SERVER.url().parse().unwrap();
    let manager = requeue_postgres::deadpool_postgres::Manager::new(config, tokio_postgres::NoTls);
    let pool = requeue_postgres::deadpool_postgres::Pool::builder(manager)
        .build()
        .unwrap();
    let polling = Postgres::from_pool_with(pool, &db.schema).unwrap();
    let queue: PgQueue<u32> = polling.queue("q");
    let waiter = wait(&polling, &queue);
    waiters(&queue, 1).await;
    db.queue::<u32>("q").push(1).await.unwrap();
    assert_eq!(waiter.await.unwrap(), Some(1));
    assert_eq!(db.number("select count(*) from @.listeners").await, 0);
}

/// The listening connection is opened again.
#[tokio::test]
async fn waiters_survive_the_death_of_all_connections() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db.queue("q");
    let waiter = wait(&db, &queue);
    until(|| async { db.number("select count(*) from @.listeners").await == 1 }).await;
    let listening = format!("listen \"requeue_{}\"", db.schema);
    let kill = format!(
        "select count(pg_terminate_backend(pid)) from pg_stat_activity where query = '{listening}'"
    );
    assert_eq!(db.number(&kill).await, 1);
    let listens = format!("select count(*) from pg_stat_activity where query = '{listening}'");
    until(|| async { db.number(&listens).await == 1 }).await;
    db.other().await.queue::<u32>("q").push(1).await.unwrap();
    assert_eq!(waiter.await.unwrap(), Some(1));
}
