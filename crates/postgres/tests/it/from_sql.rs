//! The functions by which other languages and triggers push.

use crate::{client, until, Db, LONG};
use requeue_postgres::{Error, OnDuplicate, PgQueue, PushTo};
use std::time::{Duration, UNIX_EPOCH};
use tokio::time::timeout;

/// What is in the tables of a queue, without its numbers and the time of the push.
async fn rows(db: &Db, queue: &str) -> Vec<String> {
    let of = format!("i.queue = (select id from @.queues where name = '{queue}')");
    let sql = format!(
        "select (to_jsonb(i) - array['id', 'queue', 'pushed', 'expires']
                || jsonb_build_object('lives', date_trunc('minute', i.expires - i.pushed)))::text from @.ready i where {of}
        union all select (to_jsonb(i) - array['id', 'queue', 'pushed', 'expires', 'until']
                || jsonb_build_object('lives', date_trunc('minute', i.expires - i.pushed), 'waits',
                    i.until - case when i.until > '2090-01-01' then 'epoch' else i.pushed end))::text from @.delayed i where {of}
        union all select 'unique ' || i.key from @.uniques i where {of}
        union all select 'serial ' || i.key from @.keys i where {of}
        order by 1"
    );
    let sql = sql.replace('@', &db.schema);
    let rows = client().await.query(&sql, &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// What a test pushes by the crate.
type Pushes<'q> = PushTo<'q, String>;

async fn assert_same_rows(
    keyed: bool,
    by_the_crate: impl FnOnce(&PgQueue<String>) -> Pushes<'_>,
    options: &str,
) {
    let db = Db::new().await;
    let queue = |name: &str| {
        let builder = db.builder(name);
        if keyed {
            let builder = builder.fair_by(|item: &String| item.clone()).serial();
            builder.unique_by(|item: &String| item.clone()).build()
        } else {
            builder.build()
        }
    };
    let rust: PgQueue<String> = queue("rust");
    by_the_crate(&rust).push("a".into()).await.unwrap();
    db.execute(&format!("select @.push('sql', '\"a\"' {options})"))
        .await;
    let (one, other) = (rows(&db, "rust").await, rows(&db, "sql").await);
    assert!(!one.is_empty());
    assert_eq!(one, other, "{options}");
    let other = queue("sql");
    if one[0].contains("waits") {
        assert_eq!(other.stats().await.unwrap().delayed, 1);
        return;
    }
    let mut tx = db.begin().await.unwrap();
    assert_eq!(*tx.pop(&other).await.unwrap().unwrap(), "a", "{options}");
}

#[tokio::test]
async fn a_push_by_sql_writes_the_same_rows_as_one_by_the_crate() {
    let second = Duration::from_secs(1);
    let far = UNIX_EPOCH + Duration::from_secs(4_000_000_000) + Duration::from_micros(1);
    assert_same_rows(false, |queue| queue.priority(5000), "").await;
    assert_same_rows(false, |queue| queue.priority(7), ", 7").await;
    assert_same_rows(false, |queue| queue.after(second), ", delay => '1 s'").await;
    assert_same_rows(
        false,
        |queue| queue.at(far),
        ", due => to_timestamp(4000000000) + interval '1 us'",
    )
    .await;
    assert_same_rows(false, |queue| queue.at(UNIX_EPOCH), ", due => '-infinity'").await;
    assert_same_rows(
        false,
        |queue| queue.expires_in(60 * LONG),
        ", ttl => '1 hour'",
    )
    .await;
    assert_same_rows(
        false,
        |queue| queue.after(second).expires_in(LONG),
        ", delay => '1 s', ttl => '1 min'",
    )
    .await;
    assert_same_rows(
        true,
        |queue| queue.priority(1),
        ", 1, key => 'a', unique_key => 'a'",
    )
    .await;
}

#[tokio::test]
async fn bytes_and_many_items_are_pushed_by_sql() {
    let db = Db::new().await;
    let many =
        "select @.push_many('q', array(select to_jsonb(n) from generate_series(1, 100) n), 9)";
    assert_eq!(
        db.number(&format!("select cardinality(({many}))::bigint"))
            .await,
        100
    );
    assert_eq!(
        db.number("select cardinality(@.push_many('q', '{}'))::bigint")
            .await,
        0
    );
    let queue: PgQueue<u32> = db.queue("q");
    let mut tx = db.begin().await.unwrap();
    let items = tx.pop_batch(&queue, 1000).await.unwrap();
    let items: Vec<u32> = items
        .into_iter()
        .map(requeue_postgres::PgItem::into_inner)
        .collect();
    assert_eq!(items, (1..=100).collect::<Vec<_>>());
    db.execute("select @.push_bytes('bytes', '\\x0102')").await;
    let bytes = "select count(*) from @.ready where json is null and bytes = '\\x0102'";
    assert_eq!(db.number(bytes).await, 1);
}

/// A trigger pushes in the transaction of whoever changes the table.
#[tokio::test]
async fn a_trigger_pushes_in_the_transaction_of_its_statement_and_wakes_waiters_with_its_commit() {
    let db = Db::new().await;
    db.execute(
        "create table @.orders (id int);
        create function @.ordered() returns trigger language plpgsql as $$ begin
            perform @.push('mails', jsonb_build_object('order', new.id)); return null; end $$;
        create trigger ordered after insert on @.orders for each row execute function @.ordered()",
    )
    .await;
    let queue: PgQueue<serde_json::Value> = db.queue("mails");
    let waits = {
        let (db, queue) = (db.db.clone(), queue.clone());
        tokio::spawn(async move {
            let mut tx = db.begin().await?;
            let item = tx
                .pop_wait(&queue, LONG)
                .await?
                .map(requeue_postgres::PgItem::into_inner);
            tx.commit().await?;
            Ok::<_, Error>(item)
        })
    };
    until(|| async { db.number("select count(*) from @.listeners").await == 1 }).await;
    let client = client().await;
    let run = |sql: &str| {
        let sql = sql.replace('@', &db.schema);
        let client = &client;
        async move { client.batch_execute(&sql).await.unwrap() }
    };
    run("begin; insert into @.orders values (1); rollback").await;
    assert_eq!(db.number("select count(*) from @.ready").await, 0);
    run("begin; insert into @.orders values (2)").await;
    assert_eq!(db.number("select count(*) from @.ready").await, 0);
    assert!(!waits.is_finished());
    run("commit").await;
    let item = waits.await.unwrap().unwrap().unwrap();
    assert_eq!(item, serde_json::json!({ "order": 2 }));
}

/// The notification is part of the transaction, as one within a transaction of the crate.
#[tokio::test]
async fn a_push_by_sql_notifies_the_processes_that_listen() {
    let db = Db::new().await;
    db.execute("select @.push('q', '1')").await; // nobody listens
    db.execute("insert into @.listeners select id, -1, 'infinity' from @.queues")
        .await;
    let (_session, mut notified) = crate::listener(&format!("requeue_{}", db.schema)).await;
    db.execute("begin; select @.push('q', '2'); rollback").await;
    db.execute("select @.push_many('q', '{3,4}')").await;
    let queue = db.number("select id::bigint from @.queues").await;
    assert_eq!(
        timeout(LONG, notified.recv()).await.unwrap().unwrap(),
        format!("{queue} 2 0")
    );
}

#[tokio::test]
async fn what_cannot_be_pushed_is_refused_with_a_code() {
    let db = Db::new().await;
    let long = "x".repeat(1001);
    let client = client().await;
    for arguments in [
        "'', '1'",
        "null, '1'",
        &format!("'{long}', '1'"),
        "'q', null",
        "'q', '1', -1",
        "'q', '1', 65536",
        "'q', '1', null",
        "'q', '1', key => ''",
        &format!("'q', '1', unique_key => '{long}'"),
        "'q', '1', ttl => '-1 s'",
        "'q', '1', on_duplicate => 'ignore'",
        "'q', '1', on_duplicate => null",
        "'q', '1', delay => '1 s', due => now()",
    ] {
        let sql = format!("select {}.push({arguments})", db.schema);
        let error = client.query_one(&sql, &[]).await.unwrap_err();
        assert_eq!(error.code().unwrap().code(), "22023", "{arguments}");
    }
    for arguments in [
        "'q', array[null]::jsonb[]",
        "'q', '{1,2}', keys => '{a}'",
        "'q', '{}', unique_keys => '{a}'",
    ] {
        let sql = format!("select {}.push_many({arguments})", db.schema);
        let error = client.query_one(&sql, &[]).await.unwrap_err();
        assert_eq!(error.code().unwrap().code(), "22023", "{arguments}");
    }
    let queues = "select (select count(*) from @.queues) + (select count(*) from @.ready)";
    assert_eq!(db.number(queues).await, 0);
}

/// The code and the detail of the error of a push.
async fn refused(db: &Db, push: &str) -> Option<(String, String)> {
    let sql = push.replace('@', &db.schema);
    let error = client().await.query_one(&sql, &[]).await.err()?;
    let server = error.as_db_error().unwrap();
    let detail = server.detail().unwrap_or_default();
    Some((server.code().code().into(), detail.into()))
}

#[tokio::test]
async fn unique_keys_hold_for_pushes_by_sql_and_by_the_crate_alike() {
    let db = Db::new().await;
    let builder = db
        .builder("q")
        .unique_by(|item: &(String, u32)| item.0.clone());
    let queue: PgQueue<(String, u32)> = builder.on_duplicate(OnDuplicate::Follow).build();
    queue.push(("a".into(), 1)).await.unwrap();
    let taken = Some(("RQ003".into(), "a".into()));
    assert_eq!(
        refused(&db, "select @.push('q', '[\"a\", 2]', unique_key => 'a')").await,
        taken
    );
    let twice = "select @.push_many('q', array['[\"a\", 1]\', \'[\"a\", 2]']::jsonb[], unique_keys => '{a,a}', on_duplicate => 'replace')";
    assert_eq!(refused(&db, twice).await, taken);
    let first = db.number("select id from @.ready").await;
    let replace = "select @.push('q', '[\"a\", 3]', unique_key => 'a', on_duplicate => 'replace')";
    assert_eq!(db.number(replace).await, first);
    let mut tx = db.begin().await.unwrap();
    let item = tx.pop(&queue).await.unwrap().unwrap();
    assert_eq!(item.1, 3);
    assert_eq!(refused(&db, replace).await, taken, "it is held");
    db.execute("select @.push('q', '[\"a\", 4]', unique_key => 'a', on_duplicate => 'follow')")
        .await;
    queue.push(("a".into(), 5)).await.unwrap(); // replaces the one that follows
    tx.commit().await.unwrap();
    let mut tx = db.begin().await.unwrap();
    assert_eq!(tx.pop_wait(&queue, LONG).await.unwrap().unwrap().1, 5);
}

/// Whether a queue is serial is known when a process with keys has used it; until then its keys are written all the same.
#[tokio::test]
async fn items_of_a_serial_queue_that_nobody_has_used_are_delivered() {
    let db = Db::new().await;
    let push = |queue: &str| format!("select @.push('{queue}', '\"a\"', key => 'a')");
    db.execute(&push("serial")).await;
    let serial: PgQueue<String> = db.builder("serial").fair_by(String::clone).serial().build();
    let fair: PgQueue<String> = db.builder("fair").fair_by(String::clone).build();
    let mut tx = db.begin().await.unwrap();
    tx.pop(&serial).await.unwrap().expect("it has a key");
    assert!(tx.pop(&fair).await.unwrap().is_none());
    db.execute(&push("fair")).await;
    tx.pop(&fair).await.unwrap().unwrap();
    assert_eq!(db.number("select count(*) from @.keys").await, 1);
}
