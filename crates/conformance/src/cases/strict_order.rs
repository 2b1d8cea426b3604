//! The order of the items of all producers.

use crate::steps::{drains, Steps};
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
