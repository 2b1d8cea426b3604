//! Items that are leased ahead.

use crate::{client, until, Db, LONG};
use requeue::backend::{Backend, Tx};
use requeue::Pace;
use requeue_postgres::{Error, PgItem, PgQueue, PgTransaction, Postgres};
use std::future::Future;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::pin;
use std::sync::mpsc::channel;
use std::task::{Context, Waker};
use std::time::Duration;

fn prefetched(db: &Postgres, count: usize) -> PgQueue<u32> {
    db.builder("q").leased(LONG).prefetch(count).build()
}

/// The next item and its attempts; it is committed.
async fn next(db: &Postgres, queue: &PgQueue<u32>) -> Option<(u32, u32)> {
    let mut tx = db.begin().await.unwrap();
    let item = tx.pop(queue).await.unwrap()?;
    tx.commit().await.unwrap();
    Some((*item, item.attempts()))
}

async fn held(queue: &PgQueue<u32>) -> u64 {
    queue.stats().await.unwrap().held
}

#[tokio::test]
async fn a_pop_leases_items_ahead_and_the_next_pops_take_them_from_memory() {
    let db = Db::new().await;
    let queue = prefetched(&db, 4);
    queue.push_batch(1..=4).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    assert_eq!(*tx.pop(&queue).await.unwrap().unwrap(), 1);
    assert_eq!((tx.held(), held(&queue).await), (1, 4));
    db.execute("alter table @.ready rename to hidden").await;
    for number in 2..=3 {
        let item = tx.pop(&queue).await.unwrap().unwrap();
        assert_eq!((*item, item.attempts()), (number, 1));
    }
    db.execute("alter table @.hidden rename to ready").await;
    tx.commit().await.unwrap();
    assert_eq!(held(&queue).await, 1);
    assert_eq!(next(&db, &queue).await, Some((4, 1)));
    assert_eq!(next(&db, &queue).await, None);
}

#[tokio::test]
async fn a_batch_takes_more_than_is_prefetched() {
    let db = Db::new().await;
    let queue = prefetched(&db, 2);
    queue.push_batch(0..100).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    tx.pop(&queue).await.unwrap().unwrap();
    let batch = tx.pop_batch(&queue, 50).await.unwrap();
    let batch: Vec<_> = batch.into_iter().map(PgItem::into_inner).collect();
    assert_eq!(batch, (1..51).collect::<Vec<_>>());
    assert_eq!(tx.pop_batch(&queue, 100).await.unwrap().len(), 49);
}

#[tokio::test]
async fn a_process_claims_again_before_its_items_are_used_up() {
    let db = Db::new().await;
    let queue = prefetched(&db, 4);
    queue.push_batch(0..8).await.unwrap();
    assert_eq!(next(&db, &queue).await, Some((0, 1)));
    assert_eq!(next(&db, &queue).await, Some((1, 1)));
    until(|| async { held(&queue).await == 4 }).await;
}

#[tokio::test]
async fn items_that_are_given_back_undelivered_do_not_count_and_are_no_dead_letters() {
    for dropped in [false, true] {
        let db = Db::new().await;
        let queue = || {
            let builder = db.builder("q").leased(LONG).prefetch(10);
            builder.max_attempts(1).build()
        };
        queue().push_batch(0..4).await.unwrap();
        let own = queue();
        assert_eq!(next(&db, &own).await, Some((0, 1)));
        assert_eq!(held(&own).await, 3);
        if !dropped {
            own.release_prefetched().await.unwrap();
        }
        drop(own);
        let other: PgQueue<u32> = db.queue("q");
        until(|| async { held(&other).await == 0 }).await;
        for number in 1..4 {
            assert_eq!(next(&db, &other).await, Some((number, 1)), "{dropped}");
        }
    }
}

