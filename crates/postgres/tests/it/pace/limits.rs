use super::{start, starts};
use crate::{until, Db, LONG};
use requeue::{Limiter, Pace, Queue};
use requeue_postgres::Postgres;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Barrier;
use tokio::time::timeout;

async fn limit(db: &Postgres, places: u32) -> Pace {
    db.concurrency("mail", places).pace().await.unwrap()
}

/// Counts what is in flight.
struct Gauge {
    now: AtomicUsize,
    most: AtomicUsize,
    /// The first three items wait for each other.
    first: AtomicUsize,
    barrier: Barrier,
}

impl Gauge {
    async fn measure(&self, db: &Db) {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        if self.first.fetch_add(1, Ordering::SeqCst) < 3 {
            timeout(LONG, self.barrier.wait())
                .await
                .expect("three at once");
        }
        db.nanos().await; // long enough for others to start
        self.now.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Works on the items of a queue in memory.
async fn work(queue: Queue<u32>, gauge: Arc<Gauge>, db: Arc<Db>) {
    let mut handle = queue.handle();
    loop {
        let tx = handle.begin();
        if timeout(LONG, tx.pop_async()).await.unwrap().is_err() {
            return;
        }
        gauge.measure(&db).await;
        tx.commit();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_in_memory_of_two_processes_share_a_concurrency_limit() {
    let db = Arc::new(Db::new().await);
    let other = db.other().await;
    let gauge = Arc::new(Gauge {
        now: AtomicUsize::new(0),
        most: AtomicUsize::new(0),
        first: AtomicUsize::new(0),
        barrier: Barrier::new(3),
    });
    let mut workers = Vec::new();
    for process in [&db.db, &other] {
        let queue = Queue::builder().pace(limit(process, 3).await).build();
        queue.handle().push_batch(0..50).unwrap();
        queue.close();
        let work = || work(queue.clone(), Arc::clone(&gauge), Arc::clone(&db));
        workers.extend((0..4).map(|_| tokio::spawn(work())));
    }
    for worker in workers {
        worker.await.unwrap();
    }
    assert_eq!(gauge.most.load(Ordering::SeqCst), 3);
    assert_eq!(gauge.first.load(Ordering::SeqCst), 100);
}

#[tokio::test]
async fn the_places_of_a_pace_are_limited_and_come_back_however_they_end() {
    let db = Db::new().await;
    let pace = limit(&db, 3).await;
    let mut slots = vec![start(&pace).await, start(&pace).await, start(&pace).await];
    let other = limit(&db, 3).await;
    let asked = "select count(*) from @.places where wanted > 0";
    until(|| async { starts(&other).is_some() || db.number(asked).await > 0 }).await;
    assert!(starts(&pace).is_none() && starts(&other).is_none());
    let now = Instant::now();
    pace.spend(slots.pop().unwrap());
    slots.push(start(&other).await);
    pace.cancel(slots.remove(0), now);
    pace.give_back(slots.remove(0), now);
    let _ = (start(&other).await, start(&other).await);
    assert!(starts(&other).is_none() && starts(&pace).is_none());
}

#[tokio::test]
async fn the_places_of_a_dropped_pace_are_free() {
    let db = Db::new().await;
    let pace = limit(&db, 1).await;
    let slot = start(&pace).await;
    pace.spend(slot);
    let other = limit(&db, 1).await;
    drop(pace);
    let _ = start(&other).await;
}

#[tokio::test]
async fn processes_take_turns_if_there_are_not_enough_places() {
    let db = Db::new().await;
    let paces = [
        limit(&db, 1).await,
        limit(&db, 1).await,
        limit(&db, 1).await,
    ];
    let mut counts = [0; 3];
    let takes = async {
        while counts.iter().any(|count| *count < 2) {
            for (pace, count) in paces.iter().zip(&mut counts) {
                let mine = starts(pace);
                if let Some(slot) = mine {
                    *count += 1;
                    pace.spend(slot);
                }
                tokio::task::yield_now().await;
            }
        }
    };
    timeout(LONG, takes).await.expect("a process starves");
}

#[tokio::test]
async fn places_beyond_an_equal_share_go_to_who_needs_them() {
    let db = Db::new().await;
    let one = limit(&db, 4).await;
    let mut slots = Vec::new();
    for _ in 0..4 {
        slots.push(start(&one).await);
    }
    let two = limit(&db, 4).await;
    let mut others = Vec::new();
    let shared = async {
        while others.len() < 2 {
            if let Some(slot) = slots.pop() {
                one.spend(slot); // an item ends
            }
            slots.extend(starts(&one)); // and the next one starts
            others.extend(starts(&two));
            assert!(slots.len() + others.len() <= 4);
            tokio::task::yield_now().await;
        }
    };
    timeout(LONG, shared).await.expect("a process starves");
}

#[tokio::test]
async fn a_lower_limit_takes_effect_as_items_end() {
    let db = Db::new().await;
    let pace = limit(&db, 3).await;
    let mut slots = vec![start(&pace).await, start(&pace).await, start(&pace).await];
    db.other().await.concurrency("mail", 1).set().await.unwrap();
    let held = "select coalesce(sum(places), 0)::bigint from @.places";
    let ends = async {
        while db.number(held).await > 1 {
            if let Some(slot) = slots.pop() {
                pace.spend(slot);
            }
            slots.extend(starts(&pace));
        }
    };
    timeout(LONG, ends).await.expect("the places are kept");
    limit(&db, 3).await; // the same declaration as before
    let places = "select places::bigint from @.limits";
    assert_eq!(db.number(places).await, 1);
    limit(&db, 2).await;
    assert_eq!(db.number(places).await, 2);
}
