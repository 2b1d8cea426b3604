//! Commits that are under way while a worker goes on, completions that are written later, and what workers claim ahead.

use crate::{client, until, Db, LONG};
use requeue::backend::{Backend, Tx};
use requeue_postgres::{Error, PgQueue, Postgres, Tasks, WorkersBuilder};
use std::future::pending;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;
use tokio::sync::watch;
use tokio_postgres::Client;

fn late(db: &Postgres, count: usize) -> PgQueue<u32> {
    let builder = db.builder("q").leased(LONG).repeats_after_crash(count);
    builder.build()
}

async fn held(queue: &PgQueue<u32>) -> u64 {
    queue.stats().await.unwrap().held
}

/// A pool of one task, whose runs wait until they may go on. Counts those that have begun.
struct Pool {
    tasks: Tasks,
    begun: Arc<AtomicU32>,
    go: watch::Sender<bool>,
}

impl Pool {
    fn new(queue: &PgQueue<u32>) -> Self {
        Self::with(queue.workers())
    }

    fn with(builder: WorkersBuilder<u32>) -> Self {
        let (begun, go) = (Arc::new(AtomicU32::new(0)), watch::Sender::new(false));
        let (count, wait) = (Arc::clone(&begun), go.subscribe());
        let tasks = builder.tasks(1).run_async(move |_, _| {
            count.fetch_add(1, Ordering::Relaxed);
            let mut wait = wait.clone();
            async move { wait.wait_for(|go| *go).await.map(drop) }
        });
        Self { tasks, begun, go }
    }

    fn begun(&self) -> u32 {
        self.begun.load(Ordering::Relaxed)
    }

    async fn has_begun(&self, count: u32) {
        until(|| async { self.begun() >= count }).await;
    }
}

/// Another transaction locks all leased items: no end of one is written.
async fn lock(db: &Db) -> Client {
    let client = client().await;
    let lock = format!("begin; select from {}.leased for update", db.schema);
    client.batch_execute(&lock).await.unwrap();
    client
}

#[tokio::test]
async fn workers_go_on_before_completions_are_written_but_not_without_end() {
    let db = Db::new().await;
    let builder = db.builder("q").leased(LONG).prefetch(10);
    let queue: PgQueue<u32> = builder.repeats_after_crash(4).build();
    queue.push_batch(0..10).await.unwrap();
    let pool = Pool::new(&queue);
    pool.has_begun(1).await;
    let locked = lock(&db).await;
    pool.go.send_replace(true);
    pool.has_begun(5).await; // four have ended
    assert_eq!(held(&queue).await, 10);
    assert_eq!(pool.begun(), 5);
    locked.batch_execute("commit").await.unwrap();
    pool.has_begun(10).await;
    assert_eq!(pool.tasks.stop().await.done, 10);
    assert_eq!(
        (held(&queue).await, queue.stats().await.unwrap().ready),
        (0, 0)
    );
}

#[tokio::test]
async fn a_process_holds_no_more_than_it_does_soon() {
    let db = Db::new().await;
    let queue = late(&db, 1000);
    queue.push_batch(0..100).await.unwrap();
    let pool = Pool::new(&queue);
    pool.has_begun(1).await;
    assert_eq!(held(&queue).await, 1); // nothing has ended yet
    pool.go.send_replace(true);
    pool.has_begun(100).await;
    assert_eq!(pool.tasks.stop().await.done, 100);
}

#[tokio::test]
async fn the_end_of_a_pool_writes_what_has_ended_and_gives_the_rest_back() {
    for dropped in [false, true] {
        let db = Db::new().await;
        let builder = db.builder("q").leased(LONG).prefetch(50);
        let queue: PgQueue<u32> = builder.repeats_after_crash(50).max_attempts(1).build();
        queue.push_batch(0..1000).await.unwrap();
        let pool = Pool::new(&queue);
        pool.go.send_replace(true);
        pool.has_begun(100).await;
        let Pool { tasks, begun, .. } = pool;
        if dropped {
            drop(tasks);
        } else {
            let done = tasks.stop().await.done;
            assert_eq!(u64::from(begun.load(Ordering::Relaxed)), done);
        }
        let begun = u64::from(begun.load(Ordering::Relaxed));
        let all_back = async || {
            let stats = queue.stats().await.unwrap();
            (stats.held, stats.ready + begun) == (0, 1000) // also of a claim that was under way
        };
        until(all_back).await;
        // The run that was dropped.
        assert!(queue.stats().await.unwrap().dead <= u64::from(dropped));
    }
}

#[tokio::test]
async fn a_pool_that_stops_waits_until_its_completions_are_written() {
    let db = Db::new().await;
    let queue = late(&db, 10);
    queue.push(1).await.unwrap();
    let pool = Pool::new(&queue);
    pool.has_begun(1).await;
    let locked = lock(&db).await;
    pool.go.send_replace(true);
    until(async || pool.tasks.status()[0].done == 1).await;
    let stop = tokio::spawn(pool.tasks.stop());
    for _ in 0..20 {
        assert_eq!(held(&queue).await, 1);
        assert!(!stop.is_finished());
    }
    locked.batch_execute("commit").await.unwrap();
    assert_eq!(stop.await.unwrap().done, 1);
    assert_eq!(held(&queue).await, 0);
}

