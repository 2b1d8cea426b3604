//! Transactions in leased mode.

use crate::{until, Db, LONG};
use requeue_postgres::{Error, PgQueue, Postgres};
use std::future::Future;
use std::time::Duration;

fn leased(db: &Postgres, term: Duration) -> PgQueue<u32> {
    db.builder("q").leased(term).build()
}

/// Makes all holders of a database dead: as if their processes had stopped long ago.
async fn kill_holders(db: &Db) {
    db.execute("update @.holders set alive_until = '-infinity'")
        .await;
}

#[tokio::test]
async fn a_leased_item_is_held_without_an_open_transaction() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db.builder("q").leased(LONG).holder("alice").build();
    let tickets = queue.push_batch([1, 2]).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    let item = tx.pop(&queue).await.unwrap().unwrap();
    assert_eq!((*item, item.attempts(), item.ticket()), (1, 1, tickets[0]));
    let open = "select count(*) from pg_locks where locktype = 'relation' and relation = '@.ready'::regclass
        and mode = 'RowExclusiveLock'";
    until(|| async { db.number(open).await == 0 }).await; // statements in the background end
    let held = queue.held().await.unwrap();
    assert_eq!(
        (held.len(), &*held[0].holder, held[0].ticket),
        (1, "alice", tickets[0])
    );
    assert!(held[0].alive_until > held[0].since);
    assert_eq!(queue.stats().await.unwrap().held, 1);
    tx.push(&queue, 3).await.unwrap();
    assert_eq!(tx.commit().await.unwrap().len(), 1);
    let stats = queue.stats().await.unwrap();
    assert_eq!((stats.ready, stats.held), (2, 0));
}

#[tokio::test]
async fn a_leased_commit_spans_the_users_tables() {
    let db = Db::new().await;
    db.execute("create table @.done (id int)").await;
    let queue = leased(&db, LONG);
    queue.push(1).await.unwrap();
    let insert = format!("insert into {}.done values (1)", db.schema);
    for commits in [false, true] {
        let mut tx = db.begin().await.unwrap();
        tx.pop_wait(&queue, LONG).await.unwrap().unwrap();
        tx.client().execute(&insert, &[]).await.unwrap();
        if commits {
            tx.commit().await.unwrap();
        } else {
            tx.abort().await.unwrap();
        }
        assert_eq!(
            db.number("select count(*) from @.done").await,
            i64::from(commits)
        );
    }
    assert_eq!(queue.stats().await.unwrap().ready, 0);
}

#[tokio::test]
async fn an_abort_and_a_drop_give_leased_items_back_to_their_places() {
    let db = Db::new().await;
    let queue = leased(&db, LONG);
    queue.push_batch([1, 2]).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    tx.pop(&queue).await.unwrap().unwrap();
    tx.abort().await.unwrap();
    let mut tx = db.begin().await.unwrap();
    let again = tx.pop(&queue).await.unwrap().unwrap();
    assert_eq!((*again, again.attempts()), (1, 2));
    drop(tx);
    until(|| async { queue.stats().await.unwrap().held == 0 }).await;
    let mut tx = db.begin().await.unwrap();
    assert_eq!(*tx.pop(&queue).await.unwrap().unwrap(), 1);
}

#[tokio::test]
async fn a_dropped_pop_gives_its_claim_back() {
    let db = Db::new().await;
    let queue = leased(&db, LONG);
    assert_eq!(queue.stats().await.unwrap().ready, 0); // the queue is made
    for _ in 0..20 {
        let mut tx = db.begin().await.unwrap();
        let mut pop = Box::pin(tx.pop(&queue));
        std::future::poll_fn(|context| {
            let _ = pop.as_mut().poll(context);
            std::task::Poll::Ready(())
        })
        .await;
        queue.push(1).await.unwrap(); // meanwhile the claim goes on
        drop(pop);
        drop(tx);
        let mut tx = db.begin().await.unwrap();
        assert!(tx.pop_wait(&queue, LONG).await.unwrap().is_some());
        tx.commit().await.unwrap();
    }
    until(|| async { queue.stats().await.unwrap().held == 0 }).await;
}

