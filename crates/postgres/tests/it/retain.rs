//! Items that are removed where they are.

use crate::{client, Db, LONG};
use requeue_postgres::{PgItem, PgQueue};

fn queue(db: &Db, leased: bool) -> PgQueue<u32> {
    let builder = db.builder("q").max_attempts(9);
    if leased {
        builder.leased(60 * LONG).build()
    } else {
        builder.build()
    }
}

#[tokio::test]
async fn items_that_nobody_holds_are_removed_and_the_others_keep_their_places() {
    for leased in [false, true] {
        let db = Db::new().await;
        let queue = queue(&db, leased);
        queue.push_batch(0..250).await.unwrap();
        queue.priority(1).push_batch(250..360).await.unwrap();
        queue.after(LONG).push_batch(360..470).await.unwrap();
        let other: PgQueue<u32> = db.queue("other");
        other.push(0).await.unwrap();
        let mut holds = db.begin().await.unwrap();
        assert_eq!(holds.pop_batch(&queue, 3).await.unwrap().len(), 3); // 250 to 252
        queue.pause().await.unwrap();
        let mut seen = Vec::new();
        let removed = queue.retain(|item, queued| {
            seen.push((*item, queued.due.is_some()));
            item % 2 == 0
        });
        assert_eq!(removed.await.unwrap(), 125 + 54 + 55);
        let held = if leased { 253 } else { 250 }; // those that are locked are shown, and stay
        let order = (360..470).chain(held..360).chain(0..250);
        let expected: Vec<_> = order.map(|item| (item, item >= 360)).collect();
        assert_eq!(seen, expected);
        queue.resume().await.unwrap();
        holds.abort().await.unwrap();
        db.execute("update @.delayed set until = now()").await;
        let mut left = Vec::new();
        let mut tx = db.begin().await.unwrap();
        loop {
            let items = tx.pop_batch(&queue, 500).await.unwrap();
            if items.is_empty() {
                break;
            }
            left.extend(items.into_iter().map(PgItem::into_inner));
        }
        let odd = [251];
        let first = (250..253).filter(|item| item % 2 == 0 || odd.contains(item));
        let rest = (254..360).chain(0..250).chain(360..470);
        let expected: Vec<u32> = first.chain(rest.filter(|item| item % 2 == 0)).collect();
        assert_eq!(left, expected);
        assert_eq!(other.stats().await.unwrap().ready, 1);
    }
}

#[tokio::test]
async fn what_is_known_of_an_item_is_shown() {
    for leased in [false, true] {
        let db = Db::new().await;
        let queue = queue(&db, leased);
        let ticket = queue.push(1).await.unwrap();
        for _ in 0..2 {
            let mut tx = db.begin().await.unwrap();
            tx.pop_wait(&queue, LONG).await.unwrap().unwrap();
            tx.abort().await.unwrap();
        }
        db.queue::<String>("q").push("one".into()).await.unwrap(); // cannot be decoded
        let mut seen = Vec::new();
        let removed = queue.retain(|_, queued| {
            seen.push((queued.ticket, queued.attempts));
            queued.attempts < 2
        });
        assert_eq!(removed.await.unwrap(), 1);
        assert_eq!(seen, [(ticket, 2)]);
        assert_eq!(db.number("select count(*) from @.attempts").await, 0);
        assert_eq!(queue.stats().await.unwrap().ready, 1);
        assert_eq!(queue.clear_all().await.unwrap(), 1);
    }
}

/// While `keep` is called, nothing is locked; a panic leaves everything as it is.
#[tokio::test(flavor = "multi_thread")]
async fn user_code_runs_without_a_lock_and_may_panic() {
    let db = Db::new().await;
    let queue = queue(&db, false);
    queue.push_batch([1, 2]).await.unwrap();
    let schema = db.schema.clone();
    let panics = queue.clone();
    let ended = tokio::spawn(async move {
        let keep = |_: &u32, _| -> bool {
            let locks = tokio::task::block_in_place(|| {
                let locks = format!("lock table {schema}.ready in access exclusive mode nowait");
                let locks = async {
                    client()
                        .await
                        .batch_execute(&format!("begin; {locks}; commit"))
                        .await
                };
                tokio::runtime::Handle::current().block_on(locks)
            });
            locks.unwrap();
            panic!("a panic of the user");
        };
        panics.retain(keep).await
    });
    let panic = ended.await.unwrap_err().into_panic();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"a panic of the user"));
    assert_eq!(queue.stats().await.unwrap().ready, 2);
}

#[tokio::test]
async fn all_that_nobody_holds_is_removed() {
    for leased in [false, true] {
        let db = Db::new().await;
        let queue = queue(&db, leased);
        queue.push_batch(0..2_300).await.unwrap();
        queue.after(LONG).push_batch(0..1_200).await.unwrap();
        let other: PgQueue<u32> = db.queue("other");
        other.push(0).await.unwrap();
        other.after(LONG).push(0).await.unwrap();
        let mut tx = db.begin().await.unwrap();
        tx.pop(&queue).await.unwrap().unwrap();
        assert_eq!(queue.clear_all().await.unwrap(), 2_299 + 1_200);
        assert_eq!(queue.clear_all().await.unwrap(), 0);
        tx.abort().await.unwrap();
        assert_eq!(queue.stats().await.unwrap().ready, 1);
        let others = other.stats().await.unwrap();
        assert_eq!((others.ready, others.delayed), (1, 1));
    }
}
