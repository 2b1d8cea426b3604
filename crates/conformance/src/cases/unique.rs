//! Items that are unique by key.

use crate::steps::{drains, drains_any, fail, filled_with, push, Steps};
use crate::{Settings, Subject};
use requeue::backend::{Backend, Settlement, Tx};
use requeue::Wait;

/// The key of an item is its last digit.
pub(crate) fn unique() -> Settings {
    Settings {
        unique_by: Some(|item| item % 10),
        ..Settings::default()
    }
}

/// Checks whether a push of this item is refused.
pub(crate) async fn refuses<B: Backend<Item = u32>>(queue: &B, item: u32) -> bool {
    let mut tx = queue.begin(None);
    let pushed = tx.push(item, Wait::Never).await;
    if let Err(refused) = &pushed {
        assert!(!B::is_fatal(refused));
        assert!(!refused.to_string().is_empty());
    }
    tx.undo().await;
    pushed.is_err()
}

pub async fn a_queued_item_has_its_key<S: Subject>(subject: &S) {
    let queue = filled_with(subject, unique(), [1]).await;
    assert!(refuses(&queue, 11).await);
    assert!(refuses(&queue, 1).await);
    assert!(!refuses(&queue, 12).await);
    drains(&queue, &[1]).await;
}

pub async fn a_held_item_has_its_key<S: Subject>(subject: &S) {
    let queue = filled_with(subject, unique(), [1]).await;
    let mut tx = queue.begin(None);
    tx.take().await;
    assert!(refuses(&queue, 11).await);
    tx.undo().await;
}

pub async fn an_aborted_item_has_its_key<S: Subject>(subject: &S) {
    let queue = filled_with(subject, unique(), [1]).await;
    let mut tx = queue.begin(None);
    tx.take().await;
    tx.undo().await;
    assert!(refuses(&queue, 11).await);
    drains(&queue, &[1]).await;
    assert!(!refuses(&queue, 11).await);
}

pub async fn a_delayed_item_has_its_key<S: Subject>(subject: &S) {
    let queue = filled_with(subject, unique(), [1]).await;
    let mut tx = queue.begin(None);
    tx.settle_next(Settlement::RetryAfter(S::SHORT)).await;
    tx.done().await;
    assert!(refuses(&queue, 11).await);
    subject.pass(S::SHORT).await;
    assert!(refuses(&queue, 11).await);
    drains(&queue, &[1]).await;
    assert!(!refuses(&queue, 11).await);
}

pub async fn a_committed_item_frees_its_key<S: Subject>(subject: &S) {
    let queue = filled_with(subject, unique(), [1, 2]).await;
    let mut tx = queue.begin(None);
    tx.take().await;
    tx.done().await;
    assert!(refuses(&queue, 12).await);
    push(&queue, [11]).await;
    drains_any(&queue, &[2, 11]).await;
}

pub async fn a_letter_frees_its_key<S: Subject>(subject: &S) {
    let queue = filled_with(subject, unique(), [1]).await;
    let mut tx = queue.begin(None);
    tx.settle_next(fail("no")).await;
    tx.done().await;
    push(&queue, [11]).await;
    assert!(refuses(&queue, 1).await);
}

pub async fn items_of_a_transaction_have_different_keys<S: Subject>(subject: &S) {
    let queue = subject.queue(unique()).await;
    let mut tx = queue.begin(None);
    tx.stage([1, 2]).await;
    assert!(tx.push(11, Wait::Never).await.is_err());
    tx.done().await;
    drains(&queue, &[1, 2]).await;
}

pub async fn an_undone_push_frees_its_key<S: Subject>(subject: &S) {
    let queue = subject.queue(unique()).await;
    let mut tx = queue.begin(None);
    tx.stage([1]).await;
    tx.undo().await;
    assert!(!refuses(&queue, 11).await);
    tx.stage([2]).await;
    drop(tx);
    assert!(!refuses(&queue, 12).await);
}

pub async fn a_refused_duplicate_leaves_the_others<S: Subject>(subject: &S) {
    let queue = filled_with(subject, unique(), [1]).await;
    let mut tx = queue.begin(None);
    tx.stage([2]).await;
    assert!(tx.push(11, Wait::Never).await.is_err());
    tx.stage([3]).await;
    tx.done().await;
    drains(&queue, &[1, 2, 3]).await;
}
