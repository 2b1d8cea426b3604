//! Items that are unique by key.

use crate::{client, until, Db, LONG};
use requeue_postgres::{Builder, Error, PgQueue, Postgres, ReturnTo};
use tokio::task::JoinSet;

/// An item of a key: `a1` is of `a`.
fn unique(db: &Postgres, leased: bool) -> PgQueue<String> {
    builder(db, leased).build()
}

pub(crate) fn builder(db: &Postgres, leased: bool) -> Builder<String> {
    let builder = db.builder("q").max_attempts(9);
    let builder = builder.unique_by(|item: &String| item[..1].into());
    if leased {
        builder.leased(60 * LONG)
    } else {
        builder
    }
}

/// Waits for the next item, and commits.
pub(crate) async fn done(db: &Db, queue: &PgQueue<String>) -> String {
    let mut tx = db.begin().await.unwrap();
    let item = tx.pop_wait(queue, LONG).await.unwrap().unwrap();
    tx.commit().await.unwrap();
    item.into_inner()
}

pub(crate) fn is_duplicate<T: std::fmt::Debug>(ended: Result<T, Error>, key: &str) -> bool {
    matches!(ended.unwrap_err(), Error::Duplicate(of) if &*of == key)
}

/// Whether a push of the key `a` is refused, in each of the ways to push.
async fn is_taken(db: &Db, queue: &PgQueue<String>) -> bool {
    let item = || "a9".to_string();
    let mut tx = db.begin().await.unwrap();
    let staged = tx.push(queue, item()).await;
    tx.abort().await.unwrap();
    match queue.push(item()).await {
        Ok(ticket) => {
            staged.unwrap();
            assert!(queue.cancel(ticket).await.unwrap().is_some());
            false
        }
        refused => is_duplicate(refused, "a") && is_duplicate(staged, "a"),
    }
}

#[tokio::test]
async fn a_key_is_taken_while_its_item_is_in_the_queue_or_held() {
    for leased in [false, true] {
        let db = Db::new().await;
        let queue = unique(&db, leased);
        let ticket = queue.push("a1".into()).await.unwrap();
        assert!(is_taken(&db, &queue).await);
        queue.push("b1".into()).await.unwrap();
        let other: PgQueue<String> = db.builder("other").unique_by(String::clone).build();
        other.push("a".into()).await.unwrap();
        for to in [ReturnTo::Head, ReturnTo::Tail] {
            let mut tx = db.begin().await.unwrap();
            let items = tx.pop_batch(&queue, 9).await.unwrap();
            assert!(is_taken(&db, &queue).await);
            for item in items.into_iter().filter(|item| item.starts_with('a')) {
                tx.retry_to(item, to).unwrap();
            }
            tx.commit().await.unwrap();
            assert!(is_taken(&db, &queue).await);
        }
        let mut tx = db.begin().await.unwrap();
        let item = tx.pop(&queue).await.unwrap().unwrap();
        assert!(is_taken(&db, &queue).await); // by its second place
        tx.retry_after(item, LONG).unwrap();
        tx.commit().await.unwrap();
        assert!(is_taken(&db, &queue).await);
        assert!(queue.cancel(ticket).await.unwrap().is_some());
        assert!(!is_taken(&db, &queue).await);
        assert_eq!(other.stats().await.unwrap().ready, 1);
    }
}

#[tokio::test]
async fn a_key_is_free_when_its_item_is_gone_for_good() {
    for leased in [false, true] {
        let db = Db::new().await;
        let (now, later) = (unique(&db, leased), builder(&db, leased).unique_for(LONG));
        let later = later.build();
        let ways = [(&now, 0), (&now, 1), (&later, 1), (&later, 2), (&later, 3)];
        for (queue, way) in ways {
            queue.expires_in(LONG).push("a1".into()).await.unwrap();
            let mut tx = db.begin().await.unwrap();
            match way {
                0 => drop(tx.pop(queue).await.unwrap().unwrap()),
                1 => {
                    let item = tx.pop(queue).await.unwrap().unwrap();
                    tx.fail(item, "no").unwrap();
                }
                2 => assert_eq!(queue.clear_all().await.unwrap(), 1),
                _ => {
                    db.execute("update @.ready set expires = now()").await;
                    until(|| async { queue.stats().await.unwrap().timed_out == 1 }).await;
                }
            }
            tx.commit().await.unwrap();
            assert!(!is_taken(&db, queue).await, "{way}");
        }
    }
}

