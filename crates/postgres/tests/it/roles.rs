//! Roles that may only push, and only work.

use crate::{build, client, options, Db, LONG};
use requeue_postgres::{AfterTtl, OnDuplicate, PgQueue, Postgres};
use std::time::Duration;
use tokio_postgres::error::SqlState;
use tokio_postgres::Client;

/// A role, which is removed with the server.
async fn role(db: &Db, kind: &str) -> String {
    let role = format!("{}_{kind}s", db.schema);
    db.execute(&format!(
        "create role \"{role}\" login; select @.grant_{kind}('{role}')"
    ))
    .await;
    role
}

async fn login(role: &str) -> Client {
    let client = client().await;
    let set = format!("set session authorization \"{role}\"");
    client.batch_execute(&set).await.unwrap();
    client
}

/// Asserts that the role has no right to each of these.
async fn assert_denied(db: &Db, role: &str, statements: &[&str]) {
    let client = login(role).await;
    for statement in statements {
        let sql = statement.replace('@', &db.schema);
        let error = client.batch_execute(&sql).await.expect_err(statement);
        assert_eq!(
            error.code(),
            Some(&SqlState::INSUFFICIENT_PRIVILEGE),
            "{statement}: {error:?}"
        );
    }
}

#[tokio::test]
async fn a_role_that_may_push_does_nothing_else() {
    let db = Db::new().await;
    let nobody = format!("{}_nobody", db.schema);
    db.execute(&format!(
        "create role \"{nobody}\" login; grant usage on schema @ to \"{nobody}\""
    ))
    .await;
    assert_denied(
        &db,
        &nobody,
        &[
            "select @.push('q', '1')",
            "select @.push_items('q', '{1}', null, 1, null, null, null, null, null, 0, null)",
        ],
    )
    .await;
    let role = role(&db, "push").await;
    let pushes = login(&role).await;
    for push in [
        "push('q', '1', unique_key => 'a', on_duplicate => 'replace')",
        "push_many('q', '{2}')",
        "push_bytes('q', '3')",
    ] {
        pushes
            .batch_execute(&format!("select {}.{push}", db.schema))
            .await
            .unwrap();
    }
    assert_eq!(db.number("select count(*) from @.ready").await, 3);
    assert_denied(
        &db,
        &role,
        &[
            "select * from @.ready",
            "delete from @.ready",
            "insert into @.queues (name) values ('x')",
            "select * from @.show_queues",
            "select nextval('@.ids')",
            "select @.write_items('{1}', '{1}', null, '{1}', null, null, null, 0, null, null, null, null)",
            "select @.grant_work(current_user::regrole)",
            "create table @.mine ()",
        ],
    )
    .await;
}

/// A function of the caller's is not found by those that the owner runs.
#[tokio::test]
async fn a_role_that_may_push_cannot_have_the_owner_run_its_own_functions() {
    let db = Db::new().await;
    let role = role(&db, "push").await;
    db.execute(&format!(
        "create schema \"{role}\" authorization \"{role}\""
    ))
    .await;
    let client = login(&role).await;
    let evil = format!(
        "set search_path = \"{role}\", pg_catalog;
        create function \"{role}\".cardinality(anyarray) returns int language plpgsql as $$ begin raise exception 'run as %', current_user; end $$;
        create function \"{role}\".array_remove(text[], text) returns text[] language plpgsql as $$ begin raise exception 'run as %', current_user; end $$;
        create function pg_temp.array_fill(int, int[]) returns int[] language plpgsql as $$ begin raise exception 'run as %', current_user; end $$;
        select {0}.push('q', '1', key => 'a', unique_key => 'a', on_duplicate => 'follow')",
        db.schema
    );
    client.batch_execute(&evil).await.unwrap();
    assert_eq!(db.number("select count(*) from @.ready").await, 1);
}

#[tokio::test]
async fn a_role_that_may_work_takes_items_ends_them_and_pushes() {
    let db = Db::new().await;
    let role = role(&db, "work").await;
    let url = format!("{} options='-c role={role}'", crate::server::SERVER.url());
    let worker = Postgres::options(&url)
        .schema(&db.schema)
        .connect()
        .await
        .unwrap();
    for leased in [false, true] {
        let builder = worker
            .builder(if leased { "leased" } else { "locked" })
            .max_attempts(2);
        let builder = builder
            .ttl(LONG)
            .on_expired(AfterTtl::DeadLetter)
            .unique_by(u32::to_string)
            .on_duplicate(OnDuplicate::Follow);
        let builder = builder.unique_for(LONG).fair_by(u32::to_string).serial();
        let queue: PgQueue<u32> = build(builder, leased);
        queue.push_batch([1, 2]).await.unwrap();
        queue.after(Duration::from_millis(1)).push(3).await.unwrap();
        for _ in 0..4 {
            let mut tx = worker.begin().await.unwrap();
            let item = tx.pop_wait(&queue, LONG).await.unwrap().unwrap();
            if *item == 1 {
                tx.retry(item).unwrap();
            }
            tx.commit().await.unwrap();
        }
        assert_eq!(queue.dead_letters().len().await.unwrap(), 1);
        assert_eq!(queue.stats().await.unwrap().ready, 0);
    }
    let rate = worker
        .rate("mail", 100, Duration::from_secs(1))
        .pace()
        .await
        .unwrap();
    let paced: PgQueue<u32> = worker.builder("paced").pace(rate).build();
    paced.push(1).await.unwrap();
    let mut tx = worker.begin().await.unwrap();
    assert!(tx.pop_wait(&paced, LONG).await.unwrap().is_some());
    tx.commit().await.unwrap();
    worker.sweep_keys().await.unwrap();
    assert_denied(
        &db,
        &role,
        &[
            "update @.queues set paused = true",
            "delete from @.queues",
            "delete from @.dead",
            "update @.dead set error = null",
            "update @.version set version = 9",
            "truncate @.ready",
            "drop table @.ready",
            "alter table @.ready add column mine int",
            "create table @.mine ()",
        ],
    )
    .await;
    assert!(paced.pause().await.is_err());
    db.execute(&format!("select @.revoke_all('{role}')")).await;
    assert_denied(
        &db,
        &role,
        &["select * from @.version", "select @.push('q', '1')"],
    )
    .await;
}

/// The names of the schema and of the role are quoted.
#[tokio::test]
async fn rights_are_granted_in_schemas_of_any_name() {
    let evil = "y\"; drop schema public cascade; --'\\ %1$s";
    let db = options(evil).connect().await.unwrap();
    db.install().await.unwrap();
    let client = client().await;
    let (schema, role) = (
        "\"y\"\"; drop schema public cascade; --'\\ %1$s\"",
        "\"r\"\"; --'%s\"",
    );
    client
        .batch_execute(&format!(
            "create role {role}; set standard_conforming_strings = on"
        ))
        .await
        .unwrap();
    for right in ["grant_push", "grant_work", "revoke_all"] {
        let sql = format!("select {schema}.{right}($1::text::regrole)");
        client.query_one(&sql, &[&role]).await.unwrap();
    }
    let there = "select count(*) from pg_namespace where nspname = 'public'";
    assert_eq!(
        client.query_one(there, &[]).await.unwrap().get::<_, i64>(0),
        1
    );
}
