//! Attempts, dead letters, payloads that cannot be decoded; pause, cancel, reprioritize.

use crate::{until, Db, LONG};
use requeue_postgres::{Codec, CodecError, Error, Payload, PgQueue, Ticket};

#[tokio::test]
async fn deliveries_of_locked_items_count_even_if_their_process_dies() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db.builder("q").max_attempts(2).build();
    queue.push(1).await.unwrap();
    for attempt in 1..=2 {
        let mut tx = db.begin().await.unwrap();
        let item = tx.pop_wait(&queue, LONG).await.unwrap().unwrap();
        assert_eq!(item.attempts(), attempt);
        drop(tx); // as a dead process: the server rolls back
    }
    // Its rollback may still be on its way.
    until(|| async {
        let mut tx = db.begin().await.unwrap();
        assert!(tx.pop(&queue).await.unwrap().is_none());
        queue.dead_letters().len().await.unwrap() == 1
    })
    .await;
    let letter = queue.dead_letters().list(10).await.unwrap().remove(0);
    assert_eq!(
        (letter.item.unwrap(), letter.attempts, &*letter.reason),
        (1, 2, "aborted")
    );
    until(|| async { db.number("select count(*) from @.attempts").await == 0 }).await;
}

#[tokio::test]
async fn claims_of_an_exhausted_item_are_no_deliveries() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db.builder("q").max_attempts(1).build();
    queue.push(1).await.unwrap();
    queue.push(2).await.unwrap();
    for item in [1, 2] {
        let mut tx = db.begin().await.unwrap();
        // The second transaction finds the first item exhausted, and its abort undoes that.
        assert_eq!(*tx.pop(&queue).await.unwrap().unwrap(), item);
        tx.abort().await.unwrap();
    }
    let mut tx = db.begin().await.unwrap();
    assert!(tx.pop(&queue).await.unwrap().is_none());
    let letters = queue.dead_letters().list(10).await.unwrap();
    let attempts: Vec<_> = letters.iter().map(|letter| letter.attempts).collect();
    assert_eq!(attempts, [1, 1]);
}

/// The process that had counted its deliveries died before it forgot them.
#[tokio::test]
async fn a_dead_letter_that_is_requeued_has_all_attempts_again() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db.builder("q").max_attempts(2).build();
    let ticket = queue.push(1).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    let item = tx.pop(&queue).await.unwrap().unwrap();
    tx.fail(item, "no").unwrap();
    tx.commit().await.unwrap();
    until(|| async { db.number("select count(*) from @.attempts").await == 0 }).await;
    db.execute(&format!("insert into @.attempts values ({ticket}, 2)"))
        .await;
    assert!(queue.dead_letters().requeue(ticket).await.unwrap());
    let mut tx = db.begin().await.unwrap();
    assert_eq!(tx.pop(&queue).await.unwrap().unwrap().attempts(), 1);
}

#[tokio::test]
async fn attempts_of_items_that_are_gone_are_swept() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db.builder("q").max_attempts(2).build();
    db.execute("insert into @.attempts values (-1, 2)").await;
    queue.push(1).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    tx.pop(&queue).await.unwrap().unwrap();
    let ids = "select coalesce(sum(id), 0)::bigint from @.attempts where id < 0";
    until(|| async { db.number(ids).await == 0 }).await;
    assert_eq!(db.number("select count(*) from @.attempts").await, 1); // of the open transaction
}

/// Panics at the number 13.
struct Superstitious;

impl Codec<u32> for Superstitious {
    fn encode(&self, item: &u32, bytes: &mut Vec<u8>) -> Result<(), CodecError> {
        bytes.extend(item.to_le_bytes());
        Ok(())
    }

    fn decode(&self, bytes: &[u8]) -> Result<u32, CodecError> {
        let item = u32::from_le_bytes(bytes.try_into().map_err(CodecError::new)?);
        assert_ne!(item, 13, "an unlucky number");
        Ok(item)
    }
}

#[tokio::test]
async fn an_item_whose_codec_panics_is_undecodable() {
    for leased in [false, true] {
        let db = Db::new().await;
        let builder = db.builder("q").codec(Superstitious);
        let queue = if leased {
            builder.leased(LONG).build()
        } else {
            builder.build()
        };
        queue.push_batch([12, 13, 14]).await.unwrap();
        let mut tx = db.begin().await.unwrap();
        let items = tx.pop_batch(&queue, 3).await.unwrap();
        assert_eq!(
            items.iter().map(|item| **item).collect::<Vec<_>>(),
            [12, 14]
        );
        tx.commit().await.unwrap();
        let letter = queue.dead_letters().list(1).await.unwrap().remove(0);
        assert!(letter.error.unwrap().contains("an unlucky number"));
        assert!(letter.item.is_err());
        assert_eq!(queue.stats().await.unwrap().held, 0);
    }
}

