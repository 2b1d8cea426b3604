//! Jobs: defaults, runs that are postponed or cancelled.

use crate::{build, until, Db, LONG};
use requeue_postgres::{PgQueue, Postgres};
use std::future::pending;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Leased, or locked with counted attempts.
fn queue(db: &Postgres, leased: bool) -> PgQueue<u32> {
    build(db.builder("q").max_attempts(3), leased)
}

#[tokio::test]
async fn jobs_have_defaults() {
    let db = Db::new().await;
    let jobs: PgQueue<u32> = db.jobs("q").build();
    jobs.push(1).await.unwrap();
    let tasks = jobs
        .workers()
        .tasks(1)
        .run_async(|_, _| async { Err::<(), _>("no") });
    until(|| async { jobs.stats().await.unwrap().delayed == 1 }).await;
    assert_eq!(tasks.stop().await.failed, 1);
    let delay = "select (extract(epoch from until - pushed) * 10)::bigint from @.delayed";
    assert!(db.number(delay).await >= 5); // from half a second, with jitter
    assert_eq!(
        db.number("select max_attempts::bigint from @.queues").await,
        20
    );
}

#[tokio::test]
async fn a_run_has_the_time_that_its_queue_sets() {
    let db = Db::new().await;
    let limit = Duration::from_millis(1);
    let jobs: PgQueue<u32> = db.jobs("q").run_timeout(limit).max_attempts(1).build();
    jobs.push(1).await.unwrap();
    let tasks = jobs
        .workers()
        .tasks(1)
        .run_async(|_, _| pending::<Result<(), ()>>());
    until(|| async { jobs.stats().await.unwrap().dead == 1 }).await;
    drop(tasks);
    let letter = jobs.dead_letters().list(1).await.unwrap().pop().unwrap();
    assert_eq!(
        letter.error.as_deref(),
        Some("the run took longer than 1ms")
    );
}

#[tokio::test]
async fn a_snoozed_delivery_does_not_count() {
    for leased in [false, true] {
        let db = Db::new().await;
        let queue = queue(&db, leased);
        queue.push(7).await.unwrap();
        for delay in [
            Duration::from_millis(1),
            Duration::ZERO,
            Duration::from_millis(1),
        ] {
            let mut tx = db.begin().await.unwrap();
            let item = tx.pop_wait(&queue, LONG).await.unwrap().unwrap();
            assert_eq!(item.attempts(), 1, "{leased}");
            tx.snooze(item, delay).unwrap();
            tx.commit().await.unwrap();
        }
        let mut tx = db.begin().await.unwrap();
        let item = tx.pop_wait(&queue, LONG).await.unwrap().unwrap();
        tx.retry(item).unwrap();
        tx.commit().await.unwrap();
        let mut tx = db.begin().await.unwrap();
        let item = tx.pop_wait(&queue, LONG).await.unwrap().unwrap();
        assert_eq!(item.attempts(), 2, "{leased}");
        tx.commit().await.unwrap();
    }
}

#[tokio::test]
async fn a_run_that_snoozes_commits_the_rest() {
    for leased in [false, true] {
        let db = Db::new().await;
        let (queue, out) = (queue(&db, leased), db.queue::<u32>("out"));
        queue.push(7).await.unwrap();
        let to = out.clone();
        let tasks = queue.workers().tasks(1).run_async(move |item, tx| {
            let to = to.clone();
            async move {
                tx.push_to(&to, *item).await?;
                tx.snooze(LONG).await
            }
        });
        until(|| async { queue.stats().await.unwrap().delayed == 1 }).await;
        let report = tasks.stop().await;
        assert_eq!((report.done, report.given_up), (0, 1));
        assert_eq!(out.stats().await.unwrap().ready, 1);
        assert_eq!(db.number("select attempts::bigint from @.delayed").await, 0);
    }
}

/// Tells when it is dropped.
struct Dropped(mpsc::UnboundedSender<&'static str>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.send("dropped");
    }
}

#[tokio::test]
async fn a_run_is_cancelled_from_another_process() {
    for leased in [false, true] {
        let db = Db::new().await;
        let (jobs, out) = (queue(&db, leased), db.queue::<u32>("out"));
        let tickets = jobs.push_batch([0, 1]).await.unwrap();
        let (send, mut told) = mpsc::unbounded_channel();
        let to = out.clone();
        let tasks = jobs.workers().tasks(2).run_async(move |item, tx| {
            let (to, dropped) = (to.clone(), Dropped(send.clone()));
            async move {
                tx.push_to(&to, *item).await.unwrap();
                dropped.0.send("begun").unwrap();
                pending::<Result<(), ()>>().await
            }
        });
        assert_eq!([told.recv().await, told.recv().await], [Some("begun"); 2]);
        let listens = "select count(*) from pg_stat_activity where query = 'listen \"requeue_@\"'";
        until(|| async { db.number(listens).await == 1 }).await;
        let other = db.other().await;
        let theirs = queue(&other, leased);
        assert!(theirs.cancel_running(tickets[1]).await.unwrap());
        let dropped = timeout(LONG, told.recv()).await;
        assert_eq!(dropped.expect("it is not told"), Some("dropped"));
        until(|| async { theirs.stats().await.unwrap().dead == 1 }).await;
        until(|| async { tasks.status().iter().any(|task| task.failed == 1) }).await;
        assert!(told.try_recv().is_err(), "the other run goes on");
        let letter = theirs.dead_letters().list(1).await.unwrap().pop().unwrap();
        assert_eq!((letter.item.unwrap(), &*letter.reason), (1, "cancelled"));
        assert_eq!(letter.error.as_deref(), Some("the run was cancelled"));
        assert_eq!(out.stats().await.map_or(0, |stats| stats.ready), 0);
        assert!(!theirs.cancel_running(tickets[1]).await.unwrap());
        drop(tasks);
        // A lease has ended when the item is ready, a lock some time later: locked items count as ready.
        until(|| async { theirs.stats().await.unwrap().ready == 1 }).await;
        let ended = async || !theirs.cancel_running(tickets[0]).await.unwrap();
        until(ended).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thread_sees_that_its_run_is_cancelled() {
    let db = Db::new().await;
    let jobs = queue(&db, true);
    let ticket = jobs.push(1).await.unwrap();
    let (send, mut begun) = mpsc::unbounded_channel();
    let runtime = tokio::runtime::Handle::current();
    let workers = jobs.workers().threads(1).run(move |_, tx| {
        send.send(()).unwrap();
        while !runtime.block_on(tx.is_cancelled()).unwrap() {
            std::thread::yield_now();
        }
        Ok::<(), ()>(())
    });
    begun.recv().await;
    assert!(jobs.cancel_running(ticket).await.unwrap());
    let report = tokio::task::spawn_blocking(|| workers.stop())
        .await
        .unwrap();
    assert_eq!((report.done, report.failed), (0, 1)); // its commit was refused
    assert_eq!(jobs.stats().await.unwrap().dead, 1);
}
