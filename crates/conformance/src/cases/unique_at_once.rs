//! Items that are unique by key, and have it from when they are staged on.

use super::unique::{refuses, unique};
use crate::steps::{drains, filled_with, Steps};
use crate::waiting::Waiting;
use crate::Subject;
use requeue::backend::{Backend, Tx};
use requeue::Wait;

pub async fn a_staged_item_has_its_key<S: Subject>(subject: &S) {
    let queue = subject.queue(unique()).await;
    let mut tx = queue.begin(None);
    tx.stage([1]).await;
    assert!(refuses(&queue, 11).await);
    assert!(!refuses(&queue, 12).await);
    tx.done().await;
    assert!(refuses(&queue, 11).await);
}

pub async fn a_push_does_not_wait_for_a_queued_duplicate<S: Subject>(subject: &S) {
    let queue = filled_with(subject, unique(), [1]).await;
    let producer = queue.begin(None);
    assert!(producer.push(11, Wait::Forever).await.is_err());
}

pub async fn a_push_waits_for_the_abort_of_a_staged_duplicate<S: Subject>(subject: &S) {
    let queue = subject.queue(unique()).await;
    let (mut producer, mut other) = (queue.begin(None), queue.begin(None));
    other.stage([1]).await;
    let pushing = producer.push(11, Wait::Forever);
    let waiting = Waiting::begin::<S>(&queue, async { pushing.await.unwrap() }).await;
    other.undo().await;
    waiting.output().await;
    producer.done().await;
    drains(&queue, &[11]).await;
}

pub async fn a_push_waits_in_vain_for_the_commit_of_a_staged_duplicate<S: Subject>(subject: &S) {
    let queue = subject.queue(unique()).await;
    let (mut producer, mut other) = (queue.begin(None), queue.begin(None));
    other.stage([1]).await;
    let pushing = producer.push(11, Wait::Forever);
    let waiting = Waiting::begin::<S>(&queue, async { pushing.await.is_err() }).await;
    other.done().await;
    assert!(waiting.output().await);
    producer.done().await;
    drains(&queue, &[1]).await;
}

pub async fn a_follow_up_with_the_key_of_its_item_is_refused<S: Subject>(subject: &S) {
    let queue = filled_with(subject, unique(), [1]).await;
    let mut tx = queue.begin(None);
    tx.take().await;
    assert!(tx.push(11, Wait::Never).await.is_err());
    tx.stage([12]).await;
    tx.done().await;
    drains(&queue, &[12]).await;
}