#[tokio::test]
async fn a_commit_forgets_the_counted_attempts_and_a_retry_keeps_them() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db.builder("q").max_attempts(9).build();
    queue.push(1).await.unwrap();
    for attempt in 1..=3 {
        let mut tx = db.begin().await.unwrap();
        let item = tx.pop_wait(&queue, LONG).await.unwrap().unwrap();
        assert_eq!(item.attempts(), attempt);
        assert_eq!(db.number("select count(*) from @.attempts").await, 1);
        if attempt < 3 {
            tx.retry(item).unwrap();
        }
        tx.commit().await.unwrap();
    }
    until(|| async { db.number("select count(*) from @.attempts").await == 0 }).await;
}

#[tokio::test]
async fn deliveries_are_not_counted_if_that_is_switched_off() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db
        .builder("q")
        .max_attempts(2)
        .count_attempts(false)
        .build();
    queue.push(1).await.unwrap();
    for _ in 0..4 {
        let mut tx = db.begin().await.unwrap();
        let item = tx.pop_wait(&queue, LONG).await.unwrap().unwrap();
        assert_eq!(item.attempts(), 1);
        tx.abort().await.unwrap();
    }
    assert_eq!(db.number("select count(*) from @.attempts").await, 0);
}

#[tokio::test]
async fn deliveries_of_leased_items_count() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db.builder("q").leased(60 * LONG).max_attempts(2).build();
    queue.push(1).await.unwrap();
    for attempt in 1..=2 {
        let mut tx = db.begin().await.unwrap();
        let item = tx.pop(&queue).await.unwrap().unwrap();
        assert_eq!(item.attempts(), attempt);
        db.execute("update @.holders set alive_until = '-infinity'")
            .await;
        // Another process takes it back.
        let other = db.other().await;
        let mut looks = other.begin().await.unwrap();
        assert!(looks
            .pop(&other.queue::<u32>("empty"))
            .await
            .unwrap()
            .is_none());
        assert!(matches!(tx.commit().await, Err(Error::Expired)));
        db.execute("update @.holders set alive_until = 'infinity'")
            .await;
    }
    let letter = queue.dead_letters().list(10).await.unwrap().remove(0);
    assert_eq!((letter.attempts, &*letter.reason), (2, "expired"));
}

#[tokio::test]
async fn dead_letters_are_listed_requeued_and_drained() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db.builder("q").max_attempts(1).build();
    let other: PgQueue<u32> = db.queue("other");
    let tickets = queue.push_batch(1..=4).await.unwrap();
    other.push(9).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    for item in tx.pop_batch(&queue, 4).await.unwrap() {
        tx.fail(item, "no").unwrap();
    }
    let item = tx.pop(&other).await.unwrap().unwrap();
    tx.fail(item, "no").unwrap();
    tx.commit().await.unwrap();

    let letters = queue.dead_letters();
    assert_eq!(letters.len().await.unwrap(), 4);
    let listed = letters.list(2).await.unwrap();
    assert_eq!(
        listed
            .iter()
            .map(|letter| letter.ticket)
            .collect::<Vec<_>>(),
        tickets[..2]
    );
    let rest = letters.list_after(tickets[1], 9).await.unwrap();
    assert_eq!(rest.len(), 2);
    assert!(letters.requeue(tickets[2]).await.unwrap());
    assert!(!letters.requeue(tickets[2]).await.unwrap());
    let mut tx = db.begin().await.unwrap();
    let again = tx.pop(&queue).await.unwrap().unwrap();
    assert_eq!(
        (*again, again.attempts(), again.ticket()),
        (3, 1, tickets[2])
    );
    tx.commit().await.unwrap();
    assert_eq!(
        letters.drain(1).await.unwrap()[0].item.as_ref().unwrap(),
        &1
    );
    assert_eq!(letters.requeue_all().await.unwrap(), 2);
    assert_eq!(letters.len().await.unwrap(), 0);
    assert_eq!(queue.stats().await.unwrap().ready, 2);
    assert_eq!(other.dead_letters().len().await.unwrap(), 1);
}

