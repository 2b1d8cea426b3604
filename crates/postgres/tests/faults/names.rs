//! Names and texts with SQL in them.

use crate::base::{options, Db, LONG};
use crate::server::SERVER;
use requeue_postgres::{Error, PgQueue};

const TEXTS: [&str; 9] = [
    "jobs'; drop table orders; --",
    "jobs\"; drop table orders; --",
    "$$; drop table orders; $$",
    "a\\'; drop table orders; --",
    "a@b",
    ":ids :channel $1",
    "a.b",
    "Ünïcode ✓",
    " ",
];

#[tokio::test]
async fn names_of_queues_keys_and_holders_are_data() {
    let db = Db::new().await;
    db.execute("create table @.orders (id bigint)").await;
    for text in TEXTS {
        let builder = db.builder::<String>(text).fair_by(String::clone).serial();
        let jobs = builder.leased(LONG).holder(text).max_attempts(2).build();
        jobs.push(text.into()).await.unwrap();
        let mut tx = db.begin().await.unwrap();
        let item = tx.pop(&jobs).await.unwrap().unwrap();
        assert_eq!(*item, text);
        assert_eq!(&*jobs.held().await.unwrap()[0].holder, text);
        tx.fail(item, text).unwrap();
        tx.commit().await.unwrap();
        let letter = jobs.dead_letters().drain(1).await.unwrap().remove(0);
        assert_eq!(
            (letter.item.unwrap(), letter.error.unwrap()),
            (text.into(), text.into())
        );
        assert_eq!(jobs.recover(text, LONG).await.unwrap(), 0);
        assert_eq!(db.queue::<String>(text).stats().await.unwrap().ready, 0);
    }
    let queues = i64::try_from(TEXTS.len()).unwrap();
    assert_eq!(db.number("select count(*) from @.queues").await, queues);
    assert_eq!(db.number("select count(*) from @.orders").await, 0);
}

#[tokio::test]
async fn names_of_schemas_are_quoted() {
    let db = Db::new().await;
    db.execute("create table @.orders (id bigint)").await;
    for text in TEXTS {
        let named = options(&SERVER.url(), text).connect().await.unwrap();
        named.install().await.unwrap();
        named.install().await.unwrap();
        let jobs: PgQueue<i64> = named.queue("jobs");
        let other = options(&SERVER.url(), text).connect().await.unwrap();
        let waits = tokio::spawn(async move {
            let mut tx = other.begin().await.unwrap();
            let item = tx
                .pop_wait(&other.queue::<i64>("jobs"), LONG)
                .await
                .unwrap();
            tx.commit().await.unwrap();
            item.map(|item| *item)
        });
        jobs.push(1).await.unwrap();
        assert_eq!(waits.await.unwrap(), Some(1), "{text}");
        jobs.push(2).await.unwrap();
        let schemas = "select count(*) from pg_namespace where nspname = $1";
        let client = crate::base::client(&db.url).await;
        let row = client.query_one(schemas, &[&text]).await.unwrap();
        assert_eq!(row.get::<_, i64>(0), 1, "{text}");
    }
    assert_eq!(db.number("select count(*) from @.orders").await, 0);
}

#[tokio::test]
async fn names_that_cannot_be_are_errors() {
    let db = Db::new().await;
    for name in ["", "a\0b", &"n".repeat(1001)] {
        let error = db.queue::<i64>(name).push(1).await.unwrap_err();
        assert!(matches!(error, Error::Name(_)), "{error}");
    }
    for schema in ["", "a\0b", "pg_own", &"n".repeat(51)] {
        let error = options(&db.url, schema).connect().await.unwrap_err();
        assert!(matches!(error, Error::Name(_)), "{error}");
    }
}
