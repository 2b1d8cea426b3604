//! The views for people with `psql`.

use crate::{until, Db, LONG};
use requeue_postgres::PgQueue;

#[tokio::test]
async fn the_views_show_what_is_in_the_queues_and_who_holds_it() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db
        .builder("q")
        .leased(LONG)
        .holder("mine")
        .max_attempts(1)
        .build();
    queue.push_batch([1, 2, 3]).await.unwrap();
    queue.after(LONG).push(4).await.unwrap();
    let mut dies = db.begin().await.unwrap();
    dies.pop(&queue).await.unwrap().unwrap();
    dies.abort().await.unwrap();
    let mut holds = db.begin().await.unwrap();
    holds.pop(&queue).await.unwrap().unwrap();
    let counts = "select count(*) from @.show_queues where queue = 'q' and (ready, delayed, held, dead, max_attempts) = (1, 1, 1, 1, 1)
        and not paused and oldest > '0' and on_expiry = 'removed' and timed_out = 0";
    assert_eq!(db.number(counts).await, 1);
    let jobs = "select sum(n)::bigint from (values ('held', 2, 1, 'mine'), ('ready', 3, 10, null), ('delayed', 4, 100, null)) e(state, item, n, holder)
        join @.show_jobs j on j.state = e.state and j.payload = to_jsonb(e.item) and j.queue = 'q'
            and j.holder is not distinct from e.holder and (j.since is not null) = (e.holder is not null)
            and (j.due is not null) = (e.state = 'delayed')";
    assert_eq!(db.number(jobs).await, 111);
    let dead = "select count(*) from @.show_dead_letters where queue = 'q' and payload = '1' and reason = 'aborted' and error <> ''";
    assert_eq!(db.number(dead).await, 1);
    let holders =
        "select held from @.show_holders where holder = 'mine' and alive and since is not null";
    assert_eq!(db.number(holders).await, 1);
    holds.commit().await.unwrap();
    assert_eq!(
        db.number(&holders.replace("is not null", "is null")).await,
        0
    );
}

/// Each view has a comment, and so has each function that is for everybody.
#[tokio::test]
async fn views_and_functions_have_comments() {
    let db = Db::new().await;
    let views =
        "select count(*) from pg_class where relkind = 'v' and relnamespace = '@'::regnamespace
        and obj_description(oid, 'pg_class') <> ''";
    assert_eq!(db.number(views).await, 4);
    let functions = "select count(*) from pg_proc where pronamespace = '@'::regnamespace and obj_description(oid, 'pg_proc') <> ''
        and proname in ('push', 'push_many', 'push_bytes', 'grant_push', 'grant_work', 'revoke_all')";
    assert_eq!(db.number(functions).await, 6);
}

/// Processes say what they have finished, some time later.
#[tokio::test]
async fn finished_items_are_counted() {
    let db = Db::new().await;
    let (queue, other) = (db.queue::<u32>("q"), db.queue::<u32>("other"));
    queue.push_batch(0..5).await.unwrap();
    other.push(5).await.unwrap();
    let counts = "select coalesce(sum(finished * case queue when 'q' then 10 else 1 end), 0)::bigint from @.show_queues";
    for expected in [21, 42] {
        let mut tx = db.begin().await.unwrap();
        tx.pop_batch(&queue, 2).await.unwrap();
        tx.pop(&other).await.unwrap().unwrap();
        tx.commit().await.unwrap();
        let mut tx = db.begin().await.unwrap();
        tx.pop(&queue).await.unwrap().unwrap();
        tx.abort().await.unwrap();
        until(|| async { db.number(counts).await == expected }).await;
        other.push(6).await.unwrap();
    }
    // A process that is silent for long has no row of its own any more.
    db.execute("update @.activity set told = now() - interval '2 hours'")
        .await;
    let sweeps = db.other().await;
    let leased: PgQueue<u32> = sweeps.builder("q").leased(LONG).build();
    let mut tx = sweeps.begin().await.unwrap();
    tx.pop(&leased).await.unwrap().unwrap();
    let old = "select coalesce(max(process), 0) from @.activity";
    until(|| async { db.number(old).await == 0 }).await;
    assert_eq!(db.number(counts).await, 42);
}
