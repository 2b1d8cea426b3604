//! Where items of failed deliveries go: to their places, or to the tail.

use crate::{build, client, until, Db, LONG};
use requeue_postgres::{Backoff, Builder, Error, PgQueue, Postgres, ReturnTo, Ticket};
use std::time::Duration;
use tokio::task::JoinSet;

/// A queue whose failed items go to the tail.
fn tail(db: &Db, leased: bool) -> Builder<u32> {
    let builder = db.builder("q").on_failure(ReturnTo::Tail);
    if leased {
        builder.leased(60 * LONG)
    } else {
        builder
    }
}

/// What is ready, in its order, with the attempts of each.
async fn drain<T: 'static + Clone>(db: &Db, queue: &PgQueue<T>) -> Vec<(T, u32)> {
    let mut tx = db.begin().await.unwrap();
    let items = tx.pop_batch(queue, 99).await.unwrap();
    tx.commit().await.unwrap();
    let items = items.iter().map(|item| ((**item).clone(), item.attempts()));
    items.collect()
}

/// Items that went to the tail, and are there.
async fn moved(db: &Db, count: i64) {
    let moved = "select count(*) from @.ready where ticket is not null";
    until(|| async { db.number(moved).await == count }).await;
}

#[tokio::test]
async fn an_item_can_be_retried_behind_the_others() {
    for leased in [false, true] {
        for (to, expected) in [
            (ReturnTo::Head, [(1, 2), (2, 1), (3, 1)]),
            (ReturnTo::Tail, [(2, 1), (3, 1), (1, 2)]),
        ] {
            let db = Db::new().await;
            let builder = db.builder("q");
            let queue: PgQueue<u32> = build(builder, leased);
            queue.push_batch([1, 2, 3]).await.unwrap();
            let mut tx = db.begin().await.unwrap();
            let item = tx.pop(&queue).await.unwrap().unwrap();
            tx.retry_to(item, to).unwrap();
            assert_eq!(tx.held(), 0);
            tx.commit().await.unwrap();
            assert_eq!(drain(&db, &queue).await, expected);
        }
    }
}

#[tokio::test]
async fn a_failed_delivery_goes_to_the_tail_if_the_queue_is_built_so() {
    for leased in [false, true] {
        let db = Db::new().await;
        let queue = tail(&db, leased).max_attempts(9).build();
        queue.push_batch(1..=5).await.unwrap();
        let mut tx = db.begin().await.unwrap();
        assert_eq!(tx.pop_batch(&queue, 2).await.unwrap().len(), 2);
        tx.abort().await.unwrap();
        moved(&db, 2).await;
        let mut tx = db.begin().await.unwrap();
        assert_eq!(*tx.pop(&queue).await.unwrap().unwrap(), 3);
        drop(tx);
        moved(&db, 3).await;
        let mut tx = db.begin().await.unwrap();
        let item = tx.pop(&queue).await.unwrap().unwrap();
        assert_eq!(*item, 4);
        tx.retry(item).unwrap();
        tx.commit().await.unwrap();
        moved(&db, 4).await;
        let mut tx = db.begin().await.unwrap();
        assert_eq!(*tx.pop(&queue).await.unwrap().unwrap(), 5);
        tx.client().execute("select 1 / 0", &[]).await.unwrap_err();
        tx.commit().await.unwrap_err();
        moved(&db, 5).await;
        let expected = [(1, 2), (2, 2), (3, 2), (4, 2), (5, 2)];
        assert_eq!(drain(&db, &queue).await, expected);
    }
}

