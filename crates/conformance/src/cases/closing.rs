//! Queues that are closed.

use crate::steps::{cause, eventually, fail, filled, left, popping, push, Steps};
use crate::{Settings, Subject};
use requeue::backend::{Backend, Settlement, Tx};
use requeue::{Wait, Workers};

/// Closes a queue that can be closed.
async fn close<B: Backend>(queue: &B) {
    assert!(queue.close().await.unwrap());
}

pub async fn a_queue_is_closed<S: Subject>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    assert!(!queue.is_closed());
    close(&queue).await;
    assert!(queue.is_closed());
    assert!(queue.clone().is_closed());
}

pub async fn it_may_be_closed_twice<S: Subject>(subject: &S) {
    let queue = filled(subject, [1]).await;
    close(&queue).await;
    close(&queue).await;
    assert!(queue.is_closed());
    let mut tx = queue.begin(None);
    assert_eq!(tx.take().await, 1);
    tx.done().await;
    assert!(tx.pop(Wait::Forever).await.unwrap().is_none());
}

pub async fn it_accepts_nothing_more<S: Subject>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    close(&queue).await;
    let mut tx = queue.begin(None);
    for wait in [Wait::Never, Wait::Forever] {
        assert!(tx.push(1, wait).await.is_err());
    }
    tx.done().await;
    assert_eq!(left(&queue).await, 0);
}

pub async fn its_items_are_delivered_and_then_none<S: Subject>(subject: &S) {
    let queue = filled(subject, [1, 2]).await;
    close(&queue).await;
    let mut tx = queue.begin(None);
    assert_eq!(tx.take_each(2).await, [1, 2]);
    tx.done().await;
    assert!(tx.pop(Wait::Forever).await.unwrap().is_none());
    let batch = tx.pop_batch(3, Wait::Forever).await.unwrap();
    assert!(batch.is_empty());
}

pub async fn it_accepts_follow_ups<S: Subject>(subject: &S) {
    let queue = filled(subject, [3]).await;
    close(&queue).await;
    let mut tx = queue.begin(None);
    let mut taken = Vec::new();
    while let Some(item) = tx.pop(Wait::Forever).await.unwrap().map(|item| *item) {
        taken.push(item);
        if item > 0 {
            tx.stage([item - 1]).await;
        }
        tx.done().await;
    }
    assert_eq!(taken, [3, 2, 1, 0]);
}

pub async fn the_close_wakes_all_who_wait<S: Subject>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    let (first, second) = (queue.begin(None), queue.begin(None));
    let one = popping::<S>(&queue, &first, Wait::Forever).await;
    let other = popping::<S>(&queue, &second, Wait::For(crate::LONG)).await;
    close(&queue).await;
    assert_eq!(one.output().await, None);
    assert_eq!(other.output().await, None);
}

pub async fn a_waiter_learns_of_the_last_commit<S: Subject>(subject: &S) {
    let queue = filled(subject, [1]).await;
    let (tx, mut holder) = (queue.begin(None), queue.begin(None));
    holder.take().await;
    close(&queue).await;
    let waiting = popping::<S>(&queue, &tx, Wait::Forever).await;
    holder.done().await;
    assert_eq!(waiting.output().await, None);
}

pub async fn a_waiter_gets_items_aborted_after_the_close<S: Subject>(subject: &S) {
    let queue = filled(subject, [1]).await;
    let (tx, mut holder) = (queue.begin(None), queue.begin(None));
    holder.take().await;
    close(&queue).await;
    let waiting = popping::<S>(&queue, &tx, Wait::Forever).await;
    holder.undo().await;
    assert_eq!(waiting.output().await, Some(1));
}

pub async fn a_waiter_gets_follow_ups<S: Subject>(subject: &S) {
    let queue = filled(subject, [1]).await;
    let (mut tx, mut holder) = (queue.begin(None), queue.begin(None));
    holder.take().await;
    close(&queue).await;
    let waiting = popping::<S>(&queue, &tx, Wait::Forever).await;
    holder.stage([2]).await;
    holder.done().await;
    assert_eq!(waiting.output().await, Some(2));
    tx.done().await;
    assert!(holder.pop(Wait::Forever).await.unwrap().is_none());
}

