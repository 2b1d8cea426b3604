//! Starts a pool of tasks; the loop of a task.

use super::caught::Caught;
use super::pool::WorkerGuard;
use super::step::{give_back_after_panic, kept, RunStep};
use super::work::{poll_batch, poll_pop, settle, Batches, OpenRun};
use super::worker::{Ran, Worker};
use super::{AnyQueue, Job, TaskItem, TaskTransaction, Tasks, WorkersBuilder};
use crate::core::pool::CheckedOut;
use crate::order::Order;
use crate::policy::telemetry::RunSpan;
use crate::raw::{Finding, Kept};
use crate::{OwnedTransaction, Queue, Transaction};
use std::convert::Infallible;
use std::fmt::Debug;
use std::future::{poll_fn, Future};
use std::iter;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::{pin, Pin};
use std::sync::Arc;
use std::task::{Poll, Waker};
use tokio::task::{consume_budget, JoinSet};

impl<T: Send + 'static, O: Order<T> + 'static> WorkersBuilder<T, O> {
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
    /// The future owns its [item](TaskItem) and its [transaction](TaskTransaction). The pool ends the transaction after
    /// the future has ended and was dropped; by then both must be dropped. If one of them is kept elsewhere, the run
    /// counts as failed, whatever it returned: the transaction aborts when both are dropped, and only then are its items
    /// given back. Meanwhile the task continues with another handle.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    #[track_caller]
    pub fn run_async<E, F, R>(self, run: F) -> Tasks
    where
        E: Debug + 'static,
        F: Fn(TaskItem<T, O>, TaskTransaction<T, O>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), E>> + Send + 'static,
    {
        self.spawn(None, move |item, _, tx| run(item, tx))
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
    #[track_caller]
    pub fn run_batches_async<E, F, R>(self, max: usize, run: F) -> Tasks
    where
        E: Debug + 'static,
        F: Fn(Vec<TaskItem<T, O>>, TaskTransaction<T, O>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), E>> + Send + 'static,
    {
        let batches = Some(self.batches(max));
        self.spawn(batches, move |first, more, tx| {
            run(iter::once(first).chain(more).collect(), tx)
        })
    }

    /// Spawns tasks that run `run` on batches or, without them, on single items.
    #[track_caller]
    fn spawn<Y, E, F, R>(self, batches: Option<Batches>, run: F) -> Tasks
    where
        Y: Into<Ran> + 'static,
        E: Debug + 'static,
        F: Run<T, O, R> + Send + Sync + 'static,
        R: Future<Output = Result<Y, E>> + Send + 'static,
    {
        let (pool, run) = (self.pool(), Arc::new(run));
        let mut spawned = JoinSet::new();
        for index in 0..pool.len() {
            let task = WorkingTask {
                queue: self.queue().clone(),
                guard: Arc::new(WorkerGuard::new(&pool, index)),
                idle: None,
                batches,
            };
            spawned.spawn(work(task, Arc::clone(&run)));
        }
        Tasks::new(pool, spawned, AnyQueue::of(self.queue()))
    }
}

impl<O: Order<Job> + 'static> WorkersBuilder<Job, O> {
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
    pub fn run_jobs_async(self) -> Tasks {
        self.spawn(None, |mut job: TaskItem<_, _>, _, _| async move {
            Ok::<_, Infallible>(Ran::of_job(job.run_async().await))
        })
    }
}

/// The function of a pool: its first item, the rest of the batch, its transaction.
trait Run<T, O: Order<T>, R>:
    Fn(TaskItem<T, O>, Vec<TaskItem<T, O>>, TaskTransaction<T, O>) -> R
{
}

impl<T, O, R, F> Run<T, O, R> for F
where
    O: Order<T>,
    F: Fn(TaskItem<T, O>, Vec<TaskItem<T, O>>, TaskTransaction<T, O>) -> R,
{
}

/// The state of a worker task.
struct WorkingTask<T, O: Order<T>> {
    queue: Queue<T, O>,
    guard: Arc<WorkerGuard>,
    /// The handle, while no transaction owns it.
    idle: Option<CheckedOut<T, O>>,
    batches: Option<Batches>,
}

impl<T, O: Order<T>> WorkingTask<T, O> {
    /// Begins a transaction. Replaces the handle if its last transaction still owns it.
    fn begin(&mut self) -> OwnedTransaction<T, O> {
        let make = || {
            self.queue
                .named_handle(Arc::clone(self.guard.worker().name()))
        };
        let cell = self.idle.take().unwrap_or_else(|| make().check_out());
        OwnedTransaction::begin(cell)
    }
}