#[tokio::test]
async fn completions_are_written_after_the_last_clone_of_the_queue_is_gone() {
    let db = Db::new().await;
    let queue = late(&db, 10);
    queue.push_batch(0..3).await.unwrap();
    let pool = Pool::new(&queue);
    drop(queue);
    pool.has_begun(1).await;
    let locked = lock(&db).await;
    pool.go.send_replace(true);
    pool.has_begun(3).await; // two have ended, and one of them waits behind the statement of the other one
    drop(pool);
    locked.batch_execute("commit").await.unwrap();
    let other: PgQueue<u32> = db.queue("q");
    until(|| async { held(&other).await == 0 }).await;
    assert!(other.stats().await.unwrap().ready <= 1);
}

#[tokio::test]
async fn an_expired_lease_concerns_no_other_completion() {
    let db = Db::new().await;
    let queue = late(&db, 10);
    queue.push_batch(0..9).await.unwrap();
    let steal = format!(
        "update {}.leased set claim = claim # (1 << 20) where json = '4'",
        db.schema
    );
    let tasks = queue.workers().tasks(1).run_async(move |item, _| {
        let steal = (*item == 4).then(|| steal.clone());
        async move {
            if let Some(steal) = steal {
                client().await.batch_execute(&steal).await?; // as if another process had it
            }
            Ok::<_, tokio_postgres::Error>(())
        }
    });
    until(|| async { tasks.status()[0].done == 9 }).await;
    tasks.stop().await;
    assert_eq!(db.number("select count(*) from @.leased").await, 1);
    assert_eq!(db.number("select json::bigint from @.leased").await, 4);
}

/// What a run pushes is there as soon as it counts as done: its worker has waited for the commit.
#[tokio::test]
async fn runs_that_push_or_use_statements_are_one_commit_with_their_completion() {
    let db = Db::new().await;
    db.execute("create table @.seen (item int)").await;
    let (queue, out) = (late(&db, 10), db.queue::<u32>("out"));
    queue.push_batch(0..4).await.unwrap();
    let (to, insert) = (
        out.clone(),
        format!("insert into {}.seen values (1)", db.schema),
    );
    let tasks = queue.workers().tasks(2).run_async(move |item, tx| {
        let (to, insert) = (to.clone(), insert.clone());
        async move {
            match *item % 2 {
                0 => tx.push_to(&to, *item).await,
                _ => tx.lock().await?.client().batch_execute(&insert).await,
            }
        }
    });
    until(|| async { tasks.status().iter().map(|task| task.done).sum::<u64>() == 4 }).await;
    assert_eq!(db.number("select count(*) from @.leased").await, 0);
    assert_eq!(db.number("select count(*) from @.seen").await, 2);
    assert_eq!(out.stats().await.unwrap().ready, 2);
    tasks.stop().await;
}

#[tokio::test]
async fn transactions_that_are_begun_by_hand_are_written_by_their_commit() {
    let db = Db::new().await;
    let queue = late(&db, 10);
    queue.push(1).await.unwrap();
    let mut tx = Backend::begin(&queue, None);
    tx.pop().await.unwrap().unwrap();
    db.execute("delete from @.leased").await;
    let ended = Tx::commit(&mut tx).await;
    assert!(matches!(ended, Err(Error::Expired)));
}

#[tokio::test]
async fn repetitions_without_a_lease_or_of_nothing_are_panics() {
    let db = Db::new().await;
    let leased = || db.builder::<u32>("q").leased(LONG);
    let panics = |build: &dyn Fn()| catch_unwind(AssertUnwindSafe(build)).is_err();
    assert!(panics(&|| drop(
        db.builder::<u32>("q").repeats_after_crash(1)
    )));
    assert!(panics(&|| drop(leased().repeats_after_crash(0))));
    assert!(!panics(&|| drop(leased().repeats_after_crash(1))));
}

/// Each is a commit of its own, which has ended when the run counts as done.
#[tokio::test]
async fn workers_go_on_while_commits_are_under_way_but_not_without_end() {
    for in_flight in [0, 3] {
        let db = Db::new().await;
        let queue: PgQueue<u32> = db.builder("q").leased(LONG).prefetch(10).build();
        queue.push_batch(0..10).await.unwrap();
        let pool = Pool::with(queue.workers().commits_in_flight(in_flight));
        pool.has_begun(1).await;
        let locked = lock(&db).await;
        pool.go.send_replace(true);
        let begun = 1 + u32::try_from(in_flight).unwrap();
        pool.has_begun(begun).await;
        assert_eq!(held(&queue).await, 10);
        assert_eq!((pool.begun(), pool.tasks.status()[0].done), (begun, 0));
        locked.batch_execute("commit").await.unwrap();
        pool.has_begun(10).await;
        assert_eq!(pool.tasks.stop().await.done, 10);
        assert_eq!(held(&queue).await, 0);
    }
}

