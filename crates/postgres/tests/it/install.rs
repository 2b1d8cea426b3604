//! The tables, their versions, and names.

use crate::{client, options, Db};
use requeue_postgres::{Error, PgQueue, Postgres, ReturnTo};
use std::time::Duration;
use tokio::task::JoinSet;

#[tokio::test]
async fn tables_can_be_installed_by_several_processes_at_once_and_again() {
    let db = options("installed").connect().await.unwrap();
    let (a, b, c) = tokio::join!(db.install(), db.install(), db.install());
    a.and(b).and(c).unwrap();
    let client = client().await;
    client.batch_execute(&db.install_sql()).await.unwrap();
    let rows = client
        .query("select version from installed.version", &[])
        .await
        .unwrap();
    assert_eq!(rows.len(), 1);
}

#[tokio::test]
async fn the_statements_of_the_installation_can_be_run_by_several_at_once() {
    let db = options("migrated").connect().await.unwrap();
    let sql = db.install_sql();
    let mut runs = JoinSet::new();
    for _ in 0..6 {
        let (sql, client) = (sql.clone(), client().await);
        runs.spawn(async move { client.batch_execute(&sql).await });
    }
    for ended in runs.join_all().await {
        ended.unwrap();
    }
    db.queue::<u32>("q").push(1).await.unwrap();
}

/// What tables of these versions had instead, besides what those of the next version had.
const EARLIER: [(i32, &str); 5] = [
    (5, NOT_IN_5),
    (4, NOT_IN_4),
    (3, NO_COLUMNS),
    (2, SMALL_PRIORITIES),
    (1, "drop index @.leased_holder"),
];
const NOT_IN_5: &str = "drop view @.show_queues; drop table @.activity;
    create view @.show_queues as select null::text as queue, false as paused, 0::bigint as ready, 0::bigint as delayed, 0::bigint as held,
        0::bigint as dead, null::interval as oldest, 0::bigint as listening, 0 as max_attempts, '' as on_expiry, 0::bigint as timed_out";
const NOT_IN_4: &str = "drop table @.periodic; drop table @.finished;
    drop view @.show_queues, @.show_jobs, @.show_dead_letters, @.show_holders;
    drop function @.push_items, @.push_payloads, @.push, @.push_bytes, @.push_many, @.write_items, @.grant_push, @.grant_work;
    alter table @.queues drop column serial; alter table @.ready drop column late";
const NO_COLUMNS: &str =
    "alter table @.ready drop column expires, drop column ticket, drop column error;
    alter table @.delayed drop column expires, drop column follows, drop column error;
    alter table @.leased drop column expires, drop column ticket, drop column error;
    alter table @.queues drop column dead_on_expiry, drop column timed_out;
    drop table @.uniques; drop function @.require_unique; drop function @.lock_uniques";
const SMALL_PRIORITIES: &str = "alter table @.ready alter priority type smallint;
    alter table @.delayed alter priority type smallint;
    alter table @.leased alter priority type smallint;
    alter table @.dead alter priority type smallint";

#[tokio::test]
async fn tables_of_an_earlier_version_are_changed() {
    for (nth, (version, _)) in EARLIER.iter().enumerate() {
        let db = Db::new().await;
        let queue = db.queue::<u32>("q");
        queue.priority(9999).push(7).await.unwrap();
        queue.priority(1).push(6).await.unwrap();
        for (_, earlier) in &EARLIER[..=nth] {
            db.execute(earlier).await;
        }
        let set = format!("update @.version set version = {version}");
        db.execute(&set).await;
        let other = db.other().await;
        let refused = other.begin().await;
        assert!(matches!(refused, Err(Error::Version { found, .. }) if found == *version));
        let (a, b) = tokio::join!(other.install(), db.install());
        a.and(b).unwrap();
        let indexes = "select count(*) from pg_indexes where schemaname = '@'
            and indexname in ('leased_holder', 'leased_ticket', 'ready_expires', 'ready_ticket', 'delayed_follows',
                'ready_late')";
        assert_eq!(db.number(indexes).await, 6);
        let columns = "select count(*) from information_schema.columns where table_schema = '@'
            and (table_name, column_name) in (('ready', 'expires'), ('delayed', 'expires'), ('leased', 'expires'),
                ('delayed', 'follows'), ('ready', 'ticket'), ('leased', 'ticket'), ('queues', 'dead_on_expiry'),
                ('ready', 'error'), ('delayed', 'error'), ('leased', 'error'), ('queues', 'serial'), ('ready', 'late'))";
        assert_eq!(db.number(columns).await, 12);
        db.execute("select @.push('sql', '1')").await;
        assert_eq!(
            db.number("select ready from @.show_queues where queue = 'sql'")
                .await,
            1
        );
        assert_eq!(queue.stats().await.unwrap().timed_out, 0);
        let unique: PgQueue<u32> = other.builder("unique").unique_by(u32::to_string).build();
        unique.push(1).await.unwrap();
        assert!(matches!(unique.push(1).await, Err(Error::Duplicate(_))));
        assert_priorities_are_any(&db, &other).await;
        let kept: PgQueue<u32> = other.builder("kept").keep_finished(Duration::ZERO).build();
        kept.push(1).await.unwrap();
        let mut tx = other.begin().await.unwrap();
        assert!(tx.pop(&kept).await.unwrap().is_some());
        tx.commit().await.unwrap();
    }
}

