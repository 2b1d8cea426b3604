//! Functions that are generic over queues in memory or not.

use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::remote::{Remote, RemoteTx};
use crate::common::ends;
use crate::common::futures::block_on;
use futures::FutureExt;
use requeue::backend::{AbortCause, Backend, Holds, Settlement, Tx};
use requeue::error::TransactionError;
use requeue::{
    Backoff, Expired, FairQueue, ManualClock, PriorityQueue, PushError, Queue, Reason, Transaction,
    Wait, Workers,
};
use tokio::sync::Semaphore;

/// Pushes follow-up items, and ends the transaction like a run; the future is `Send`.
#[allow(clippy::manual_async_fn)] // an `async fn` would not require `Send`
fn finish<X: Tx>(
    mut tx: X,
    follow_up: X::Item,
    succeeds: bool,
) -> impl Future<Output = Result<(), X::Error>> + Send {
    async move {
        tx.push(follow_up, Wait::Never).await?;
        if succeeds {
            tx.commit().await.map(drop)
        } else {
            let backoff = Backoff::fixed(Duration::ZERO);
            tx.abort(AbortCause::new(Reason::Failed, "in vain", backoff))
                .await
        }
    }
}

#[test]
fn a_queue_in_memory() {
    let queue = Queue::bounded(1);
    queue.push(1).unwrap();
    for succeeds in [false, true] {
        let tx = queue.begin_owned();
        assert_eq!(*Transaction::pop(&tx).unwrap(), 1);
        block_on(finish(tx, 2, succeeds)).unwrap();
        assert_eq!(queue.len(), 1);
    }
    let refused = block_on(finish(queue.begin_owned(), 3, true));
    assert_eq!(refused, Err(TransactionError::Push(PushError::Full(3))));
    assert_eq!(queue.pop(), Ok(2));

    block_on(finish(
        Backend::begin(&queue, Some("worker".into())),
        4,
        true,
    ))
    .unwrap();
    assert_eq!(queue.pop(), Ok(4));

    let queue = PriorityQueue::by_priority();
    block_on(finish(queue.begin_owned(), 1, true)).unwrap();
    assert_eq!(queue.len(), 1);
}

#[test]
fn a_lease_that_is_over() {
    let (clock, term) = (ManualClock::new(), Duration::from_secs(1));
    let queue = Queue::builder().leased(term).clock(clock.clone()).build();
    queue.push(1).unwrap();
    let tx = queue.begin_owned();
    Transaction::pop(&tx).unwrap();
    clock.advance(term);
    assert_eq!(queue.pop(), Ok(1));
    let expired = block_on(finish(tx, 2, true));
    assert_eq!(expired, Err(TransactionError::Commit(Expired)));
    assert!(queue.is_empty());
}

/// Does a job until none is left: an item is held across an `.await`, one is retried, pushes and pops are committed.
async fn work<B: Backend<Item = u32>>(queue: B) -> Result<u32, B::Error> {
    let (mut tx, mut done) = (queue.begin(None), 0);
    loop {
        let Some(mut job) = tx.pop(Wait::Forever).await? else {
            return Ok(done);
        };
        tokio::task::yield_now().await;
        *job += 1;
        if B::Tx::attempts(&job) == 1 {
            tx.settle(job, Settlement::Retry)?;
        } else {
            let next = *job;
            drop(job);
            if next > 2 {
                tx.push(next - 3, Wait::Forever).await?;
            }
        }
        done += 1;
        tx.commit().await?;
    }
}

/// The same function in tasks, on several queues.
fn works<B: Backend<Item = u32> + Debug + 'static>(queue: &B, push: impl Fn(u32))
where
    B::Tx: 'static,
{
    push(7);
    block_on(queue.close()).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build();
    let done = runtime.unwrap().block_on(async {
        let tasks: Vec<_> = (0..2).map(|_| tokio::spawn(work(queue.clone()))).collect();
        let mut done = 0;
        for task in tasks {
            done += task.await.unwrap().unwrap();
        }
        done
    });
    // 7, 6 + 2, 5 + 1 ... down to 0: each is delivered twice, and the second one pushes what is left.
    assert!(done >= 4, "{done}");
    assert_eq!(block_on(queue.left()).unwrap(), 0);
    assert!(queue.is_closed());
}