#[tokio::test]
async fn an_undecodable_item_becomes_a_dead_letter_with_its_payload() {
    let db = Db::new().await;
    let texts: PgQueue<String> = db.queue("q");
    texts
        .push_batch(["a".to_string(), "b".to_string()])
        .await
        .unwrap();
    for leased in [false, true] {
        let builder = db.builder("q");
        let numbers: PgQueue<u32> = if leased {
            builder.leased(60 * LONG).build()
        } else {
            builder.build()
        };
        numbers.push(7).await.unwrap();
        let mut tx = db.begin().await.unwrap();
        assert_eq!(*tx.pop(&numbers).await.unwrap().unwrap(), 7);
        tx.commit().await.unwrap();
        let letters = numbers.dead_letters().drain(10).await.unwrap();
        assert_eq!(letters.len(), 2);
        assert_eq!(letters[0].payload, Payload::Json("\"a\"".into()));
        assert_eq!(letters[0].reason, "undecodable");
        assert!(letters[0].item.is_err());
        texts
            .push_batch(["a".to_string(), "b".to_string()])
            .await
            .unwrap();
    }
    // If nothing else is found, they are dead at once: a consumer that drops its transaction is not stuck.
    for leased in [false, true] {
        let builder = db.builder("q");
        let numbers: PgQueue<u32> = if leased {
            builder.leased(60 * LONG).build()
        } else {
            builder.build()
        };
        let mut tx = db.begin().await.unwrap();
        assert!(tx.pop(&numbers).await.unwrap().is_none());
        drop(tx);
        assert_eq!(numbers.dead_letters().requeue_all().await.unwrap(), 2);
    }
    assert_eq!(texts.stats().await.unwrap().ready, 2);
}

#[tokio::test]
async fn a_paused_queue_gives_nothing_until_it_is_resumed() {
    let db = Db::new().await;
    let queues: Vec<PgQueue<u32>> = vec![
        db.queue("locked"),
        db.builder("leased").leased(LONG).build(),
        db.builder("fair").fair_by(|_| "k".into()).build(),
        db.builder("serial")
            .fair_by(|_| "k".into())
            .serial()
            .build(),
    ];
    for queue in queues {
        queue.push_batch([1, 2, 3]).await.unwrap();
        queue.pause().await.unwrap();
        assert!(queue.stats().await.unwrap().paused);
        let mut tx = db.begin().await.unwrap();
        assert!(tx.pop_batch(&queue, 2).await.unwrap().is_empty());
        assert!(tx.pop(&queue).await.unwrap().is_none());
        assert!(tx.peek(&queue).await.unwrap().is_none());
        let waits = tx.pop_wait(&queue, LONG);
        let other = db.other().await;
        let resumes = async {
            until(|| async { queue.stats().await.unwrap().waiting == 1 }).await;
            other.queue::<u32>(queue.name()).resume().await.unwrap();
        };
        let (item, ()) = tokio::join!(waits, resumes);
        assert!(item.unwrap().is_some());
        tx.commit().await.unwrap();
    }
}

#[tokio::test]
async fn items_can_be_cancelled_unless_they_are_held() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db.queue("q");
    let tickets = queue.push_batch([1, 2]).await.unwrap();
    let later = queue.after(LONG).push(3).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    tx.pop(&queue).await.unwrap().unwrap();
    assert_eq!(queue.cancel(tickets[0]).await.unwrap(), None);
    assert_eq!(queue.cancel(tickets[1]).await.unwrap(), Some(2));
    assert_eq!(queue.cancel(tickets[1]).await.unwrap(), None);
    assert_eq!(queue.cancel(later).await.unwrap(), Some(3));
    tx.abort().await.unwrap();
    assert_eq!(
        db.queue::<u32>("other").cancel(tickets[0]).await.unwrap(),
        None
    );
    assert_eq!(queue.cancel(tickets[0]).await.unwrap(), Some(1));
}

#[tokio::test]
async fn priorities_can_be_changed_unless_an_item_is_held() {
    let db = Db::new().await;
    let queue: PgQueue<u32> = db.queue("q");
    let tickets = queue.push_batch([1, 2, 3]).await.unwrap();
    let later = queue.after(LONG).push(4).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    tx.pop(&queue).await.unwrap().unwrap();
    assert!(!queue.reprioritize(tickets[0], 1).await.unwrap());
    assert!(queue.reprioritize(tickets[2], 0).await.unwrap());
    assert!(queue.reprioritize(tickets[1], u16::MAX).await.unwrap());
    assert!(queue.reprioritize(later, 1).await.unwrap());
    assert!(!queue.reprioritize(Ticket(-1), 1).await.unwrap());
    queue.push(5).await.unwrap();
    db.execute("update @.delayed set until = now()").await;
    for expected in [3, 5, 2, 4] {
        assert_eq!(*tx.pop(&queue).await.unwrap().unwrap(), expected);
    }
}