/// Another transaction pops while the first one is undone: a lock holds back the statement that moves its item.
#[tokio::test]
async fn nobody_takes_an_item_on_its_way_to_the_tail() {
    for keyed in [false, true] {
        let db = Db::new().await;
        let builder = db.builder("q").on_failure(ReturnTo::Tail);
        let queue: PgQueue<u32> = if keyed {
            builder.fair_by(|_| "key".into()).build()
        } else {
            builder.build()
        };
        queue.push_batch([1, 2]).await.unwrap();
        let other = db.other().await; // another connection
        let (mut tx, mut other) = (db.begin().await.unwrap(), other.begin().await.unwrap());
        assert_eq!(*tx.pop(&queue).await.unwrap().unwrap(), 1);
        let blocks = client().await;
        let lock = format!("begin; lock table {}.attempts in share mode", db.schema);
        blocks.batch_execute(&lock).await.unwrap();
        drop(tx);
        let waits =
            "select count(*) from pg_locks where relation = '@.attempts'::regclass and not granted";
        until(|| async { db.number(waits).await == 1 }).await;
        assert_eq!(*other.pop(&queue).await.unwrap().unwrap(), 2);
        blocks.batch_execute("commit").await.unwrap();
        assert_eq!(*other.pop_wait(&queue, LONG).await.unwrap().unwrap(), 1);
        other.commit().await.unwrap();
    }
}

/// It would fail without an answer.
#[tokio::test]
async fn an_item_that_cannot_be_moved_returns_to_its_place() {
    let db = Db::new().await;
    let queue = tail(&db, false).build();
    queue.push_batch([1, 2]).await.unwrap();
    db.execute("alter table @.ready add constraint none check (ticket is null)")
        .await;
    for way in 0..2 {
        let mut tx = db.begin().await.unwrap();
        assert_eq!(*tx.pop(&queue).await.unwrap().unwrap(), 1);
        match way {
            0 => tx.abort().await.unwrap(),
            _ => drop(tx),
        }
    }
    let taken = async || {
        db.number("select count(*) from (select from @.ready for update skip locked) r")
            .await
    };
    until(|| async { taken().await == 2 }).await;
    assert_eq!(drain(&db, &queue).await, [(1, 1), (2, 1)]);
}

#[tokio::test]
async fn a_run_that_fails_keeps_no_other_item_waiting() {
    for leased in [false, true] {
        let db = Db::new().await;
        let builder = tail(&db, leased).backoff(Backoff::fixed(Duration::ZERO));
        let queue = builder.max_attempts(3).build();
        let done: PgQueue<u32> = db.queue("done");
        queue.push_batch(0..4).await.unwrap();
        let to = done.clone();
        let workers = queue.workers().tasks(1).run_async(move |item, tx| {
            let to = to.clone();
            async move {
                tx.push_to(&to, *item).await?;
                if *item == 0 {
                    return Err(Error::Broken);
                }
                Ok(())
            }
        });
        until(|| async { queue.dead_letters().len().await.unwrap() == 1 }).await;
        workers.stop().await;
        assert_eq!(drain(&db, &done).await, [(1, 1), (2, 1), (3, 1)]);
        let letter = queue.dead_letters().list(9).await.unwrap().remove(0);
        assert_eq!((letter.item.unwrap(), letter.attempts), (0, 3));
    }
}

/// Also an item that the run has taken besides its own.
#[tokio::test]
async fn all_items_of_a_run_that_fails_go_to_the_tail() {
    for leased in [false, true] {
        let db = Db::new().await;
        let queue = tail(&db, leased)
            .backoff(Backoff::fixed(Duration::ZERO))
            .build();
        queue.push_batch([1, 2, 3]).await.unwrap();
        let other = queue.clone();
        let workers = queue.workers().tasks(1).run_async(move |item, tx| {
            let other = other.clone();
            async move {
                let mut tx = tx.lock().await?;
                if *item == 1 {
                    assert_eq!(**tx.pop(&other).await?.as_ref().unwrap(), 2);
                    return Err(Error::Broken);
                }
                std::future::pending().await
            }
        });
        moved(&db, 2).await;
        workers.shutdown(Duration::ZERO).await;
    }
}

