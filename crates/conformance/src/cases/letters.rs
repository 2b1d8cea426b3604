//! Dead letters, and the errors that they keep.

use crate::steps::{cause, dead, drains, fail, filled, filled_with, left, letter, Steps, AT_ONCE};
use crate::{Letter, Settings, Subject};
use requeue::backend::{AbortCause, Backend, Settlement, Tx};
use requeue::{Reason, Wait};

fn one_attempt() -> Settings {
    Settings {
        max_attempts: Some(1),
        ..Settings::default()
    }
}

fn letter_of(item: u32, reason: &str, error: &str) -> Letter {
    Letter {
        item,
        attempts: 1,
        error: Some(error.to_owned()),
        reason: reason.to_owned(),
    }
}

pub async fn an_item_fails<S: Subject>(subject: &S) {
    let queue = filled(subject, [1]).await;
    let mut tx = queue.begin(None);
    tx.settle_next(fail("not found")).await;
    tx.done().await;
    assert_eq!(
        letter(subject, &queue).await,
        letter_of(1, "failed", "not found")
    );
}

pub async fn an_abort_leaves_what_was_settled<S: Subject>(subject: &S) {
    let queue = filled(subject, [1, 2]).await;
    let mut tx = queue.begin(None);
    tx.settle_next(fail("no")).await;
    tx.take().await;
    tx.undo().await;
    assert_eq!(dead(subject, &queue).await, [(1, 1)]);
    drains(&queue, &[2]).await;
}

pub async fn several_items_fail_in_one_transaction<S: Subject>(subject: &S) {
    let queue = filled(subject, [1, 2, 3]).await;
    let mut tx = queue.begin(None);
    for error in ["one", "two", "three"] {
        tx.settle_next(fail(error)).await;
    }
    tx.done().await;
    let mut letters = subject.letters(&queue).await;
    letters.sort_by_key(|letter| letter.item);
    let expected = [(1, "one"), (2, "two"), (3, "three")];
    assert_eq!(
        letters,
        expected.map(|(item, error)| letter_of(item, "failed", error))
    );
}

pub async fn items_of_a_transaction_have_different_ends<S: Subject>(subject: &S) {
    let queue = filled(subject, [1, 2, 3, 4]).await;
    let mut tx = queue.begin(None);
    tx.settle_next(fail("no")).await;
    tx.take().await;
    tx.settle_next(Settlement::Retry).await;
    tx.stage([5]).await;
    assert!(tx.done().await);
    assert_eq!(dead(subject, &queue).await, [(1, 1)]);
    let mut rest = tx.take_each(3).await;
    rest.sort_unstable();
    assert_eq!(rest, [3, 4, 5]);
}

pub async fn letters_are_not_delivered<S: Subject>(subject: &S) {
    let queue = filled(subject, [1, 2]).await;
    let mut tx = queue.begin(None);
    tx.settle_next(fail("no")).await;
    tx.done().await;
    assert_eq!(left(&queue).await, 1);
    drains(&queue, &[2]).await;
    assert_eq!(dead(subject, &queue).await, [(1, 1)]);
}

pub async fn letters_are_in_the_order_of_their_deaths<S: Subject>(subject: &S) {
    let queue = filled(subject, [1, 2, 3]).await;
    let (mut first, mut second) = (queue.begin(None), queue.begin(None));
    let held = first.pop(Wait::Forever).await.unwrap().expect("an item");
    for _ in 0..2 {
        second.settle_next(fail("no")).await;
        second.done().await;
    }
    let settled = first.settle(held, fail("no"));
    settled.map_err(<S::Queue as Backend>::Error::from).unwrap();
    first.done().await;
    assert_eq!(dead(subject, &queue).await, [(2, 1), (3, 1), (1, 1)]);
}

pub async fn the_cause_of_the_last_abort_is_kept<S: Subject>(subject: &S) {
    let queue = filled_with(subject, one_attempt(), [1]).await;
    let mut tx = queue.begin(None);
    tx.take().await;
    let failed = AbortCause::new(Reason::Failed, "disk full", AT_ONCE);
    tx.abort(failed).await.unwrap();
    assert_eq!(
        letter(subject, &queue).await,
        letter_of(1, "failed", "disk full")
    );
}

pub async fn a_panic_is_a_reason<S: Subject>(subject: &S) {
    let queue = filled_with(subject, one_attempt(), [1]).await;
    let mut tx = queue.begin(None);
    tx.take().await;
    let panicked = AbortCause::new(Reason::Panicked, "bad luck", AT_ONCE);
    tx.abort(panicked).await.unwrap();
    assert_eq!(
        letter(subject, &queue).await,
        letter_of(1, "panicked", "bad luck")
    );
}

pub async fn an_abort_is_a_reason<S: Subject>(subject: &S) {
    let queue = filled_with(subject, one_attempt(), [1, 2]).await;
    let mut tx = queue.begin(None);
    tx.take_each(2).await;
    tx.abort(cause("given up")).await.unwrap();
    let mut letters = subject.letters(&queue).await;
    letters.sort_by_key(|letter| letter.item);
    assert_eq!(
        letters,
        [1, 2].map(|item| letter_of(item, "aborted", "given up"))
    );
}

pub async fn a_retry_of_the_last_attempt_is_a_reason<S: Subject>(subject: &S) {
    let queue = filled_with(subject, one_attempt(), [1]).await;
    let mut tx = queue.begin(None);
    tx.settle_next(Settlement::Retry).await;
    tx.done().await;
    let letter = letter(subject, &queue).await;
    assert_eq!((letter.item, &*letter.reason), (1, "retried"));
}

pub async fn errors_are_any_text<S: Subject>(subject: &S) {
    let queue = filled(subject, [1, 2, 3, 4]).await;
    let mut tx = queue.begin(None);
    let errors = [
        "",
        "'; drop table items; --",
        "äß\n\t\"☃\"",
        &"x".repeat(9999),
    ];
    for error in errors {
        tx.settle_next(fail(error)).await;
        tx.done().await;
    }
    let letters = subject.letters(&queue).await;
    for (letter, error) in letters.iter().zip(errors) {
        assert_eq!(letter.error.as_deref(), Some(error));
    }
    assert_eq!(letters.len(), 4);
}