/// Of all items of a commit; and only that of the last one of a key.
#[tokio::test]
async fn a_key_stays_taken_for_a_time_after_a_commit() {
    for leased in [false, true] {
        let db = Db::new().await;
        let queue = builder(&db, leased).unique_for(LONG).build();
        for used in [false, true] {
            queue.push_batch(["b1".into(), "a1".into()]).await.unwrap();
            let mut tx = db.begin().await.unwrap();
            assert_eq!(tx.pop_batch(&queue, 9).await.unwrap().len(), 2);
            tx.abort().await.unwrap();
            let mut tx = db.begin().await.unwrap();
            assert_eq!(tx.pop_batch(&queue, 9).await.unwrap().len(), 2, "{used}");
            tx.push(&queue, "c1".into()).await.unwrap();
            tx.commit().await.unwrap();
            assert!(is_taken(&db, &queue).await);
            assert!(is_duplicate(queue.push("b2".into()).await, "b"));
            assert_eq!(done(&db, &queue).await, "c1");
            db.execute("update @.uniques set until = now()").await;
            assert!(!is_taken(&db, &queue).await);
        }
        // The letter of an earlier item, which is requeued: it is committed alone, or with the last one.
        for both in [false, true] {
            queue.push("a1".into()).await.unwrap();
            let mut tx = db.begin().await.unwrap();
            let item = tx.pop(&queue).await.unwrap().unwrap();
            tx.fail(item, "no").unwrap();
            tx.commit().await.unwrap();
            let ticket = queue.push("a2".into()).await.unwrap();
            assert_eq!(queue.dead_letters().requeue_all().await.unwrap(), 1);
            if both {
                let mut tx = db.begin().await.unwrap();
                assert_eq!(tx.pop_batch(&queue, 9).await.unwrap().len(), 2);
                tx.commit().await.unwrap();
            } else {
                assert_eq!(done(&db, &queue).await, "a1");
                assert!(queue.cancel(ticket).await.unwrap().is_some());
            }
            assert_eq!(is_taken(&db, &queue).await, both);
        }
    }
}

#[tokio::test]
async fn a_key_that_cannot_be_computed_again_is_free() {
    let db = Db::new().await;
    let key = |item: &u32| if *item == 0 { panic!("no") } else { "a".into() };
    let strict: PgQueue<u32> = db.builder("q").unique_by(key).unique_for(LONG).build();
    let queue: PgQueue<u32> = db.builder("q").unique_by(|_| "a".into()).build();
    queue.push(0).await.unwrap();
    for item in [0, 1] {
        let mut tx = db.begin().await.unwrap();
        assert_eq!(*tx.pop(&strict).await.unwrap().unwrap(), item);
        tx.commit().await.unwrap();
        assert_eq!(queue.push(1).await.is_ok(), item == 0);
    }
}

#[tokio::test]
async fn a_batch_with_a_duplicate_is_refused_as_a_whole() {
    let db = Db::new().await;
    let queue = unique(&db, false);
    let batch = |items: &str| items.split(' ').map(str::to_string).collect::<Vec<_>>();
    queue.push("a1".into()).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    for (items, key) in [("b1 a2", "a"), ("b1 c1 c2", "c")] {
        assert!(is_duplicate(queue.push_batch(batch(items)).await, key));
        assert!(is_duplicate(tx.push_batch(&queue, batch(items)).await, key));
    }
    tx.push_batch(&queue, Vec::new()).await.unwrap();
    tx.push_batch(&queue, batch("b1 c1")).await.unwrap();
    assert!(is_duplicate(tx.push(&queue, "b2".into()).await, "b"));
    assert_eq!((tx.staged(), queue.stats().await.unwrap().ready), (2, 1));
    tx.commit().await.unwrap();
    assert_eq!(queue.stats().await.unwrap().ready, 3);
    let invalid: PgQueue<String> = db.builder("q").unique_by(|_| String::new()).build();
    assert!(matches!(invalid.push("a".into()).await, Err(Error::Key(_))));
}

