//! What is visible when, and what an abort undoes.

use crate::steps::{drains, drains_any, eventually, fail, filled, left, push, Steps};
use crate::{Settings, Subject};
use requeue::backend::{Backend, Holds, Settlement, Tx};
use requeue::Wait;

pub async fn a_popped_item_is_invisible_until_the_commit<S: Subject>(subject: &S) {
    let queue = filled(subject, [1]).await;
    let (mut tx, other) = (queue.begin(None), queue.begin(None));
    assert_eq!(tx.take().await, 1);
    assert_eq!(other.look().await, None);
    tx.done().await;
    assert_eq!(other.look().await, None);
}

pub async fn a_held_item_is_left<S: Subject>(subject: &S) {
    let queue = filled(subject, [1, 2]).await;
    assert_eq!(left(&queue).await, 2);
    let mut tx = queue.begin(None);
    tx.take().await;
    assert_eq!(left(&queue).await, 2);
    tx.done().await;
    assert_eq!(left(&queue).await, 1);
}

pub async fn an_abort_gives_items_back_in_their_order<S: Subject>(subject: &S) {
    let queue = filled(subject, [1, 2, 3]).await;
    let mut tx = queue.begin(None);
    assert_eq!(tx.take_each(3).await, [1, 2, 3]);
    tx.undo().await;
    drains(&queue, &[1, 2, 3]).await;
}

pub async fn aborted_items_come_before_those_behind<S: Subject>(subject: &S) {
    let queue = filled(subject, [1, 2, 3, 4]).await;
    let mut tx = queue.begin(None);
    assert_eq!(tx.take_each(2).await, [1, 2]);
    tx.undo().await;
    drains(&queue, &[1, 2, 3, 4]).await;
}

pub async fn a_drop_is_an_abort<S: Subject>(subject: &S) {
    let queue = filled(subject, [1, 2]).await;
    let tx = queue.begin(None);
    assert_eq!(tx.take_each(2).await, [1, 2]);
    drop(tx);
    drains(&queue, &[1, 2]).await;
}

pub async fn several_transactions_are_open<S: Subject>(subject: &S) {
    let queue = filled(subject, [1, 2, 3]).await;
    let (mut first, mut second, mut third) =
        (queue.begin(None), queue.begin(None), queue.begin(None));
    assert_eq!(first.take().await, 1);
    assert_eq!(second.take().await, 2);
    assert_eq!(third.take().await, 3);
    second.undo().await;
    third.done().await;
    first.done().await;
    drains(&queue, &[2]).await;
}

pub async fn transactions_end_in_any_order<S: Subject>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    let (mut first, mut second) = (queue.begin(None), queue.begin(None));
    first.stage([1]).await;
    second.stage([2]).await;
    second.done().await;
    let mut reader = queue.begin(None);
    assert_eq!(reader.take().await, 2);
    assert_eq!(reader.look().await, None);
    first.done().await;
    assert_eq!(reader.take().await, 1);
    reader.done().await;
}

pub async fn a_push_is_invisible_until_the_commit<S: Subject>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    let (mut tx, reader) = (queue.begin(None), queue.begin(None));
    tx.stage([1]).await;
    assert_eq!(reader.look().await, None);
    assert_eq!(left(&queue).await, 0);
    tx.done().await;
    assert_eq!(reader.look().await, Some(1));
}

pub async fn pushes_of_a_commit_are_visible_at_once<S: Subject>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    let (mut tx, reader) = (queue.begin(None), queue.begin(None));
    tx.stage(0..20).await;
    assert!(reader.batch(20).await.is_empty());
    tx.done().await;
    assert_eq!(reader.batch(20).await.len(), 20);
}

pub async fn a_transaction_does_not_pop_what_it_pushed<S: Subject>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    let mut tx = queue.begin(None);
    tx.stage([1]).await;
    assert_eq!(tx.look().await, None);
    tx.done().await;
    assert_eq!(tx.look().await, Some(1));
}

pub async fn pushes_of_an_aborted_transaction_vanish<S: Subject>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    let mut tx = queue.begin(None);
    tx.stage([1, 2]).await;
    tx.undo().await;
    assert_eq!(left(&queue).await, 0);
    tx.done().await;
    assert_eq!(queue.begin(None).look().await, None);
}

pub async fn pushes_of_a_dropped_transaction_vanish<S: Subject>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    let tx = queue.begin(None);
    tx.stage([1, 2]).await;
    drop(tx);
    push(&queue, [3]).await;
    drains(&queue, &[3]).await;
}

pub async fn a_pop_and_a_push_are_one<S: Subject>(subject: &S) {
    let queue = filled(subject, [1]).await;
    let mut tx = queue.begin(None);
    for commits in [false, true] {
        assert_eq!(tx.take().await, 1);
        tx.stage([2]).await;
        if commits {
            tx.done().await;
        } else {
            tx.undo().await;
        }
        assert_eq!(left(&queue).await, 1);
    }
    drains(&queue, &[2]).await;
}

