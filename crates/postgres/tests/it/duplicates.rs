//! Items that replace others with their keys, or follow them.

use crate::unique::{builder, done, is_duplicate};
use crate::{client, until, Db, LONG};
use requeue_postgres::{Error, OnDuplicate, PgQueue, PgTransaction, Postgres, ReturnTo, Ticket};
use tokio::task::JoinSet;

/// A queue of both rules, with locks and leases.
async fn each() -> Vec<(Db, OnDuplicate, PgQueue<String>)> {
    let mut all = Vec::new();
    for leased in [false, true] {
        for rule in [OnDuplicate::Replace, OnDuplicate::Follow] {
            let db = Db::new().await;
            let queue = builder(&db, leased).on_duplicate(rule).build();
            all.push((db, rule, queue));
        }
    }
    all
}

/// Pushes an item in one of the ways to push.
async fn push(db: &Db, queue: &PgQueue<String>, item: &str, way: usize) -> Result<Ticket, Error> {
    if way == 0 {
        return queue.push(item.into()).await;
    }
    let mut tx = db.begin().await.unwrap();
    tx.push(queue, item.into()).await.unwrap();
    if way == 1 {
        tx.client().execute("select 1", &[]).await.unwrap();
    }
    Ok(tx.commit().await?[0])
}

async fn take<'c>(db: &Db, queue: &PgQueue<String>, item: &str) -> PgTransaction<'c> {
    let mut tx = db.begin().await.unwrap();
    let taken = tx.pop(queue).await.unwrap();
    assert_eq!(taken.as_ref().map(|item| item.as_str()), Some(item));
    tx
}

async fn is_empty(db: &Db, queue: &PgQueue<String>) -> bool {
    let mut tx = db.begin().await.unwrap();
    let taken = tx.pop(queue).await.unwrap();
    tx.abort().await.unwrap();
    taken.is_none()
}

#[tokio::test]
async fn a_ready_item_is_replaced_at_its_place() {
    for (db, _, queue) in each().await {
        let ticket = queue.priority(7).push("a1".into()).await.unwrap();
        queue.priority(8).push("b1".into()).await.unwrap();
        let mut value = 1;
        for to in [ReturnTo::Head, ReturnTo::Tail] {
            for way in 0..3 {
                value += 1;
                let pushed = push(&db, &queue, &format!("a{value}"), way).await.unwrap();
                assert_eq!(pushed, ticket);
            }
            assert_eq!(queue.stats().await.unwrap().ready, 2);
            let mut tx = db.begin().await.unwrap();
            let item = tx.pop(&queue).await.unwrap().unwrap();
            let expected = if to == ReturnTo::Head { (4, 1) } else { (7, 2) };
            assert_eq!(
                (&**item, item.attempts()),
                (&*format!("a{}", expected.0), expected.1)
            );
            assert_eq!(item.ticket(), ticket);
            tx.retry_to(item, to).unwrap();
            tx.commit().await.unwrap();
        }
        // By its second place.
        let batch = ["c1".to_string(), "a8".into(), "b2".into()];
        assert_eq!(queue.push_batch(batch).await.unwrap()[1], ticket);
        for item in ["a8", "b2", "c1"] {
            assert_eq!(done(&db, &queue).await, item);
        }
        assert!(is_empty(&db, &queue).await);
        assert_ne!(queue.push("a9".into()).await.unwrap(), ticket);
        assert_eq!(done(&db, &queue).await, "a9");
    }
}

#[tokio::test]
async fn a_delayed_item_is_replaced_and_its_time_stays() {
    for (db, _, queue) in each().await {
        let ticket = queue.after(LONG).push("a1".into()).await.unwrap();
        for way in 0..3 {
            assert_eq!(push(&db, &queue, "a2", way).await.unwrap(), ticket);
        }
        assert_eq!(
            queue.after(2 * LONG).push("a3".into()).await.unwrap(),
            ticket
        );
        assert!(is_empty(&db, &queue).await);
        assert_eq!(queue.stats().await.unwrap().delayed, 1);
        db.execute("update @.delayed set until = until - interval '1 minute'")
            .await;
        assert_eq!(done(&db, &queue).await, "a3");
    }
}

/// Whoever makes it ready has locked it.
#[tokio::test]
async fn an_item_is_replaced_while_it_is_made_ready() {
    for (db, _, queue) in each().await {
        let ticket = queue.after(LONG).push("a1".into()).await.unwrap();
        let mut outside = client().await;
        let promoter = outside.transaction().await.unwrap();
        let promote = "with due as (delete from @.delayed returning *)
            insert into @.ready (id, queue, priority, attempts, json, bytes, pushed)
            select id, queue, priority, attempts, json, bytes, pushed from due";
        let promote = promote.replace('@', &db.schema);
        promoter.batch_execute(&promote).await.unwrap();
        let waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'
            and query like '%\"@\".lock_uniques%'";
        let ends = async {
            until(|| async { db.number(waiting).await == 1 }).await;
            promoter.commit().await.unwrap();
        };
        let (pushed, ()) = tokio::join!(queue.push("a2".into()), ends);
        assert_eq!(pushed.unwrap(), ticket);
        assert_eq!(done(&db, &queue).await, "a2");
        assert!(is_empty(&db, &queue).await);
    }
}