#[test]
fn a_generic_function_is_spawned() {
    ends(|| {
        let queue = Queue::bounded(4);
        works(&queue, |item| queue.push(item).unwrap());
        let queue = PriorityQueue::by_priority();
        works(&queue, |item| queue.push(item).unwrap());
        let queue = FairQueue::by(|item: &u32| item % 2);
        works(&queue, |item| queue.push(item).unwrap());
        let queue = Queue::builder().leased(Duration::from_secs(60)).build();
        works(&queue, |item| queue.push(item).unwrap());
        let queue = Remote::default();
        works(&queue, |item| {
            queue.stored.lock().unwrap().push_back((item, 0));
        });
    });
}

/// A push in a transaction waits for room, and comes back in time.
#[test]
fn pushes_of_a_transaction_wait() {
    let clock = ManualClock::new();
    let queue = Queue::builder().capacity(1).clock(clock.clone()).build();
    queue.push(1).unwrap();
    let tx = Backend::begin(&queue, None);
    let (second, full) = (Duration::from_secs(1), |item| {
        Err(TransactionError::Push(PushError::Full(item)))
    });
    for over in [
        Wait::Never,
        Wait::For(Duration::ZERO),
        Wait::Until(queue.now()),
    ] {
        assert_eq!(block_on(Tx::push(&tx, 2, over)), full(2));
    }
    for is_instant in [false, true] {
        let until = Wait::Until(queue.now() + second);
        let wait = if is_instant { until } else { Wait::For(second) };
        let mut pushing = Box::pin(Tx::push(&tx, 3, wait));
        assert!(pushing.as_mut().now_or_never().is_none());
        clock.advance(second);
        assert_eq!(block_on(pushing), full(3));
    }
    let mut tx = tx;
    for wait in [Wait::For(second), Wait::Forever] {
        let mut pushing = Box::pin(Tx::push(&tx, 4, wait));
        assert!(pushing.as_mut().now_or_never().is_none());
        queue.pop().unwrap();
        assert_eq!(block_on(pushing), Ok(()));
        queue.push(5).unwrap_err(); // its room is taken
        block_on(Tx::commit(&mut tx)).unwrap();
    }
}

#[test]
fn a_queue_elsewhere() {
    let remote = Remote::default();
    block_on(finish(remote.begin(None), 1, true)).unwrap();
    block_on(finish(remote.begin(None), 2, false)).unwrap();
    assert_eq!(*remote.stored.lock().unwrap(), [(1, 0)]);
}

/// The pool knows nothing of queues in memory.
#[test]
fn workers_of_a_queue_elsewhere() {
    ends(|| {
        let remote = Remote::default();
        remote
            .stored
            .lock()
            .unwrap()
            .extend((1..=5).map(|item| (item, 0)));
        let workers = Workers::builder(&remote)
            .threads(1)
            .run(|item, _tx| match *item {
                3 if RemoteTx::attempts(&item) == 1 => Err("once more"),
                _ => Ok(()),
            });
        let report = workers.finish(Duration::MAX);
        assert_eq!((report.done, report.failed, report.left), (5, 1, 0));
        assert_eq!(report.error, None);
    });
}

/// What a run has committed is done, though its worker does not know it yet.
#[test]
#[cfg(feature = "tokio")]
fn a_finish_waits_for_the_answers_to_commits() {
    let answer = Arc::new(Semaphore::new(0));
    let remote = Remote {
        answer: Some(Arc::clone(&answer)),
        ..Remote::default()
    };
    remote.stored.lock().unwrap().push_back((1, 0));
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(async {
        let builder = Workers::builder(&remote).tasks(1);
        let tasks = builder.run_async(|_, _| async { Ok::<(), ()>(()) });
        while remote.left().await.unwrap() > 0 {
            tokio::task::yield_now().await;
        }
        let (report, ()) = tokio::join!(tasks.finish(Duration::MAX), async {
            tokio::task::yield_now().await;
            answer.add_permits(1);
        });
        assert_eq!((report.done, report.failed, report.left), (1, 0, 0));
    });
}
