//! Starts the tasks of a pool, and their steps.

use super::caught::Caught;
use super::failure::RunError;
use super::in_flight::InFlight;
use super::step::{within, Batches, Left, Own, QueueWorker, Stop, NOT_OWN};
use super::worker::{Ran, Worker};
#[cfg(feature = "tokio")]
use super::{Job, Tasks};
use super::{KeptItem, KeptTransaction, PoolBuilder, Workers};
use crate::backend::{pop, Backend, Tx};
use crate::policy::telemetry::RunSpan;
use crate::raw::Keeper;
use std::fmt::Debug;
use std::future::Future;
use std::pin::{pin, Pin};
use std::sync::Arc;
use std::time::Duration;

/// The work of one worker, for an executor.
pub(super) type WorkerFuture = Pin<Box<dyn Future<Output = ()> + Send>>;
/// Makes the work of workers.
pub(super) type FuturesOf = Box<dyn Fn(Vec<Arc<Worker>>) -> Vec<WorkerFuture> + Send + Sync>;
/// A pool, what makes the work of its workers, and that of the first ones.
pub(super) type Futures = (Workers, FuturesOf, Vec<WorkerFuture>);
/// An item of a run by a task.
type ItemOf<B> = KeptItem<<B as Backend>::Tx>;
/// Its transaction.
type TransactionOf<B> = KeptTransaction<<B as Backend>::Tx>;

