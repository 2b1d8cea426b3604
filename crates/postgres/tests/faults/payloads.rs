//! Payloads that do not decode any more.

use crate::base::{Db, LONG};
use requeue_postgres::{Codec, CodecError, Payload, PgQueue};

#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct Old {
    order: i64,
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct New {
    order: String,
}

fn new(order: &str) -> New {
    let order = order.into();
    New { order }
}

/// Text in UTF-8.
struct Utf8;

impl Codec<String> for Utf8 {
    fn encode(&self, item: &String, bytes: &mut Vec<u8>) -> Result<(), CodecError> {
        bytes.extend_from_slice(item.as_bytes());
        Ok(())
    }

    fn decode(&self, bytes: &[u8]) -> Result<String, CodecError> {
        String::from_utf8(bytes.to_vec()).map_err(CodecError::new)
    }
}

/// Any bytes.
struct Raw;

impl Codec<Vec<u8>> for Raw {
    fn encode(&self, item: &Vec<u8>, bytes: &mut Vec<u8>) -> Result<(), CodecError> {
        bytes.extend_from_slice(item);
        Ok(())
    }

    fn decode(&self, bytes: &[u8]) -> Result<Vec<u8>, CodecError> {
        Ok(bytes.to_vec())
    }
}

#[tokio::test]
async fn old_items_become_dead_letters_and_the_next_one_is_delivered() {
    for leased in [false, true] {
        let db = Db::new().await;
        let old: PgQueue<Old> = db.queue("jobs");
        old.push_batch((0..20).map(|order| Old { order }))
            .await
            .unwrap();
        let builder = db.builder::<New>("jobs");
        let jobs = if leased {
            builder.leased(LONG).build()
        } else {
            builder.build()
        };
        jobs.push(new("a")).await.unwrap();
        let mut tx = db.begin().await.unwrap();
        assert_eq!(tx.pop(&jobs).await.unwrap().unwrap().order, "a");
        tx.commit().await.unwrap();
        let stats = jobs.stats().await.unwrap();
        assert_eq!(
            (stats.ready, stats.held, stats.dead),
            (0, 0, 20),
            "{leased}"
        );
        let letter = jobs.dead_letters().list(1).await.unwrap().remove(0);
        assert_eq!(letter.reason, "undecodable");
        assert_eq!(letter.payload, Payload::Json(r#"{"order": 0}"#.into()));
        assert!(letter.item.is_err() && letter.error.unwrap().contains("string"));
        // The program of the old version can still do them.
        assert_eq!(old.dead_letters().requeue_all().await.unwrap(), 20);
        let mut tx = db.begin().await.unwrap();
        let items = tx.pop_batch(&old, 100).await.unwrap();
        let orders: Vec<_> = items.iter().map(|item| item.order).collect();
        assert_eq!(orders, (0..20).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn only_such_items_are_no_items() {
    let db = Db::new().await;
    let old: PgQueue<Old> = db.queue("jobs");
    old.push(Old { order: 1 }).await.unwrap();
    let jobs: PgQueue<New> = db.queue("jobs");
    let mut tx = db.begin().await.unwrap();
    assert!(tx.pop(&jobs).await.unwrap().is_none());
    tx.abort().await.unwrap();
    assert_eq!(jobs.stats().await.unwrap().dead, 1); // though nothing was delivered
}

#[tokio::test]
async fn bytes_that_do_not_decode_are_kept() {
    let db = Db::new().await;
    let raw: PgQueue<Vec<u8>> = db.builder("jobs").codec(Raw).build();
    raw.push_batch([vec![0xFF, 0, 0xFE], b"text".to_vec()])
        .await
        .unwrap();
    let jobs: PgQueue<String> = db.builder("jobs").codec(Utf8).build();
    let mut tx = db.begin().await.unwrap();
    assert_eq!(*tx.pop(&jobs).await.unwrap().unwrap(), "text");
    tx.commit().await.unwrap();
    let letter = jobs.dead_letters().drain(1).await.unwrap().remove(0);
    assert_eq!(letter.payload, Payload::Bytes(vec![0xFF, 0, 0xFE]));
}

#[tokio::test]
async fn workers_pass_over_them() {
    for leased in [false, true] {
        let db = Db::new().await;
        let old: PgQueue<Old> = db.queue("jobs");
        old.push(Old { order: 0 }).await.unwrap();
        let builder = db.builder::<New>("jobs");
        let jobs = if leased {
            builder.leased(LONG).build()
        } else {
            builder.build()
        };
        let results: PgQueue<String> = db.queue("results");
        let done = results.clone();
        let workers = jobs.workers().tasks(1).run_async(move |job, tx| {
            let done = done.clone();
            async move { tx.push_to(&done, job.order.clone()).await }
        });
        for order in ["a", "b"] {
            jobs.push(new(order)).await.unwrap();
            let mut tx = db.begin().await.unwrap();
            assert_eq!(*tx.pop_wait(&results, LONG).await.unwrap().unwrap(), order);
            tx.commit().await.unwrap();
        }
        assert_eq!(workers.stop().await.done, 2);
        assert_eq!(jobs.stats().await.unwrap().dead, 1, "{leased}");
    }
}
