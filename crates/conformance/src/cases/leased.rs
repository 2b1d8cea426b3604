//! Items that are held until a deadline.

use crate::steps::{cause, dead, drains, eventually, filled_with, left, popping, push, Steps};
use crate::{Settings, Subject};
use requeue::backend::{Backend, Tx};
use requeue::Wait;

fn lease<S: Subject>() -> Settings {
    Settings {
        lease: Some(S::SHORT),
        max_attempts: Some(9),
        ..Settings::default()
    }
}

pub async fn an_expired_item_is_delivered_again<S: Subject>(subject: &S) {
    let queue = filled_with(subject, lease::<S>(), [1, 2]).await;
    let (slow, other) = (queue.begin(None), queue.begin(None));
    assert_eq!(slow.take_counted().await, (1, 1));
    assert_eq!(left(&queue).await, 2);
    subject.pass(S::SHORT).await;
    let mut again = [other.take_counted().await, other.take_counted().await];
    again.sort_unstable();
    assert_eq!(again, [(1, 2), (2, 1)]);
}

pub async fn a_commit_after_the_deadline_fails<S: Subject>(subject: &S) {
    let queue = filled_with(subject, lease::<S>(), [1]).await;
    let (mut slow, mut other) = (queue.begin(None), queue.begin(None));
    slow.take().await;
    subject.pass(S::SHORT).await;
    assert_eq!(other.take().await, 1);
    let late = slow.commit().await.unwrap_err();
    assert!(!S::Queue::is_fatal(&late));
    assert!(!late.to_string().is_empty());
    other.done().await;
    assert_eq!(left(&queue).await, 0);
}

pub async fn a_commit_fails_though_nobody_has_taken_the_item<S: Subject>(subject: &S) {
    let queue = filled_with(subject, lease::<S>(), [1]).await;
    let mut slow = queue.begin(None);
    slow.take().await;
    subject.pass(S::SHORT).await;
    // The item is taken back by the next one who looks.
    let other = queue.begin(None);
    assert_eq!(other.take_counted().await, (1, 2));
    drop(other);
    assert!(slow.commit().await.is_err());
    slow.abort(cause("late")).await.unwrap();
    drains(&queue, &[1]).await;
}

pub async fn pushes_of_a_late_transaction_vanish<S: Subject>(subject: &S) {
    let queue = filled_with(subject, lease::<S>(), [1]).await;
    let (mut slow, mut other) = (queue.begin(None), queue.begin(None));
    slow.take().await;
    slow.stage([2, 3]).await;
    subject.pass(S::SHORT).await;
    assert_eq!(other.take().await, 1);
    assert!(slow.commit().await.is_err());
    drop(slow);
    other.done().await;
    assert_eq!(other.look().await, None);
    assert_eq!(left(&queue).await, 0);
}

pub async fn other_items_of_a_late_transaction_come_back<S: Subject>(subject: &S) {
    let queue = filled_with(subject, lease::<S>(), [1, 2]).await;
    let (mut slow, mut other) = (queue.begin(None), queue.begin(None));
    assert_eq!(slow.take_each(2).await, [1, 2]);
    subject.pass(S::SHORT).await;
    let first = other.take().await;
    other.done().await;
    assert!(slow.commit().await.is_err());
    slow.abort(cause("late")).await.unwrap();
    drains(&queue, &[3 - first]).await;
}

pub async fn a_late_transaction_is_open_after_its_abort<S: Subject>(subject: &S) {
    let queue = filled_with(subject, lease::<S>(), [1]).await;
    let (mut slow, mut other) = (queue.begin(None), queue.begin(None));
    slow.take().await;
    subject.pass(S::SHORT).await;
    other.take().await;
    other.done().await;
    assert!(slow.commit().await.is_err());
    slow.abort(cause("late")).await.unwrap();
    push(&queue, [2]).await;
    assert_eq!(slow.take().await, 2);
    slow.done().await;
    assert_eq!(left(&queue).await, 0);
}

pub async fn a_commit_in_time_succeeds<S: Subject>(subject: &S) {
    let queue = filled_with(subject, Settings::default(), [1]).await;
    let mut tx = queue.begin(None);
    tx.take().await;
    subject.pass(S::SHORT).await;
    tx.done().await;
    assert_eq!(left(&queue).await, 0);
}

pub async fn an_expired_last_attempt_makes_a_letter<S: Subject>(subject: &S) {
    let settings = Settings {
        max_attempts: Some(1),
        ..lease::<S>()
    };
    let queue = filled_with(subject, settings, [1]).await;
    let slow = queue.begin(None);
    slow.take().await;
    subject.pass(S::SHORT).await;
    let other = queue.begin(None);
    eventually(async || other.look().await.is_none() && left(&queue).await == 0).await;
    assert_eq!(dead(subject, &queue).await, [(1, 1)]);
    let letters = subject.letters(&queue).await;
    assert_eq!(letters[0].reason, "expired");
}

pub async fn a_waiting_pop_gets_an_expired_item<S: Subject>(subject: &S) {
    let queue = filled_with(subject, lease::<S>(), [1]).await;
    let (slow, other) = (queue.begin(None), queue.begin(None));
    slow.take().await;
    if !S::MANUAL {
        assert_eq!(other.take().await, 1);
        return;
    }
    let waiting = popping::<S>(&queue, &other, Wait::Forever).await;
    subject.pass(S::SHORT).await;
    assert_eq!(waiting.output().await, Some(1));
}

pub async fn an_expired_item_comes_before_those_behind<S: Subject>(subject: &S) {
    let queue = filled_with(subject, lease::<S>(), [1, 2]).await;
    let slow = queue.begin(None);
    assert_eq!(slow.take().await, 1);
    subject.pass(S::SHORT).await;
    drains(&queue, &[1, 2]).await;
}

pub async fn a_transaction_without_items_is_never_late<S: Subject>(subject: &S) {
    let queue = subject.queue(lease::<S>()).await;
    let mut tx = queue.begin(None);
    tx.stage([1]).await;
    subject.pass(S::SHORT * 2).await;
    tx.done().await;
    drains(&queue, &[1]).await;
}
