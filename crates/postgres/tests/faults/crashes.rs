//! A process that is killed, or that ends between a claim and its commit.

use crate::base::{Db, Mode, MODES, ON_DEMAND, TERM};
use crate::child::{name, print, Child};
use requeue_postgres::{PgItem, PgQueue, Postgres};
use std::time::Duration;

const WAIT: Duration = Duration::from_secs(60);

/// A role: holds the next item until it is killed.
pub(crate) async fn hold(db: &Postgres, mode: Mode) {
    let jobs = mode.jobs(db);
    let mut tx = db.begin().await.unwrap();
    let item = tx.pop_wait(&jobs, WAIT).await.unwrap().unwrap();
    print(&format!("holds {item}"));
    std::future::pending::<()>().await;
}

/// A role: does the work of the next item, and ends without a commit.
pub(crate) async fn crash(db: &Postgres, mode: Mode, max_attempts: &str) {
    let jobs = mode.limited(db, max_attempts.parse().expect("a number"));
    let receipts: PgQueue<i64> = db.queue("receipts");
    let mut tx = db.begin().await.unwrap();
    let item = tx.pop_wait(&jobs, WAIT).await.unwrap().unwrap();
    let insert = "insert into paid values ($1)";
    tx.client().execute(insert, &[&*item]).await.unwrap();
    tx.push(&receipts, *item).await.unwrap();
    std::process::abort();
}

/// After a process that worked on the first of three items has ended: all are there in their order, and those that it held are
/// counted twice.
async fn all_is_back(db: &Db, mode: Mode, role: &str) {
    db.until_gone(&name(db, role)).await;
    let held = match mode {
        Mode::Locked | Mode::Leased => 1,
        Mode::Prefetched => 3,
    };
    if mode != Mode::Locked {
        assert_eq!(db.number("select count(*) from @.leased").await, held); // as long as its leases
        db.advance(TERM).await;
        db.promote().await;
    }
    let jobs = mode.jobs(db);
    let mut tx = db.begin().await.unwrap();
    let items = tx.pop_batch(&jobs, 10).await.unwrap();
    let found: Vec<_> = items.iter().map(|item| (**item, item.attempts())).collect();
    let expected = (0..3).map(|number| (number, if number < held { 2 } else { 1 }));
    assert_eq!(found, expected.collect::<Vec<_>>(), "{mode:?}");
    tx.commit().await.unwrap();
    assert!(db.drain().await.is_empty());
}

#[tokio::test]
async fn a_killed_process_gives_its_item_back() {
    for mode in MODES {
        let db = Db::with_clock().await;
        mode.jobs(&db).push_batch(0..3).await.unwrap();
        let mut holder = Child::start(&db, mode, "hold", "");
        holder.prints("holds 0");
        let mut tx = db.begin().await.unwrap();
        let next = tx
            .pop(&db.uncounted())
            .await
            .unwrap()
            .map(PgItem::into_inner);
        let free = (mode != Mode::Prefetched).then_some(1); // the first one is held, or all
        assert_eq!(next, free);
        tx.abort().await.unwrap();
        drop(holder);
        all_is_back(&db, mode, "hold").await;
    }
}

#[tokio::test]
async fn a_waiter_gets_the_item_of_a_killed_process() {
    for mode in MODES {
        let db = Db::with_clock().await;
        mode.jobs(&db).push(0).await.unwrap();
        let mut holder = Child::start(&db, mode, "hold", "");
        holder.prints("holds 0");
        let other = db.other().await;
        let jobs = Mode::Locked.jobs(&other);
        let waits = tokio::spawn(async move {
            let mut tx = other.begin().await.unwrap();
            let item = tx.pop_wait(&jobs, WAIT).await.unwrap();
            tx.commit().await.unwrap();
            item.map(|item| (*item, item.attempts()))
        });
        drop(holder);
        db.until_gone(&name(&db, "hold")).await;
        db.advance(TERM).await;
        assert_eq!(waits.await.unwrap(), Some((0, 2)), "{mode:?}");
    }
}

#[tokio::test]
async fn a_crash_between_claim_and_commit_undoes_the_work() {
    for mode in MODES {
        let db = Db::with_clock().await;
        db.execute("create table paid (id bigint)").await;
        mode.jobs(&db).push_batch(0..3).await.unwrap();
        Child::start(&db, mode, "crash", "100").ends();
        all_is_back(&db, mode, "crash").await;
        assert_eq!(db.number("select count(*) from paid").await, 0);
        let receipts: PgQueue<i64> = db.queue("receipts");
        assert_eq!(receipts.stats().await.unwrap().ready, 0);
    }
}

#[tokio::test]
async fn a_job_that_ends_its_process_becomes_a_dead_letter() {
    for mode in ON_DEMAND {
        let db = Db::with_clock().await;
        db.execute("create table paid (id bigint)").await;
        let jobs = mode.limited(&db, 2);
        jobs.push_batch(0..2).await.unwrap();
        for _ in 0..2 {
            Child::start(&db, mode, "crash", "2").ends();
            db.until_gone(&name(&db, "crash")).await;
            db.advance(TERM).await;
            db.promote().await;
        }
        let mut tx = db.begin().await.unwrap();
        assert_eq!(*tx.pop(&jobs).await.unwrap().unwrap(), 1, "{mode:?}");
        tx.commit().await.unwrap();
        let dead = jobs.dead_letters().list(10).await.unwrap();
        let found: Vec<_> = dead
            .iter()
            .map(|letter| letter.item.clone().unwrap())
            .collect();
        assert_eq!(found, [0], "{mode:?}");
    }
}