#[tokio::test]
async fn by_default_leased_workers_go_on_and_claim_ahead_and_locked_ones_wait() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db.jobs("q").build();
    queue.push_batch(0..20_000).await.unwrap();
    let pool = Pool::new(&queue);
    pool.has_begun(1).await;
    assert_eq!(held(&queue).await, 1); // nothing has ended yet
    pool.go.send_replace(true);
    let done = || pool.tasks.status()[0].done;
    // More than commits are under way.
    until(async || held(&queue).await > 300 || done() == 20_000).await;
    let done = pool.tasks.stop().await.done;
    assert!(done < 20_000);
    let all_back = async || {
        let stats = queue.stats().await.unwrap();
        (stats.held, stats.ready) == (0, 20_000 - done) // also of a pop that was under way
    };
    until(all_back).await;
    let locked: PgQueue<u32> = db.queue("locked");
    assert_eq!(
        [queue, locked].map(|queue| queue.commits_wait()),
        [true, false]
    );
}

/// A crash would end items that were claimed ahead, if they are delivered once only; and only workers do soon what they have claimed.
#[tokio::test]
async fn nothing_is_claimed_ahead_for_single_deliveries_and_by_hand() {
    let db = Db::new().await;
    for attempts in [1, 2] {
        let name = format!("q{attempts}");
        let queue: PgQueue<u32> = db.jobs(&name).max_attempts(attempts).build();
        queue.push_batch(0..1000).await.unwrap();
        let mut most = 0;
        for _ in 0..300 {
            // Workers begin transactions with a name.
            let worker = (attempts == 1).then(|| "worker".into());
            let mut tx = Backend::begin(&queue, worker);
            tx.pop().await.unwrap().unwrap();
            most = most.max(held(&queue).await);
            Tx::commit(&mut tx).await.unwrap();
        }
        assert_eq!(most, 1);
    }
}

/// It has failed, and the worker was told, though it was busy with another one.
#[tokio::test]
async fn a_commit_under_way_whose_lease_has_expired_is_a_failed_run() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db.builder("q").leased(LONG).prefetch(10).build();
    queue.push_batch(0..9).await.unwrap();
    let pool = Pool::new(&queue);
    pool.has_begun(1).await;
    let steal = format!(
        "update {}.leased set claim = claim # (1 << 20) where json = '4'",
        db.schema
    );
    client().await.batch_execute(&steal).await.unwrap();
    pool.go.send_replace(true);
    until(async || pool.tasks.status()[0].failed == 1 && pool.tasks.status()[0].done == 8).await;
    pool.tasks.stop().await;
    assert_eq!(db.number("select json::bigint from @.leased").await, 4);
}

/// When the first run is cancelled, its process has been told of the other item too.
#[tokio::test]
async fn an_item_that_is_cancelled_after_it_was_claimed_ahead_is_not_run() {
    for elsewhere in [false, true] {
        let db = Db::new().await;
        let queue: PgQueue<u32> = db.jobs("q").prefetch(10).build();
        let tickets = queue.push_batch(0..6).await.unwrap();
        let pool = Pool::new(&queue);
        pool.has_begun(1).await;
        let listens = "select count(*) from pg_stat_activity where query = 'listen \"requeue_@\"'";
        until(async || db.number(listens).await == 1).await;
        assert_eq!(held(&queue).await, 6);
        let other = db.other().await;
        let by = if elsewhere { &other } else { &*db };
        let by: PgQueue<u32> = by.jobs("q").build();
        for cancelled in [3, 0] {
            assert!(by.cancel_running(tickets[cancelled]).await.unwrap());
        }
        until(async || pool.tasks.status()[0].failed == 1).await;
        pool.go.send_replace(true);
        until(async || pool.tasks.status()[0].done == 4).await;
        assert_eq!((pool.begun(), pool.tasks.stop().await.failed), (5, 1));
        assert_eq!(queue.dead_letters().len().await.unwrap(), 2);
    }
}

/// Each waits for an item, and there is one claim at a time.
#[tokio::test]
async fn workers_that_begin_together_have_their_items_claimed_together() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db.jobs("q").build();
    queue.push_batch(0..200).await.unwrap();
    let tasks = queue.workers().tasks(100);
    let tasks = tasks.run_async(|_, _| pending::<Result<(), ()>>());
    until(async || held(&queue).await == 100).await;
    assert!(
        db.number("select count(distinct claim) from @.leased")
            .await
            < 10
    );
    drop(tasks);
}

/// Another process can do them.
#[tokio::test]
async fn what_was_claimed_ahead_does_not_wait_behind_a_slow_job() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db.jobs("q").build();
    queue.push_batch(0..20_000).await.unwrap();
    let pool = Pool::new(&queue);
    pool.go.send_replace(true);
    until(async || held(&queue).await > 300).await;
    pool.go.send_replace(false);
    until(async || held(&queue).await == 1).await;
    until(async || u64::from(pool.begun()) == pool.tasks.status()[0].done + 1).await;
    pool.go.send_replace(true);
    pool.has_begun(pool.begun() + 300).await;
    drop(pool);
}
