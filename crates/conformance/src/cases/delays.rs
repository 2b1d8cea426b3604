//! Items that are not delivered before their time.

use crate::steps::{
    drains_any, eventually, fail, filled, filled_with, half, left, popping, push, Delay, Steps,
    AT_ONCE,
};
use crate::{Settings, Subject, LONG};
use requeue::backend::{AbortCause, Backend, Settlement, Tx};
use requeue::{Backoff, Reason, Wait};
use std::time::Duration;

/// A queue with this backoff.
fn backoff(backoff: Backoff) -> Settings {
    Settings {
        backoff: Some(backoff),
        ..Settings::default()
    }
}

/// Checks that nothing is ready now, and an item when the usual delay has passed.
async fn comes_later<S: Subject>(subject: &S, queue: &S::Queue, delay: Delay, item: u32) {
    let mut tx = queue.begin(None);
    if delay.not_before(tx.look()).await {
        tx.done().await; // an abort would have it wait as long as the queue says
        return;
    }
    half(subject).await;
    if delay.not_before(tx.look()).await {
        tx.done().await;
        return;
    }
    assert_eq!(left(queue).await, 1);
    tx.undo().await;
    subject.pass(S::SHORT).await;
    assert_eq!(tx.take().await, item);
    tx.done().await;
}

pub async fn an_item_is_retried_after_its_delay<S: Subject>(subject: &S) {
    let queue = filled(subject, [1]).await;
    let mut tx = queue.begin(None);
    tx.settle_next(Settlement::RetryAfter(S::SHORT)).await;
    let delay = Delay::short::<S>();
    tx.done().await;
    comes_later(subject, &queue, delay, 1).await;
}

pub async fn a_delay_of_zero_is_none<S: Subject>(subject: &S) {
    let queue = filled(subject, [1]).await;
    let mut tx = queue.begin(None);
    tx.settle_next(Settlement::RetryAfter(Duration::ZERO)).await;
    tx.done().await;
    assert_eq!(tx.take().await, 1);
}

pub async fn a_retry_has_no_delay<S: Subject>(subject: &S) {
    let queue = filled(subject, [1]).await;
    let mut tx = queue.begin(None);
    tx.settle_next(Settlement::Retry).await;
    tx.done().await;
    assert_eq!(tx.take().await, 1);
}

pub async fn a_delayed_item_is_left<S: Subject>(subject: &S) {
    let queue = filled(subject, [1, 2]).await;
    let mut tx = queue.begin(None);
    tx.settle_next(Settlement::RetryAfter(LONG)).await;
    assert_eq!(left(&queue).await, 2);
    tx.done().await;
    assert_eq!(left(&queue).await, 2);
    assert_eq!(tx.take().await, 2);
    tx.done().await;
    assert_eq!(left(&queue).await, 1);
    assert_eq!(tx.look().await, None);
}

pub async fn a_delayed_item_holds_nothing_back<S: Subject>(subject: &S) {
    let queue = filled(subject, [1, 2, 3]).await;
    let mut tx = queue.begin(None);
    tx.settle_next(Settlement::RetryAfter(LONG)).await;
    tx.done().await;
    push(&queue, [4]).await;
    assert_eq!(tx.take_each(2).await, [2, 3]);
    assert_eq!(tx.take().await, 4);
    assert_eq!(tx.look().await, None);
}

pub async fn a_waiting_pop_gets_a_delayed_item<S: Subject>(subject: &S) {
    let queue = filled(subject, [1]).await;
    let mut tx = queue.begin(None);
    tx.settle_next(Settlement::RetryAfter(S::SHORT)).await;
    tx.done().await;
    if !S::MANUAL {
        assert_eq!(tx.take().await, 1);
        return;
    }
    let waiting = popping::<S>(&queue, &tx, Wait::Forever).await;
    subject.pass(S::SHORT).await;
    assert_eq!(waiting.output().await, Some(1));
}

pub async fn the_cause_of_an_abort_delays<S: Subject>(subject: &S) {
    let queue = filled(subject, [1]).await;
    let mut tx = queue.begin(None);
    tx.take().await;
    let delay = Delay::short::<S>();
    let cause = AbortCause::new(Reason::Failed, "no", Backoff::fixed(S::SHORT));
    tx.abort(cause).await.unwrap();
    comes_later(subject, &queue, delay, 1).await;
}

