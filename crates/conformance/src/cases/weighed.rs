//! Queues whose capacity is one of weights. An item weighs what it is.

use crate::steps::{drains, drains_any, fail, filled_with, push, Steps};
use crate::waiting::Waiting;
use crate::{Settings, Subject, LONG};
use requeue::backend::{Backend, Settlement, Tx};
use requeue::Wait;

const CAPACITY: usize = 10;

fn weighed() -> Settings {
    Settings {
        capacity: Some(CAPACITY),
        weigh: Some(|item| item as usize),
        ..Settings::default()
    }
}

/// Checks that there is room for items that weigh so much together, and for no more.
async fn has_room<B: Backend<Item = u32>>(queue: &B, weight: u32) {
    let mut tx = queue.begin(None);
    assert!(tx.push(weight + 1, Wait::Never).await.is_err());
    tx.stage([weight]).await;
    assert!(tx.push(1, Wait::Never).await.is_err());
    tx.undo().await;
}

pub async fn the_capacity_is_one_of_weights<S: Subject>(subject: &S) {
    let queue = filled_with(subject, weighed(), [4]).await;
    has_room(&queue, 6).await;
    push(&queue, [1, 2, 0, 3]).await;
    has_room(&queue, 0).await;
    drains_any(&queue, &[0, 1, 2, 3, 4]).await;
    has_room(&queue, 10).await;
}

pub async fn an_item_that_is_too_heavy_is_refused_at_once<S: Subject>(subject: &S) {
    let queue = filled_with(subject, weighed(), [4]).await;
    let producer = queue.begin(None);
    let refused = producer.push(11, Wait::Forever).await.unwrap_err();
    assert!(!S::Queue::is_fatal(&refused));
    assert!(!refused.to_string().is_empty());
    drop(producer);
    has_room(&queue, 6).await;
}

pub async fn held_and_delayed_items_keep_their_weights<S: Subject>(subject: &S) {
    let queue = filled_with(subject, weighed(), [4, 3]).await;
    let (mut first, mut second) = (queue.begin(None), queue.begin(None));
    assert_eq!(first.take().await, 4);
    has_room(&queue, 3).await;
    first.undo().await;
    has_room(&queue, 3).await;
    second.settle_next(Settlement::RetryAfter(LONG)).await;
    second.done().await;
    has_room(&queue, 3).await;
}

pub async fn a_letter_has_no_weight<S: Subject>(subject: &S) {
    let queue = filled_with(subject, weighed(), [4, 3]).await;
    let mut tx = queue.begin(None);
    tx.settle_next(fail("no")).await;
    tx.done().await;
    has_room(&queue, 7).await;
}

pub async fn a_transaction_needs_what_it_holds_or_has_staged<S: Subject>(subject: &S) {
    let queue = filled_with(subject, weighed(), [4, 3]).await;
    let mut tx = queue.begin(None);
    assert_eq!(tx.take().await, 4);
    tx.stage([3, 1]).await; // what is held makes room
    has_room(&queue, 3).await;
    tx.stage([2]).await; // two more
    has_room(&queue, 1).await;
    assert!(tx.push(2, Wait::Never).await.is_err());
    tx.done().await;
    has_room(&queue, 1).await;
    drains_any(&queue, &[1, 2, 3, 3]).await;
    has_room(&queue, 10).await;
}

pub async fn a_heavy_push_waits_for_room<S: Subject>(subject: &S) {
    let queue = filled_with(subject, weighed(), [4, 3]).await;
    let (mut producer, mut tx) = (queue.begin(None), queue.begin(None));
    let pushing = producer.push(9, Wait::Forever);
    let waiting = Waiting::begin::<S>(&queue, async { pushing.await.unwrap() }).await;
    tx.take().await;
    tx.done().await;
    tx.take().await;
    tx.done().await;
    waiting.output().await;
    has_room(&queue, 1).await;
    producer.done().await;
    drains(&queue, &[9]).await;
}

pub async fn an_undone_push_has_no_weight<S: Subject>(subject: &S) {
    let queue = filled_with(subject, weighed(), [4]).await;
    let mut tx = queue.begin(None);
    tx.stage([5]).await;
    tx.undo().await;
    has_room(&queue, 6).await;
}
