//! Items whose time to live is over.

use crate::{until, Db, LONG};
use requeue::Pace;
use requeue_postgres::{AfterTtl, Builder, PgQueue, ReturnTo};
use std::time::Duration;

/// The queues of these tests: of each order, whose items are locked or leased, and with a pace.
fn queues(db: &Db) -> Vec<PgQueue<u32>> {
    let builder = |name| db.builder(name).ttl(LONG);
    let fair = |name| builder(name).fair_by(|item: &u32| (item % 2).to_string());
    let pace = Pace::every(Duration::from_nanos(1));
    vec![
        builder("locked").build(),
        builder("leased").leased(60 * LONG).build(),
        fair("fair").build(),
        fair("fair, leased").leased(60 * LONG).build(),
        fair("serial").serial().build(),
        fair("serial, leased").serial().leased(60 * LONG).build(),
        builder("pace").pace(pace).build(),
    ]
}

/// The time of the items with these values is over.
async fn end(db: &Db, values: &str) {
    for table in ["ready", "delayed", "leased"] {
        let ended = format!("update @.{table} set expires = now() where json in ({values})");
        db.execute(&ended).await;
    }
}

async fn timed_out(db: &Db) -> i64 {
    db.number("select coalesce(sum(timed_out), 0)::bigint from @.queues")
        .await
}

#[tokio::test]
async fn what_is_over_is_not_delivered() {
    let db = Db::new().await;
    for queue in queues(&db) {
        let before = timed_out(&db).await;
        // Of two keys, one of which has nothing else.
        queue.push_batch([2, 4, 1]).await.unwrap();
        let tickets = queue.push_batch([6]).await.unwrap();
        end(&db, "'2', '4', '6'").await;
        let mut tx = db.begin().await.unwrap();
        assert_eq!(*tx.peek(&queue).await.unwrap().unwrap(), 1);
        assert_eq!(*tx.pop(&queue).await.unwrap().unwrap(), 1);
        assert!(tx.pop_batch(&queue, 9).await.unwrap().is_empty());
        assert!(tx.peek(&queue).await.unwrap().is_none());
        assert_eq!(queue.cancel(tickets[0]).await.unwrap(), None);
        tx.commit().await.unwrap();
        until(|| async { queue.stats().await.unwrap().timed_out == 3 }).await;
        let stats = queue.stats().await.unwrap();
        assert_eq!((stats.ready, stats.dead, stats.oldest), (0, 0, None));
        assert_eq!(timed_out(&db).await, before + 3);
    }
}

#[tokio::test]
async fn what_is_over_is_removed_without_any_call() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db.queue("q");
    let other: PgQueue<u32> = db
        .builder("letters")
        .on_expired(AfterTtl::DeadLetter)
        .build();
    // More than are removed at a time.
    queue.expires_in(LONG).push_batch(0..2_500).await.unwrap();
    other.push(1).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    tx.expires_in(LONG).push(&other, 2).await.unwrap();
    tx.commit().await.unwrap();
    db.execute("update @.ready set expires = now() where expires is not null")
        .await;
    until(|| async { timed_out(&db).await == 2_500 }).await;
    until(|| async { db.number("select count(*) from @.dead").await == 1 }).await;
    assert_eq!(db.number("select count(*) from @.ready").await, 1);
    assert_eq!(queue.dead_letters().len().await.unwrap(), 0);
}

#[tokio::test]
async fn what_is_over_can_become_a_dead_letter_and_live_again() {
    for leased in [false, true] {
        let db = Db::new().await;
        let builder = db.builder("q").ttl(LONG).max_attempts(5);
        let builder = builder.on_expired(AfterTtl::DeadLetter);
        let queue: PgQueue<u32> = if leased {
            builder.leased(60 * LONG).build()
        } else {
            builder.build()
        };
        let tickets = queue.push_batch([1, 2]).await.unwrap();
        for _ in 0..2 {
            let mut tx = db.begin().await.unwrap();
            let item = tx.pop_wait(&queue, LONG).await.unwrap().unwrap();
            assert_eq!(*item, 1);
            tx.abort().await.unwrap();
        }
        let mut tx = db.begin().await.unwrap();
        let item = tx.pop(&queue).await.unwrap().unwrap();
        tx.retry_to(item, ReturnTo::Tail).unwrap();
        tx.commit().await.unwrap();
        let mut tx = db.begin().await.unwrap();
        assert_eq!(tx.pop_batch(&queue, 9).await.unwrap().len(), 2);
        tx.abort().await.unwrap();
        // A process that sets nothing leaves it so.
        let other: PgQueue<u32> = db.other().await.queue("q");
        assert_eq!(other.stats().await.unwrap().dead, 0);
        end(&db, "'1'").await;
        let letters = other.dead_letters().list(9).await.unwrap();
        assert_eq!(letters.len(), 1);
        assert_eq!((letters[0].ticket, letters[0].attempts), (tickets[0], 4));
        assert_eq!(letters[0].reason, "timed_out");
        assert_eq!(
            db.number("select count(*) from @.attempts where id in (select id from @.dead)")
                .await,
            0
        );
        assert!(queue.dead_letters().requeue(tickets[0]).await.unwrap());
        let lives =
            "select count(*) from @.ready where json = '1' and expires > now() + '50 seconds'";
        assert_eq!(db.number(lives).await, 1);
        assert_eq!(timed_out(&db).await, 0);
        let mut tx = db.begin().await.unwrap();
        let item = tx.pop(&queue).await.unwrap().unwrap();
        assert_eq!((*item, item.attempts(), item.ticket()), (1, 1, tickets[0]));
    }
}

