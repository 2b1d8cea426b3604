//! The order of the items of one producer.

use crate::steps::{drains, filled, push, Steps};
use crate::{Settings, Subject};
use requeue::backend::Backend;

pub async fn items_of_a_commit_come_in_order<S: Subject>(subject: &S) {
    let queue = filled(subject, 0..50).await;
    let all: Vec<u32> = (0..50).collect();
    drains(&queue, &all).await;
}

pub async fn commits_of_a_producer_come_in_order<S: Subject>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    let mut tx = queue.begin(None);
    for item in 0..10 {
        tx.stage([item]).await;
        tx.done().await;
    }
    drains(&queue, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]).await;
}

pub async fn batches_keep_the_order<S: Subject>(subject: &S) {
    let queue = filled(subject, 0..7).await;
    let tx = queue.begin(None);
    assert_eq!(tx.batch(3).await, [0, 1, 2]);
    assert_eq!(tx.batch(3).await, [3, 4, 5]);
    assert_eq!(tx.batch(3).await, [6]);
}

pub async fn aborted_items_come_before_later_pushes<S: Subject>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    let (mut producer, mut tx) = (queue.begin(None), queue.begin(None));
    producer.stage([1, 2]).await;
    producer.done().await;
    assert_eq!(tx.take_each(2).await, [1, 2]);
    producer.stage([3]).await;
    producer.done().await;
    tx.undo().await;
    drains(&queue, &[1, 2, 3]).await;
}

pub async fn an_abort_after_an_abort_keeps_the_order<S: Subject>(subject: &S) {
    let queue = filled(subject, [1, 2, 3, 4]).await;
    let mut tx = queue.begin(None);
    for count in [3, 1, 4, 2] {
        assert_eq!(tx.take_each(count).await, [1, 2, 3, 4][..count]);
        tx.undo().await;
    }
    drains(&queue, &[1, 2, 3, 4]).await;
}

pub async fn an_aborted_batch_keeps_its_order<S: Subject>(subject: &S) {
    let queue = filled(subject, 0..8).await;
    let mut tx = queue.begin(None);
    assert_eq!(tx.batch(5).await, [0, 1, 2, 3, 4]);
    tx.undo().await;
    assert_eq!(tx.batch(8).await, [0, 1, 2, 3, 4, 5, 6, 7]);
}

pub async fn items_held_by_others_are_skipped<S: Subject>(subject: &S) {
    let queue = filled(subject, [1, 2, 3, 4, 5]).await;
    let (mut first, mut second) = (queue.begin(None), queue.begin(None));
    assert_eq!(first.take_each(2).await, [1, 2]);
    assert_eq!(second.take_each(2).await, [3, 4]);
    first.undo().await;
    assert_eq!(first.take_each(3).await, [1, 2, 5]);
    second.done().await;
    first.undo().await;
    drains(&queue, &[1, 2, 5]).await;
}

pub async fn commits_between_keep_the_order_of_what_is_left<S: Subject>(subject: &S) {
    let queue = filled(subject, [1, 2, 3, 4]).await;
    let mut tx = queue.begin(None);
    assert_eq!(tx.take().await, 1);
    tx.done().await;
    assert_eq!(tx.take_each(2).await, [2, 3]);
    tx.undo().await;
    push(&queue, [5]).await;
    assert_eq!(tx.take_each(3).await, [2, 3, 4]);
    tx.done().await;
    drains(&queue, &[5]).await;
}
