//! Transactions in locked mode.

use crate::{client, Db, LONG};
use requeue_postgres::{Codec, CodecError, Error, PgQueue, Ticket};
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Job {
    order: i64,
    note: Option<String>,
}

fn job(order: i64) -> Job {
    Job {
        order,
        note: Some("ä \"quoted\" \\ {}".into()),
    }
}

/// Takes all that is ready.
async fn drain<T: Clone + 'static>(db: &Db, queue: &PgQueue<T>) -> Vec<T> {
    let mut tx = db.begin().await.unwrap();
    let items = tx.pop_batch(queue, 1000).await.unwrap();
    let items = items.iter().map(|item| (**item).clone()).collect();
    tx.commit().await.unwrap();
    items
}

#[tokio::test]
async fn items_come_back_as_they_were_pushed_in_their_order() {
    let db = Db::new().await;
    let jobs: PgQueue<Job> = db.queue("jobs");
    let first = jobs.push(job(1)).await.unwrap();
    let rest = jobs.push_batch((2..=50).map(job)).await.unwrap();
    assert!(first < rest[0] && rest.is_sorted());
    assert_eq!(
        drain(&db, &jobs).await,
        (1..=50).map(job).collect::<Vec<_>>()
    );
    assert_eq!(db.number("select count(*) from @.ready").await, 0);
}

#[tokio::test]
async fn held_items_are_skipped_and_an_abort_returns_them_to_their_place() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db.queue("q");
    queue.push_batch([1, 2, 3]).await.unwrap();
    let (mut a, mut b) = (db.begin().await.unwrap(), db.begin().await.unwrap());
    let first = a.pop(&queue).await.unwrap().unwrap();
    assert_eq!((*first, first.attempts()), (1, 1));
    assert_eq!(*b.pop(&queue).await.unwrap().unwrap(), 2);
    assert_eq!(b.peek(&queue).await.unwrap().map(|item| *item), Some(3));
    a.abort().await.unwrap();
    b.commit().await.unwrap();
    assert_eq!(drain(&db, &queue).await, [1, 3]);
}

#[tokio::test]
async fn a_dropped_transaction_gives_its_items_and_its_connection_back() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db.queue("q");
    queue.push(1).await.unwrap();
    for _ in 0..20 {
        let mut tx = db.begin().await.unwrap();
        assert!(tx.pop_wait(&queue, LONG).await.unwrap().is_some());
        tx.push(&queue, 2).await.unwrap();
    }
    assert_eq!(drain(&db, &queue).await, [1]);
}

#[tokio::test]
async fn the_death_of_a_connection_gives_its_items_back() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db.queue("q");
    queue.push(1).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    tx.pop(&queue).await.unwrap().unwrap();
    let row = tx
        .client()
        .query_one("select pg_backend_pid()", &[])
        .await
        .unwrap();
    let pid: i32 = row.get(0);
    client()
        .await
        .execute("select pg_terminate_backend($1)", &[&pid])
        .await
        .unwrap();
    let mut other = db.begin().await.unwrap();
    assert!(other.pop_wait(&queue, LONG).await.unwrap().is_some());
    assert!(tx.commit().await.is_err());
    other.commit().await.unwrap();
}

#[tokio::test]
async fn one_commit_spans_queues_and_the_users_tables() {
    let db = Db::new().await;
    db.execute("create table @.orders (id bigint primary key, state text)")
        .await;
    db.execute("insert into @.orders values (7, 'new')").await;
    let (jobs, receipts): (PgQueue<Job>, PgQueue<String>) =
        (db.queue("jobs"), db.queue("receipts"));
    jobs.push(job(7)).await.unwrap();
    let pay = format!(
        "update {}.orders set state = 'paid' where id = $1",
        db.schema
    );
    for commits in [false, true] {
        let mut tx = db.begin().await.unwrap();
        let taken = tx.pop_wait(&jobs, LONG).await.unwrap().unwrap();
        assert_eq!(tx.client().execute(&pay, &[&taken.order]).await.unwrap(), 1);
        tx.push(&receipts, "paid".to_string()).await.unwrap();
        assert_eq!((tx.held(), tx.staged()), (1, 1));
        if commits {
            assert_eq!(tx.commit().await.unwrap().len(), 1);
        } else {
            tx.abort().await.unwrap();
        }
        let paid = db
            .number("select count(*) from @.orders where state = 'paid'")
            .await;
        let (left, got) = (jobs.stats().await.unwrap(), receipts.stats().await.unwrap());
        let expected = if commits { (1, 0, 1) } else { (0, 1, 0) };
        assert_eq!((paid, left.ready, got.ready), expected);
    }
}

