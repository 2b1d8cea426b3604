//! Queues in the database with a pace.

use super::start;
use crate::{until, Db, LONG};
use requeue::{Limiter, Pace, RateSlot};
use requeue_postgres::{Error, PgQueue, PgTransaction};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

const SECOND: Duration = Duration::from_secs(1);

/// How the slots of a limiter were returned.
#[derive(Default)]
struct Ends {
    taken: AtomicUsize,
    cancelled: AtomicUsize,
    given_back: AtomicUsize,
    spent: AtomicUsize,
}

impl Ends {
    /// Taken, cancelled, given back, spent.
    fn counts(&self) -> [usize; 4] {
        [&self.taken, &self.cancelled, &self.given_back, &self.spent]
            .map(|count| count.load(Ordering::SeqCst))
    }
}

/// Grants a number of slots; its ends panic.
struct Counting(Arc<Ends>, usize);

fn count(count: &AtomicUsize) {
    count.fetch_add(1, Ordering::SeqCst);
    panic!("user code");
}

impl Limiter for Counting {
    fn start(&self, now: Instant) -> Result<RateSlot, Instant> {
        if self.0.taken.load(Ordering::SeqCst) == self.1 {
            return Err(now + SECOND);
        }
        self.0.taken.fetch_add(1, Ordering::SeqCst);
        Ok(RateSlot::new(now, 0))
    }

    fn cancel(&self, _: RateSlot, _: Instant) {
        count(&self.0.cancelled);
    }

    fn give_back(&self, _: RateSlot, _: Instant) {
        count(&self.0.given_back);
    }

    fn spend(&self, _: RateSlot) {
        count(&self.0.spent);
    }
}

/// A queue with `items` items, and a limiter that grants `slots` slots.
async fn counted(db: &Db, items: u32, slots: usize) -> (PgQueue<u32>, Arc<Ends>) {
    let ends = Arc::new(Ends::default());
    let pace = Pace::shared(Counting(Arc::clone(&ends), slots));
    let queue = db.builder("q").pace(pace).build();
    queue
        .push_batch((0..items).collect::<Vec<_>>())
        .await
        .unwrap();
    (queue, ends)
}

async fn begin(db: &Db) -> PgTransaction<'static> {
    db.begin().await.unwrap()
}

#[tokio::test]
async fn each_item_has_a_slot_until_its_transaction_ends() {
    let db = Db::new().await;
    let (queue, ends) = counted(&db, 9, 100).await;
    let mut tx = begin(&db).await;
    assert_eq!(tx.pop_batch(&queue, 3).await.unwrap().len(), 3);
    assert_eq!(ends.counts(), [3, 0, 0, 0]);
    tx.abort().await.unwrap();
    assert_eq!(ends.counts(), [3, 0, 3, 0]);
    let mut tx = begin(&db).await;
    let mut items = tx.pop_batch(&queue, 3).await.unwrap();
    tx.retry(items.pop().unwrap()).unwrap();
    tx.fail(items.pop().unwrap(), "broken").unwrap();
    assert_eq!(ends.counts(), [6, 0, 3, 0]);
    tx.commit().await.unwrap();
    assert_eq!(ends.counts(), [6, 0, 4, 2]);
    let mut tx = begin(&db).await;
    assert!(tx.pop(&queue).await.unwrap().is_some());
    drop(tx);
    assert_eq!(ends.counts(), [7, 0, 5, 2]);
}

#[tokio::test]
async fn a_pop_that_is_refused_finds_nothing() {
    let db = Db::new().await;
    let (queue, ends) = counted(&db, 9, 2).await;
    let mut tx = begin(&db).await;
    assert_eq!(tx.pop_batch(&queue, 5).await.unwrap().len(), 2);
    assert!(tx.pop(&queue).await.unwrap().is_none());
    assert_eq!(ends.counts(), [2, 0, 0, 0]);
}

#[tokio::test]
async fn slots_without_an_item_are_cancelled_and_none_is_taken_from_an_empty_queue() {
    let db = Db::new().await;
    let (queue, ends) = counted(&db, 2, 100).await;
    let mut tx = begin(&db).await;
    assert_eq!(tx.pop_batch(&queue, 5).await.unwrap().len(), 2);
    assert_eq!(ends.counts(), [5, 3, 0, 0]);
    tx.commit().await.unwrap();
    assert!(begin(&db).await.pop(&queue).await.unwrap().is_none());
    queue.pause().await.unwrap();
    queue.push(1).await.unwrap();
    assert!(begin(&db).await.pop(&queue).await.unwrap().is_none());
    assert_eq!(ends.counts(), [5, 3, 0, 2]);
}

#[tokio::test]
async fn due_items_of_a_queue_with_a_pace_are_found() {
    let db = Db::new().await;
    let (queue, _) = counted(&db, 0, 100).await;
    queue.after(SECOND).push(7).await.unwrap();
    db.execute("update @.delayed set until = now()").await;
    let popped = begin(&db).await.pop(&queue).await.unwrap();
    assert_eq!(*popped.unwrap(), 7);
}

#[tokio::test]
async fn a_waiting_pop_waits_for_the_pace() {
    let db = Db::new().await;
    let pace = db.concurrency("c", 1).pace().await.unwrap();
    let queue: PgQueue<u32> = db.builder("q").pace(pace.clone()).build();
    queue.push_batch(vec![1, 2]).await.unwrap();
    let mut tx = begin(&db).await;
    assert_eq!(*tx.pop_wait(&queue, LONG).await.unwrap().unwrap(), 1);
    let other = db.begin().await.unwrap();
    let waits = tokio::spawn({
        let (queue, mut other) = (queue.clone(), other);
        async move { *other.pop_wait(&queue, LONG).await.unwrap().unwrap() }
    });
    until(|| async { db.number("select max(wanted)::bigint from @.places").await > 0 }).await;
    assert!(!waits.is_finished());
    tx.commit().await.unwrap();
    assert_eq!(waits.await.unwrap(), 2);
    let _ = start(&pace).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_of_two_processes_share_a_concurrency_limit() {
    let db = Arc::new(Db::new().await);
    let other = db.other().await;
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (done, mut items) = mpsc::unbounded_channel();
    let mut pools = Vec::new();
    for process in [&db.db, &other] {
        let pace = process.concurrency("c", 2).pace().await.unwrap();
        let queue: PgQueue<u32> = process.builder("q").pace(pace).build();
        queue.push_batch((0..15).collect::<Vec<_>>()).await.unwrap();
        let (now, most, done) = (Arc::clone(&now), Arc::clone(&most), done.clone());
        let db = Arc::clone(&db);
        pools.push(queue.workers().tasks(3).run_async(move |item, _| {
            let (now, most, done) = (Arc::clone(&now), Arc::clone(&most), done.clone());
            let db = Arc::clone(&db);
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                db.nanos().await; // long enough for others to start
                now.fetch_sub(1, Ordering::SeqCst);
                done.send(*item).unwrap();
                Ok::<_, Error>(())
            }
        }));
    }
    for _ in 0..30 {
        tokio::time::timeout(LONG, items.recv())
            .await
            .unwrap()
            .unwrap();
    }
    for pool in pools {
        pool.stop().await;
    }
    assert!(most.load(Ordering::SeqCst) <= 2);
}