#[tokio::test]
async fn workers_that_stop_give_back_what_they_have_not_begun() {
    let db = Db::new().await;
    let queue = prefetched(&db, 100);
    queue.push_batch(0..50).await.unwrap();
    let (begun, begins) = channel();
    let (end, ends) = tokio::sync::watch::channel(false);
    let workers = queue.workers().tasks(1).run_async(move |item, _| {
        begun.send(*item).unwrap();
        let mut ends = ends.clone();
        async move { ends.wait_for(|end| *end).await.map(drop) }
    });
    let first = tokio::task::spawn_blocking(move || begins.recv().unwrap());
    assert_eq!(first.await.unwrap(), 0);
    assert_eq!(held(&queue).await, 50);
    let stopped = tokio::spawn(workers.stop());
    end.send_replace(true);
    let done = stopped.await.unwrap().done;
    assert!(done < 50);
    let stats = queue.stats().await.unwrap();
    assert_eq!((stats.held, stats.ready), (0, 50 - done));
}

#[tokio::test]
async fn a_pop_that_is_dropped_loses_nothing() {
    let db = Db::new().await;
    let queue = prefetched(&db, 10);
    queue.push_batch(0..20).await.unwrap();
    assert_eq!(next(&db, &queue).await, Some((0, 1)));
    for _ in 0..20 {
        let mut tx = db.begin().await.unwrap();
        // It has taken from memory, and waits for a claim.
        let popped = pin!(tx.pop_batch(&queue, 15)).poll(&mut Context::from_waker(Waker::noop()));
        assert!(popped.is_pending());
        tokio::task::yield_now().await;
    }
    let mut found = Vec::new();
    while found.len() < 19 {
        let mut tx = db.begin().await.unwrap();
        let item = tx.pop_wait(&queue, LONG).await.unwrap().expect("an item");
        found.push((*item, item.attempts()));
        tx.commit().await.unwrap();
    }
    found.sort_unstable();
    assert_eq!(found, (1..20).map(|number| (number, 1)).collect::<Vec<_>>());
    assert_eq!(next(&db, &queue).await, None);
}

/// As if the process had stopped for longer than its term.
#[tokio::test]
async fn items_whose_lease_expired_are_not_delivered_after_the_first_sign_of_it() {
    let db = Db::new().await;
    let queue = prefetched(&db, 10);
    queue.push_batch(0..5).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    tx.pop(&queue).await.unwrap().unwrap();
    db.execute("update @.holders set alive_until = '-infinity'")
        .await;
    let other = db.other().await;
    let others = prefetched(&other, 10);
    let mut theirs = other.begin().await.unwrap();
    let first = theirs.pop_wait(&others, LONG).await.unwrap().unwrap();
    assert_eq!(*first, 0);
    until(|| async { held(&others).await == 5 }).await;
    assert!(matches!(tx.commit().await, Err(Error::Expired)));
    assert_eq!(next(&db, &queue).await, None);
    theirs.commit().await.unwrap();
    for number in 1..5 {
        assert_eq!(next(&other, &others).await, Some((number, 2)));
    }
}

/// The holder of a queue is that of others too, whose claims renew it.
#[tokio::test]
async fn items_whose_lease_expired_are_not_delivered_after_a_renewal() {
    let db = Db::new().await;
    let (queue, another) = (
        prefetched(&db, 10),
        db.builder::<u32>("a").leased(LONG).build(),
    );
    queue.push_batch(0..5).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    tx.pop(&queue).await.unwrap().unwrap();
    db.execute("delete from @.leased").await;
    assert!(matches!(tx.commit().await, Err(Error::Expired)));
    assert_eq!(next(&db, &another).await, None);
    assert_eq!(next(&db, &queue).await, None);
}

