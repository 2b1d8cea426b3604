//! Queues that are fair by key, and serial ones.

use crate::{Db, LONG};
use requeue_postgres::{Error, PgQueue, Postgres};
use std::time::Duration;

/// An item of a key: `a1` is of `a`.
fn fair(db: &Postgres) -> PgQueue<String> {
    db.builder("q")
        .fair_by(|item: &String| item[..1].into())
        .build()
}

fn serial(db: &Postgres, leased: bool) -> PgQueue<String> {
    let builder = db
        .builder("q")
        .fair_by(|item: &String| item[..1].into())
        .serial();
    if leased {
        builder.leased(60 * LONG).build()
    } else {
        builder.build()
    }
}

async fn push(queue: &PgQueue<String>, items: &str) {
    queue
        .push_batch(items.split(' ').map(str::to_string))
        .await
        .unwrap();
}

#[tokio::test]
async fn the_order_is_that_of_tickets_which_inner_transactions_draw_before_the_outer_one_commits() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db.queue("q");
    queue.push(0).await.unwrap();
    let mut client = crate::client().await;
    let outer = client.transaction().await.unwrap();
    let mut inner = db.within(&outer).await.unwrap();
    inner.push(&queue, 1).await.unwrap();
    inner.commit().await.unwrap();
    queue.push(2).await.unwrap();
    outer.commit().await.unwrap(); // later
    let mut tx = db.begin().await.unwrap();
    let items = tx.pop_batch(&queue, 10).await.unwrap();
    let items: Vec<u32> = items.iter().map(|item| **item).collect();
    assert_eq!(items, [0, 1, 2]);
}

#[tokio::test]
async fn keys_take_turns() {
    let db = Db::new().await;
    let queue = fair(&db);
    push(&queue, "a1 a2 a3 a4 b1 b2 c1").await;
    let mut tx = db.begin().await.unwrap();
    let mut got = Vec::new();
    while let Some(item) = tx.pop(&queue).await.unwrap() {
        got.push(item.into_inner());
        if got.len() == 3 {
            queue.push("b0".to_string()).await.unwrap();
        }
    }
    assert_eq!(got, ["a1", "b1", "c1", "a2", "b2", "a3", "b0", "a4"]);
}

#[tokio::test]
async fn a_batch_takes_turns_too_and_takes_all() {
    let db = Db::new().await;
    let queue = fair(&db);
    push(&queue, "a1 a2 a3 a4 b1 b2 c1").await;
    let mut tx = db.begin().await.unwrap();
    let batch = tx.pop_batch(&queue, 4).await.unwrap();
    let batch: Vec<&str> = batch.iter().map(|item| item.as_str()).collect();
    assert_eq!(batch, ["a1", "b1", "c1", "a2"]);
    assert_eq!(tx.pop_batch(&queue, 100).await.unwrap().len(), 3);
}

#[tokio::test]
async fn locked_items_of_a_fair_queue_are_skipped() {
    let db = Db::new().await;
    let queue = fair(&db);
    push(&queue, "a1 a2 b1").await;
    let (mut x, mut y) = (db.begin().await.unwrap(), db.begin().await.unwrap());
    assert_eq!(*x.pop(&queue).await.unwrap().unwrap(), "a1");
    assert_eq!(*x.pop(&queue).await.unwrap().unwrap(), "b1");
    assert_eq!(*y.pop(&queue).await.unwrap().unwrap(), "a2");
    assert!(y.pop_batch(&queue, 9).await.unwrap().is_empty());
}