#[tokio::test]
async fn the_items_of_a_dead_holder_are_delivered_again_and_its_commit_fails() {
    let db = Db::new().await;
    let queue = leased(&db, Duration::from_secs(3600));
    queue.push(1).await.unwrap();
    let mut dead = db.begin().await.unwrap();
    dead.pop(&queue).await.unwrap().unwrap();
    dead.push(&queue, 9).await.unwrap();
    kill_holders(&db).await;

    let other = db.other().await;
    let mut tx = other.begin().await.unwrap();
    let item = tx
        .pop_wait(&leased(&other, LONG), LONG)
        .await
        .unwrap()
        .unwrap();
    assert_eq!((*item, item.attempts()), (1, 2));
    assert!(matches!(dead.commit().await, Err(Error::Expired)));
    tx.commit().await.unwrap();
    let stats = queue.stats().await.unwrap();
    assert_eq!((stats.ready, stats.held), (0, 0));
}

#[tokio::test]
async fn an_expired_lease_fails_the_users_statements_too() {
    let db = Db::new().await;
    db.execute("create table @.done (id int)").await;
    let queue = leased(&db, Duration::from_secs(3600));
    queue.push(1).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    tx.pop(&queue).await.unwrap().unwrap();
    let insert = format!("insert into {}.done values (1)", db.schema);
    tx.client().execute(&insert, &[]).await.unwrap();
    let holder = format!("process {}", std::process::id());
    assert_eq!(queue.recover("another", Duration::ZERO).await.unwrap(), 0);
    assert_eq!(queue.recover(&holder, Duration::MAX).await.unwrap(), 0);
    assert_eq!(queue.recover(&holder, Duration::ZERO).await.unwrap(), 1);
    assert!(matches!(tx.commit().await, Err(Error::Expired)));
    assert_eq!(db.number("select count(*) from @.done").await, 0);
    assert_eq!(queue.stats().await.unwrap().ready, 1);
}

#[tokio::test]
async fn leases_are_renewed() {
    let db = Db::new().await;
    let queue = leased(&db, Duration::from_millis(300));
    queue.push(1).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    tx.pop(&queue).await.unwrap().unwrap();
    let alive = "select (extract(epoch from alive_until) * 1000000)::bigint from @.holders";
    for _ in 0..3 {
        let before = db.number(alive).await;
        until(|| async { db.number(alive).await > before }).await;
    }
}

/// There is nothing to lose yet: the first heartbeat has the time of any statement.
#[tokio::test]
async fn a_short_term_is_no_limit_for_its_first_heartbeat() {
    let db = Db::new().await;
    let queue = leased(&db, Duration::from_millis(50));
    queue.push(1).await.unwrap();
    let blocks = crate::client().await;
    let lock = format!("begin; lock table {}.holders in exclusive mode", db.schema);
    blocks.batch_execute(&lock).await.unwrap();
    let waiting =
        "select count(*) from pg_locks where not granted and relation = '@.holders'::regclass";
    let unlocks = async {
        until(|| async { db.number(waiting).await == 1 }).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        blocks.batch_execute("commit").await.unwrap();
    };
    let mut tx = db.begin().await.unwrap();
    let (popped, ()) = tokio::join!(tx.pop(&queue), unlocks);
    assert!(popped.unwrap().is_some());
}

/// A heartbeat misses its time, so that the connection for short statements is replaced. Others that use it are in their time.
#[tokio::test]
async fn a_heartbeat_that_is_late_fails_no_other_call() {
    let db = Db::new().await;
    let queue = leased(&db, Duration::from_millis(300));
    queue.push(1).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    tx.pop(&queue).await.unwrap().unwrap();
    let blocks = crate::client().await;
    let lock = format!("begin; lock table {}.holders in exclusive mode", db.schema);
    blocks.batch_execute(&lock).await.unwrap();
    let waiting = || async {
        let sql =
            "select count(*) from pg_locks where not granted and relation = '@.holders'::regclass";
        db.number(sql).await
    };
    until(|| async { waiting().await >= 1 }).await;
    let unlocks = async {
        until(|| async { waiting().await >= 2 }).await; // on another connection
        blocks.batch_execute("commit").await.unwrap();
    };
    // Prepared and run, one after the other, behind the first heartbeat.
    let letters = queue.dead_letters();
    let (letters, ()) = tokio::join!(biased; letters.list(1), unlocks);
    assert!(letters.unwrap().is_empty());
}

