//! Functions for transactions of any queue.

use requeue::backend::{AbortCause, Backend, Committed, Tx};
use requeue::{Backoff, Queue, Reason, Wait};
use std::time::Duration;

async fn push_and_end<X: Tx<Item = u8>>(mut tx: X, commits: bool) {
    tx.push(1, Wait::Never).await.unwrap();
    if commits {
        let committed: Committed = tx.commit().await.unwrap();
        assert!(!committed.given_up);
    } else {
        let cause = AbortCause::new(Reason::Aborted, "no", Backoff::fixed(Duration::ZERO));
        tx.abort(cause).await.unwrap();
    }
}

#[test]
fn owned_transactions_are_those_of_a_backend() {
    let queue = Queue::unbounded();
    assert!(Backend::now(&queue) <= Backend::clock(&queue).now());
    futures::executor::block_on(async {
        for commits in [false, true] {
            push_and_end(Backend::begin(&queue, None), commits).await;
            push_and_end(queue.begin_owned(), commits).await;
        }
    });
    assert_eq!(queue.len(), 2);
}
