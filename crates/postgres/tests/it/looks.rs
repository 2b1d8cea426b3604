//! What a look for expired leases reads, and who looks.

use crate::{client, options, until, Db, LONG};
use requeue_postgres::PgQueue;
use std::time::Duration;

/// Leased items of a holder.
async fn lease(db: &Db, holder: i64, items: i64, alive: &str) {
    db.execute(&format!(
        "insert into @.holders values ({holder}, 'holder', '1 minute', '{alive}');
        insert into @.queues (name) values ('held') on conflict do nothing;
        insert into @.leased (id, queue, priority, attempts, json, pushed, holder, claim, since)
        select nextval('@.ids'), q.id, 5000, 1, '0', now(), {holder}, 1, now()
        from @.queues q, generate_series(1, {items}) where q.name = 'held'"
    ))
    .await;
}

/// The rows of the table of leases that were read so far, by sessions that have ended.
async fn read(db: &Db) -> i64 {
    db.number("select seq_tup_read + idx_tup_fetch from pg_stat_all_tables where relid = '@.leased'::regclass")
        .await
}

#[tokio::test]
async fn a_look_reads_the_leases_of_dead_holders_only() {
    let db = Db::new().await;
    let url = crate::server::SERVER.url();
    let application = format!("{}_looks", db.schema);
    let url = format!("{url} application_name={application}");
    let process = requeue_postgres::Postgres::options(&url).schema(&db.schema);
    let process = process.connect().await.unwrap();
    let nothing: PgQueue<i64> = process.queue("nothing");
    let look = || async {
        let mut tx = process.begin().await.unwrap();
        assert!(tx.pop(&nothing).await.unwrap().is_none());
    };
    for _ in 0..10 {
        look().await; // the statement is planned while the table is empty
    }
    lease(&db, -1, 20_000, "infinity").await;
    lease(&db, -2, 3, "-infinity").await;
    db.execute("analyze @.leased").await; // most rows are of one holder
    let before = read(&db).await;
    for _ in 0..20 {
        look().await;
    }
    let held: PgQueue<i64> = process.queue("held");
    assert_eq!(held.stats().await.unwrap().ready, 3);
    drop((held, nothing, process));
    let sessions =
        format!("select count(*) from pg_stat_activity where application_name = '{application}'");
    until(|| async { db.number(&sessions).await == 0 }).await;
    // Those that were taken back, and 20,003 that were counted by `stats`.
    let read = read(&db).await - before;
    assert!((3..=20_003 + 100).contains(&read), "{read} rows were read");
}

#[tokio::test]
async fn one_process_looks_in_the_background_at_a_time() {
    let db = Db::new().await;
    let jobs: PgQueue<i64> = db.builder("jobs").leased(LONG).build();
    jobs.push(1).await.unwrap();
    let looks = client().await;
    let lock = format!("hashtextextended('requeue_{}', 1)", db.schema);
    looks
        .batch_execute(&format!("select pg_advisory_lock({lock})"))
        .await
        .unwrap();
    let mut tx = db.begin().await.unwrap();
    tx.pop(&jobs).await.unwrap().unwrap(); // from now on this process looks in the background
    lease(&db, -2, 3, "-infinity").await;
    let later: PgQueue<i64> = options(&db.schema).connect().await.unwrap().queue("later");
    let ready = "select count(*) from @.ready";
    for round in 1..=2 {
        later.after(Duration::from_millis(1)).push(1).await.unwrap();
        until(|| async { db.number(ready).await == round }).await; // it has looked for what is due
    }
    assert_eq!(
        db.number("select count(*) from @.leased where holder = -2")
            .await,
        3
    );
    looks
        .batch_execute(&format!("select pg_advisory_unlock({lock})"))
        .await
        .unwrap();
    until(|| async {
        db.number("select count(*) from @.leased where holder = -2")
            .await
            == 0
    })
    .await;
    tx.abort().await.unwrap();
}

#[tokio::test]
async fn leases_of_a_holder_that_was_forgotten_are_swept() {
    let db = Db::new().await;
    lease(&db, -3, 2, "-infinity").await;
    lease(&db, -2, 2, "infinity").await;
    db.execute("delete from @.holders where id = -3").await;
    let jobs: PgQueue<i64> = db.builder("jobs").leased(LONG).build();
    jobs.push(1).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    tx.pop(&jobs).await.unwrap().unwrap(); // starts the task in the background, which sweeps first
    until(|| async {
        db.number("select count(*) from @.leased where holder = -3")
            .await
            == 0
    })
    .await;
    assert_eq!(
        db.number("select count(*) from @.leased where holder = -2")
            .await,
        2
    );
    tx.abort().await.unwrap();
}
