//! Queues with a capacity.

use crate::steps::{drains, fail, filled_with, left, push, Steps};
use crate::waiting::Waiting;
use crate::{Settings, Subject, LONG};
use requeue::backend::{Backend, Settlement, Tx};
use requeue::Wait;

fn capacity(items: usize) -> Settings {
    Settings {
        capacity: Some(items),
        ..Settings::default()
    }
}

/// Checks that there is room for `items` items.
async fn has_room<B: Backend<Item = u32>>(queue: &B, items: usize) {
    let mut tx = queue.begin(None);
    for _ in 0..items {
        tx.push(9, Wait::Never).await.unwrap();
    }
    assert!(tx.push(9, Wait::Never).await.is_err());
    tx.undo().await;
}

pub async fn a_full_queue_refuses<S: Subject>(subject: &S) {
    let queue = filled_with(subject, capacity(2), [1, 2]).await;
    let mut tx = queue.begin(None);
    let refused = tx.push(3, Wait::Never).await.unwrap_err();
    assert!(!S::Queue::is_fatal(&refused));
    assert!(!refused.to_string().is_empty());
    tx.done().await;
    drains(&queue, &[1, 2]).await;
}

pub async fn staged_pushes_take_places<S: Subject>(subject: &S) {
    let queue = subject.queue(capacity(3)).await;
    let mut tx = queue.begin(None);
    tx.stage([1, 2]).await;
    has_room(&queue, 1).await;
    tx.undo().await;
    has_room(&queue, 3).await;
}

pub async fn a_held_item_keeps_its_place<S: Subject>(subject: &S) {
    let queue = filled_with(subject, capacity(1), [1]).await;
    let mut tx = queue.begin(None);
    tx.take().await;
    has_room(&queue, 0).await;
    tx.done().await;
    has_room(&queue, 1).await;
}

pub async fn an_aborted_item_keeps_its_place<S: Subject>(subject: &S) {
    let queue = filled_with(subject, capacity(1), [1]).await;
    let mut tx = queue.begin(None);
    tx.take().await;
    tx.undo().await;
    has_room(&queue, 0).await;
}

pub async fn a_retried_item_keeps_its_place<S: Subject>(subject: &S) {
    let queue = filled_with(subject, capacity(1), [1]).await;
    let mut tx = queue.begin(None);
    tx.settle_next(Settlement::RetryAfter(LONG)).await;
    tx.done().await;
    has_room(&queue, 0).await;
}

pub async fn a_letter_frees_its_place<S: Subject>(subject: &S) {
    let queue = filled_with(subject, capacity(1), [1]).await;
    let mut tx = queue.begin(None);
    tx.settle_next(fail("no")).await;
    tx.done().await;
    has_room(&queue, 1).await;
}

pub async fn a_follow_up_takes_the_place_of_its_item<S: Subject>(subject: &S) {
    let queue = filled_with(subject, capacity(1), [1]).await;
    let mut tx = queue.begin(None);
    assert_eq!(tx.take().await, 1);
    tx.stage([2]).await;
    assert!(tx.push(3, Wait::Never).await.is_err());
    tx.done().await;
    has_room(&queue, 0).await;
    drains(&queue, &[2]).await;
}

pub async fn a_refused_push_leaves_the_others<S: Subject>(subject: &S) {
    let queue = subject.queue(capacity(2)).await;
    let mut tx = queue.begin(None);
    tx.stage([1, 2]).await;
    assert!(tx.push(3, Wait::Never).await.is_err());
    tx.done().await;
    drains(&queue, &[1, 2]).await;
}

pub async fn a_push_waits_for_a_commit<S: Subject>(subject: &S) {
    let queue = filled_with(subject, capacity(1), [1]).await;
    let (mut producer, mut tx) = (queue.begin(None), queue.begin(None));
    tx.take().await;
    let pushing = producer.push(2, Wait::Forever);
    let waiting = Waiting::begin::<S>(&queue, async { pushing.await.unwrap() }).await;
    tx.done().await;
    waiting.output().await;
    producer.done().await;
    drains(&queue, &[2]).await;
}

pub async fn a_push_waits_for_the_abort_of_another<S: Subject>(subject: &S) {
    let queue = subject.queue(capacity(1)).await;
    let (mut producer, mut other) = (queue.begin(None), queue.begin(None));
    other.stage([1]).await;
    let pushing = producer.push(2, Wait::Forever);
    let waiting = Waiting::begin::<S>(&queue, async { pushing.await.unwrap() }).await;
    other.undo().await;
    waiting.output().await;
    producer.done().await;
    drains(&queue, &[2]).await;
}

pub async fn a_push_that_was_cancelled_takes_no_place<S: Subject>(subject: &S) {
    let queue = filled_with(subject, capacity(1), [1]).await;
    let (producer, mut tx) = (queue.begin(None), queue.begin(None));
    tx.take().await;
    let pushing = producer.push(2, Wait::Forever);
    drop(Waiting::begin::<S>(&queue, async { pushing.await.unwrap() }).await);
    tx.done().await;
    has_room(&queue, 1).await;
    push(&queue, [3]).await;
    assert_eq!(left(&queue).await, 1);
}

pub async fn the_close_wakes_a_push_that_waits<S: Subject>(subject: &S) {
    let queue = filled_with(subject, capacity(1), [1]).await;
    let producer = queue.begin(None);
    let pushing = producer.push(2, Wait::Forever);
    let waiting = Waiting::begin::<S>(&queue, async { pushing.await.is_err() }).await;
    queue.close().await.unwrap();
    assert!(waiting.output().await);
}
