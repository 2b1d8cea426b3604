//! Queues that are closed at once: what is delayed is removed.

use crate::steps::{drains, filled, left, popping, Steps};
use crate::{Removal, Removing, Settings, LONG};
use requeue::backend::{Backend, Settlement, Tx};
use requeue::Wait;

pub async fn a_queue_is_closed_now<S: Removing>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    assert_eq!(S::remove(&queue, Removal::Later).await, 0);
    assert!(queue.is_closed());
    assert!(queue.begin(None).push(1, Wait::Never).await.is_err());
}

pub async fn ready_items_are_delivered<S: Removing>(subject: &S) {
    let queue = filled(subject, [1, 2, 3]).await;
    let mut tx = queue.begin(None);
    tx.settle_next(Settlement::RetryAfter(LONG)).await;
    tx.done().await;
    assert_eq!(S::remove(&queue, Removal::Later).await, 1);
    assert_eq!(left(&queue).await, 2);
    drains(&queue, &[2, 3]).await;
}

pub async fn a_pop_does_not_wait_for_delayed_items<S: Removing>(subject: &S) {
    let queue = filled(subject, [1]).await;
    let mut tx = queue.begin(None);
    tx.settle_next(Settlement::RetryAfter(LONG)).await;
    tx.done().await;
    let waiting = popping::<S>(&queue, &tx, Wait::Forever).await;
    assert_eq!(S::remove(&queue, Removal::Later).await, 1);
    assert_eq!(waiting.output().await, None);
}

pub async fn what_was_retried_later_is_removed_by_another_call<S: Removing>(subject: &S) {
    let queue = filled(subject, [1]).await;
    let mut tx = queue.begin(None);
    let item = tx.pop(Wait::Never).await.unwrap().expect("an item");
    assert_eq!(S::remove(&queue, Removal::Later).await, 0);
    tx.settle_held(item, Settlement::RetryAfter(LONG));
    tx.done().await;
    assert_eq!(left(&queue).await, 1);
    assert_eq!(S::remove(&queue, Removal::Later).await, 1);
    assert!(tx.pop(Wait::Forever).await.unwrap().is_none());
}