/// What versions 3 and 4 ran when it pushed, leased, finished, and moved items that are due.
const EARLIER_STATEMENTS: [&str; 5] = [
    "insert into @.ready (id, queue, priority, key, json, bytes)
        select nextval('@.ids'), id, 5000, null, '1', null from @.queues",
    "with taken as (delete from @.ready where ctid = any(array(select ctid from @.ready
            where queue = (select id from @.queues) order by priority, id limit 1 for update skip locked)) returning *),
        held as (insert into @.leased (id, queue, priority, key, attempts, json, bytes, pushed, holder, claim, since)
            select id, queue, priority, key, attempts + 1, json, bytes, pushed, 1, 1, now() from taken returning *)
        select id from held",
    "with back as (delete from @.leased returning *)
        insert into @.delayed (id, queue, priority, key, attempts, json, bytes, pushed, until)
        select id, queue, priority, key, attempts, json, bytes, pushed, now() from back",
    "with due as (delete from @.delayed returning *)
        insert into @.ready (id, queue, priority, key, attempts, json, bytes, pushed)
        select id, queue, priority, key, attempts, json, bytes, pushed from due",
    "insert into @.queues (name, max_attempts) values ('another', 1)
        on conflict (name) do update set max_attempts = coalesce(excluded.max_attempts, queues.max_attempts)",
];

#[tokio::test]
async fn programs_that_use_the_version_before_go_on() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db.builder("q").ttl(crate::LONG).build();
    queue.push(0).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    let item = tx.pop(&queue).await.unwrap().unwrap();
    tx.retry_to(item, ReturnTo::Tail).unwrap();
    tx.commit().await.unwrap();
    for statement in EARLIER_STATEMENTS {
        db.execute(statement).await;
    }
    let mut tx = db.begin().await.unwrap();
    let items = tx.pop_batch(&queue, 9).await.unwrap();
    let items: Vec<_> = items.iter().map(|item| (**item, item.attempts())).collect();
    assert_eq!(items, [(0, 3), (1, 1)]);
}

/// In all tables: ready, delayed, held and dead items have these priorities.
async fn assert_priorities_are_any(db: &Db, other: &Postgres) {
    let columns = "select count(*) from information_schema.columns where table_schema = '@'
        and column_name = 'priority' and data_type = 'integer'
        and table_name in ('ready', 'delayed', 'leased', 'dead')";
    assert_eq!(db.number(columns).await, 4);
    let queue: PgQueue<u32> = other.queue("q");
    for (item, priority) in [(8, u16::MAX), (5, 0)] {
        queue.priority(priority).push(item).await.unwrap();
    }
    let mut tx = other.begin().await.unwrap();
    for expected in 5..9 {
        assert_eq!(*tx.pop(&queue).await.unwrap().unwrap(), expected);
    }
}

/// A script that created the tables has ended before it wrote the version.
#[tokio::test]
async fn an_installation_that_ended_half_way_is_completed() {
    for (schema, table) in [("half_begun", false), ("half_done", true)] {
        let db = options(schema).connect().await.unwrap();
        if table {
            db.install().await.unwrap();
        }
        let begun = "create schema if not exists @; create table if not exists @.version (version int not null);
            delete from @.version";
        let begun = begun.replace('@', schema);
        client().await.batch_execute(&begun).await.unwrap();
        db.install().await.unwrap();
        db.queue::<u32>("q").push(1).await.unwrap();
    }
}

#[tokio::test]
async fn an_installation_has_no_limit() {
    let url = crate::server::SERVER.url();
    let options = Postgres::options(&url).schema("slow");
    let limit = Duration::from_millis(200);
    let db = options.statement_timeout(limit).connect().await.unwrap();
    let (blocks, lock) = (
        client().await,
        "begin; select pg_advisory_xact_lock(hashtextextended('requeue_slow', 0))",
    );
    blocks.batch_execute(lock).await.unwrap();
    let waits = async {
        tokio::time::sleep(2 * limit).await;
        blocks.batch_execute("commit").await.unwrap();
    };
    let (installed, ()) = tokio::join!(db.install(), waits);
    installed.unwrap();
}

#[tokio::test]
async fn a_schema_without_tables_is_an_error() {
    let db = options("missing").connect().await.unwrap();
    assert!(matches!(db.begin().await, Err(Error::NotInstalled(schema)) if &*schema == "missing"));
}

#[tokio::test]
async fn tables_of_another_version_are_an_error() {
    let db = Db::new().await;
    db.execute("update @.version set version = 7").await;
    let found = |ended: Result<(), Error>| matches!(ended, Err(Error::Version { found: 7, .. }));
    assert!(found(db.install().await));
    assert!(found(db.begin().await.map(drop)));
}

#[tokio::test]
async fn names_are_quoted() {
    let bystander = Db::new().await;
    bystander.queue::<u32>("q").push(1).await.unwrap();
    let evil = format!("x\"; drop schema {} cascade; --'\\", bystander.schema);
    let db = options(&evil).connect().await.unwrap();
    db.install().await.unwrap();
    db.install().await.unwrap();
    let queue: PgQueue<u32> = db.queue(&evil);
    queue.push(7).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    let item = tx.pop_wait(&queue, crate::LONG).await.unwrap().unwrap();
    assert_eq!(*item, 7);
    tx.commit().await.unwrap();
    assert_eq!(bystander.queue::<u32>("q").stats().await.unwrap().ready, 1);
}

#[tokio::test]
async fn names_that_cannot_be_are_refused() {
    for name in ["", "pg_mine", "a\0b", &"x".repeat(51)] {
        let connected = options(name).connect().await;
        assert!(matches!(connected, Err(Error::Name(_))), "{name:?}");
    }
    let db = Db::new().await;
    for name in ["", "a\0b", &"x".repeat(1001)] {
        let pushed = db.queue::<u32>(name).push(1).await;
        assert!(matches!(pushed, Err(Error::Name(_))), "{name:?}");
    }
}
