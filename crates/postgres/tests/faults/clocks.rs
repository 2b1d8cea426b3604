//! Clocks of the server and of a client that differ: the server's counts.

use crate::base::{until, Db, Mode, TERM};
use std::time::{Duration, SystemTime};

const DAY: Duration = Duration::from_secs(86_400);
const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn delays_and_times_are_those_of_the_server() {
    let db = Db::with_clock().await;
    db.advance(DAY).await; // ahead of this process
    let jobs = db.uncounted();
    jobs.push(0).await.unwrap();
    jobs.after(HOUR).push(1).await.unwrap();
    jobs.at(SystemTime::now() + HOUR).push(2).await.unwrap(); // past, for the server
    jobs.at(SystemTime::now() + DAY + 2 * HOUR)
        .push(3)
        .await
        .unwrap();
    assert_eq!(db.take(2).await, [0, 2]);
    assert!(db.drain().await.is_empty());
    db.advance(HOUR).await;
    assert_eq!(db.take(1).await, [1]);
    assert!(db.drain().await.is_empty());
    db.advance(HOUR).await;
    assert_eq!(db.take(1).await, [3]);
}

#[tokio::test]
async fn the_times_of_an_item_are_those_of_the_server() {
    let db = Db::with_clock().await;
    db.advance(DAY).await;
    let before = SystemTime::now();
    db.uncounted().push(0).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    let item = tx.pop(&db.uncounted()).await.unwrap().unwrap();
    assert!(item.pushed_at() > before + DAY - HOUR);
}

#[tokio::test]
async fn a_lease_lasts_its_term_by_the_clock_of_the_server() {
    let db = Db::with_clock().await;
    db.advance(DAY).await;
    let jobs = Mode::Leased.jobs(&db);
    jobs.push(0).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    let item = tx.pop(&jobs).await.unwrap().unwrap();
    let other = db.other().await;
    let mut second = other.begin().await.unwrap();
    assert!(second.pop(&jobs).await.unwrap().is_none()); // a day is no term
    db.advance(TERM.saturating_sub(Duration::from_secs(600)))
        .await;
    assert!(second.pop(&jobs).await.unwrap().is_none());
    assert_eq!(jobs.held().await.unwrap()[0].ticket, item.ticket());
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn a_clock_that_jumps_forward_expires_leases_and_no_item_is_done_twice() {
    let db = Db::with_clock().await;
    let jobs = Mode::Leased.jobs(&db);
    jobs.push_batch(0..2).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    tx.pop(&jobs).await.unwrap().unwrap();
    db.advance(DAY).await;
    db.promote().await;
    let other = db.other().await;
    let mut second = other.begin().await.unwrap();
    let popped = second.pop(&Mode::Leased.jobs(&other)).await;
    let again = popped.unwrap().unwrap();
    assert_eq!((*again, again.attempts()), (0, 2));
    let error = tx.commit().await.unwrap_err();
    assert!(matches!(error, requeue_postgres::Error::Expired), "{error}");
    second.commit().await.unwrap();
    until(|| async { jobs.stats().await.unwrap().held == 0 }).await;
    assert_eq!(db.drain().await, [1]);
}

#[tokio::test]
async fn a_process_goes_on_after_the_clock_has_jumped() {
    let db = Db::with_clock().await;
    let jobs = Mode::Leased.jobs(&db);
    jobs.push(0).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    tx.pop(&jobs).await.unwrap().unwrap();
    db.advance(DAY).await;
    db.promote().await;
    tx.commit().await.unwrap_err();
    until(|| async {
        let mut tx = db.begin().await.unwrap();
        let popped = tx.pop(&jobs).await.unwrap();
        db.promote().await; // it would be taken back, if its holder were dead
        popped.is_some() && tx.commit().await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn a_lease_that_was_taken_back_is_not_that_of_a_later_claim_of_its_process() {
    let db = Db::with_clock().await;
    let jobs = Mode::Leased.jobs(&db);
    jobs.push(0).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    tx.pop(&jobs).await.unwrap().unwrap();
    let holder = &jobs.held().await.unwrap()[0].holder;
    jobs.recover(holder, Duration::ZERO).await.unwrap();
    let mut second = db.begin().await.unwrap();
    let again = second.pop(&jobs).await.unwrap().unwrap();
    assert_eq!(again.attempts(), 2);
    let error = tx.commit().await.unwrap_err();
    assert!(matches!(error, requeue_postgres::Error::Expired), "{error}");
    second.commit().await.unwrap();
}

#[tokio::test]
async fn a_clock_that_jumps_backward_loses_nothing() {
    let db = Db::with_clock().await;
    let jobs = Mode::Leased.jobs(&db);
    jobs.push_batch(0..2).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    tx.pop(&jobs).await.unwrap().unwrap();
    db.execute("update @_clock.shift set by = '-1 day'").await;
    jobs.after(HOUR).push(2).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(db.take(1).await, [1]);
    assert!(db.drain().await.is_empty());
    db.advance(HOUR).await;
    assert_eq!(db.take(1).await, [2]);
}
