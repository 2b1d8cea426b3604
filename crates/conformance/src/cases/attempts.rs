//! How deliveries are counted.

use crate::steps::{dead, eventually, fail, filled_with, left, push, Steps};
use crate::{Settings, Subject};
use requeue::backend::{Backend, Settlement, Tx};
use requeue::Wait;
use std::time::Duration;

/// With this many attempts.
fn attempts(max: u32) -> Settings {
    Settings {
        max_attempts: Some(max),
        ..Settings::default()
    }
}

pub async fn the_first_delivery_is_the_first_attempt<S: Subject>(subject: &S) {
    let queue = filled_with(subject, attempts(9), [1]).await;
    assert_eq!(queue.begin(None).take_counted().await, (1, 1));
}

pub async fn aborts_count<S: Subject>(subject: &S) {
    let queue = filled_with(subject, attempts(9), [1]).await;
    let mut tx = queue.begin(None);
    for attempt in 1..=5 {
        assert_eq!(tx.take_counted().await, (1, attempt));
        tx.undo().await;
    }
}

pub async fn drops_count<S: Subject>(subject: &S) {
    let queue = filled_with(subject, attempts(9), [1]).await;
    for attempt in 1..=3 {
        let tx = queue.begin(None);
        assert_eq!(tx.take_counted().await, (1, attempt));
    }
}

pub async fn retries_count<S: Subject>(subject: &S) {
    let queue = filled_with(subject, attempts(9), [1]).await;
    let mut tx = queue.begin(None);
    for _ in 0..3 {
        tx.settle_next(Settlement::Retry).await;
        tx.done().await;
    }
    for _ in 0..3 {
        tx.settle_next(Settlement::RetryAfter(Duration::ZERO)).await;
        tx.done().await;
    }
    assert_eq!(tx.take_counted().await, (1, 7));
}

pub async fn a_retry_that_is_undone_counts_once<S: Subject>(subject: &S) {
    let queue = filled_with(subject, attempts(9), [1]).await;
    let mut tx = queue.begin(None);
    tx.settle_next(Settlement::Retry).await;
    tx.undo().await;
    assert_eq!(tx.take_counted().await, (1, 2));
}

pub async fn a_follow_up_is_a_new_item<S: Subject>(subject: &S) {
    let queue = filled_with(subject, attempts(9), [1]).await;
    let mut tx = queue.begin(None);
    tx.take().await;
    tx.undo().await;
    tx.take().await;
    tx.stage([2]).await;
    tx.done().await;
    assert_eq!(tx.take_counted().await, (2, 1));
}

pub async fn each_item_has_its_own_count<S: Subject>(subject: &S) {
    let queue = subject.queue(attempts(9)).await;
    let (mut producer, mut tx) = (queue.begin(None), queue.begin(None));
    for item in [1, 2, 3] {
        producer.stage([item]).await;
        producer.done().await;
        tx.take_each(item as usize).await;
        tx.undo().await;
    }
    let mut counts = Vec::new();
    while counts.len() < 3 {
        counts.push(tx.take_counted().await);
    }
    assert_eq!(counts, [(1, 4), (2, 3), (3, 2)]);
}

pub async fn without_a_limit_an_item_is_delivered_again_and_again<S: Subject>(subject: &S) {
    let queue = filled_with(subject, Settings::default(), [1]).await;
    let mut tx = queue.begin(None);
    for _ in 0..20 {
        assert_eq!(tx.take().await, 1);
        tx.undo().await;
    }
    assert_eq!(left(&queue).await, 1);
    assert!(subject.letters(&queue).await.is_empty());
}

pub async fn an_abort_of_the_last_attempt_makes_a_letter<S: Subject>(subject: &S) {
    let queue = filled_with(subject, attempts(2), [1]).await;
    let mut tx = queue.begin(None);
    tx.take().await;
    tx.undo().await;
    assert!(subject.letters(&queue).await.is_empty());
    tx.take().await;
    tx.undo().await;
    assert_eq!(tx.look().await, None);
    assert_eq!(dead(subject, &queue).await, [(1, 2)]);
    assert_eq!(left(&queue).await, 0);
}

pub async fn a_drop_of_the_last_attempt_makes_a_letter<S: Subject>(subject: &S) {
    let queue = filled_with(subject, attempts(1), [1]).await;
    let tx = queue.begin(None);
    tx.take().await;
    drop(tx);
    let tx = queue.begin(None);
    eventually(async || tx.look().await.is_none() && left(&queue).await == 0).await;
    eventually(async || dead(subject, &queue).await == [(1, 1)]).await;
}

pub async fn a_retry_of_the_last_attempt_makes_a_letter<S: Subject>(subject: &S) {
    let queue = filled_with(subject, attempts(1), [1, 2]).await;
    let mut tx = queue.begin(None);
    tx.settle_next(Settlement::Retry).await;
    tx.settle_next(Settlement::RetryAfter(S::SHORT)).await;
    tx.done().await;
    assert_eq!(tx.look().await, None);
    let mut letters = dead(subject, &queue).await;
    letters.sort_unstable();
    assert_eq!(letters, [(1, 1), (2, 1)]);
}

pub async fn a_commit_of_the_last_attempt_is_a_commit<S: Subject>(subject: &S) {
    let queue = filled_with(subject, attempts(2), [1]).await;
    let mut tx = queue.begin(None);
    tx.take().await;
    tx.undo().await;
    assert_eq!(tx.take_counted().await, (1, 2));
    tx.done().await;
    assert_eq!(left(&queue).await, 0);
    assert!(subject.letters(&queue).await.is_empty());
}

pub async fn only_items_of_the_last_attempt_die<S: Subject>(subject: &S) {
    let queue = filled_with(subject, attempts(2), [1]).await;
    let mut tx = queue.begin(None);
    tx.take().await;
    tx.undo().await;
    push(&queue, [2]).await;
    tx.take_each(2).await;
    tx.undo().await;
    assert_eq!(tx.take_counted().await, (2, 2));
    assert_eq!(tx.look().await, None);
    assert_eq!(dead(subject, &queue).await, [(1, 2)]);
}

pub async fn a_pop_that_finds_nothing_counts_nothing<S: Subject>(subject: &S) {
    let queue = subject.queue(attempts(1)).await;
    let mut tx = queue.begin(None);
    assert!(tx.pop(Wait::Never).await.unwrap().is_none());
    push(&queue, [1]).await;
    tx.settle_next(fail("no")).await;
    tx.done().await;
    assert_eq!(dead(subject, &queue).await, [(1, 1)]);
}
