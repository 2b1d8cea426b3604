//! The last errors of items.

use crate::unique::builder;
use crate::{Db, LONG};
use requeue::backend::{AbortCause, Backend, Tx};
use requeue::{Reason, Wait};
use requeue_postgres::{Backoff, OnDuplicate, PgQueue, ReturnTo};
use std::time::Duration;

/// A run of the next item ends with this error.
async fn fail(queue: &PgQueue<String>, error: &str) {
    let mut tx = Backend::begin(queue, None);
    Tx::pop(&tx, Wait::Forever).await.unwrap().unwrap();
    let cause = AbortCause::new(Reason::Failed, error, Backoff::fixed(Duration::ZERO));
    tx.abort(cause).await.unwrap();
}

async fn last_error(db: &Db, queue: &PgQueue<String>) -> Option<String> {
    let mut tx = db.begin().await.unwrap();
    let item = tx.pop(queue).await.unwrap().unwrap();
    let error = item.last_error().map(str::to_owned);
    tx.abort().await.unwrap();
    error
}

#[tokio::test]
async fn an_error_goes_with_its_item() {
    for (leased, to) in [false, true]
        .into_iter()
        .flat_map(|leased| [(leased, ReturnTo::Head), (leased, ReturnTo::Tail)])
    {
        let db = Db::new().await;
        let builder = builder(&db, leased).max_attempts(99).on_failure(to);
        let builder = builder.on_duplicate(OnDuplicate::Replace);
        let queue = builder.holder("w").build();
        let ticket = queue.push("a1".into()).await.unwrap();
        assert_eq!(last_error(&db, &queue).await, None);
        fail(&queue, "no").await;
        let still = || async { assert_eq!(last_error(&db, &queue).await.as_deref(), Some("no")) };
        still().await;
        still().await; // after an abort
        for to in [ReturnTo::Head, ReturnTo::Tail] {
            let mut tx = db.begin().await.unwrap();
            let item = tx.pop(&queue).await.unwrap().unwrap();
            tx.retry_to(item, to).unwrap();
            tx.commit().await.unwrap();
            still().await;
        }
        assert!(queue.reprioritize(ticket, 7).await.unwrap());
        still().await;
        assert_eq!(queue.push("a2".into()).await.unwrap(), ticket);
        still().await;
        let mut tx = db.begin().await.unwrap();
        let item = tx.pop(&queue).await.unwrap().unwrap();
        tx.retry_after(item, LONG).unwrap();
        tx.commit().await.unwrap();
        db.execute("update @.delayed set until = now()").await;
        still().await;
        if leased {
            let mut tx = db.begin().await.unwrap();
            tx.pop(&queue).await.unwrap().unwrap();
            assert_eq!(queue.recover("w", Duration::ZERO).await.unwrap(), 1);
            still().await;
            let ahead = db.builder("q").leased(LONG).prefetch(9).build();
            assert_eq!(last_error(&db, &ahead).await.as_deref(), Some("no"));
        }
    }
}

#[tokio::test]
async fn an_error_is_kept_to_a_limit_and_by_a_dead_letter_as_a_whole() {
    for leased in [false, true] {
        let db = Db::new().await;
        let queue = builder(&db, leased).max_attempts(2).build();
        let ticket = queue.push("a1".into()).await.unwrap();
        let error = format!("ä\0{}", "ß".repeat(2000));
        let kept = error.replace('\0', "\u{fffd}");
        fail(&queue, &error).await;
        let cut: String = kept.chars().take(1000).collect();
        let mut tx = db.begin().await.unwrap();
        let item = tx.pop(&queue).await.unwrap().unwrap();
        assert_eq!(item.last_error(), Some(&*cut));
        tx.fail(item, error).unwrap();
        tx.commit().await.unwrap();
        let letter = queue.dead_letters().list(1).await.unwrap().remove(0);
        assert_eq!(letter.error, Some(kept));
        assert!(queue.dead_letters().requeue(ticket).await.unwrap());
        assert_eq!(last_error(&db, &queue).await, None);
    }
}