#[tokio::test]
async fn leased_fair_queues_take_turns() {
    let db = Db::new().await;
    let queue = db
        .builder("q")
        .fair_by(|item: &String| item[..1].into())
        .leased(LONG)
        .build();
    push(&queue, "a1 a2 b1").await;
    let mut tx = db.begin().await.unwrap();
    assert_eq!(*tx.pop(&queue).await.unwrap().unwrap(), "a1");
    assert_eq!(*tx.pop(&queue).await.unwrap().unwrap(), "b1");
    assert_eq!(tx.pop_batch(&queue, 9).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_serial_queue_has_one_holder_per_key() {
    for leased in [false, true] {
        let db = Db::new().await;
        let queue = serial(&db, leased);
        push(&queue, "a1 a2 b1").await;
        let (mut x, mut y) = (db.begin().await.unwrap(), db.begin().await.unwrap());
        assert_eq!(*x.pop(&queue).await.unwrap().unwrap(), "a1");
        assert_eq!(*y.pop(&queue).await.unwrap().unwrap(), "b1");
        assert!(y.pop(&queue).await.unwrap().is_none());
        x.commit().await.unwrap();
        assert_eq!(*y.pop_wait(&queue, LONG).await.unwrap().unwrap(), "a2");
        y.commit().await.unwrap();
        assert_eq!(
            db.number("select count(*) from @.keys where holder is not null")
                .await,
            0
        );
    }
}

#[tokio::test]
async fn a_serial_key_is_free_again_after_an_abort_a_retry_and_a_failure() {
    for leased in [false, true] {
        let db = Db::new().await;
        let queue = serial(&db, leased);
        push(&queue, "a1 a2").await;
        for end in 0..3 {
            let mut tx = db.begin().await.unwrap();
            let item = tx.pop_wait(&queue, LONG).await.unwrap().unwrap();
            match end {
                0 => tx.abort().await.unwrap(),
                1 => {
                    assert_eq!(*item, "a1");
                    tx.retry_after(item, LONG * 60).unwrap();
                    tx.commit().await.unwrap();
                }
                _ => {
                    assert_eq!(*item, "a2");
                    tx.fail(item, "no").unwrap();
                    tx.commit().await.unwrap();
                }
            }
        }
        push(&queue, "a3").await;
        let mut tx = db.begin().await.unwrap();
        assert_eq!(*tx.pop_wait(&queue, LONG).await.unwrap().unwrap(), "a3");
    }
}

#[tokio::test]
async fn the_serial_keys_of_a_dead_holder_are_free_again() {
    let db = Db::new().await;
    let queue = serial(&db, true);
    push(&queue, "a1").await;
    let mut tx = db.begin().await.unwrap();
    tx.pop(&queue).await.unwrap().unwrap();
    db.execute("update @.holders set alive_until = '-infinity'")
        .await;
    let other = db.other().await;
    let mut again = other.begin().await.unwrap();
    assert!(again
        .pop_wait(&serial(&other, true), LONG)
        .await
        .unwrap()
        .is_some());
}

/// Tasks of two processes never hold two items of a key at a time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn serial_keys_never_overlap_under_load() {
    for leased in [false, true] {
        let db = Db::new().await;
        db.execute("create table @.busy (key text primary key)")
            .await;
        let queue = serial(&db, leased);
        let items: Vec<String> = (0..100)
            .map(|n| format!("{}{n}", ["a", "b", "c"][n % 3]))
            .collect();
        queue.push_batch(items).await.unwrap();
        let other = db.other().await;
        let mut tasks = Vec::new();
        for n in 0..6 {
            let own = if n % 2 == 0 {
                db.db.clone()
            } else {
                other.clone()
            };
            let (queue, schema) = (serial(&own, leased), db.schema.clone());
            tasks.push(tokio::spawn(async move {
                let client = crate::client().await;
                let mut done = 0;
                loop {
                    let mut tx = own.begin().await.unwrap();
                    let Some(item) = tx.pop_wait(&queue, Duration::from_secs(2)).await.unwrap()
                    else {
                        return done;
                    };
                    let key = &item[..1];
                    let insert = format!("insert into {schema}.busy values ($1)");
                    client
                        .execute(&insert, &[&key])
                        .await
                        .expect("no other holder");
                    let delete = format!("delete from {schema}.busy where key = $1");
                    client.execute(&delete, &[&key]).await.unwrap();
                    tx.commit().await.unwrap();
                    done += 1;
                }
            }));
        }
        let mut done = 0;
        for task in tasks {
            done += task.await.unwrap();
        }
        assert_eq!(done, 100);
    }
}

#[tokio::test]
async fn keys_that_cannot_be_are_refused() {
    let db = Db::new().await;
    let queue = db.builder("q").fair_by(String::clone).build();
    for key in ["", "a\0", &"x".repeat(1001)] {
        assert!(matches!(
            queue.push(key.to_string()).await,
            Err(Error::Key(_))
        ));
    }
    let mut tx = db.begin().await.unwrap();
    queue
        .push("'; drop table ready; --".to_string())
        .await
        .unwrap();
    assert!(tx.pop_wait(&queue, LONG).await.unwrap().is_some());
}

#[tokio::test]
async fn keys_without_items_can_be_swept() {
    let db = Db::new().await;
    let queue = serial(&db, false);
    push(&queue, "a1 b1 c1 d1").await;
    let mut tx = db.begin().await.unwrap();
    let items = tx.pop_batch(&queue, 3).await.unwrap();
    for item in items {
        match item.as_str() {
            "b1" => tx.retry_after(item, LONG * 60).unwrap(),
            "c1" => tx.fail(item, "no").unwrap(),
            _ => {}
        }
    }
    tx.commit().await.unwrap();
    let mut holds = db.begin().await.unwrap();
    assert_eq!(*holds.pop(&queue).await.unwrap().unwrap(), "d1");
    db.sweep_keys().await.unwrap();
    assert_eq!(db.number("select count(*) from @.keys").await, 3); // all but `a`
    holds.abort().await.unwrap();
    queue.dead_letters().requeue_all().await.unwrap();
    push(&queue, "a2").await;
    let mut tx = db.begin().await.unwrap();
    assert_eq!(tx.pop_batch(&queue, 9).await.unwrap().len(), 3);
}

/// The first statement of the claim succeeds, the third one fails.
#[tokio::test]
async fn a_claim_that_fails_half_way_is_undone() {
    let db = Db::new().await;
    let queue = db
        .builder("q")
        .fair_by(|item: &String| item[..1].into())
        .leased(60 * LONG)
        .build();
    push(&queue, "a1 a2").await;
    db.execute(
        "create function @.refuse() returns trigger language plpgsql as $$ begin raise 'refused'; end $$;
        create trigger refuse before insert on @.leased for each row
            when (new.json = '\"a2\"') execute function @.refuse()",
    )
    .await;
    let mut tx = db.begin().await.unwrap();
    let refused = tx.pop_batch(&queue, 2).await.unwrap_err();
    assert!(refused.to_string().contains("refused"), "{refused}");
    crate::until(|| async { queue.stats().await.unwrap().ready == 2 }).await;
}
