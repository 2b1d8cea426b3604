//! Failed items that go to the tail.

use crate::steps::{dead, drains, filled_with, Steps};
use crate::{Settings, Subject};
use requeue::backend::{Backend, Settlement};
use requeue::ReturnTo;

fn tail() -> Settings {
    Settings {
        return_to: ReturnTo::Tail,
        ..Settings::default()
    }
}

pub async fn an_aborted_item_goes_behind_the_others<S: Subject>(subject: &S) {
    let queue = filled_with(subject, tail(), [1, 2, 3]).await;
    let mut tx = queue.begin(None);
    assert_eq!(tx.take().await, 1);
    tx.undo().await;
    drains(&queue, &[2, 3, 1]).await;
}

pub async fn a_dropped_item_goes_behind_the_others<S: Subject>(subject: &S) {
    let queue = filled_with(subject, tail(), [1, 2, 3]).await;
    assert_eq!(queue.begin(None).take().await, 1);
    drains(&queue, &[2, 3, 1]).await;
}

pub async fn a_retried_item_goes_behind_the_others<S: Subject>(subject: &S) {
    let queue = filled_with(subject, tail(), [1, 2, 3]).await;
    let mut tx = queue.begin(None);
    assert_eq!(tx.settle_next(Settlement::Retry).await, 1);
    tx.done().await;
    drains(&queue, &[2, 3, 1]).await;
}

pub async fn an_aborted_batch_keeps_its_order_at_the_tail<S: Subject>(subject: &S) {
    let queue = filled_with(subject, tail(), [1, 2, 3]).await;
    let mut tx = queue.begin(None);
    assert_eq!(tx.batch(2).await, [1, 2]);
    tx.undo().await;
    drains(&queue, &[3, 1, 2]).await;
}

pub async fn an_item_at_the_tail_has_its_attempts<S: Subject>(subject: &S) {
    let settings = Settings {
        max_attempts: Some(2),
        ..tail()
    };
    let queue = filled_with(subject, settings, [1, 2]).await;
    let mut tx = queue.begin(None);
    for delivery in [(1, 1), (2, 1), (1, 2)] {
        assert_eq!(tx.take_counted().await, delivery);
        tx.undo().await;
    }
    assert_eq!(dead(subject, &queue).await, [(1, 2)]);
    assert_eq!(tx.take_counted().await, (2, 2));
}
