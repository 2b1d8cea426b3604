//! Several items at a time.

use crate::steps::{drains, filled, left, push, Steps};
use crate::waiting::Waiting;
use crate::{Settings, Subject, LONG};
use requeue::backend::{Backend, Settlement, Tx};
use requeue::Wait;

pub async fn a_batch_has_at_most_so_many<S: Subject>(subject: &S) {
    let queue = filled(subject, 0..5).await;
    let tx = queue.begin(None);
    assert_eq!(tx.batch(2).await, [0, 1]);
    assert_eq!(tx.batch(1).await, [2]);
    assert_eq!(tx.batch(9).await, [3, 4]);
    assert!(tx.batch(9).await.is_empty());
}

pub async fn a_batch_waits_for_its_first_item_only<S: Subject>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    let tx = queue.begin(None);
    let popping = async { tx.pop_batch(9, Wait::Forever).await.unwrap().len() };
    let waiting = Waiting::begin::<S>(&queue, popping).await;
    push(&queue, [1]).await;
    assert_eq!(waiting.output().await, 1);
}

pub async fn a_batch_has_what_is_ready<S: Subject>(subject: &S) {
    let queue = filled(subject, [1, 2, 3, 4]).await;
    let (mut tx, other) = (queue.begin(None), queue.begin(None));
    tx.settle_next(Settlement::RetryAfter(LONG)).await;
    tx.done().await;
    assert_eq!(other.take().await, 2);
    assert_eq!(tx.batch(9).await, [3, 4]);
}

pub async fn batches_of_two_transactions_have_no_item_in_common<S: Subject>(subject: &S) {
    let queue = filled(subject, 0..6).await;
    let (mut first, mut second) = (queue.begin(None), queue.begin(None));
    assert_eq!(first.batch(4).await, [0, 1, 2, 3]);
    assert_eq!(second.batch(4).await, [4, 5]);
    first.done().await;
    second.undo().await;
    drains(&queue, &[4, 5]).await;
}

pub async fn a_batch_is_committed_as_a_whole<S: Subject>(subject: &S) {
    let queue = filled(subject, 0..6).await;
    let mut tx = queue.begin(None);
    tx.batch(6).await;
    assert_eq!(tx.deliveries().0, 6);
    assert_eq!(left(&queue).await, 6);
    tx.done().await;
    assert_eq!(left(&queue).await, 0);
}

pub async fn batches_and_single_pops_mix<S: Subject>(subject: &S) {
    let queue = filled(subject, 0..6).await;
    let mut tx = queue.begin(None);
    assert_eq!(tx.take().await, 0);
    assert_eq!(tx.batch(2).await, [1, 2]);
    assert_eq!(tx.take().await, 3);
    tx.undo().await;
    drains(&queue, &[0, 1, 2, 3, 4, 5]).await;
}

pub async fn items_of_a_batch_are_settled_one_by_one<S: Subject>(subject: &S) {
    let queue = filled(subject, [1, 2, 3]).await;
    let mut tx = queue.begin(None);
    let items = tx.pop_batch(3, Wait::Forever).await.unwrap();
    for item in items {
        if *item == 2 {
            let settled = tx.settle(item, Settlement::Retry);
            settled.map_err(<S::Queue as Backend>::Error::from).unwrap();
        }
    }
    assert!(tx.done().await);
    drains(&queue, &[2]).await;
}

pub async fn a_batch_is_larger_than_any_buffer<S: Subject>(subject: &S) {
    let queue = filled(subject, 0..500).await;
    let mut tx = queue.begin(None);
    let mut taken = Vec::new();
    while taken.len() < 500 {
        taken.extend(tx.batch(500).await);
    }
    assert!(taken.iter().copied().eq(0..500));
    tx.undo().await;
    assert_eq!(tx.batch(3).await, [0, 1, 2]);
}
