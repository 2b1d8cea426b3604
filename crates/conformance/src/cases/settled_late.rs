//! Items that are settled by the end of their transaction, and not before.

use crate::steps::{dead, drains, fail, filled, left, popping, Steps};
use crate::{Subject, LONG};
use requeue::backend::{Backend, Settlement};
use requeue::Wait;

pub async fn a_letter_is_made_by_the_commit<S: Subject>(subject: &S) {
    let queue = filled(subject, [1]).await;
    let mut tx = queue.begin(None);
    tx.settle_next(fail("no")).await;
    assert!(subject.letters(&queue).await.is_empty());
    assert_eq!(left(&queue).await, 1);
    tx.done().await;
    assert_eq!(left(&queue).await, 0);
    assert_eq!(dead(subject, &queue).await, [(1, 1)]);
}

pub async fn a_commit_of_a_retry_wakes<S: Subject>(subject: &S) {
    let queue = filled(subject, [1]).await;
    let (tx, mut holder) = (queue.begin(None), queue.begin(None));
    holder.settle_next(Settlement::Retry).await;
    let waiting = popping::<S>(&queue, &tx, Wait::Forever).await;
    holder.done().await;
    assert_eq!(waiting.output().await, Some(1));
}

pub async fn an_abort_undoes_what_was_settled<S: Subject>(subject: &S) {
    let queue = filled(subject, [1, 2]).await;
    let mut tx = queue.begin(None);
    tx.settle_next(fail("no")).await;
    tx.take().await;
    tx.undo().await;
    assert!(subject.letters(&queue).await.is_empty());
    assert_eq!(left(&queue).await, 2);
}

pub async fn a_drop_undoes_a_retry<S: Subject>(subject: &S) {
    let queue = filled(subject, [1]).await;
    let tx = queue.begin(None);
    assert_eq!(tx.settle_next(Settlement::RetryAfter(LONG)).await, 1);
    drop(tx);
    drains(&queue, &[1]).await;
}
