//! Starts a pool of tasks; the loop of a task.

use super::caught::Caught;
use super::crew::Shift;
use super::failure::{give_back_after_panic, kept};
use super::work::{poll_pop, settle, OpenRun, RunStep};
use super::worker::Ran;
use super::{Job, TaskItem, TaskTransaction, Tasks, WorkersBuilder};
use crate::core::pool::CheckedOut;
use crate::order::Order;
use crate::policy::telemetry::RunSpan;
use crate::raw::{Finding, Kept};
use crate::{OwnedTransaction, Queue, Transaction};
use std::convert::Infallible;
use std::fmt::Debug;
use std::future::{poll_fn, Future};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::{pin, Pin};
use std::sync::Arc;
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
        self.spawn(run)
    }

    #[track_caller]
    fn spawn<Y, E, F, R>(self, run: F) -> Tasks
    where
        Y: Into<Ran> + 'static,
        E: Debug + 'static,
        F: Fn(TaskItem<T, O>, TaskTransaction<T, O>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Y, E>> + Send + 'static,
    {
        let (crew, run) = (self.crew(), Arc::new(run));
        let mut spawned = JoinSet::new();
        for index in 0..crew.len() {
            let task = WorkingTask {
                queue: self.queue().clone(),
                shift: Arc::new(Shift::new(&crew, index)),
                idle: None,
            };
            spawned.spawn(work(task, Arc::clone(&run)));
        }
        Tasks::new(crew, spawned)
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
        self.spawn(
            |mut job, _| async move { Ok::<_, Infallible>(Ran::of_job(job.run_async().await)) },
        )
    }
}

/// The state of a worker task.
struct WorkingTask<T, O: Order<T>> {
    queue: Queue<T, O>,
    shift: Arc<Shift>,
    /// The handle, while no transaction owns it.
    idle: Option<CheckedOut<T, O>>,
}

impl<T, O: Order<T>> WorkingTask<T, O> {
    /// Begins a transaction. Replaces the handle if its last transaction still owns it.
    fn begin(&mut self) -> OwnedTransaction<T, O> {
        let make = || {
            self.queue
                .named_handle(Arc::clone(self.shift.worker().name()))
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
    F: Fn(TaskItem<T, O>, TaskTransaction<T, O>) -> R,
    R: Future<Output = Result<Y, E>> + Send,
{
    let shift = Arc::clone(&task.shift);
    while poll_fn(|context| shift.worker().poll_go_on(context.waker())).await {
        let step = pin!(step(&mut task, &*run));
        if !settle(&shift, Caught::new(step).await) {
            break;
        }
        consume_budget().await;
    }
}

async fn step<T, O, Y: Into<Ran>, E: Debug, F, R>(task: &mut WorkingTask<T, O>, run: &F) -> RunStep
where
    T: Send + 'static,
    O: Order<T> + 'static,
    F: Fn(TaskItem<T, O>, TaskTransaction<T, O>) -> R,
    R: Future<Output = Result<Y, E>> + Send,
{
    let shift = Arc::clone(&task.shift);
    let Kept {
        keeper,
        user,
        reference,
    } = match Kept::find(task.begin(), pop_for(&shift)).await {
        Ok(kept) => kept,
        Err((nothing, tx)) => {
            task.idle = Some(tx.end_by(|tx| drop(tx)).1);
            return nothing;
        }
    };
    let worker = shift.worker();
    worker.begin_run(user.since());
    let (item, tx) = (TaskItem::new(reference), TaskTransaction::new(user));
    let span = tx.run_span(worker.name(), item.attempts());
    let begin = || span.in_scope(|| Box::pin(run(item, tx)));
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

/// Waits for an item until the worker is interrupted.
fn pop_for<T: Send + 'static, O: Order<T> + 'static>(
    shift: &Arc<Shift>,
) -> impl for<'t> FnOnce(&'t OwnedTransaction<T, O>) -> Finding<'t, T, RunStep> {
    let shift = Arc::clone(shift);
    move |tx| {
        let mut pop = tx.pop_async();
        let mut waits = false;
        Box::pin(poll_fn(move |context| {
            let popped = poll_pop(&mut pop, shift.worker(), context.waker());
            if popped.is_ready() && waits {
                shift.worker().end_wait();
            }
            waits = popped.is_pending();
            popped.map(|popped| match popped {
                Some(Ok(item)) => Ok(item.reference),
                Some(Err(_)) => Err(RunStep::Closed),
                None => Err(RunStep::Interrupted),
            })
        }))
    }
}
