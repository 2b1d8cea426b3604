//! Items at times of a schedule.

use crate::{client, until, Db};
use requeue_postgres::{Firing, Periodic, PgQueue, Postgres, Schedule};

fn hourly() -> Schedule {
    Schedule::new("0 * * * *", "Europe/Berlin").unwrap()
}

/// Has this process push how many firings were missed.
async fn start(db: &Postgres, schedule: Schedule) -> (PgQueue<usize>, Periodic) {
    let queue: PgQueue<usize> = db.queue("q");
    let missed = |firing: Firing| firing.missed;
    let periodic = queue.periodic("p", schedule, missed).await.unwrap();
    (queue, periodic)
}

/// As if no process had run for so many hours.
async fn miss(db: &Db, hours: u32) {
    let back = format!("update @.periodic set next = next - interval '{hours} hours'");
    db.execute(&back).await;
}

async fn ready(queue: &PgQueue<usize>) -> u64 {
    queue.stats().await.unwrap().ready
}

#[tokio::test]
async fn one_of_all_processes_fires_and_says_what_was_missed() {
    let db = Db::new().await;
    drop(start(&db, hourly()).await);
    miss(&db, 3).await;
    let client = client().await;
    let lock = format!("begin; lock table {}.ready in exclusive mode", db.schema);
    client.batch_execute(&lock).await.unwrap();
    let mut processes = Vec::new();
    for _ in 0..4 {
        let other = db.other().await;
        processes.push((start(&other, hourly()).await, other));
    }
    // One of them waits for the table, the others for its commit.
    let waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%\"@\".%'";
    until(|| async { db.number(waiting).await == 4 }).await;
    client.batch_execute("commit").await.unwrap();
    let ((queue, _), _) = &processes[0];
    until(|| async { db.number(waiting).await == 0 }).await;
    for _ in 0..20 {
        until(|| async { ready(queue).await > 0 }).await;
        assert_eq!(ready(queue).await, 1);
    }
    let mut tx = db.begin().await.unwrap();
    assert_eq!(*tx.pop(queue).await.unwrap().unwrap(), 2);
    tx.commit().await.unwrap();
    let again = start(&db, hourly()).await; // it looks at once
    assert!(again.0.forget_periodic("p").await.unwrap());
    assert!(!again.0.forget_periodic("p").await.unwrap());
    assert_eq!(ready(queue).await, 0);
}

#[tokio::test]
async fn the_schedule_that_was_declared_last_counts() {
    let db = Db::new().await;
    drop(start(&db, hourly()).await);
    miss(&db, 3).await;
    let daily = Schedule::new("0 0 * * *", "Europe/Berlin").unwrap();
    let (queue, _daily) = start(&db, daily).await;
    assert_eq!(
        db.number("select count(*) from @.periodic where next > now()")
            .await,
        1
    );
    assert_eq!(ready(&queue).await, 0); // nothing of the other schedule was made up for
}

/// The push and the next time are one commit.
#[tokio::test]
async fn a_firing_that_fails_is_tried_again() {
    let db = Db::new().await;
    drop(start(&db, hourly()).await);
    miss(&db, 1).await;
    db.execute("alter table @.ready rename to hidden").await;
    let queue: PgQueue<usize> = db.queue("q");
    let (send, mut calls) = tokio::sync::mpsc::unbounded_channel();
    let item = move |firing: Firing| {
        send.send(()).unwrap();
        firing.missed
    };
    let _periodic = queue.periodic("p", hourly(), item).await.unwrap();
    calls.recv().await.unwrap();
    db.execute("alter table @.hidden rename to ready").await;
    until(|| async { ready(&queue).await == 1 }).await;
}