pub async fn a_waiter_learns_of_the_last_letter<S: Subject>(subject: &S) {
    let queue = filled(subject, [1]).await;
    let (tx, mut holder) = (queue.begin(None), queue.begin(None));
    let held = holder.pop(Wait::Forever).await.unwrap().expect("an item");
    close(&queue).await;
    let waiting = popping::<S>(&queue, &tx, Wait::Forever).await;
    let settled = holder.settle(held, fail("no"));
    settled.map_err(<S::Queue as Backend>::Error::from).unwrap();
    holder.done().await;
    assert_eq!(waiting.output().await, None);
}

pub async fn delayed_items_are_waited_for<S: Subject>(subject: &S) {
    let queue = filled(subject, [1]).await;
    let mut tx = queue.begin(None);
    tx.settle_next(Settlement::RetryAfter(S::SHORT)).await;
    tx.done().await;
    close(&queue).await;
    let mut other = queue.begin(None);
    if S::MANUAL {
        let waiting = popping::<S>(&queue, &tx, Wait::Forever).await;
        subject.pass(S::SHORT).await;
        assert_eq!(waiting.output().await, Some(1));
    } else {
        assert_eq!(tx.take().await, 1);
    }
    tx.done().await;
    assert!(other.pop(Wait::Forever).await.unwrap().is_none());
    other.done().await;
}

pub async fn retries_are_accepted<S: Subject>(subject: &S) {
    let queue = filled(subject, [1]).await;
    close(&queue).await;
    let mut tx = queue.begin(None);
    tx.settle_next(Settlement::Retry).await;
    tx.done().await;
    assert_eq!(tx.take().await, 1);
    tx.abort(cause("no")).await.unwrap();
    assert_eq!(tx.take().await, 1);
}

pub async fn a_refused_push_leaves_the_transaction_open<S: Subject>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    let mut tx = queue.begin(None);
    close(&queue).await;
    let refused = tx.push(1, Wait::Never).await.unwrap_err();
    assert!(!S::Queue::is_fatal(&refused));
    assert!(!refused.to_string().is_empty());
    assert!(!tx.done().await);
    tx.undo().await;
    assert_eq!(tx.look().await, None);
}

pub async fn a_pool_ends_when_nothing_is_left<S: Subject>(subject: &S) {
    let queue = filled(subject, [0, 1, 2]).await;
    let tasks = Workers::builder(&queue)
        .tasks(2)
        .run_async(|_, _| async { Ok::<(), ()>(()) });
    close(&queue).await;
    let report = tasks.join().await;
    assert_eq!((report.done, report.failed, report.left), (3, 0, 0));
}

pub async fn a_pool_runs_follow_ups<S: Subject>(subject: &S) {
    let queue = filled(subject, [3]).await;
    close(&queue).await;
    let tasks = Workers::builder(&queue)
        .tasks(1)
        .run_async(|item, tx| async move {
            match *item {
                0 => Ok(()),
                number => S::push_in(&tx, number - 1).await,
            }
        });
    assert_eq!(tasks.join().await.done, 4);
}

pub async fn a_pool_that_begins_after_the_end_ends<S: Subject>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    close(&queue).await;
    let tasks = Workers::builder(&queue)
        .tasks(2)
        .run_async(|_, _| async { Ok::<(), ()>(()) });
    assert_eq!(tasks.join().await.done, 0);
    eventually(async || left(&queue).await == 0).await;
}

pub async fn pushes_before_the_close_are_kept<S: Subject>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    push(&queue, [1]).await;
    close(&queue).await;
    assert_eq!(left(&queue).await, 1);
    assert_eq!(queue.begin(None).take().await, 1);
}
