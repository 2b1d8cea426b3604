//! Pushes in open transactions of the caller.

use crate::unique::is_duplicate;
use crate::{client, until, Db, LONG};
use requeue_postgres::{Error, PgQueue, Ticket};
use tokio::task::JoinHandle;

/// A task that waits for an item of the queue, and has been registered.
async fn waiting(db: &Db) -> JoinHandle<u32> {
    let other = db.other().await;
    let waits = tokio::spawn(async move {
        let queue: PgQueue<u32> = other.queue("q");
        let mut tx = other.begin().await.unwrap();
        let item = tx.pop_wait(&queue, LONG).await.unwrap().unwrap();
        tx.commit().await.unwrap();
        *item
    });
    until(|| async { db.number("select count(*) from @.listeners").await == 1 }).await;
    waits
}

async fn ready(db: &Db) -> i64 {
    db.number("select count(*) from @.ready").await
}

#[tokio::test]
async fn a_push_in_an_open_transaction_is_there_after_its_commit_only() {
    let db = Db::new().await;
    let waits = waiting(&db).await;
    let (queue, mut client): (PgQueue<u32>, _) = (db.queue("q"), client().await);
    let tx = client.transaction().await.unwrap();
    queue.push_in(&tx, 1).await.unwrap();
    tx.rollback().await.unwrap();
    assert_eq!(ready(&db).await, 0);
    let tx = client.transaction().await.unwrap();
    let ticket = queue.push_in(&tx, 2).await.unwrap();
    assert_eq!(ready(&db).await, 0);
    assert_eq!(
        tx.query_one(&format!("select id from {}.ready", db.schema), &[])
            .await
            .unwrap()
            .get::<_, i64>(0),
        ticket.0
    );
    tx.commit().await.unwrap();
    assert_eq!(waits.await.unwrap(), 2);
}

#[tokio::test]
async fn pushes_in_an_open_transaction_have_the_options_of_the_queue_and_of_the_push() {
    let db = Db::new().await;
    let builder = db
        .builder("q")
        .fair_by(|item: &u32| format!("of {item}"))
        .serial()
        .ttl(LONG)
        .unique_by(u32::to_string);
    let queue: PgQueue<u32> = builder.build();
    let mut pooled = db.object().await;
    let tx = pooled.transaction().await.unwrap();
    assert_eq!(queue.push_batch_in(&tx, []).await.unwrap(), []);
    let tickets = queue.priority(3).push_batch_in(&tx, [1, 2]).await.unwrap();
    assert!(tickets[0] < tickets[1]);
    queue
        .after(LONG)
        .expires_in(2 * LONG)
        .push_in(&tx, 3)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let there = "select count(*) from @.ready where priority = 3 and key = 'of ' || json::text and expires > now()";
    assert_eq!(db.number(there).await, 2);
    let later = "select count(*) from @.delayed where until > now() and expires > until + interval '1 min' and key = 'of 3'";
    assert_eq!(db.number(later).await, 1);
    assert_eq!(db.number("select count(*) from @.keys").await, 3);
    let tx = pooled.transaction().await.unwrap();
    assert!(is_duplicate(queue.push_in(&tx, 2).await, "2"));
    drop(tx);
    let tx = pooled.transaction().await.unwrap();
    assert!(is_duplicate(queue.push_batch_in(&tx, [5, 5]).await, "5"));
    let unnamed: PgQueue<u32> = db.queue("");
    assert!(matches!(unnamed.push_in(&tx, 1).await, Err(Error::Name(_))));
    queue
        .push_in(&tx, 6)
        .await
        .expect("what was refused before it was sent fails no transaction");
    tx.commit().await.unwrap();
    let mut tx = db.begin().await.unwrap();
    assert_eq!(*tx.pop(&queue).await.unwrap().unwrap(), 1);
}

/// A role that may only push does so from here too.
#[tokio::test]
async fn a_role_that_may_only_push_pushes_in_open_transactions() {
    let db = Db::new().await;
    let role = format!("{}_pushes", db.schema);
    db.execute(&format!(
        "create role {role}; select @.grant_push('{role}')"
    ))
    .await;
    let (queue, mut client): (PgQueue<u32>, _) = (db.queue("q"), client().await);
    client
        .batch_execute(&format!("set role {role}"))
        .await
        .unwrap();
    let tx = client.transaction().await.unwrap();
    let ticket = queue.push_in(&tx, 1).await.unwrap();
    assert!(ticket > Ticket(0));
    tx.commit().await.unwrap();
    assert_eq!(ready(&db).await, 1);
}

#[cfg(feature = "sqlx")]
#[tokio::test]
async fn a_push_in_a_transaction_of_sqlx_is_there_after_its_commit_only() {
    use sqlx::postgres::PgConnectOptions;
    use sqlx::Connection;
    use std::time::Duration;
    let db = Db::new().await;
    let waits = waiting(&db).await;
    let queue: PgQueue<u32> = db.builder("q").unique_by(u32::to_string).build();
    let options = PgConnectOptions::new().socket(crate::server::SERVER.folder());
    let options = options.username("postgres").database("postgres");
    let mut connection = sqlx::PgConnection::connect_with(&options).await.unwrap();
    let mut tx = connection.begin().await.unwrap();
    queue.push_in(&mut tx, 1).await.unwrap();
    tx.rollback().await.unwrap();
    assert_eq!(ready(&db).await, 0);
    let mut tx = connection.begin().await.unwrap();
    queue
        .after(Duration::from_secs(3600))
        .push_in(&mut *tx, 2)
        .await
        .unwrap();
    let ticket = queue.push_batch_in(&mut tx, [3]).await.unwrap()[0];
    assert_eq!(ready(&db).await, 0);
    let own = sqlx::query_scalar::<_, i64>(sqlx::AssertSqlSafe(format!(
        "select id from {}.ready",
        db.schema
    )));
    assert_eq!(own.fetch_one(&mut *tx).await.unwrap(), ticket.0);
    tx.commit().await.unwrap();
    assert_eq!(waits.await.unwrap(), 3);
    let mut tx = connection.begin().await.unwrap();
    assert!(is_duplicate(queue.push_in(&mut tx, 2).await, "2"));
    let failed = queue.push_in(&mut tx, 4).await.unwrap_err();
    assert!(
        matches!(&failed, Error::Sqlx(_)) && !failed.is_retryable(),
        "{failed}"
    );
    tx.rollback().await.unwrap();
    assert_eq!(
        db.number("select count(*) from @.delayed where json = '2'")
            .await,
        1
    );
}