pub async fn a_transaction_is_open_after_its_commit<S: Subject>(subject: &S) {
    let queue = filled(subject, [1, 2]).await;
    let mut tx = queue.begin(None);
    assert_eq!(tx.take().await, 1);
    tx.done().await;
    assert_eq!(tx.take().await, 2);
    tx.undo().await;
    drains(&queue, &[2]).await;
}

pub async fn a_transaction_is_open_after_its_abort<S: Subject>(subject: &S) {
    let queue = filled(subject, [1]).await;
    let mut tx = queue.begin(None);
    for _ in 0..3 {
        assert_eq!(tx.take().await, 1);
        tx.undo().await;
    }
    tx.stage([2]).await;
    tx.done().await;
    drains_any(&queue, &[1, 2]).await;
}

pub async fn commits_in_a_row_are_transactions_of_their_own<S: Subject>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    let mut tx = queue.begin(None);
    for round in 0..5 {
        tx.stage([round]).await;
        tx.done().await;
        assert_eq!(left(&queue).await, u64::from(round) + 1);
    }
    tx.stage([9]).await;
    drop(tx);
    drains(&queue, &[0, 1, 2, 3, 4]).await;
}

pub async fn a_transaction_that_did_nothing_ends<S: Subject>(subject: &S) {
    let queue = filled(subject, [1]).await;
    let mut tx = queue.begin(None);
    assert!(!tx.done().await);
    tx.undo().await;
    assert!(!tx.done().await);
    drop(queue.begin(None));
    drains(&queue, &[1]).await;
}

pub async fn the_commit_says_whether_an_item_was_settled<S: Subject>(subject: &S) {
    let queue = filled(subject, [1, 2, 3]).await;
    let mut tx = queue.begin(None);
    tx.take().await;
    assert!(!tx.done().await);
    tx.settle_next(fail("no")).await;
    assert!(tx.done().await);
    tx.settle_next(Settlement::Retry).await;
    tx.undo().await;
    tx.take().await;
    assert!(!tx.done().await);
}

pub async fn a_transaction_counts_what_it_holds<S: Subject>(subject: &S) {
    let attempts = Some(9);
    let settings = Settings {
        max_attempts: attempts,
        ..Settings::default()
    };
    let queue = subject.queue(settings).await;
    push(&queue, [1]).await;
    let mut tx = queue.begin(None);
    assert_eq!(tx.deliveries().0, 0);
    tx.take().await;
    assert_eq!(tx.deliveries(), (1, 1));
    tx.undo().await;
    assert_eq!(tx.deliveries().0, 0);
    push(&queue, [2]).await;
    tx.take_each(2).await;
    assert_eq!(tx.deliveries(), (2, 2));
    tx.done().await;
    assert_eq!(tx.deliveries().0, 0);
}

pub async fn an_item_may_be_changed_while_it_is_held<S: Subject>(subject: &S) {
    let queue = filled(subject, [1]).await;
    let mut tx = queue.begin(None);
    {
        let mut item = tx.pop(Wait::Forever).await.unwrap().expect("an item");
        *item += 41;
        assert_eq!(*item, 42);
    }
    tx.done().await;
    assert_eq!(left(&queue).await, 0);
}

/// Holds an item across an await, on the threads of a runtime.
async fn step<B: Backend<Item = u32>>(queue: B) -> u32 {
    let mut tx = queue.begin(Some("worker".into()));
    let held = tx.pop(Wait::Forever).await.unwrap().expect("an item");
    tokio::task::yield_now().await;
    let (item, attempts) = (*held, B::Tx::attempts(&held));
    drop(held);
    tx.push(item + 10, Wait::Never).await.unwrap();
    tx.commit().await.unwrap();
    attempts
}

pub async fn a_transaction_may_be_used_by_a_task<S: Subject>(subject: &S) {
    let queue = filled(subject, [1]).await;
    assert_eq!(tokio::spawn(step(queue.clone())).await.unwrap(), 1);
    drains(&queue, &[11]).await;
}

pub async fn each_item_goes_to_one_of_many_consumers<S: Subject>(subject: &S) {
    let queue = filled(subject, 0..60).await;
    let mut taken = Vec::new();
    let tasks = [(); 4].map(|()| {
        let queue = queue.clone();
        tokio::spawn(async move {
            let (mut tx, mut taken) = (queue.begin(None), Vec::new());
            while let Some(item) = tx.pop(Wait::Never).await.unwrap().map(|item| *item) {
                taken.push(item);
                tx.commit().await.unwrap();
            }
            taken
        })
    });
    for task in tasks {
        taken.extend(task.await.unwrap());
    }
    // What another one held at the time, and has committed since, was not there.
    taken.sort_unstable();
    assert!(taken.iter().copied().eq(0..60));
    eventually(async || left(&queue).await == 0).await;
}