/// Works until it is stopped, or the queue is closed and drained.
async fn work<T, O, Y: Into<Ran>, E: Debug, F, R>(mut task: WorkingTask<T, O>, run: Arc<F>)
where
    T: Send + 'static,
    O: Order<T> + 'static,
    F: Run<T, O, R>,
    R: Future<Output = Result<Y, E>> + Send,
{
    let guard = Arc::clone(&task.guard);
    while poll_fn(|context| guard.worker().poll_go_on(context.waker())).await {
        let step = pin!(step(&mut task, &*run));
        if !settle(&guard, Caught::new(step).await) {
            break;
        }
        consume_budget().await;
    }
}

async fn step<T, O, Y: Into<Ran>, E: Debug, F, R>(task: &mut WorkingTask<T, O>, run: &F) -> RunStep
where
    T: Send + 'static,
    O: Order<T> + 'static,
    F: Run<T, O, R>,
    R: Future<Output = Result<Y, E>> + Send,
{
    let guard = Arc::clone(&task.guard);
    let Kept {
        keeper,
        user,
        first,
        more,
    } = match Kept::find(task.begin(), pop_for(&guard, task.batches)).await {
        Ok(kept) => kept,
        Err((nothing, tx)) => {
            task.idle = Some(tx.end_by(|tx| drop(tx)).1);
            return nothing;
        }
    };
    let worker = guard.worker();
    worker.begin_run(user.since());
    let (first, tx) = (TaskItem::new(first), TaskTransaction::new(user));
    let more = more.into_iter().map(TaskItem::new).collect();
    let span = tx.run_span(worker.name(), first.attempts());
    let begin = || span.in_scope(|| Box::pin(run(first, more, tx)));
    let ended = match catch_unwind(AssertUnwindSafe(begin)) {
        Ok(running) => Caught::new(within(&span, running)).await,
        Err(payload) => Err(payload),
    };
    let Some(tx) = keeper.into_value() else {
        return kept(worker, ended.map(|ended| ended.map(drop)));
    };
    let end = |tx: Transaction<'_, T, O>| match ended {
        Ok(ended) => OpenRun::of(tx, worker, |run| run.end(ended)),
        Err(payload) => give_back_after_panic(tx, worker, payload),
    };
    let (step, idle) = tx.end_by(|tx| span.in_scope(|| end(tx)));
    task.idle = Some(idle);
    step
}

/// Polls a future inside the span.
fn within<'s, F: Future + Unpin + 's>(
    span: &'s RunSpan,
    mut future: F,
) -> impl Future<Output = F::Output> + Unpin + 's {
    poll_fn(move |context| span.in_scope(|| Pin::new(&mut future).poll(context)))
}

/// Waits for an item, or a batch of them, until the worker is interrupted.
fn pop_for<T: Send + 'static, O: Order<T> + 'static>(
    guard: &Arc<WorkerGuard>,
    batches: Option<Batches>,
) -> impl for<'t> FnOnce(&'t OwnedTransaction<T, O>) -> Finding<'t, T, RunStep> {
    let guard = Arc::clone(guard);
    move |tx| {
        if let Some(Batches { max, linger }) = batches {
            let mut pop = tx.pop_batch_lingering(max, linger);
            return Box::pin(wait(guard, move |worker, waker| {
                let popped = poll_batch(&mut pop, worker, waker);
                popped.map(|items| {
                    let mut items = items
                        .ok_or(RunStep::Interrupted)?
                        .map(|item| item.reference);
                    let first = items.next().ok_or(RunStep::Closed)?;
                    Ok((first, items.collect()))
                })
            }));
        }
        let mut pop = tx.pop_async();
        Box::pin(wait(guard, move |worker, waker| {
            poll_pop(&mut pop, worker, waker).map(|popped| match popped {
                Some(Ok(item)) => Ok((item.reference, Vec::new())),
                Some(Err(_)) => Err(RunStep::Closed),
                None => Err(RunStep::Interrupted),
            })
        }))
    }
}

/// Waits as a worker, which leaves its waker for commands.
fn wait<R>(
    guard: Arc<WorkerGuard>,
    mut poll: impl FnMut(&Worker, &Waker) -> Poll<R>,
) -> impl Future<Output = R> {
    let mut waits = false;
    poll_fn(move |context| {
        let polled = poll(guard.worker(), context.waker());
        if polled.is_ready() && waits {
            guard.worker().end_wait();
        }
        waits = polled.is_pending();
        polled
    })
}
