//! Items whose key is taken, which replace the item that has it, or follow it.

use super::unique::unique;
use crate::steps::{drains, drains_any, fail, filled_with, left, Delay, Steps};
use crate::{Settings, Superseding, TxOf};
use requeue::backend::{Backend, Settlement};
use requeue::OnDuplicate;

fn by(on_duplicate: OnDuplicate) -> Settings {
    Settings {
        on_duplicate,
        ..unique()
    }
}

pub async fn a_key_stays_taken_for_a_time<S: Superseding>(subject: &S) {
    let unique_for = S::SHORT;
    let settings = Settings {
        unique_for,
        ..by(OnDuplicate::Follow)
    };
    let queue = filled_with(subject, settings, [1, 2]).await;
    let mut tx = queue.begin(None);
    assert_eq!(tx.take().await, 1);
    let delay = Delay::short::<S>();
    tx.done().await;
    let early = S::push(&queue, 101).await;
    delay.not_before(async { early.then_some(()) }).await;
    subject.pass(S::SHORT).await;
    assert!(early || S::push(&queue, 101).await);
    drains_any(&queue, &[2, 101]).await;
}

pub async fn a_ready_item_is_replaced<S: Superseding>(subject: &S) {
    for rule in [OnDuplicate::Replace, OnDuplicate::Follow] {
        let queue = filled_with(subject, by(rule), [1, 2]).await;
        let mut tx = queue.begin(None);
        assert_eq!(tx.batch(2).await, [1, 2]);
        tx.undo().await;
        assert!(S::push(&queue, 101).await && S::push(&queue, 201).await);
        assert_eq!(left(&queue).await, 2);
        assert_eq!(tx.take_counted().await, (201, 2));
        assert_eq!(tx.take_counted().await, (2, 2));
        tx.done().await;
    }
}

pub async fn a_delayed_item_is_replaced<S: Superseding>(subject: &S) {
    let queue = filled_with(subject, by(OnDuplicate::Replace), [1]).await;
    let mut tx = queue.begin(None);
    tx.settle_next(Settlement::RetryAfter(S::SHORT)).await;
    let delay = Delay::short::<S>();
    tx.done().await;
    assert!(S::push(&queue, 101).await);
    delay.not_before(tx.look()).await;
    tx.undo().await;
    subject.pass(S::SHORT).await;
    assert_eq!(tx.take().await, 101);
    assert_eq!(tx.look().await, None);
}

pub async fn a_held_item_is_not_replaced<S: Superseding>(subject: &S) {
    let queue = filled_with(subject, by(OnDuplicate::Replace), [1]).await;
    let mut tx = queue.begin(None);
    tx.take().await;
    assert!(!S::push(&queue, 101).await);
    tx.undo().await;
    drains(&queue, &[1]).await;
}

/// A queue in which 101 follows 1, and the transaction that holds this one.
async fn followed<S: Superseding>(subject: &S) -> (S::Queue, TxOf<S>) {
    let queue = filled_with(subject, by(OnDuplicate::Follow), [1]).await;
    let tx = queue.begin(None);
    assert_eq!(tx.take().await, 1);
    assert!(S::push(&queue, 101).await);
    assert_eq!(left(&queue).await, 2);
    assert_eq!(queue.begin(None).look().await, None);
    (queue, tx)
}

pub async fn an_item_follows_one_that_is_committed<S: Superseding>(subject: &S) {
    let (queue, mut tx) = followed(subject).await;
    assert!(S::push(&queue, 201).await);
    assert_eq!(left(&queue).await, 2);
    tx.done().await;
    assert_eq!(tx.take().await, 201);
    assert!(S::push(&queue, 301).await);
    tx.done().await;
    drains(&queue, &[301]).await;
}

pub async fn an_item_follows_one_that_failed<S: Superseding>(subject: &S) {
    let (queue, mut tx) = followed(subject).await;
    tx.undo().await;
    tx.settle_next(fail("no")).await;
    tx.done().await;
    drains(&queue, &[101]).await;
}

pub async fn an_item_does_not_follow_one_that_comes_back<S: Superseding>(subject: &S) {
    let (queue, mut tx) = followed(subject).await;
    tx.undo().await;
    assert!(S::push(&queue, 201).await);
    assert_eq!(tx.take_counted().await, (1, 2));
    assert_eq!(queue.begin(None).look().await, None);
    tx.done().await;
    drains(&queue, &[201]).await;
}