impl<B: Backend + 'static> PoolBuilder<B>
where
    B::Tx: 'static,
{
    /// Sets the number of tasks that [`run_async`](Self::run_async) spawns: an alias of
    /// [`threads`](Self::threads). Feature `tokio`.
    ///
    /// ```
    /// let queue = requeue::Queue::<u32>::unbounded();
    /// let builder = requeue::Workers::builder(&queue).tasks(100);
    /// assert!(format!("{builder:?}").contains("100"));
    /// ```
    ///
    /// # Panics
    ///
    /// If `count` is 0.
    #[cfg(feature = "tokio")]
    #[track_caller]
    pub fn tasks(self, count: usize) -> Self {
        self.threads(count)
    }

    /// Spawns tasks that run `run` on one item at a time, each in a transaction of its own: `Ok` commits,
    /// `Err` and a panic give the item back and undo what was pushed; see
    /// [failed runs](crate::Workers#failed-runs). Feature `tokio`.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use requeue::{PushError, Queue, Workers};
    ///
    /// let queue = Queue::unbounded();
    /// queue.push(0)?;
    /// let tasks = Workers::builder(&queue).tasks(1).run_async(|job, tx| async move {
    ///     if *job < 3 {
    ///         tx.push(*job + 1)?; // ready when the run is committed
    ///     }
    ///     Ok::<_, PushError<u32>>(())
    /// });
    /// queue.wait_idle_async().await;
    /// assert_eq!(tasks.stop().await.done, 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// The future owns its [item](KeptItem) and its [transaction](KeptTransaction). The pool ends the transaction after
    /// the future has ended and was dropped; by then both must be dropped. If one of them is kept elsewhere, the run
    /// counts as failed, whatever it returned: the transaction aborts when both are dropped, and only then are its items
    /// given back. Meanwhile the task continues with another handle.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    #[cfg(feature = "tokio")]
    #[track_caller]
    pub fn run_async<E, F, R>(self, run: F) -> Tasks
    where
        E: Debug + 'static,
        F: Fn(ItemOf<B>, TransactionOf<B>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), E>> + Send + 'static,
    {
        Tasks::new(self.futures(SINGLE, each(run)))
    }

    /// Spawns tasks that run `run` on up to `max` items at a time, all of them in one transaction, like
    /// [`run_batches`](Self::run_batches) with threads. Feature `tokio`.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use requeue::{Queue, Workers};
    /// use std::time::Duration;
    ///
    /// let queue = Queue::unbounded();
    /// let tasks = Workers::builder(&queue)
    ///     .tasks(1)
    ///     .linger(Duration::from_millis(100))
    ///     .run_batches_async(50, |rows, _tx| async move {
    ///         assert_eq!(rows.len(), 50);
    ///         tokio::task::yield_now().await; // insert them by one statement
    ///         Ok::<(), ()>(())
    ///     });
    /// queue.push_batch(0..100)?;
    /// queue.close();
    /// assert_eq!(tasks.join().await.done, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// The future owns its items and its transaction, as with [`run_async`](Self::run_async).
    ///
    /// # Panics
    ///
    /// If `max` is 0, or outside of a tokio runtime.
    #[cfg(feature = "tokio")]
    #[track_caller]
    pub fn run_batches_async<E, F, R>(self, max: usize, run: F) -> Tasks
    where
        E: Debug + 'static,
        F: Fn(Vec<ItemOf<B>>, TransactionOf<B>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), E>> + Send + 'static,
    {
        let batches = self.batches(max);
        Tasks::new(self.futures(batches, run))
    }

    /// Like `run_async` (feature `tokio`) on any executor: `spawn` gets the future of each worker. What is returned is used
    /// by threads.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use requeue::{Queue, Workers};
    /// use std::thread;
    ///
    /// let queue = Queue::unbounded();
    /// queue.push(7)?;
    /// queue.close();
    /// let spawn = |worker| drop(thread::spawn(|| block_on(worker)));
    /// let builder = Workers::builder(&queue).threads(2);
    /// let workers = builder.run_on(spawn, |number, _tx| async move {
    ///     if *number == 7 { Ok(()) } else { Err("another number") }
    /// });
    /// assert_eq!(workers.join().done, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn run_on<E, F, R>(
        self,
        spawn: impl Fn(Pin<Box<dyn Future<Output = ()> + Send>>),
        run: F,
    ) -> Workers
    where
        E: Debug + 'static,
        F: Fn(ItemOf<B>, TransactionOf<B>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), E>> + Send + 'static,
    {
        let (workers, _, first) = self.futures(SINGLE, each(run));
        first.into_iter().for_each(spawn);
        workers
    }

    pub(super) fn futures<K, Y, E, F, R>(self, takes: K, run: F) -> Futures
    where
        K: Takes<B>,
        Y: Into<Ran> + 'static,
        E: Debug + 'static,
        F: Fn(K::Items, TransactionOf<B>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Y, E>> + Send + 'static,
    {
        let (started, workers, of_queue) = self.workers();
        let run = Arc::new(run);
        let of_tasks = Arc::downgrade(&run); // as with threads
        let futures: FuturesOf = Box::new(move |workers| {
            let workers: Vec<_> = workers.into_iter().map(&of_queue).collect();
            let future = |worker: QueueWorker<B>| -> Option<WorkerFuture> {
                let run = of_tasks.upgrade()?;
                Some(Box::pin(async move {
                    let in_flight = InFlight::new(worker.commits_in_flight);
                    let work = worker.work(|tx| step(&worker, &in_flight, tx, takes, &*run));
                    in_flight.drive(pin!(work)).await;
                }))
            };
            workers.into_iter().filter_map(future).collect()
        });
        let first = futures(workers);
        drop(run);
        (started, futures, first)
    }
}

#[cfg(feature = "tokio")]
impl<B: Backend<Item = Job> + 'static> PoolBuilder<B>
where
    B::Tx: 'static,
{
    /// Spawns tasks that run the jobs of the queue: they await futures and call closures. A job that has run is
    /// committed, even if it panicked: its [`Outcome`](crate::Outcome) reports the panic. Feature `tokio`.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use requeue::{Queue, Workers};
    ///
    /// let queue = Queue::unbounded();
    /// let _tasks = Workers::builder(&queue).tasks(2).run_jobs_async();
    /// let (product, sum) = (queue.submit(|| 6 * 7)?, queue.submit_async(async { 6 + 7 }).unwrap());
    /// assert_eq!((product.await.unwrap(), sum.await.unwrap()), (42, 13));
    /// # Ok::<(), requeue::PushError<_>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    #[track_caller]
    pub fn run_jobs_async(mut self) -> Tasks {
        self.run_timeout = None;
        let run = |mut job: ItemOf<B>, _| async move { Ok::<bool, ()>(job.run_async().await) };
        Tasks::new(self.futures(SINGLE, each(run)))
    }
}

