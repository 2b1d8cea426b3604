//! Functions that are generic over transactions, of queues in memory or not.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::futures::block_on;
use requeue::error::TransactionError;
use requeue::workers::AsyncTransaction;
use requeue::{Expired, ManualClock, PriorityQueue, PushError, Queue};

/// Pushes follow-up items, and ends the transaction like a run; the future is `Send`.
#[allow(clippy::manual_async_fn)] // an `async fn` would not require `Send`
fn finish<X: AsyncTransaction>(
    mut tx: X,
    follow_up: X::Item,
    succeeds: bool,
) -> impl Future<Output = Result<(), X::Error>> + Send {
    async move {
        tx.push(follow_up).await?;
        if succeeds {
            tx.commit().await
        } else {
            tx.abort().await
        }
    }
}

#[test]
fn a_queue_in_memory() {
    let queue = Queue::bounded(1);
    let mut handle = queue.handle();
    queue.push(1).unwrap();
    for succeeds in [false, true] {
        let tx = handle.begin();
        assert_eq!(*tx.pop().unwrap(), 1);
        block_on(finish(tx, 2, succeeds)).unwrap();
        assert_eq!(queue.len(), 1);
    }
    let refused = block_on(finish(handle.begin(), 3, true));
    assert_eq!(refused, Err(TransactionError::Push(PushError::Full(3))));
    assert_eq!(queue.pop(), Ok(2));

    block_on(finish(queue.begin_owned(), 4, true)).unwrap();
    assert_eq!(queue.pop(), Ok(4));

    let queue = PriorityQueue::by_priority();
    let mut handle = queue.handle();
    block_on(finish(handle.begin(), 1, true)).unwrap();
    assert_eq!(queue.len(), 1);
}

#[test]
fn a_lease_that_is_over() {
    let (clock, term) = (ManualClock::new(), Duration::from_secs(1));
    let queue = Queue::builder().leased(term).clock(clock.clone()).build();
    queue.push(1).unwrap();
    let mut handle = queue.handle();
    let tx = handle.begin();
    tx.pop().unwrap();
    clock.advance(term);
    assert_eq!(queue.pop(), Ok(1));
    let expired = block_on(finish(tx, 2, true));
    assert_eq!(expired, Err(TransactionError::Commit(Expired)));
    assert!(queue.is_empty());
}

/// A queue of another kind.
#[derive(Default)]
struct Remote {
    staged: Vec<u32>,
    stored: Arc<Mutex<Vec<u32>>>,
}

impl AsyncTransaction for Remote {
    type Item = u32;
    type Error = std::io::Error;

    async fn push(&mut self, item: u32) -> std::io::Result<()> {
        self.staged.push(item);
        Ok(())
    }

    async fn commit(self) -> std::io::Result<()> {
        self.stored.lock().unwrap().extend(self.staged);
        Ok(())
    }

    async fn abort(self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_queue_elsewhere() {
    let remote = Remote::default();
    let stored = Arc::clone(&remote.stored);
    block_on(finish(remote, 1, true)).unwrap();
    let remote = Remote {
        stored: Arc::clone(&stored),
        ..Remote::default()
    };
    block_on(finish(remote, 2, false)).unwrap();
    assert_eq!(*stored.lock().unwrap(), [1]);
}