/// The runtime of the holder ends, and with it its renewals.
#[tokio::test]
async fn a_process_that_ends_keeps_its_items_no_longer_than_its_lease() {
    let db = Db::new().await;
    let schema = db.schema.clone();
    let ends = std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let db = crate::options(&schema).connect().await.unwrap();
            let queue = leased(&db, Duration::from_millis(200));
            queue.push(1).await.unwrap();
            let mut tx = db.begin().await.unwrap();
            tx.pop(&queue).await.unwrap().unwrap();
            std::mem::forget(tx);
        });
    });
    ends.join().unwrap();
    let mut tx = db.begin().await.unwrap();
    let item = tx
        .pop_wait(&leased(&db, LONG), LONG)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(item.attempts(), 2);
}

#[tokio::test]
async fn retries_and_failures_of_leased_items() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db.builder("q").leased(60 * LONG).max_attempts(2).build();
    queue.push_batch([1, 2]).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    let mut items = tx.pop_batch(&queue, 2).await.unwrap().into_iter();
    tx.retry_after(items.next().unwrap(), LONG * 60).unwrap();
    tx.fail(items.next().unwrap(), "no").unwrap();
    tx.commit().await.unwrap();
    let stats = queue.stats().await.unwrap();
    assert_eq!(
        (stats.ready, stats.delayed, stats.held, stats.dead),
        (0, 1, 0, 1)
    );
    db.execute("update @.delayed set until = now()").await;
    let mut tx = db.begin().await.unwrap();
    let last = tx.pop_wait(&queue, LONG).await.unwrap().unwrap();
    assert_eq!(last.attempts(), 2);
    tx.abort().await.unwrap();
    assert_eq!(queue.stats().await.unwrap().dead, 2);
}

#[tokio::test]
async fn items_of_several_leased_queues_end_together() {
    let db = Db::new().await;
    let a: PgQueue<u32> = db.builder("a").leased(LONG).build();
    let b: PgQueue<u32> = db.builder("b").leased(LONG * 2).build();
    let locked: PgQueue<u32> = db.queue("locked");
    for queue in [&a, &b, &locked] {
        queue.push_batch([1, 2]).await.unwrap();
    }
    let mut tx = db.begin().await.unwrap();
    for queue in [&a, &b, &locked] {
        assert_eq!(tx.pop_batch(queue, 5).await.unwrap().len(), 2);
    }
    tx.commit().await.unwrap();
    for queue in [&a, &b, &locked] {
        let stats = queue.stats().await.unwrap();
        assert_eq!((stats.ready, stats.held), (0, 0));
    }
}

#[tokio::test]
async fn a_lease_is_not_held_by_another_claim_of_the_same_transaction() {
    let db = Db::new().await;
    let queue = leased(&db, LONG);
    let tickets = queue.push_batch([1, 2]).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    for _ in 0..2 {
        tx.pop(&queue).await.unwrap().unwrap();
    }
    db.execute(&format!(
        "update @.leased set claim = (select claim from @.leased where id = {}) where id = {}",
        tickets[1], tickets[0]
    ))
    .await;
    assert!(matches!(tx.commit().await, Err(Error::Expired)));
    until(|| async { queue.stats().await.unwrap().held == 1 }).await; // the abort releases its own
    assert_eq!(queue.held().await.unwrap()[0].ticket, tickets[0]);
}

/// Each process that leases has had a row.
#[tokio::test]
async fn holders_that_are_gone_are_forgotten_and_leave_no_item_behind() {
    let db = Db::new().await;
    let queue = leased(&db, LONG);
    queue.push(1).await.unwrap();
    db.execute(
        "insert into @.holders (id, name, term, alive_until) values
            (-1, 'gone', '1 minute', now() - interval '2 days'),
            (-2, 'away', '1 minute', now() - interval '2 minutes')",
    )
    .await;
    let mut tx = db.begin().await.unwrap();
    assert!(tx.pop(&queue).await.unwrap().is_some());
    let gone = "select count(*) from @.holders where id = -1";
    until(|| async { db.number(gone).await == 0 }).await;
    assert_eq!(db.number("select count(*) from @.holders").await, 2);

    db.execute("delete from @.holders").await;
    let other = db.other().await;
    let mut second = other.begin().await.unwrap();
    let queue = leased(&other, LONG);
    let item = second.pop_wait(&queue, LONG).await.unwrap().unwrap(); // either process gives it back
    assert_eq!((*item, item.attempts()), (1, 2));
}