#[tokio::test]
async fn a_push_of_two_items_of_a_key_is_refused() {
    for (db, _, queue) in each().await {
        queue.push("a0".into()).await.unwrap();
        let batch = || ["b1".to_string(), "a1".into(), "a2".into()];
        assert!(is_duplicate(queue.push_batch(batch()).await, "a"));
        let mut tx = db.begin().await.unwrap();
        assert!(is_duplicate(tx.push_batch(&queue, batch()).await, "a"));
        tx.push(&queue, "a1".into()).await.unwrap();
        assert!(is_duplicate(tx.push(&queue, "a2".into()).await, "a"));
        tx.abort().await.unwrap();
        assert_eq!(done(&db, &queue).await, "a0");
    }
}

#[tokio::test]
async fn a_held_item_is_not_replaced() {
    for (db, rule, queue) in each().await {
        queue.push("a1".into()).await.unwrap();
        let tx = take(&db, &queue, "a1").await;
        for way in 0..3 {
            let pushed = push(&db, &queue, "a2", way).await;
            match rule {
                OnDuplicate::Replace => assert!(is_duplicate(pushed, "a")),
                _ => drop(pushed.unwrap()),
            }
        }
        tx.abort().await.unwrap();
        let mut tx = take(&db, &queue, "a1").await;
        // But by whoever holds it: for its commit it is gone.
        let mine: PgQueue<String> = builder(&db, false).on_duplicate(rule).build();
        tx.push(&mine, "a3".into()).await.unwrap();
        tx.commit().await.unwrap();
        let mut tx = db.begin().await.unwrap();
        let again = tx.pop_wait(&queue, LONG).await.unwrap().unwrap();
        assert_eq!(*again, "a3");
        tx.retry(again).unwrap();
        tx.push(&queue, "a4".into()).await.unwrap();
        tx.commit().await.unwrap();
        let mut tx = db.begin().await.unwrap();
        let again = tx.pop(&queue).await.unwrap().unwrap();
        assert_eq!((&**again, again.attempts()), ("a4", 2));
        tx.commit().await.unwrap();
        assert!(is_empty(&db, &queue).await);
    }
}

/// Although the key of what it commits is to stay taken.
#[tokio::test]
async fn a_commit_passes_its_key_on_to_what_it_pushes() {
    for leased in [false, true] {
        for rule in [OnDuplicate::Replace, OnDuplicate::Follow] {
            let db = Db::new().await;
            let builder = builder(&db, leased).on_duplicate(rule);
            let queue = builder.unique_for(LONG).build();
            queue.push("a1".into()).await.unwrap();
            let mut tx = take(&db, &queue, "a1").await;
            tx.push(&queue, "a2".into()).await.unwrap();
            let ticket = tx.commit().await.unwrap()[0];
            assert_eq!(queue.push("a3".into()).await.unwrap(), ticket);
            assert_eq!(done(&db, &queue).await, "a3");
            assert!(is_duplicate(queue.push("a4".into()).await, "a"));
        }
    }
}

#[tokio::test]
async fn a_transaction_of_the_user_undoes_a_replacement() {
    for (db, _, queue) in each().await {
        queue.push("a1".into()).await.unwrap();
        let mut outside = client().await;
        for (commits, item) in [(false, "a1"), (true, "a2")] {
            let outer = outside.transaction().await.unwrap();
            let mut inner = db.within(&outer).await.unwrap();
            inner.push(&queue, "a2".into()).await.unwrap();
            inner.commit().await.unwrap();
            if commits {
                outer.commit().await.unwrap();
            } else {
                outer.rollback().await.unwrap();
            }
            let tx = take(&db, &queue, item).await;
            tx.abort().await.unwrap();
        }
    }
}

/// A queue whose items follow others, in which `a2` follows `a1`, which is held.
async fn followed<'c>(leased: bool) -> (Db, PgQueue<String>, PgTransaction<'c>, Ticket) {
    let db = Db::new().await;
    let builder = builder(&db, leased).on_duplicate(OnDuplicate::Follow);
    let queue = builder.unique_for(LONG).build();
    queue.push("a1".into()).await.unwrap();
    let tx = take(&db, &queue, "a1").await;
    let ticket = queue.push("a2".into()).await.unwrap();
    (db, queue, tx, ticket)
}

