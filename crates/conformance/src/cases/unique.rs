//! Items that are unique by key: the last two digits of the number.

use crate::steps::{drains, drains_any, fail, filled_with, left, Delay, Steps};
use crate::{Settings, Unique, LONG};
use requeue::backend::{Backend, Settlement, Tx};
use requeue::{OnDuplicate, Wait};

/// A queue whose items are unique, with one item, 1.
async fn unique<S: Unique>(subject: &S, rule: OnDuplicate) -> S::Queue {
    filled_with(subject, settings(rule), [1]).await
}

fn settings(rule: OnDuplicate) -> Settings {
    Settings {
        unique: Some(rule),
        ..Settings::default()
    }
}

pub async fn an_item_has_its_key_until_it_is_gone<S: Unique>(subject: &S) {
    let queue = unique(subject, OnDuplicate::Refuse).await;
    let (mut tx, mut other) = (queue.begin(None), queue.begin(None));
    for _ in 0..2 {
        assert!(!S::push(&queue, 101).await);
        let refused = other.push(101, Wait::Never).await.unwrap_err();
        assert!(!S::Queue::is_fatal(&refused));
        assert_eq!(tx.take().await, 1);
        assert!(!S::push(&queue, 101).await);
        assert!(other.push(101, Wait::Never).await.is_err());
        tx.undo().await;
    }
    other.stage([2]).await;
    other.done().await;
    assert_eq!(tx.take().await, 1);
    tx.done().await;
    assert!(S::push(&queue, 101).await);
    drains_any(&queue, &[2, 101]).await;
}

pub async fn a_delayed_item_has_its_key<S: Unique>(subject: &S) {
    let queue = unique(subject, OnDuplicate::Refuse).await;
    let mut tx = queue.begin(None);
    tx.settle_next(Settlement::RetryAfter(LONG)).await;
    tx.done().await;
    assert!(!S::push(&queue, 101).await);
    assert_eq!(left(&queue).await, 1);
}

pub async fn a_letter_has_no_key<S: Unique>(subject: &S) {
    let queue = unique(subject, OnDuplicate::Refuse).await;
    let mut tx = queue.begin(None);
    tx.settle_next(fail("no")).await;
    tx.done().await;
    assert!(S::push(&queue, 101).await);
    drains(&queue, &[101]).await;
}

pub async fn pushes_of_a_transaction_have_different_keys<S: Unique>(subject: &S) {
    let queue = subject.queue(settings(OnDuplicate::Refuse)).await;
    let mut tx = queue.begin(None);
    tx.stage([1, 2]).await;
    assert!(tx.push(101, Wait::Never).await.is_err());
    tx.stage([3]).await;
    tx.done().await;
    drains(&queue, &[1, 2, 3]).await;
}

pub async fn an_undone_push_has_no_key<S: Unique>(subject: &S) {
    let queue = subject.queue(settings(OnDuplicate::Refuse)).await;
    let mut tx = queue.begin(None);
    tx.stage([1]).await;
    tx.undo().await;
    assert!(S::push(&queue, 101).await);
    drains(&queue, &[101]).await;
}

pub async fn a_key_stays_taken_for_a_time<S: Unique>(subject: &S) {
    let unique_for = S::SHORT;
    let settings = Settings {
        unique_for,
        ..settings(OnDuplicate::Follow)
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

pub async fn a_ready_item_is_replaced<S: Unique>(subject: &S) {
    for rule in [OnDuplicate::Replace, OnDuplicate::Follow] {
        let queue = filled_with(subject, settings(rule), [1, 2]).await;
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

pub async fn a_delayed_item_is_replaced<S: Unique>(subject: &S) {
    let queue = unique(subject, OnDuplicate::Replace).await;
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

pub async fn a_held_item_is_not_replaced<S: Unique>(subject: &S) {
    let queue = unique(subject, OnDuplicate::Replace).await;
    let mut tx = queue.begin(None);
    tx.take().await;
    assert!(!S::push(&queue, 101).await);
    tx.undo().await;
    drains(&queue, &[1]).await;
}

/// A queue in which 101 follows 1, and the transaction that holds this one.
async fn followed<S: Unique>(subject: &S) -> (S::Queue, crate::TxOf<S>) {
    let queue = unique(subject, OnDuplicate::Follow).await;
    let tx = queue.begin(None);
    assert_eq!(tx.take().await, 1);
    assert!(S::push(&queue, 101).await);
    assert_eq!(left(&queue).await, 2);
    assert_eq!(queue.begin(None).look().await, None);
    (queue, tx)
}

pub async fn an_item_follows_one_that_is_committed<S: Unique>(subject: &S) {
    let (queue, mut tx) = followed(subject).await;
    assert!(S::push(&queue, 201).await);
    assert_eq!(left(&queue).await, 2);
    tx.done().await;
    assert_eq!(tx.take().await, 201);
    assert!(S::push(&queue, 301).await);
    tx.done().await;
    drains(&queue, &[301]).await;
}

pub async fn an_item_follows_one_that_failed<S: Unique>(subject: &S) {
    let (queue, mut tx) = followed(subject).await;
    tx.undo().await;
    tx.settle_next(fail("no")).await;
    tx.done().await;
    drains(&queue, &[101]).await;
}

pub async fn an_item_does_not_follow_one_that_comes_back<S: Unique>(subject: &S) {
    let (queue, mut tx) = followed(subject).await;
    tx.undo().await;
    assert!(S::push(&queue, 201).await);
    assert_eq!(tx.take_counted().await, (1, 2));
    assert_eq!(queue.begin(None).look().await, None);
    tx.done().await;
    drains(&queue, &[201]).await;
}
