//! A pooler between the process and the server that gives each transaction another session: `pgbouncer`.

use crate::server::{Pooler, SERVER};
use crate::{until, Db, LONG};
use requeue_postgres::deadpool_postgres::{Manager, Pool, Runtime};
use requeue_postgres::{Error, OnDuplicate, Options, PgQueue, Postgres, ReturnTo};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_postgres::NoTls;

/// Connects when the pooler is ready.
async fn through(pooler: &Pooler, db: &Db) -> Postgres {
    let ready = || async { tokio_postgres::connect(&pooler.url(), NoTls).await.is_ok() };
    until(ready).await;
    let options = Postgres::options(&pooler.url()).schema(&db.schema);
    let options = options.max_connections(4).transaction_pooling();
    options.connect().await.unwrap()
}

/// The queues of a process: of each order and each way of holding. None counts the deliveries of locked items, which takes a
/// second session while a transaction has one.
fn queues(db: &Postgres) -> Vec<PgQueue<i64>> {
    let key = |item: &i64| format!("key {}", item % 3);
    let limited = |name| {
        let builder = db.builder(name).on_failure(ReturnTo::Tail).ttl(60 * LONG);
        builder.unique_by(|item: &i64| item.to_string())
    };
    vec![
        limited("limited").build(),
        limited("limited leased").leased(LONG).build(),
        db.queue("locked"),
        db.builder("leased").max_attempts(100).leased(LONG).build(),
        db.builder("prefetched").leased(LONG).prefetch(10).build(),
        db.builder("fair").fair_by(key).build(),
        db.builder("serial").fair_by(key).serial().build(),
        db.builder("serial leased")
            .fair_by(key)
            .serial()
            .leased(LONG)
            .build(),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_processes_share_two_sessions() {
    let (db, pooler) = (Db::new().await, Pooler::start(&SERVER, 2));
    db.execute("create table @.done (queue text not null, item bigint not null)")
        .await;
    let mut pools = Vec::new();
    let (failed, mut failures) = mpsc::unbounded_channel();
    let mut processes = Vec::new();
    for _ in 0..3 {
        let process = through(&pooler, &db).await;
        for queue in queues(&process) {
            let insert = format!("insert into {}.done values ($1, $2)", db.schema);
            let insert = Arc::new((queue.name().to_string(), insert));
            let failed = failed.clone();
            let workers = queue.workers().tasks(2).on_error(move |failure| {
                let _ = failed.send(failure.error.clone());
            });
            pools.push(workers.run_async(move |item, tx| {
                let insert = Arc::clone(&insert);
                async move {
                    let mut tx = tx.lock().await?;
                    let (name, insert) = &*insert;
                    tx.client().execute(insert, &[name, &*item]).await?;
                    Ok::<_, Error>(())
                }
            }));
        }
        processes.push(process);
    }
    for (index, process) in (0..).zip(&processes) {
        for queue in queues(process) {
            queue.push_batch(10 * index..10 * index + 9).await.unwrap();
            queue
                .after(Duration::from_millis(1))
                .push(10 * index + 9)
                .await
                .unwrap();
        }
    }
    until(|| async { db.number("select count(*) from @.done").await >= 240 }).await;
    let distinct = "select count(*) from (select distinct queue, item from @.done) d";
    assert_eq!(db.number(distinct).await, 240);
    for pool in pools {
        pool.shutdown(LONG).await;
    }
    assert_eq!(db.number("select count(*) from @.done").await, 240);
    assert_eq!(failures.try_recv().ok(), None);
}

#[tokio::test]
async fn each_verb_works() {
    let (db, pooler) = (Db::new().await, Pooler::start(&SERVER, 2));
    let process = through(&pooler, &db).await;
    process.install().await.unwrap();
    for queue in queues(&process) {
        let tickets = queue.push_batch([1, 2, 3, 4]).await.unwrap();
        assert_eq!(queue.cancel(tickets[3]).await.unwrap(), Some(4));
        assert!(queue.reprioritize(tickets[2], 1).await.unwrap());
        queue.pause().await.unwrap();
        queue.resume().await.unwrap();
        let mut tx = process.begin().await.unwrap();
        assert!(tx.peek(&queue).await.unwrap().is_some());
        let item = tx.pop(&queue).await.unwrap().unwrap();
        tx.fail(item, "it is of no use").unwrap();
        if let Some(item) = tx.pop(&queue).await.unwrap() {
            tx.retry_after(item, LONG).unwrap();
        }
        tx.commit().await.unwrap();
        let letter = queue.dead_letters().list(1).await.unwrap().remove(0);
        assert!(queue.dead_letters().requeue(letter.ticket).await.unwrap());
        assert_eq!(queue.dead_letters().len().await.unwrap(), 0);
        queue.held().await.unwrap();
        queue.recover("nobody", Duration::ZERO).await.unwrap();
        let mut tx = process.begin().await.unwrap();
        tx.pop_batch(&queue, 2).await.unwrap();
        tx.abort().await.unwrap();
        queue.release_prefetched().await.unwrap();
        assert_eq!(queue.stats().await.unwrap().held, 0, "{}", queue.name());
        assert_eq!(queue.retain(|item, _| *item != 1).await.unwrap(), 1);
        let mut tx = process.begin().await.unwrap();
        if let Some(item) = tx.pop(&queue).await.unwrap() {
            tx.retry_to(item, ReturnTo::Tail).unwrap();
        }
        tx.push(&queue, 5).await.unwrap();
        tx.commit().await.unwrap();
        queue.release_prefetched().await.unwrap();
        assert_eq!(queue.clear_all().await.unwrap(), 3, "{}", queue.name());
    }
    let builder = process.builder("unique").unique_by(|_| "key".into());
    let builder = builder.on_duplicate(OnDuplicate::Follow);
    let unique: PgQueue<i64> = builder.unique_for(LONG).build();
    unique.push(1).await.unwrap();
    unique.push(2).await.unwrap();
    for item in [2, 3] {
        let mut tx = process.begin().await.unwrap();
        assert_eq!(*tx.pop_wait(&unique, LONG).await.unwrap().unwrap(), item);
        if item == 2 {
            unique.push(3).await.unwrap();
        }
        tx.commit().await.unwrap();
    }
    assert!(matches!(unique.push(4).await, Err(Error::Duplicate(_))));
    process.sweep_keys().await.unwrap();
    let rate = process.rate("rate", 1000, Duration::from_secs(1)).pace();
    let places = process.concurrency("places", 2).pace();
    for (pace, name) in [
        (rate.await.unwrap(), "rated"),
        (places.await.unwrap(), "limited"),
    ] {
        let queue: PgQueue<i64> = process.builder(name).pace(pace).build();
        queue.push(1).await.unwrap();
        let mut tx = process.begin().await.unwrap();
        assert_eq!(*tx.pop_wait(&queue, LONG).await.unwrap().unwrap(), 1);
        tx.commit().await.unwrap();
    }
}

#[tokio::test]
async fn a_transaction_within_one_of_a_pooler() {
    let (db, pooler) = (Db::new().await, Pooler::start(&SERVER, 2));
    let process = through(&pooler, &db).await;
    let queue: PgQueue<i64> = process.queue("q");
    let (mut client, connection) = tokio_postgres::connect(&pooler.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    let outer = client.transaction().await.unwrap();
    let mut tx = process.within(&outer).await.unwrap();
    tx.push(&queue, 1).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(queue.stats().await.unwrap().ready, 0);
    outer.commit().await.unwrap();
    assert_eq!(queue.stats().await.unwrap().ready, 1);
}

#[tokio::test]
async fn nothing_listens_and_waiters_look_again() {
    let (db, pooler) = (Db::new().await, Pooler::start(&SERVER, 2));
    let (process, other) = (through(&pooler, &db).await, db.other().await);
    let (waits, pushes): (PgQueue<i64>, PgQueue<i64>) = (process.queue("q"), other.queue("q"));
    let waiter = tokio::spawn(async move {
        let mut tx = process.begin().await.unwrap();
        *tx.pop_wait(&waits, LONG).await.unwrap().unwrap()
    });
    until(|| async {
        db.number("select count(*) from @.queues where name = 'q'")
            .await
            == 1
    })
    .await;
    pushes.push(1).await.unwrap();
    assert_eq!(waiter.await.unwrap(), 1);
    assert_eq!(db.number("select count(*) from @.listeners").await, 0);
}

#[tokio::test]
async fn the_errors_of_a_pooler_name_the_option() {
    let (db, pooler) = (Db::new().await, Pooler::start(&SERVER, 1));
    through(&pooler, &db).await;
    let hint = "Options::transaction_pooling";
    let refused = Postgres::connect(&pooler.url())
        .await
        .unwrap_err()
        .to_string();
    assert!(
        [
            "startup parameter",
            hint,
            "ignore_startup_parameters = options"
        ]
        .iter()
        .all(|text| refused.contains(text)),
        "{refused}"
    );
    // A session that does not know the names of the statements that were prepared.
    let manager = Manager::new(pooler.url().parse().unwrap(), NoTls);
    let pool = Pool::builder(manager);
    let pool = pool.runtime(Runtime::Tokio1).build().unwrap();
    let named = Postgres::from_pool_with(pool.clone(), &db.schema).unwrap();
    let queue: PgQueue<i64> = named.queue("q");
    queue.stats().await.unwrap();
    let (client, connection) = tokio_postgres::connect(&pooler.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("deallocate all").await.unwrap();
    let unknown = queue.stats().await.unwrap_err().to_string();
    assert!(
        unknown.contains("does not exist") && unknown.contains(hint),
        "{unknown}"
    );
    let options = Options::default().schema(&db.schema).transaction_pooling();
    let unnamed = options.with_pool(pool).unwrap();
    unnamed.queue::<i64>("q").push(1).await.unwrap();
}