#[tokio::test]
async fn a_transaction_that_the_server_has_failed_does_not_commit() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db.queue("q");
    queue.push(1).await.unwrap();
    for pushes in [false, true] {
        let mut tx = db.begin().await.unwrap();
        tx.pop(&queue).await.unwrap().unwrap();
        let failed = tx.client().execute("select 1 / 0", &[]).await.unwrap_err();
        assert!(failed.to_string().contains("division by zero"), "{failed}");
        if pushes {
            tx.push(&queue, 2).await.unwrap();
        }
        assert!(tx.commit().await.is_err());
        assert_eq!(queue.stats().await.unwrap().ready, 1);
    }
    assert_eq!(drain(&db, &queue).await, [1]);
}

#[tokio::test]
async fn a_deferred_constraint_fails_the_commit() {
    let db = Db::new().await;
    db.execute("create table @.c (id int unique deferrable initially deferred)")
        .await;
    let queue: PgQueue<u32> = db.queue("q");
    queue.push(1).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    tx.pop(&queue).await.unwrap().unwrap();
    let twice = format!("insert into {}.c values (1), (1)", db.schema);
    tx.client().batch_execute(&twice).await.unwrap();
    let error = tx.commit().await.unwrap_err();
    assert_eq!(error.code().unwrap().code(), "23505");
    assert_eq!(drain(&db, &queue).await, [1]);
}

#[tokio::test]
async fn priorities_come_lowest_first_and_then_by_age() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db.queue("q");
    queue.push(1).await.unwrap();
    queue.priority(u16::MAX).push(2).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    tx.priority(0).push(&queue, 3).await.unwrap();
    tx.push(&queue, 4).await.unwrap();
    tx.priority(1).push_batch(&queue, [5, 6]).await.unwrap();
    tx.commit().await.unwrap();
    let mut tx = db.begin().await.unwrap();
    for expected in [3, 5, 6, 1, 4, 2] {
        assert_eq!(*tx.pop(&queue).await.unwrap().unwrap(), expected);
    }
}

#[tokio::test]
async fn delayed_items_become_ready_when_they_are_due_by_the_servers_clock() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db.queue("q");
    queue.at(SystemTime::UNIX_EPOCH).push(1).await.unwrap();
    queue.after(Duration::MAX).push(2).await.unwrap();
    queue
        .at(SystemTime::now() + 100 * 365 * LONG * 60 * 24)
        .push(3)
        .await
        .unwrap();
    let soon = queue
        .after(Duration::from_secs(3600))
        .push(4)
        .await
        .unwrap();
    assert_eq!(drain(&db, &queue).await, [1]);
    let stats = queue.stats().await.unwrap();
    assert_eq!((stats.ready, stats.delayed), (0, 3));
    let due = format!("update @.delayed set until = now() where id = {soon}");
    db.execute(&due).await;
    assert_eq!(drain(&db, &queue).await, [4]);
}

#[tokio::test]
async fn retries_and_failures_take_effect_with_the_commit() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db.builder("q").max_attempts(5).build();
    let tickets = queue.push_batch([1, 2, 3]).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    let mut items = tx.pop_batch(&queue, 3).await.unwrap().into_iter();
    tx.retry_after(items.next().unwrap(), LONG * 60).unwrap();
    tx.fail(items.next().unwrap(), "never\0 a number").unwrap();
    tx.retry(items.next().unwrap()).unwrap();
    assert_eq!(queue.stats().await.unwrap().delayed, 0);
    tx.commit().await.unwrap();

    let stats = queue.stats().await.unwrap();
    assert_eq!((stats.ready + stats.delayed, stats.dead), (2, 1));
    let letter = queue.dead_letters().drain(10).await.unwrap().remove(0);
    assert_eq!(
        (letter.ticket, letter.item.unwrap(), letter.attempts),
        (tickets[1], 2, 1)
    );
    assert_eq!(letter.error.as_deref(), Some("never\u{fffd} a number"));
    let mut tx = db.begin().await.unwrap();
    let again = tx.pop_wait(&queue, LONG).await.unwrap().unwrap();
    assert_eq!(
        (*again, again.attempts(), again.ticket()),
        (3, 2, tickets[2])
    );
    let foreign = tx.pop(&queue).await.unwrap();
    assert!(foreign.is_none());
}

#[tokio::test]
async fn an_item_of_another_transaction_is_refused() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db.queue("q");
    queue.push_batch([1, 2]).await.unwrap();
    let (mut a, mut b) = (db.begin().await.unwrap(), db.begin().await.unwrap());
    let item = a.pop(&queue).await.unwrap().unwrap();
    b.pop(&queue).await.unwrap().unwrap();
    assert!(matches!(b.retry(item), Err(Error::OtherTransaction)));
}

