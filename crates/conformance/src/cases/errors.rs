//! The last errors of items that were delivered before.

use crate::steps::{cause, filled_with, Steps, AT_ONCE};
use crate::{Settings, Subject};
use requeue::backend::{AbortCause, Backend, Delivery, Settlement, Tx};
use requeue::{Backoff, Reason, Wait, Workers};
use tokio::sync::mpsc::unbounded_channel;

fn tracked() -> Settings {
    Settings {
        tracked: true,
        ..Settings::default()
    }
}

/// The last error of the next item, which is held from then on.
async fn last_error<X: Tx<Item = u32>>(tx: &X) -> Option<String> {
    let item = tx.pop(Wait::Forever).await.unwrap().expect("an item");
    tx.last_error(&item).as_deref().map(str::to_owned)
}

pub async fn an_item_has_the_error_of_its_last_abort<S: Subject>(subject: &S) {
    let queue = filled_with(subject, tracked(), [1]).await;
    let mut tx = queue.begin(None);
    assert_eq!(last_error(&tx).await, None);
    for reason in [Reason::Failed, Reason::Panicked] {
        for error in ["disk full", "'äß\n☃", ""] {
            let failed = AbortCause::new(reason, error, AT_ONCE);
            tx.abort(failed).await.unwrap();
            assert_eq!(last_error(&tx).await.as_deref(), Some(error));
        }
    }
}

pub async fn all_items_of_an_abort_have_its_error<S: Subject>(subject: &S) {
    let queue = filled_with(subject, tracked(), [1, 2]).await;
    let mut tx = queue.begin(None);
    tx.take_each(2).await;
    tx.abort(cause("no")).await.unwrap();
    for _ in 0..2 {
        assert_eq!(last_error(&tx).await.as_deref(), Some("no"));
    }
}

pub async fn an_item_keeps_its_error_when_nothing_is_said<S: Subject>(subject: &S) {
    let queue = filled_with(subject, tracked(), [1]).await;
    let mut tx = queue.begin(None);
    tx.take().await;
    tx.abort(cause("no")).await.unwrap();
    tx.settle_next(Settlement::Retry).await;
    tx.done().await;
    assert_eq!(last_error(&tx).await.as_deref(), Some("no"));
    drop(tx);
    let tx = queue.begin(None);
    assert_eq!(last_error(&tx).await.as_deref(), Some("no"));
}

pub async fn a_delayed_item_keeps_its_error<S: Subject>(subject: &S) {
    let queue = filled_with(subject, tracked(), [1]).await;
    let mut tx = queue.begin(None);
    tx.take().await;
    let later = Backoff::fixed(S::SHORT);
    let failed = AbortCause::new(Reason::Failed, "too early", later);
    tx.abort(failed).await.unwrap();
    subject.pass(S::SHORT).await;
    assert_eq!(last_error(&tx).await.as_deref(), Some("too early"));
}

pub async fn a_new_item_has_no_error<S: Subject>(subject: &S) {
    let queue = filled_with(subject, tracked(), [1]).await;
    let mut tx = queue.begin(None);
    tx.take().await;
    tx.abort(cause("no")).await.unwrap();
    tx.take().await;
    tx.stage([2]).await;
    tx.done().await;
    assert_eq!(last_error(&tx).await, None);
}

pub async fn a_delivery_says_the_last_error<S: Subject>(subject: &S) {
    let queue = filled_with(subject, tracked(), [1]).await;
    let mut tx = queue.begin(None);
    tx.take().await;
    tx.abort(cause("no")).await.unwrap();
    let job = Delivery::take(&queue, Wait::Forever).await.unwrap();
    assert_eq!(job.unwrap().last_error().as_deref(), Some("no"));
}

pub async fn a_run_sees_the_errors_and_panics_of_those_before<S: Subject>(subject: &S) {
    let queue = filled_with(subject, tracked(), [1]).await;
    let (send, mut errors) = unbounded_channel();
    let pool = Workers::builder(&queue).tasks(1).backoff(AT_ONCE);
    let tasks = pool.run_async(move |item, tx| {
        send.send(tx.last_error(&item)).unwrap();
        async move {
            match item.attempts() {
                1 => Err("no"),
                2 => panic!("bad luck"),
                _ => Ok(()),
            }
        }
    });
    assert_eq!(errors.recv().await.unwrap(), None);
    assert_eq!(errors.recv().await.unwrap().as_deref(), Some("\"no\""));
    assert_eq!(errors.recv().await.unwrap().as_deref(), Some("bad luck"));
    tasks.stop().await;
}