#[tokio::test]
async fn the_tail_is_that_of_the_priority_and_of_the_key() {
    let db = Db::new().await;
    let queue = tail(&db, false).build();
    queue.priority(1).push_batch([1, 2]).await.unwrap();
    queue.priority(2).push(3).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    tx.pop(&queue).await.unwrap().unwrap();
    tx.abort().await.unwrap();
    let mut tx = db.begin().await.unwrap();
    for expected in [2, 1, 3] {
        assert_eq!(*tx.pop(&queue).await.unwrap().unwrap(), expected);
    }
    for serial in [false, true] {
        let db = Db::new().await;
        let builder = db.builder("keys").on_failure(ReturnTo::Tail);
        let builder = builder.fair_by(|item: &String| item[..1].into());
        let queue = if serial {
            builder.serial().build()
        } else {
            builder.build()
        };
        let items = ["a1", "a2", "b1", "b2"].map(String::from);
        queue.push_batch(items).await.unwrap();
        let mut tx = db.begin().await.unwrap();
        assert_eq!(tx.pop_batch(&queue, 2).await.unwrap().len(), 2);
        tx.abort().await.unwrap();
        let mut got = Vec::new();
        for _ in 0..4 {
            let mut tx = db.begin().await.unwrap();
            got.push(tx.pop(&queue).await.unwrap().unwrap().into_inner());
            tx.commit().await.unwrap();
        }
        assert_eq!(got, ["a2", "b2", "a1", "b1"]);
    }
}

/// Puts the first item of a queue to the tail.
async fn rotate(db: &Db, queue: &PgQueue<u32>) -> Ticket {
    let mut tx = db.begin().await.unwrap();
    let item = tx.pop(queue).await.unwrap().unwrap();
    let ticket = item.ticket();
    tx.retry_to(item, ReturnTo::Tail).unwrap();
    tx.commit().await.unwrap();
    ticket
}

#[tokio::test]
async fn an_item_at_the_tail_keeps_its_ticket() {
    for leased in [false, true] {
        let db = Db::new().await;
        let queue = tail(&db, leased).max_attempts(9).build();
        let tickets = queue.push_batch([1, 2, 3]).await.unwrap();
        for ticket in tickets.iter().chain(&tickets[..2]) {
            assert_eq!(rotate(&db, &queue).await, *ticket);
        }
        // 3, 1, 2
        assert!(queue.reprioritize(tickets[1], 0).await.unwrap());
        assert_eq!(queue.cancel(tickets[2]).await.unwrap(), Some(3));
        assert_eq!(queue.cancel(tickets[2]).await.unwrap(), None);
        let mut tx = db.begin().await.unwrap();
        assert_eq!(tx.pop_batch(&queue, 9).await.unwrap().len(), 2);
        assert_eq!(tx.tickets(), [tickets[1], tickets[0]]);
        assert_eq!(queue.cancel(tickets[1]).await.unwrap(), None);
        let mut held: Vec<_> = queue.held().await.unwrap();
        held.sort_by_key(|held| held.ticket);
        let held: Vec<_> = held.iter().map(|held| held.ticket).collect();
        assert_eq!(held, tickets[..2 * usize::from(leased)]);
        tx.commit().await.unwrap();
        until(|| async { db.number("select count(*) from @.attempts").await == 0 }).await;
    }
}

#[tokio::test]
async fn a_dead_letter_and_a_delayed_item_have_their_place_again() {
    for leased in [false, true] {
        let db = Db::new().await;
        let queue = tail(&db, leased).max_attempts(9).build();
        let tickets = queue.push_batch([1, 2, 3]).await.unwrap();
        rotate(&db, &queue).await;
        rotate(&db, &queue).await;
        let mut tx = db.begin().await.unwrap();
        let mut items = tx.pop_batch(&queue, 9).await.unwrap(); // 3, 1, 2
        tx.fail(items.pop().unwrap(), "no").unwrap();
        tx.retry_after(items.pop().unwrap(), LONG).unwrap();
        tx.retry(items.pop().unwrap()).unwrap();
        tx.commit().await.unwrap();
        let letter = queue.dead_letters().list(9).await.unwrap().remove(0);
        assert_eq!((letter.ticket, letter.attempts), (tickets[1], 2));
        assert!(queue.dead_letters().requeue(letter.ticket).await.unwrap());
        db.execute("update @.delayed set until = now()").await;
        until(|| async { queue.stats().await.unwrap().ready == 3 }).await;
        assert_eq!(drain(&db, &queue).await, [(1, 3), (2, 1), (3, 2)]);
    }
}

