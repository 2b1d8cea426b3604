//! Calls whose futures are dropped.

use crate::steps::{drains, filled, popping, push, Steps};
use crate::waiting::Waiting;
use crate::{Settings, Subject};
use requeue::backend::{Backend, Tx};
use requeue::Wait;

pub async fn a_pop_that_is_never_polled_takes_nothing<S: Subject>(subject: &S) {
    let queue = filled(subject, [1, 2]).await;
    let mut tx = queue.begin(None);
    drop(tx.pop(Wait::Forever));
    drop(tx.pop(Wait::Never));
    drop(tx.pop_batch(2, Wait::Forever));
    assert_eq!(tx.take().await, 1);
    tx.undo().await; // a drop may give the item back later
    drains(&queue, &[1, 2]).await;
}

pub async fn a_pop_that_waited_takes_nothing<S: Subject>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    let tx = queue.begin(None);
    drop(popping::<S>(&queue, &tx, Wait::Forever).await);
    push(&queue, [1]).await;
    assert_eq!(queue.begin(None).take().await, 1);
}

pub async fn a_batch_that_waited_takes_nothing<S: Subject>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    let (tx, mut other) = (queue.begin(None), queue.begin(None));
    let batch = async { tx.pop_batch(2, Wait::Forever).await.unwrap().len() };
    drop(Waiting::begin::<S>(&queue, batch).await);
    push(&queue, [1, 2]).await;
    assert_eq!(other.take_each(2).await, [1, 2]);
    other.done().await;
}

pub async fn a_pop_that_was_woken_passes_it_on<S: Subject>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    let (first, second) = (queue.begin(None), queue.begin(None));
    let mut one = popping::<S>(&queue, &first, Wait::Forever).await;
    let other = popping::<S>(&queue, &second, Wait::Forever).await;
    push(&queue, [1]).await;
    one.woken().await;
    drop(one);
    assert_eq!(other.output().await, Some(1));
}

pub async fn a_transaction_is_open_after_a_cancelled_pop<S: Subject>(subject: &S) {
    let queue = filled(subject, [1]).await;
    let mut tx = queue.begin(None);
    assert_eq!(tx.take().await, 1);
    tx.stage([2]).await;
    drop(popping::<S>(&queue, &tx, Wait::Forever).await);
    tx.done().await;
    drains(&queue, &[2]).await;
}

pub async fn an_abort_after_a_cancelled_pop_gives_everything_back<S: Subject>(subject: &S) {
    let queue = filled(subject, [1, 2]).await;
    let mut tx = queue.begin(None);
    assert_eq!(tx.take_each(2).await, [1, 2]);
    drop(popping::<S>(&queue, &tx, Wait::Forever).await);
    tx.undo().await;
    drains(&queue, &[1, 2]).await;
}

pub async fn a_task_that_is_aborted_gives_its_item_back<S: Subject>(subject: &S) {
    let queue = filled(subject, [1]).await;
    let (send, mut taken) = tokio::sync::mpsc::unbounded_channel();
    let holder = queue.clone();
    let task = tokio::spawn(async move {
        let tx = holder.begin(None);
        let item = tx.pop(Wait::Forever).await.unwrap().expect("an item");
        send.send(*item).unwrap();
        std::future::pending::<()>().await;
    });
    assert_eq!(taken.recv().await, Some(1));
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    drains(&queue, &[1]).await;
}

pub async fn pops_are_cancelled_while_items_come<S: Subject>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    for item in 0..10 {
        let (mut first, mut second) = (queue.begin(None), queue.begin(None));
        let one = popping::<S>(&queue, &first, Wait::Forever).await;
        let other = popping::<S>(&queue, &second, Wait::Forever).await;
        let (dropped, kept) = if item % 2 == 0 {
            (one, other)
        } else {
            (other, one)
        };
        drop(dropped);
        push(&queue, [item]).await;
        assert_eq!(kept.output().await, Some(item));
        first.done().await;
        second.done().await;
    }
    drains(&queue, &[]).await;
}