#[tokio::test]
async fn items_claimed_ahead_during_a_release_are_given_back() {
    let db = Db::new().await;
    let queue = prefetched(&db, 4);
    queue.push_batch(0..8).await.unwrap();
    assert_eq!(next(&db, &queue).await, Some((0, 1)));
    let client = client().await;
    let lock = format!("begin; lock table {}.leased", db.schema);
    client.batch_execute(&lock).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    tx.pop(&queue).await.unwrap().unwrap(); // a task claims more, and waits for the lock
    let waiting =
        "select count(*) from pg_locks where not granted and relation = '@.leased'::regclass";
    until(|| async { db.number(waiting).await == 1 }).await;
    let releases = tokio::spawn({
        let queue = queue.clone();
        async move { queue.release_prefetched().await }
    });
    until(|| async { db.number(waiting).await == 2 }).await;
    client.batch_execute("commit").await.unwrap();
    releases.await.unwrap().unwrap();
    tx.commit().await.unwrap();
    until(|| async { held(&queue).await == 0 }).await;
    assert_eq!(queue.stats().await.unwrap().ready, 6);
}

#[tokio::test]
async fn an_item_that_is_given_back_returns_to_the_database_and_counts() {
    let db = Db::new().await;
    let queue = prefetched(&db, 3);
    queue.push_batch(0..3).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    tx.pop(&queue).await.unwrap().unwrap();
    tx.abort().await.unwrap();
    assert_eq!(queue.stats().await.unwrap().ready, 1);
    let mut found = Vec::new();
    while let Some(item) = next(&db, &queue).await {
        found.push(item);
    }
    found.sort_unstable();
    assert_eq!(found, [(0, 2), (1, 1), (2, 1)]);
}

async fn take(tx: &mut PgTransaction<'_>, queue: &PgQueue<String>) -> Option<String> {
    tx.pop(queue).await.unwrap().map(PgItem::into_inner)
}

#[tokio::test]
async fn a_serial_queue_prefetches_one_item_of_each_key() {
    let db = Db::new().await;
    let builder = db.builder("q").fair_by(|item: &String| item[..1].into());
    let queue = builder.serial().leased(LONG).prefetch(10).build();
    for item in ["a1", "a2", "b1"] {
        queue.push(item.into()).await.unwrap();
    }
    let mut tx = db.begin().await.unwrap();
    let found = [take(&mut tx, &queue).await, take(&mut tx, &queue).await];
    assert_eq!(found.map(Option::unwrap), ["a1", "b1"]);
    assert_eq!(take(&mut tx, &queue).await, None);
    tx.commit().await.unwrap();
    let mut tx = db.begin().await.unwrap();
    assert_eq!(take(&mut tx, &queue).await.unwrap(), "a2");
}

#[tokio::test]
async fn a_pace_limits_deliveries_and_not_claims() {
    let db = Db::new().await;
    let pace = Pace::every(LONG * 60);
    let queue: PgQueue<u32> = db.builder("q").leased(LONG).prefetch(10).pace(pace).build();
    queue.push_batch(0..5).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    assert_eq!(tx.pop_batch(&queue, 5).await.unwrap().len(), 1);
    assert_eq!(held(&queue).await, 5);
    assert!(tx.pop(&queue).await.unwrap().is_none());
}

#[tokio::test]
async fn a_prefetch_without_a_lease_is_a_panic_and_one_of_nothing_claims_nothing_ahead() {
    let db = Db::new().await;
    let leased = || db.builder::<u32>("q").leased(Duration::from_secs(1));
    let panics = |build: &dyn Fn()| catch_unwind(AssertUnwindSafe(build)).is_err();
    assert!(panics(&|| drop(db.builder::<u32>("q").prefetch(1))));
    assert!(!panics(&|| drop(leased().prefetch(1))));
    let queue = leased().prefetch(1).prefetch(0).build();
    queue.push_batch(0..300).await.unwrap();
    let mut worker = Backend::begin(&queue, Some("worker".into()));
    for _ in 0..300 {
        worker.pop().await.unwrap().unwrap();
        assert_eq!(held(&queue).await, 1);
        Tx::commit(&mut worker).await.unwrap();
    }
}
