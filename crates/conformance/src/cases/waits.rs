//! How long a pop waits, and what wakes it.

use crate::steps::{drains, filled, popping, push, Steps};
use crate::waiting::Waiting;
use crate::{Settings, Subject, LONG};
use requeue::backend::{Backend, Settlement, Tx};
use requeue::Wait;
use std::time::Duration;

pub async fn some_waits_are_one_attempt<S: Subject>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    let tx = queue.begin(None);
    let zero = Wait::For(Duration::ZERO);
    for wait in [Wait::Never, zero, Wait::Until(queue.now())] {
        assert!(tx.pop(wait).await.unwrap().is_none());
        assert!(tx.pop_batch(3, wait).await.unwrap().is_empty());
    }
}

pub async fn each_form_takes_what_is_ready<S: Subject>(subject: &S) {
    let queue = filled(subject, 0..5).await;
    let tx = queue.begin(None);
    let waits = [
        Wait::Never,
        Wait::For(Duration::ZERO),
        Wait::For(LONG),
        Wait::Until(queue.now() + LONG),
        Wait::Forever,
    ];
    for (wait, expected) in waits.into_iter().zip(0..) {
        let item = tx.pop(wait).await.unwrap().expect("an item");
        assert_eq!(*item, expected);
    }
}

pub async fn each_form_of_a_batch_takes_what_is_ready<S: Subject>(subject: &S) {
    let queue = filled(subject, 0..10).await;
    let tx = queue.begin(None);
    let waits = [
        Wait::Never,
        Wait::For(Duration::ZERO),
        Wait::For(LONG),
        Wait::Until(queue.now() + LONG),
        Wait::Forever,
    ];
    for wait in waits {
        assert_eq!(tx.pop_batch(2, wait).await.unwrap().len(), 2);
    }
}

pub async fn a_wait_for_a_time_ends<S: Subject>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    let tx = queue.begin(None);
    let waiting = popping::<S>(&queue, &tx, Wait::For(S::SHORT)).await;
    subject.pass(S::SHORT).await;
    assert_eq!(waiting.output().await, None);
}

pub async fn a_wait_until_a_time_ends<S: Subject>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    let tx = queue.begin(None);
    let waiting = popping::<S>(&queue, &tx, Wait::Until(queue.now() + S::SHORT)).await;
    subject.pass(S::SHORT).await;
    assert_eq!(waiting.output().await, None);
}

pub async fn a_batch_waits_for_a_time<S: Subject>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    let tx = queue.begin(None);
    let popping = async { tx.pop_batch(2, Wait::For(S::SHORT)).await.unwrap().len() };
    let waiting = Waiting::begin::<S>(&queue, popping).await;
    subject.pass(S::SHORT).await;
    assert_eq!(waiting.output().await, 0);
}

pub async fn a_push_wakes<S: Subject>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    let tx = queue.begin(None);
    for wait in [
        Wait::Forever,
        Wait::For(LONG),
        Wait::Until(queue.now() + LONG),
    ] {
        let waiting = popping::<S>(&queue, &tx, wait).await;
        push(&queue, [1]).await;
        assert_eq!(waiting.output().await, Some(1));
    }
}

pub async fn a_staged_push_wakes_nobody_before_its_commit<S: Subject>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    let (tx, mut producer) = (queue.begin(None), queue.begin(None));
    producer.stage([1]).await;
    let waiting = popping::<S>(&queue, &tx, Wait::Forever).await;
    producer.done().await;
    assert_eq!(waiting.output().await, Some(1));
}

pub async fn a_commit_of_a_pop_and_a_push_wakes<S: Subject>(subject: &S) {
    let queue = filled(subject, [1]).await;
    let (tx, mut worker) = (queue.begin(None), queue.begin(None));
    worker.take().await;
    let waiting = popping::<S>(&queue, &tx, Wait::Forever).await;
    worker.stage([2]).await;
    worker.done().await;
    assert_eq!(waiting.output().await, Some(2));
}

pub async fn an_abort_wakes<S: Subject>(subject: &S) {
    let queue = filled(subject, [1]).await;
    let (tx, mut holder) = (queue.begin(None), queue.begin(None));
    holder.take().await;
    let waiting = popping::<S>(&queue, &tx, Wait::Forever).await;
    holder.undo().await;
    assert_eq!(waiting.output().await, Some(1));
}

pub async fn a_drop_wakes<S: Subject>(subject: &S) {
    let queue = filled(subject, [1]).await;
    let (tx, holder) = (queue.begin(None), queue.begin(None));
    holder.take().await;
    let waiting = popping::<S>(&queue, &tx, Wait::Forever).await;
    drop(holder);
    assert_eq!(waiting.output().await, Some(1));
}

pub async fn a_retry_wakes<S: Subject>(subject: &S) {
    let queue = filled(subject, [1]).await;
    let (tx, mut holder) = (queue.begin(None), queue.begin(None));
    let held = holder.pop(Wait::Forever).await.unwrap().expect("an item");
    let waiting = popping::<S>(&queue, &tx, Wait::Forever).await;
    let settled = holder.settle(held, Settlement::Retry);
    settled.map_err(<S::Queue as Backend>::Error::from).unwrap();
    holder.done().await;
    assert_eq!(waiting.output().await, Some(1));
}

pub async fn a_push_wakes_a_batch<S: Subject>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    let tx = queue.begin(None);
    let popping = async {
        let items = tx.pop_batch(5, Wait::Forever).await.unwrap();
        items.iter().map(|item| **item).collect::<Vec<_>>()
    };
    let waiting = Waiting::begin::<S>(&queue, popping).await;
    push(&queue, [1, 2]).await;
    assert_eq!(waiting.output().await, [1, 2]);
}

pub async fn an_abort_wakes_several<S: Subject>(subject: &S) {
    let queue = filled(subject, [1, 2, 3]).await;
    let (first, second, mut holder) = (queue.begin(None), queue.begin(None), queue.begin(None));
    holder.take_each(3).await;
    let one = popping::<S>(&queue, &first, Wait::Forever).await;
    let other = popping::<S>(&queue, &second, Wait::Forever).await;
    holder.undo().await;
    let mut taken = [one.output().await, other.output().await];
    taken.sort_unstable();
    assert_eq!(taken, [Some(1), Some(2)]);
}

pub async fn each_push_serves_one_of_those_that_wait<S: Subject>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    let transactions = [(); 3].map(|()| queue.begin(None));
    let mut waiting = Vec::new();
    for tx in &transactions {
        waiting.push(popping::<S>(&queue, tx, Wait::Forever).await);
    }
    push(&queue, [1, 2]).await;
    push(&queue, [3]).await;
    let mut taken = Vec::new();
    for one in waiting {
        taken.extend(one.output().await);
    }
    taken.sort_unstable();
    assert_eq!(taken, [1, 2, 3]);
}

pub async fn a_transaction_that_waited_in_vain_is_open<S: Subject>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    let mut tx = queue.begin(None);
    tx.stage([1]).await;
    let waiting = popping::<S>(&queue, &tx, Wait::For(S::SHORT)).await;
    subject.pass(S::SHORT).await;
    assert_eq!(waiting.output().await, None);
    tx.done().await;
    drains(&queue, &[1]).await;
}
