//! The order of the items of all producers.

use crate::steps::{drains, filled, push, Steps};
use crate::{Settings, Subject};
use requeue::backend::Backend;

pub async fn commits_of_all_producers_come_in_order<S: Subject>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    let mut producers = [queue.begin(None), queue.begin(None), queue.begin(None)];
    for item in [2, 0, 1, 1, 2, 0] {
        producers[item as usize].stage([item]).await;
        producers[item as usize].done().await;
    }
    drains(&queue, &[2, 0, 1, 1, 2, 0]).await;
}

pub async fn items_are_in_the_order_of_commits_not_of_pushes<S: Subject>(subject: &S) {
    let queue = subject.queue(Settings::default()).await;
    let (mut first, mut second) = (queue.begin(None), queue.begin(None));
    first.stage([1]).await;
    second.stage([2]).await;
    first.stage([3]).await;
    second.done().await;
    first.done().await;
    drains(&queue, &[2, 1, 3]).await;
}

pub async fn aborts_in_any_order_restore_the_order<S: Subject>(subject: &S) {
    let queue = filled(subject, [1, 2, 3]).await;
    let (mut first, mut second) = (queue.begin(None), queue.begin(None));
    assert_eq!(first.take().await, 1);
    assert_eq!(second.take().await, 2);
    first.undo().await;
    second.undo().await;
    drains(&queue, &[1, 2, 3]).await;
}

pub async fn aborted_items_keep_their_places_among_others<S: Subject>(subject: &S) {
    let queue = filled(subject, [1]).await;
    push(&queue, [2]).await;
    let mut tx = queue.begin(None);
    assert_eq!(tx.take_each(2).await, [1, 2]);
    push(&queue, [3]).await;
    tx.undo().await;
    drains(&queue, &[1, 2, 3]).await;
}