/// It keeps its time, wherever it goes.
#[tokio::test]
async fn what_is_held_can_be_committed_and_otherwise_ends_when_it_comes_back() {
    for leased in [false, true] {
        let db = Db::new().await;
        let builder: Builder<u32> = db.builder("q");
        let queue = if leased {
            builder.leased(60 * LONG).build()
        } else {
            builder.build()
        };
        queue.expires_in(LONG).push_batch(1..=5).await.unwrap();
        let ends = db
            .number("select (extract(epoch from expires) * 1000000)::bigint from @.ready limit 1")
            .await;
        let mut tx = db.begin().await.unwrap();
        let items = tx.pop_batch(&queue, 9).await.unwrap();
        if leased {
            end(&db, "'1'").await; // the row of a locked one cannot be changed
        }
        for item in items {
            match *item {
                2 => tx.retry(item).unwrap(),
                3 => tx.retry_to(item, ReturnTo::Tail).unwrap(),
                4 => tx.retry_after(item, LONG).unwrap(),
                _ => {}
            }
        }
        tx.commit().await.unwrap();
        let same = format!(
            "select count(*) from (select expires from @.ready union all select expires from @.delayed) i
                where expires = 'epoch'::timestamptz + {ends} * interval '1 microsecond'"
        );
        assert_eq!(db.number(&same).await, 3);
        let mut tx = db.begin().await.unwrap();
        assert_eq!(tx.pop_batch(&queue, 9).await.unwrap().len(), 2);
        tx.abort().await.unwrap();
        end(&db, "'2', '3', '4'").await;
        db.execute("update @.delayed set until = now()").await;
        let mut tx = db.begin().await.unwrap();
        assert!(tx.pop(&queue).await.unwrap().is_none());
        until(|| async {
            queue.stats().await.unwrap();
            timed_out(&db).await == 3
        })
        .await;
        assert_eq!(queue.stats().await.unwrap().delayed, 0);
    }
}

#[tokio::test]
async fn the_time_of_a_delayed_item_begins_when_it_is_due() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db.builder("q").ttl(LONG).build();
    queue.after(LONG).push(1).await.unwrap();
    queue
        .expires_in(3 * LONG)
        .after(2 * LONG)
        .push(2)
        .await
        .unwrap();
    let mut tx = db.begin().await.unwrap();
    tx.after(LONG)
        .expires_in(Duration::MAX)
        .push(&queue, 3)
        .await
        .unwrap();
    tx.at(std::time::UNIX_EPOCH).push(&queue, 4).await.unwrap();
    tx.commit().await.unwrap();
    let lives = |item: u32, table: &str, from: &str| {
        format!("select extract(epoch from expires - {from})::bigint from @.{table} where json = '{item}'")
    };
    let long = i64::try_from(LONG.as_secs()).unwrap();
    assert_eq!(db.number(&lives(1, "delayed", "until")).await, long);
    assert_eq!(db.number(&lives(2, "delayed", "until")).await, 3 * long);
    assert_eq!(db.number(&lives(4, "ready", "pushed")).await, long);
    assert!(db.number(&lives(3, "delayed", "until")).await > 1_000 * 366 * 86_400);
}

/// The item is in memory when its time ends.
#[tokio::test]
async fn what_is_prefetched_is_not_delivered_when_it_is_over() {
    let db = Db::new().await;
    let builder = db.builder("q").leased(60 * LONG).prefetch(9);
    let queue: PgQueue<u32> = builder.build();
    queue.push(1).await.unwrap();
    let ttl = Duration::from_millis(500);
    queue.expires_in(ttl).push(2).await.unwrap();
    queue.push(3).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    assert_eq!(*tx.pop(&queue).await.unwrap().unwrap(), 1);
    let alive = "select count(*) from @.leased where expires > clock_timestamp()";
    until(|| async { db.number(alive).await == 0 }).await;
    assert_eq!(*tx.pop(&queue).await.unwrap().unwrap(), 3);
    assert!(tx.pop(&queue).await.unwrap().is_none());
    until(|| async { timed_out(&db).await == 1 }).await;
    tx.commit().await.unwrap();
}

#[test]
#[should_panic(expected = "time to live of zero")]
fn a_time_to_live_of_zero_is_refused() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let db = runtime.block_on(crate::options("zero").connect()).unwrap();
    let _ = db.builder::<u32>("q").ttl(Duration::ZERO);
}