#[tokio::test]
async fn within_the_callers_transaction_all_commits_with_it() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db.builder("q").leased(LONG).build();
    queue.push_batch([1, 2, 3]).await.unwrap();
    let mut client = client().await;
    let outer = client.transaction().await.unwrap();
    let mut tx = db.within(&outer).await.unwrap();
    assert_eq!(*tx.pop(&queue).await.unwrap().unwrap(), 1);
    tx.push(&queue, 4).await.unwrap();
    tx.commit().await.unwrap();
    let mut undone = db.within(&outer).await.unwrap();
    assert_eq!(*undone.pop(&queue).await.unwrap().unwrap(), 2);
    undone.abort().await.unwrap();
    let mut dropped = db.within(&outer).await.unwrap();
    assert_eq!(*dropped.pop(&queue).await.unwrap().unwrap(), 2);
    drop(dropped);
    assert_eq!(queue.stats().await.unwrap().ready, 3);
    outer.commit().await.unwrap();
    assert_eq!(drain(&db, &queue).await, [2, 3, 4]);
}

/// Polls a future once, and drops it.
async fn start(future: impl std::future::Future) {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|context| {
        assert!(future.as_mut().poll(context).is_pending());
        std::task::Poll::Ready(())
    })
    .await;
}

#[tokio::test]
async fn a_pop_that_is_dropped_while_it_runs_breaks_the_transaction_and_loses_nothing() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db.queue("q");
    queue.push_batch([1, 2]).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    tx.pop(&queue).await.unwrap().unwrap(); // the statement is prepared
    start(tx.pop(&queue)).await;
    assert!(matches!(tx.pop(&queue).await, Err(Error::Broken)));
    assert!(matches!(tx.client().raw().await, Err(Error::Broken)));
    assert!(matches!(tx.commit().await, Err(Error::Broken)));
    let mut tx = db.begin().await.unwrap();
    assert!(tx.pop_wait(&queue, LONG).await.unwrap().is_some());
    assert!(tx.pop_wait(&queue, LONG).await.unwrap().is_some());
}

struct Lines;

impl Codec<String> for Lines {
    fn encode(&self, item: &String, bytes: &mut Vec<u8>) -> Result<(), CodecError> {
        bytes.extend_from_slice(item.as_bytes());
        Ok(())
    }

    fn decode(&self, bytes: &[u8]) -> Result<String, CodecError> {
        String::from_utf8(bytes.to_vec()).map_err(CodecError::new)
    }
}

#[tokio::test]
async fn a_codec_stores_bytes() {
    let db = Db::new().await;
    let lines = db.builder("lines").codec(Lines).build();
    lines
        .push_batch(["a\0b".to_string(), String::new()])
        .await
        .unwrap();
    assert_eq!(
        db.number("select count(*) from @.ready where json is null")
            .await,
        2
    );
    assert_eq!(drain(&db, &lines).await, ["a\0b", ""]);
}

#[tokio::test]
async fn values_unfit_for_jsonb_are_refused_at_the_push() {
    let db = Db::new().await;
    let queue: PgQueue<String> = db.queue("q");
    let mut tx = db.begin().await.unwrap();
    let refused = tx
        .push_batch(&queue, ["fine".to_string(), "a\0".to_string()])
        .await;
    assert!(matches!(refused, Err(Error::Codec(_))));
    tx.push(&queue, "good".to_string()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(drain(&db, &queue).await, ["good"]);
}

#[tokio::test]
async fn an_empty_commit_does_nothing() {
    let db = Db::new().await;
    assert_eq!(
        db.begin().await.unwrap().commit().await.unwrap(),
        [] as [Ticket; 0]
    );
    let mut tx = db.begin().await.unwrap();
    let queue: PgQueue<u32> = db.queue("q");
    assert!(tx.pop(&queue).await.unwrap().is_none());
    assert!(queue.push_batch([]).await.unwrap().is_empty());
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn a_pool_of_one_connection_is_enough() {
    let db = Db::new().await;
    let db = crate::options(&db.schema)
        .max_connections(1)
        .connect()
        .await
        .unwrap();
    let queue: PgQueue<u32> = db.builder("q").max_attempts(3).build();
    let leased: PgQueue<u32> = db.builder("leased").leased(LONG).build();
    leased.push(2).await.unwrap();
    queue.push(1).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    assert!(tx.pop_wait(&queue, LONG).await.unwrap().is_some());
    assert!(tx.pop_wait(&leased, LONG).await.unwrap().is_some());
    tx.push(&queue, 3).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(queue.stats().await.unwrap().ready, 1);
    assert_eq!(leased.stats().await.unwrap().held, 0);
}
