//! Functions that are generic over queues in memory or not.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::future::{ready, Future};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::common::ends;
use crate::common::futures::block_on;
use futures::FutureExt;
use requeue::backend::{AbortCause, Backend, Committed, Holds, Settlement, Tx};
use requeue::error::TransactionError;
use requeue::{
    Backoff, Expired, FairQueue, ManualClock, PriorityQueue, PushError, Queue, Reason, Transaction,
    Wait, Workers,
};
use tokio::sync::Notify;

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

/// A queue of another kind: a locked deque of items and the numbers of their deliveries.
#[derive(Clone, Debug, Default)]
struct Remote {
    stored: Arc<Mutex<VecDeque<(u32, u32)>>>,
    closed: Arc<Mutex<bool>>,
    held: Arc<Mutex<usize>>,
    /// If it is there, workers do not notice the close, and the answer to a commit waits for this.
    answer: Option<Arc<Notify>>,
}

#[derive(Debug)]
struct RemoteTx {
    queue: Remote,
    staged: Mutex<Vec<(u32, u32)>>,
    held: Mutex<Vec<(u32, u32)>>,
}

#[derive(Debug)]
struct RemoteItem(u32, u32);

impl Deref for RemoteItem {
    type Target = u32;

    fn deref(&self) -> &u32 {
        &self.0
    }
}

impl DerefMut for RemoteItem {
    fn deref_mut(&mut self) -> &mut u32 {
        &mut self.0
    }
}

impl Backend for Remote {
    type Item = u32;
    type Error = std::io::Error;
    type Tx = RemoteTx;

    fn begin(&self, _worker: Option<Arc<str>>) -> RemoteTx {
        RemoteTx {
            queue: self.clone(),
            staged: Mutex::default(),
            held: Mutex::default(),
        }
    }

    async fn close(&self) -> std::io::Result<bool> {
        *self.closed.lock().unwrap() = true;
        Ok(self.answer.is_none())
    }

    fn is_closed(&self) -> bool {
        *self.closed.lock().unwrap()
    }

    async fn left(&self) -> std::io::Result<u64> {
        let held = *self.held.lock().unwrap();
        Ok((self.stored.lock().unwrap().len() + held) as u64)
    }

    fn instant(&self, _since: u64) -> Instant {
        Instant::now()
    }
}

impl Holds for RemoteTx {
    type Item = u32;
    type Held<'t> = RemoteItem;
    type View = Self;

    fn attempts(item: &RemoteItem) -> u32 {
        item.1
    }

    fn view(&self) -> &Self {
        self
    }
}

impl RemoteTx {
    /// Ends the transaction, with what becomes of its items.
    fn end(&self, commits: bool) {
        let mut stored = self.queue.stored.lock().unwrap();
        let held = std::mem::take(&mut *self.held.lock().unwrap());
        *self.queue.held.lock().unwrap() -= held.len();
        let staged = std::mem::take(&mut *self.staged.lock().unwrap());
        let back = if commits { staged } else { held };
        back.into_iter()
            .rev()
            .for_each(|item| stored.push_front(item));
    }
}

impl Drop for RemoteTx {
    fn drop(&mut self) {
        self.end(false);
    }
}

impl Tx for RemoteTx {
    type Error = std::io::Error;
    type Refused = std::io::Error;

    async fn pop(&self, wait: Wait) -> std::io::Result<Option<RemoteItem>> {
        loop {
            let popped = {
                let mut stored = self.queue.stored.lock().unwrap();
                let popped = stored.pop_front();
                *self.queue.held.lock().unwrap() += usize::from(popped.is_some());
                popped
            };
            if let Some((item, attempts)) = popped {
                self.held.lock().unwrap().push((item, attempts + 1));
                return Ok(Some(RemoteItem(item, attempts + 1)));
            }
            let is_over = self.queue.is_closed() && self.queue.left().await? == 0;
            if is_over || wait != Wait::Forever {
                return Ok(None);
            }
            tokio::task::yield_now().await;
        }
    }

    async fn pop_batch(&self, _max: usize, wait: Wait) -> std::io::Result<Vec<RemoteItem>> {
        Ok(self.pop(wait).await?.into_iter().collect())
    }

    fn push(&self, item: u32, _wait: Wait) -> impl Future<Output = std::io::Result<()>> + Send {
        self.staged.lock().unwrap().push((item, 0));
        ready(Ok(()))
    }

    fn settle(&self, item: RemoteItem, settlement: Settlement) -> std::io::Result<()> {
        if settlement != Settlement::Retry {
            return Err(std::io::ErrorKind::Unsupported.into());
        }
        self.staged.lock().unwrap().push((item.0, item.1));
        Ok(())
    }

    async fn commit(&mut self) -> std::io::Result<Committed> {
        self.end(true);
        if let Some(answer) = &self.queue.answer {
            answer.notified().await;
        }
        Ok(Committed::default())
    }

    async fn abort(&mut self, _cause: AbortCause) -> std::io::Result<()> {
        self.end(false);
        Ok(())
    }

    fn deliveries(&mut self) -> (usize, u32) {
        let held = self.held.lock().unwrap();
        (
            held.len(),
            held.iter()
                .map(|(_, attempts)| *attempts)
                .max()
                .unwrap_or(0),
        )
    }

    fn since(&self) -> u64 {
        0
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
    let answer = Arc::new(Notify::new());
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
            answer.notify_one();
        });
        assert_eq!((report.done, report.failed, report.left), (1, 0, 0));
    });
}