#[tokio::test]
async fn attempts_that_failed_at_the_tail_count() {
    for leased in [false, true] {
        let db = Db::new().await;
        let queue = tail(&db, leased).max_attempts(2).build();
        let tickets = queue.push_batch([1, 2]).await.unwrap();
        for (item, attempts) in [(1, 1), (2, 1), (1, 2), (2, 2)] {
            let mut tx = db.begin().await.unwrap();
            let popped = tx.pop(&queue).await.unwrap().unwrap();
            assert_eq!((*popped, popped.attempts()), (item, attempts));
            tx.abort().await.unwrap();
        }
        let mut tx = db.begin().await.unwrap();
        assert!(tx.pop(&queue).await.unwrap().is_none());
        let letters = queue.dead_letters().list(9).await.unwrap();
        let letters: Vec<_> = letters.iter().map(|of| (of.ticket, of.attempts)).collect();
        assert_eq!(letters, [(tickets[0], 2), (tickets[1], 2)]);
    }
}

#[tokio::test]
async fn what_others_take_back_returns_to_its_place() {
    let db = Db::new().await;
    let queue = tail(&db, true).holder("me").build();
    queue.push_batch([1, 2]).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    tx.pop(&queue).await.unwrap().unwrap();
    assert_eq!(queue.recover("me", Duration::ZERO).await.unwrap(), 1);
    assert!(matches!(tx.commit().await, Err(Error::Expired)));
    assert_eq!(drain(&db, &queue).await, [(1, 2), (2, 1)]);
}

#[tokio::test]
async fn an_abort_within_another_transaction_returns_items_to_their_places() {
    let db = Db::new().await;
    let queue = tail(&db, false).build();
    queue.push_batch([1, 2]).await.unwrap();
    let mut client = crate::client().await;
    let outer = client.transaction().await.unwrap();
    let mut inner = db.within(&outer).await.unwrap();
    inner.pop(&queue).await.unwrap().unwrap();
    inner.abort().await.unwrap();
    assert_eq!(drain(&db, &queue).await, [(1, 1), (2, 1)]);
    outer.commit().await.unwrap();
}

/// Several processes give items back in all ways, and commit each in the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_done_twice_on_the_way_to_the_tail() {
    const ITEMS: u32 = 60;
    let db = Db::new().await;
    let jobs = |db: &Postgres, leased| {
        let builder = db.builder("jobs").on_failure(ReturnTo::Tail);
        let builder: Builder<u32> = builder.max_attempts(100);
        if leased {
            builder.leased(60 * LONG).build()
        } else {
            builder.build()
        }
    };
    jobs(&db, false).push_batch(0..ITEMS).await.unwrap();
    let done: PgQueue<u32> = db.queue("done");
    let mut processes = JoinSet::new();
    for process in 0..4 {
        let db = db.other().await;
        let (jobs, done) = (jobs(&db, process % 2 == 0), done.clone());
        processes.spawn(async move {
            while done.stats().await.unwrap().ready < ITEMS.into() {
                let mut tx = db.begin().await.unwrap();
                for item in tx.pop_batch(&jobs, 3).await.unwrap() {
                    match item.attempts() {
                        attempts if attempts > 3 => tx.push(&done, *item).await.unwrap(),
                        _ => tx.retry(item).unwrap(),
                    }
                }
                match fastrand::u8(..4) {
                    0 => tx.abort().await.unwrap(),
                    1 => drop(tx),
                    _ => drop(tx.commit().await.unwrap()),
                }
            }
        });
    }
    processes.join_all().await;
    let mut items: Vec<_> = drain(&db, &done)
        .await
        .into_iter()
        .map(|item| item.0)
        .collect();
    items.sort_unstable();
    assert!(items.into_iter().eq(0..ITEMS));
    let left = jobs(&db, false).stats().await.unwrap();
    assert_eq!((left.ready, left.held, left.dead), (0, 0, 0));
}