/// One item at a time.
const SINGLE: Batches = Batches {
    max: 1,
    linger: Duration::ZERO,
};

/// A run on batches of one item.
fn each<I, X, R>(run: impl Fn(I, X) -> R) -> impl Fn(Vec<I>, X) -> R {
    move |mut items, tx| run(items.pop().expect("a run has an item"), tx)
}

/// How the runs of a pool of tasks take their items.
pub(super) trait Takes<B: Backend>: Copy + Send + Sync + 'static {
    /// The items of a run.
    type Items: Send;
    /// The delivery of an item that the run owns.
    type Delivery: Send;

    /// Before a run is begun in the transaction.
    fn prepare(self, tx: &mut B::Tx) {
        let _ = tx;
    }

    /// Takes items and begins a run; returns also the attempts of the first item.
    #[allow(clippy::type_complexity)] // named once
    fn take(
        self,
        worker: &QueueWorker<B>,
        keeper: &Keeper<B::Tx>,
    ) -> impl Future<Output = Result<(Self::Items, u32, Option<Own<Self::Delivery>>), Stop<B::Error>>>
           + Send;
}

/// Items that the transaction holds.
impl<B: Backend> Takes<B> for Batches
where
    B::Tx: 'static,
{
    type Items = Vec<ItemOf<B>>;
    type Delivery = ();

    async fn take(
        self,
        worker: &QueueWorker<B>,
        keeper: &Keeper<B::Tx>,
    ) -> Result<(Vec<ItemOf<B>>, u32, Option<Own<()>>), Stop<B::Error>> {
        let find = |max, wait| keeper.find(pop::<B>(max, wait));
        let items = worker.take_batch(self, find).await?;
        worker.worker.begin_run(keeper.user().tx().since());
        let attempts = items[0].attempts();
        Ok((items, attempts, NOT_OWN))
    }
}

/// Takes items, runs, and commits. The transaction is gone afterwards if the run keeps it, or if the commit is in flight.
async fn step<'w, B, K, Y: Into<Ran>, E: Debug, F, R>(
    worker: &'w QueueWorker<B>,
    in_flight: &InFlight<'w>,
    mut tx: B::Tx,
    takes: K,
    run: &F,
) -> Left<B>
where
    B: Backend + 'w,
    B::Tx: 'static,
    K: Takes<B>,
    F: Fn(K::Items, TransactionOf<B>) -> R,
    R: Future<Output = Result<Y, E>> + Send,
{
    takes.prepare(&mut tx);
    let keeper = Keeper::new(tx);
    let (items, attempts, own) = match takes.take(worker, &keeper).await {
        Ok(found) => found,
        Err(stop) => return (Err(stop), keeper.into_value(), RunSpan::none()),
    };
    let tx = keeper.user();
    let span = tx.tx().run_span(worker.worker.name(), attempts);
    // The call of the function is a part of the future: it may panic too.
    let cancelled = tx.tx().cancelled();
    let running = Box::pin(async { run(items, tx).await });
    let running = Caught::new(within(&span, running));
    let ran = worker.drive(running, cancelled).await;
    let (stepped, tx) = match (ran, keeper.into_value()) {
        (Ok(ran), Some(mut tx)) => {
            let goes_on = in_flight.takes() && tx.can_commit_in_flight();
            let commit = commit(worker, tx, ran, own, span);
            if !goes_on {
                return commit.await;
            }
            in_flight.add(worker.settle_in_flight(commit)).await;
            return (Err(Stop::Interrupted), None, RunSpan::none());
        }
        (Ok(_), None) => {
            let kept = "the run's item or transaction is kept after its end";
            (Err(Stop::Failed(RunError::with(kept.into()))), None)
        }
        (Err(stop), tx) => (Err(stop), tx),
    };
    (stepped, tx, span)
}

/// Commits a run that has not failed, in its span.
async fn commit<B: Backend, A>(
    worker: &QueueWorker<B>,
    mut tx: B::Tx,
    ran: Ran,
    own: Option<Own<A>>,
    span: RunSpan,
) -> Left<B> {
    let stepped = within(&span, pin!(worker.commit_and_tell(&mut tx, ran, own))).await;
    (stepped, Some(tx), span)
}
