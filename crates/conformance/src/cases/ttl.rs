//! Items whose time to live is over.

use crate::steps::{dead, eventually, filled_with, left, letter, popping, push, Steps};
use crate::{Settings, Subject, LONG};
use requeue::backend::{Backend, Settlement, Tx};
use requeue::{AfterTtl, Wait};
use std::time::{Duration, Instant};

/// A queue whose items live so long.
fn ttl(ttl: Duration) -> Settings {
    Settings {
        ttl: Some(ttl),
        ..Settings::default()
    }
}

/// A queue whose items become dead letters after the usual time.
fn letters<S: Subject>() -> Settings {
    Settings {
        after_ttl: AfterTtl::DeadLetter,
        ..ttl(S::SHORT)
    }
}

/// A transaction that holds item 1, which was pushed just now. `None` if time has passed by itself.
async fn held<S: Subject>(queue: &S::Queue) -> Option<<S::Queue as Backend>::Tx> {
    let (began, tx) = (Instant::now(), queue.begin(None));
    push(queue, [1]).await;
    let found = tx.look().await;
    assert!(found == Some(1) || is_late::<S>(began));
    found.map(|_| tx)
}

/// Whether it may have been this case that was held up.
fn is_late<S: Subject>(began: Instant) -> bool {
    !S::MANUAL && began.elapsed() >= S::SHORT
}

/// Checks that nothing is ready, nor delayed or held.
async fn is_over<S: Subject>(queue: &S::Queue) {
    assert_eq!(queue.begin(None).look().await, None);
    eventually(async || left(queue).await == 0).await;
}

pub async fn an_item_is_delivered_in_its_time<S: Subject>(subject: &S) {
    let queue = filled_with(subject, ttl(LONG), [1]).await;
    subject.pass(S::SHORT).await;
    assert_eq!(queue.begin(None).look().await, Some(1));
}

pub async fn an_item_is_not_delivered_after_its_time<S: Subject>(subject: &S) {
    let queue = filled_with(subject, ttl(S::SHORT), [1, 2, 3]).await;
    subject.pass(S::SHORT).await;
    assert!(queue.begin(None).batch(3).await.is_empty());
    is_over::<S>(&queue).await;
}

pub async fn the_next_item_is_delivered<S: Subject>(subject: &S) {
    let queue = filled_with(subject, ttl(S::SHORT), [1, 2]).await;
    subject.pass(S::SHORT).await;
    let began = Instant::now();
    push(&queue, [3]).await;
    let found = queue.begin(None).look().await;
    assert!(found == Some(3) || is_late::<S>(began));
}

pub async fn a_batch_has_only_items_in_their_time<S: Subject>(subject: &S) {
    let queue = filled_with(subject, ttl(S::SHORT), [1, 2]).await;
    subject.pass(S::SHORT).await;
    let began = Instant::now();
    push(&queue, [3, 4]).await;
    let batch = queue.begin(None).batch(9).await;
    assert!(batch == [3, 4] || is_late::<S>(began));
}

pub async fn a_pop_waits_for_an_item_in_its_time<S: Subject>(subject: &S) {
    let queue = filled_with(subject, ttl(S::SHORT), [1]).await;
    subject.pass(S::SHORT).await;
    let tx = queue.begin(None);
    let waiting = popping::<S>(&queue, &tx, Wait::Forever).await;
    push(&queue, [2]).await;
    assert_eq!(waiting.output().await, Some(2));
}

pub async fn a_held_item_is_committed_after_its_time<S: Subject>(subject: &S) {
    let queue = subject.queue(letters::<S>()).await;
    let Some(mut tx) = held::<S>(&queue).await else {
        return;
    };
    subject.pass(S::SHORT).await;
    tx.done().await;
    is_over::<S>(&queue).await;
    assert!(subject.letters(&queue).await.is_empty());
}

pub async fn an_aborted_item_ends_after_its_time<S: Subject>(subject: &S) {
    let queue = subject.queue(ttl(S::SHORT)).await;
    let Some(mut tx) = held::<S>(&queue).await else {
        return;
    };
    subject.pass(S::SHORT).await;
    assert_eq!(left(&queue).await, 1);
    tx.undo().await;
    is_over::<S>(&queue).await;
}

pub async fn a_dropped_item_ends_after_its_time<S: Subject>(subject: &S) {
    let queue = subject.queue(ttl(S::SHORT)).await;
    let tx = held::<S>(&queue).await;
    subject.pass(S::SHORT).await;
    drop(tx);
    is_over::<S>(&queue).await;
}

pub async fn a_retried_item_ends_after_its_time<S: Subject>(subject: &S) {
    let queue = subject.queue(ttl(S::SHORT)).await;
    let (began, mut tx) = (Instant::now(), queue.begin(None));
    push(&queue, [1]).await;
    let Some(item) = tx.pop(Wait::Never).await.unwrap() else {
        return assert!(is_late::<S>(began));
    };
    subject.pass(S::SHORT).await;
    tx.settle_held(item, Settlement::Retry);
    tx.done().await;
    is_over::<S>(&queue).await;
}

pub async fn a_delayed_item_ends_when_it_is_due<S: Subject>(subject: &S) {
    let queue = subject.queue(ttl(S::SHORT)).await;
    let (began, mut tx) = (Instant::now(), queue.begin(None));
    push(&queue, [1]).await;
    let Some(item) = tx.pop(Wait::Never).await.unwrap() else {
        return assert!(is_late::<S>(began));
    };
    tx.settle_held(item, Settlement::RetryAfter(S::SHORT * 2));
    tx.done().await;
    subject.pass(S::SHORT).await;
    assert!(left(&queue).await == 1 || !S::MANUAL);
    subject.pass(S::SHORT).await;
    is_over::<S>(&queue).await;
}

pub async fn dropped_items_make_no_letters<S: Subject>(subject: &S) {
    let queue = filled_with(subject, ttl(S::SHORT), [1]).await;
    subject.pass(S::SHORT).await;
    is_over::<S>(&queue).await;
    assert!(subject.letters(&queue).await.is_empty());
}

pub async fn an_item_becomes_a_letter_after_its_time<S: Subject>(subject: &S) {
    let queue = filled_with(subject, letters::<S>(), [1]).await;
    subject.pass(S::SHORT).await;
    is_over::<S>(&queue).await;
    let letter = letter(subject, &queue).await;
    assert_eq!((letter.item, letter.attempts), (1, 0));
    assert_eq!(letter.reason, "timedout");
}

pub async fn a_letter_counts_the_deliveries_in_time<S: Subject>(subject: &S) {
    let queue = subject.queue(letters::<S>()).await;
    let Some(mut tx) = held::<S>(&queue).await else {
        return;
    };
    subject.pass(S::SHORT).await;
    tx.undo().await;
    is_over::<S>(&queue).await;
    assert_eq!(dead(subject, &queue).await, [(1, 1)]);
}
