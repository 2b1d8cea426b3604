//! `Postgres::within` in a serializable transaction of the caller.

use crate::base::{client, Db};
use requeue_postgres::{Error, PgQueue};
use tokio_postgres::{Client, IsolationLevel, Transaction};

const ROWS: &str = "create table @.marks (job bigint not null)";

async fn serializable(client: &mut Client) -> Transaction<'_> {
    let builder = client
        .build_transaction()
        .isolation_level(IsolationLevel::Serializable);
    builder.start().await.unwrap()
}

/// Pops a job, reads all marks, and writes one: each of two such transactions would have to be before the other.
async fn mark(db: &Db, jobs: &PgQueue<i64>, outer: &Transaction<'_>) -> Result<i64, Error> {
    let mut tx = db.within(outer).await?;
    let job = *tx.pop(jobs).await?.expect("a job");
    let marks = format!("select count(*) from {}.marks", db.schema);
    tx.client().query_one(&marks, &[]).await?;
    let insert = format!("insert into {}.marks values ($1)", db.schema);
    tx.client().execute(&insert, &[&job]).await?;
    tx.push(&db.queue("receipts"), job).await?;
    tx.commit().await?;
    Ok(job)
}

#[tokio::test]
async fn a_serialization_failure_of_the_outer_transaction_undoes_the_inner_one() {
    let db = Db::new().await;
    db.execute(ROWS).await;
    let jobs: PgQueue<i64> = db.queue("jobs");
    let receipts: PgQueue<i64> = db.queue("receipts");
    jobs.push_batch(0..2).await.unwrap();
    receipts.push(-1).await.unwrap(); // the queue is there
    let (mut one, mut two) = (client(&db.url).await, client(&db.url).await);
    let (first, second) = (serializable(&mut one).await, serializable(&mut two).await);
    assert_eq!(mark(&db, &jobs, &first).await.unwrap(), 0);
    let conflict = match mark(&db, &jobs, &second).await {
        Ok(job) => {
            assert_eq!(job, 1);
            first.commit().await.unwrap();
            Error::from(second.commit().await.unwrap_err())
        }
        Err(error) => {
            first.commit().await.unwrap();
            second.rollback().await.unwrap();
            error
        }
    };
    assert!(conflict.is_retryable(), "{conflict}");
    assert_eq!(db.number("select count(*) from @.marks").await, 1);
    assert_eq!(receipts.stats().await.unwrap().ready, 2);
    let again = serializable(&mut two).await;
    assert_eq!(mark(&db, &jobs, &again).await.unwrap(), 1);
    again.commit().await.unwrap();
    assert_eq!(db.number("select count(*) from @.marks").await, 2);
    assert_eq!(receipts.stats().await.unwrap().ready, 3);
    assert!(db.drain().await.is_empty());
}

#[tokio::test]
async fn an_inner_abort_leaves_the_outer_transaction_open() {
    let db = Db::new().await;
    db.execute(ROWS).await;
    let jobs: PgQueue<i64> = db.queue("jobs");
    jobs.push_batch(0..2).await.unwrap();
    let mut client = client(&db.url).await;
    let outer = serializable(&mut client).await;
    let mut tx = db.within(&outer).await.unwrap();
    assert_eq!(*tx.pop(&jobs).await.unwrap().unwrap(), 0);
    tx.client().batch_execute("select 1 / 0").await.unwrap_err();
    tx.abort().await.unwrap();
    assert_eq!(mark(&db, &jobs, &outer).await.unwrap(), 0); // back in its place
    outer.commit().await.unwrap();
    assert_eq!(db.drain().await, [1]);
}