#[tokio::test]
async fn a_commit_fails_if_its_key_was_taken_meanwhile() {
    for leased in [false, true] {
        let db = Db::new().await;
        let queue = unique(&db, leased);
        queue.push("b1".into()).await.unwrap();
        let mut tx = db.begin().await.unwrap();
        tx.pop(&queue).await.unwrap().unwrap();
        tx.push(&queue, "a1".into()).await.unwrap();
        queue.push("a2".into()).await.unwrap();
        assert!(is_duplicate(tx.commit().await, "a"));
        until(|| async { queue.stats().await.unwrap().held == 0 }).await;
        let mut tx = db.begin().await.unwrap();
        let items = tx.pop_batch(&queue, 9).await.unwrap();
        let items: Vec<_> = items.iter().map(|item| item.as_str()).collect();
        assert_eq!(items, ["b1", "a2"]);
    }
}

/// The first one to push waits for its commit; a key that is free may have been that of another item.
#[tokio::test]
async fn a_push_waits_for_another_one_of_its_key_that_may_abort() {
    for used in [false, true] {
        for commits in [false, true] {
            let db = Db::new().await;
            let queue = unique(&db, false);
            if used {
                queue.push("a0".into()).await.unwrap();
                assert_eq!(queue.clear_all().await.unwrap(), 1);
            }
            let mut outside = client().await;
            let outer = outside.transaction().await.unwrap();
            let mut inner = db.within(&outer).await.unwrap();
            inner.push(&queue, "a1".into()).await.unwrap();
            inner.commit().await.unwrap();
            let waits = queue.push("a2".into());
            let waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'
                and query like '%\"@\".uniques%'";
            let ends = async {
                until(|| async { db.number(waiting).await == 1 }).await;
                if commits {
                    outer.commit().await.unwrap();
                } else {
                    outer.rollback().await.unwrap();
                }
            };
            let (pushed, ()) = tokio::join!(waits, ends);
            assert_eq!(pushed.is_ok(), !commits, "{pushed:?}");
            assert_eq!(queue.stats().await.unwrap().ready, 1);
        }
    }
}

/// Several processes push the same key, and take it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn there_is_one_item_of_a_key_at_a_time() {
    const PUSHES: usize = 40;
    let db = Db::new().await;
    let mut pushers = JoinSet::new();
    for process in 0..3 {
        let queue = unique(&db.other().await, process == 0);
        pushers.spawn(async move {
            let mut pushed = 0;
            for _ in 0..PUSHES {
                match queue.push("a".into()).await {
                    Ok(_) => pushed += 1,
                    refused => assert!(is_duplicate(refused, "a")),
                }
            }
            pushed
        });
    }
    let queue = unique(&db, true);
    let (mut pushed, mut taken) = (0, 0);
    loop {
        let ended = pushers.is_empty();
        let mut tx = db.begin().await.unwrap();
        let items = tx.pop_batch(&queue, 9).await.unwrap().len();
        assert!(items <= 1, "{items}");
        tx.commit().await.unwrap();
        taken += items;
        while let Some(ended) = pushers.try_join_next() {
            pushed += ended.unwrap();
        }
        if items == 0 && ended {
            break;
        }
    }
    assert_eq!(taken, pushed);
    assert!(taken > 0);
}

#[tokio::test]
async fn free_keys_are_forgotten() {
    let db = Db::new().await;
    let queue = unique(&db, false);
    for item in ["d1", "a1", "b1", "c1"] {
        queue.push(item.into()).await.unwrap();
    }
    done(&db, &builder(&db, false).unique_for(LONG).build()).await;
    done(&db, &queue).await;
    let other = db.other().await;
    let leased = unique(&other, true);
    let mut tx = other.begin().await.unwrap();
    tx.pop(&leased).await.unwrap().unwrap(); // starts the task in the background, which sweeps first
    until(|| async { db.number("select count(*) from @.uniques").await == 3 }).await;
    assert!(is_duplicate(queue.push("d2".into()).await, "d"));
    assert!(is_duplicate(queue.push("b2".into()).await, "b"));
    assert!(is_duplicate(queue.push("c2".into()).await, "c"));
    queue.push("a2".into()).await.unwrap();
}
