//! The tables, their versions, and names.

use crate::{client, options, Db};
use requeue_postgres::{Error, PgQueue, Postgres};
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

#[tokio::test]
async fn tables_of_an_earlier_version_are_changed() {
    let db = Db::new().await;
    db.queue::<u32>("q").push(7).await.unwrap();
    db.execute("drop index @.leased_holder; update @.version set version = 1")
        .await;
    let other = db.other().await;
    let found = other.begin().await;
    assert!(matches!(found, Err(Error::Version { found: 1, .. })));
    let (a, b) = tokio::join!(other.install(), db.install());
    a.and(b).unwrap();
    let index =
        "select count(*) from pg_indexes where schemaname = '@' and indexname = 'leased_holder'";
    assert_eq!(db.number(index).await, 1);
    let mut tx = other.begin().await.unwrap();
    assert_eq!(*tx.pop(&other.queue::<u32>("q")).await.unwrap().unwrap(), 7);
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