pub async fn the_backoff_of_the_queue_delays_what_is_aborted<S: Subject>(subject: &S) {
    let settings = backoff(Backoff::fixed(S::SHORT));
    let queue = filled_with(subject, settings, [1]).await;
    let mut tx = queue.begin(None);
    tx.take().await;
    let delay = Delay::short::<S>();
    tx.undo().await; // not at once, as the cause says
    comes_later(subject, &queue, delay, 1).await;
}

pub async fn the_backoff_of_the_queue_delays_what_is_retried<S: Subject>(subject: &S) {
    let settings = backoff(Backoff::fixed(S::SHORT));
    let queue = filled_with(subject, settings, [1]).await;
    let mut tx = queue.begin(None);
    tx.settle_next(Settlement::Retry).await;
    let delay = Delay::short::<S>();
    tx.done().await;
    comes_later(subject, &queue, delay, 1).await;
}

pub async fn the_delay_of_a_retry_goes_before_the_backoff_of_the_queue<S: Subject>(subject: &S) {
    let queue = filled_with(subject, backoff(Backoff::fixed(LONG)), [1]).await;
    let mut tx = queue.begin(None);
    tx.settle_next(Settlement::RetryAfter(S::SHORT)).await;
    let delay = Delay::short::<S>();
    tx.done().await;
    comes_later(subject, &queue, delay, 1).await;
}

pub async fn the_backoff_of_the_queue_goes_before_that_of_the_cause<S: Subject>(subject: &S) {
    let queue = filled_with(subject, backoff(AT_ONCE), [1]).await;
    let mut tx = queue.begin(None);
    tx.take().await;
    let cause = AbortCause::new(Reason::Failed, "no", Backoff::fixed(LONG));
    tx.abort(cause).await.unwrap();
    assert_eq!(tx.take().await, 1);
}

pub async fn a_backoff_grows<S: Subject>(subject: &S) {
    if !S::MANUAL {
        return; // it would take long
    }
    let settings = Settings {
        max_attempts: Some(9),
        ..backoff(Backoff::exponential(S::SHORT, LONG))
    };
    let queue = filled_with(subject, settings, [1]).await;
    let mut tx = queue.begin(None);
    for delay in [S::SHORT, S::SHORT * 2, S::SHORT * 4] {
        tx.take().await;
        tx.undo().await;
        subject.pass(delay / 8 * 7).await;
        assert_eq!(tx.look().await, None);
        subject.pass(delay / 8).await;
    }
    assert_eq!(tx.take().await, 1);
}

pub async fn items_come_when_their_times_come<S: Subject>(subject: &S) {
    let queue = filled(subject, [1, 2]).await;
    let mut tx = queue.begin(None);
    tx.settle_next(Settlement::RetryAfter(LONG)).await;
    tx.settle_next(Settlement::RetryAfter(S::SHORT)).await;
    tx.done().await;
    subject.pass(S::SHORT).await;
    assert_eq!(tx.take().await, 2);
    assert_eq!(tx.look().await, None);
}

pub async fn a_delayed_batch_comes_back_as_a_whole<S: Subject>(subject: &S) {
    let queue = filled(subject, [1, 2, 3]).await;
    let mut tx = queue.begin(None);
    tx.batch(3).await;
    let delay = Delay::short::<S>();
    let cause = AbortCause::new(Reason::Failed, "no", Backoff::fixed(S::SHORT));
    tx.abort(cause).await.unwrap();
    delay.not_before(tx.look()).await;
    tx.undo().await;
    subject.pass(S::SHORT).await;
    drains_any(&queue, &[1, 2, 3]).await;
}

pub async fn a_failure_has_no_delay<S: Subject>(subject: &S) {
    let queue = filled_with(subject, backoff(Backoff::fixed(LONG)), [1]).await;
    let mut tx = queue.begin(None);
    tx.settle_next(fail("no")).await;
    tx.done().await;
    eventually(async || left(&queue).await == 0).await;
    assert_eq!(subject.letters(&queue).await.len(), 1);
}
