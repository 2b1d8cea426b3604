//! Items that are removed where they are.

use crate::steps::{drains, fail, filled, half, left, push, Steps};
use crate::{Removal, Removing, Settings, LONG};
use requeue::backend::{Backend, Settlement};

/// All items but odd ones.
const ODD: Removal = Removal::Unless(|item| item % 2 == 0);

pub async fn some_items_are_removed<S: Removing>(subject: &S) {
    let queue = filled(subject, [1, 2, 3]).await;
    assert_eq!(S::remove(&queue, ODD).await, 2);
    assert_eq!(left(&queue).await, 1);
    drains(&queue, &[2]).await;
}

pub async fn the_others_keep_their_order<S: Removing>(subject: &S) {
    let queue = filled(subject, 1..=9).await;
    assert_eq!(S::remove(&queue, ODD).await, 5);
    push(&queue, [10]).await;
    assert_eq!(S::remove(&queue, ODD).await, 0);
    drains(&queue, &[2, 4, 6, 8, 10]).await;
}

pub async fn many_items_are_removed<S: Removing>(subject: &S) {
    let queue = filled(subject, 0..1_000).await;
    assert_eq!(S::remove(&queue, ODD).await, 500);
    assert_eq!(left(&queue).await, 500);
    let low = Removal::Unless(|item| item < 500);
    assert_eq!(S::remove(&queue, low).await, 250);
    assert_eq!(S::remove(&queue, Removal::All).await, 250);
    assert_eq!(left(&queue).await, 0);
}

pub async fn delayed_items_are_removed<S: Removing>(subject: &S) {
    let queue = filled(subject, [1, 2, 3]).await;
    let mut tx = queue.begin(None);
    for _ in 0..2 {
        tx.settle_next(Settlement::RetryAfter(LONG)).await;
    }
    tx.done().await;
    assert_eq!(S::remove(&queue, ODD).await, 2);
    assert_eq!(left(&queue).await, 1);
    assert_eq!(S::remove(&queue, Removal::All).await, 1);
    assert_eq!(left(&queue).await, 0);
    assert_eq!(tx.look().await, None);
}

pub async fn a_kept_delayed_item_is_delivered_when_it_is_due<S: Removing>(subject: &S) {
    let queue = filled(subject, [1, 2]).await;
    let mut tx = queue.begin(None);
    for _ in 0..2 {
        tx.settle_next(Settlement::RetryAfter(S::SHORT)).await;
    }
    tx.done().await;
    half(subject).await;
    assert_eq!(S::remove(&queue, ODD).await, 1);
    subject.pass(S::SHORT).await;
    assert_eq!(tx.take_counted().await, (2, 2));
    assert_eq!(tx.look().await, None);
}

pub async fn held_items_stay<S: Removing>(subject: &S) {
    let queue = filled(subject, [1, 2, 3]).await;
    let mut tx = queue.begin(None);
    assert_eq!(tx.take().await, 1);
    assert_eq!(S::remove(&queue, Removal::All).await, 2);
    assert_eq!(left(&queue).await, 1);
    tx.undo().await;
    assert_eq!(tx.take_counted().await, (1, 2));
    assert_eq!(S::remove(&queue, ODD).await, 0);
    tx.done().await;
    assert_eq!(left(&queue).await, 0);
}

pub async fn staged_items_stay<S: Removing>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    let mut tx = queue.begin(None);
    tx.stage([1]).await;
    assert_eq!(S::remove(&queue, Removal::All).await, 0);
    tx.done().await;
    drains(&queue, &[1]).await;
}

pub async fn letters_stay<S: Removing>(subject: &S) {
    let queue = filled(subject, [1]).await;
    let mut tx = queue.begin(None);
    tx.settle_next(fail("no")).await;
    tx.done().await;
    assert_eq!(S::remove(&queue, Removal::All).await, 0);
    assert_eq!(subject.letters(&queue).await.len(), 1);
}

pub async fn an_aborted_item_can_be_removed<S: Removing>(subject: &S) {
    let queue = filled(subject, [1, 2]).await;
    let mut tx = queue.begin(None);
    tx.batch(2).await;
    tx.undo().await;
    assert_eq!(S::remove(&queue, ODD).await, 1);
    assert_eq!(tx.take_counted().await, (2, 2));
    assert_eq!(tx.look().await, None);
}

pub async fn nothing_is_left_of_an_empty_queue<S: Removing>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    assert_eq!(S::remove(&queue, ODD).await, 0);
    assert_eq!(S::remove(&queue, Removal::All).await, 0);
    assert_eq!(left(&queue).await, 0);
}

pub async fn a_queue_is_used_after_it_was_cleared<S: Removing>(subject: &S) {
    let queue = filled(subject, [1, 2]).await;
    assert_eq!(S::remove(&queue, Removal::All).await, 2);
    push(&queue, [3, 4]).await;
    drains(&queue, &[3, 4]).await;
}