#[tokio::test]
async fn an_item_follows_when_the_held_one_is_gone_for_good() {
    for leased in [false, true] {
        for commits in [false, true] {
            let (db, queue, tx, ticket) = followed(leased).await;
            assert!(is_empty(&db, &queue).await);
            let stats = queue.stats().await.unwrap();
            assert_eq!(stats.delayed, 1);
            tx.abort().await.unwrap();
            let mut tx = take(&db, &queue, "a1").await;
            for way in 0..3 {
                assert_eq!(push(&db, &queue, "a3", way).await.unwrap(), ticket);
            }
            // It stays, whatever removes other items.
            assert_eq!(queue.cancel(ticket).await.unwrap(), None);
            let forgets = |item: &String, _| item != "a1" && panic!("{item} is seen");
            assert_eq!(queue.retain(forgets).await.unwrap(), 0);
            assert_eq!(queue.clear_all().await.unwrap(), 0);
            assert!(is_empty(&db, &queue).await);
            if !commits {
                drop(tx);
                until(|| async { queue.stats().await.unwrap().held == 0 }).await;
                tx = db.begin().await.unwrap();
                let item = tx.pop_wait(&queue, LONG).await.unwrap().unwrap();
                assert_eq!(*item, "a1");
                tx.fail(item, "no").unwrap();
            }
            tx.commit().await.unwrap();
            until(|| async { queue.stats().await.unwrap().ready == 1 }).await;
            // The key stays taken by the last item, not by the first one.
            assert_eq!(queue.push("a4".into()).await.unwrap(), ticket);
            assert_eq!(done(&db, &queue).await, "a4");
            for way in 0..3 {
                assert!(is_duplicate(push(&db, &queue, "a5", way).await, "a"));
            }
        }
    }
}

#[tokio::test]
async fn an_item_that_follows_is_due_at_its_time() {
    for leased in [false, true] {
        let (db, queue, tx, _) = followed(leased).await;
        let mut both = db.begin().await.unwrap();
        queue.push("b1".into()).await.unwrap();
        assert_eq!(*both.pop(&queue).await.unwrap().unwrap(), "b1");
        queue.after(LONG).push("b2".into()).await.unwrap();
        tx.commit().await.unwrap();
        both.commit().await.unwrap();
        assert_eq!(done(&db, &queue).await, "a2");
        assert!(is_empty(&db, &queue).await);
        db.execute("update @.delayed set until = now()").await;
        assert_eq!(done(&db, &queue).await, "b2");
    }
}

/// Of this process and of others, without a push.
#[tokio::test]
async fn a_waiter_gets_what_follows() {
    for leased in [false, true] {
        for elsewhere in [false, true] {
            let (db, queue, tx, _) = followed(leased).await;
            let other = if elsewhere {
                db.other().await
            } else {
                db.db.clone()
            };
            let others: PgQueue<String> = builder(&other, leased).build();
            let mut waits = other.begin().await.unwrap();
            let gets = waits.pop_wait(&others, LONG);
            let ends = async {
                until(|| async { others.stats().await.unwrap().waiting == 1 }).await;
                tx.commit().await.unwrap();
            };
            let (item, ()) = tokio::join!(gets, ends);
            assert_eq!(*item.unwrap().unwrap(), "a2");
            drop(queue);
        }
    }
}

/// One follows the other if that was not seen to be held, also while an item is moved, replaced and taken.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_push_is_delivered_and_none_is_refused() {
    const PUSHES: u32 = 60;
    const PUSHERS: usize = 3;
    let db = Db::new().await;
    let of = |db: &Postgres, leased| -> PgQueue<(usize, u32)> {
        let builder = db.builder("q").unique_by(|_| "a".into());
        let builder = builder.on_duplicate(OnDuplicate::Follow);
        if leased {
            builder.leased(60 * LONG).build()
        } else {
            builder.build()
        }
    };
    let mut pushers = JoinSet::new();
    for process in 0..PUSHERS {
        let (db, queue) = (db.other().await, of(&db.other().await, false));
        pushers.spawn(async move {
            for number in 0..PUSHES {
                let mut tx = db.begin().await.unwrap();
                tx.push(&queue, (process, number)).await.unwrap();
                tx.commit().await.unwrap();
            }
        });
    }
    let queues = [of(&db, false), of(&db, true)];
    let (mut last, mut next) = (None, [0; PUSHERS]);
    for turn in 0.. {
        let ended = pushers.is_empty();
        let queue = &queues[turn % 2];
        let mut tx = db.begin().await.unwrap();
        let items = tx.pop_batch(queue, 9).await.unwrap();
        assert!(items.len() <= 1, "{items:?}");
        let Some(item) = items.into_iter().next() else {
            tx.abort().await.unwrap();
            let stats = queue.stats().await.unwrap();
            if ended && stats.ready + stats.delayed + stats.held == 0 {
                break;
            }
            while let Some(ended) = pushers.try_join_next() {
                ended.unwrap();
            }
            continue;
        };
        let (pusher, number) = *item;
        if turn % 3 == 0 {
            tx.retry_to(item, ReturnTo::Tail).unwrap();
        } else {
            assert!(number >= next[pusher], "{pusher}: {number} after {next:?}");
            next[pusher] = number + 1;
            last = Some(number);
        }
        tx.commit().await.unwrap();
    }
    assert_eq!(last, Some(PUSHES - 1));
}
