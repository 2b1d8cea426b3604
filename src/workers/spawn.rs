//! How a pool of tasks is started, and what a task does.

use super::caught::Caught;
use super::crew::Shift;
use super::work::{end, poll_pop, settle, Step};
use super::worker::{Ran, Worker};
use super::{Job, Staging, Tasks, WorkersBuilder};
use crate::order::Order;
use crate::{Handle, Item, Transaction};
use std::convert::Infallible;
use std::fmt::Debug;
use std::future::{poll_fn, Future};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::{pin, Pin};
use std::sync::Arc;
use tokio::task::{consume_budget, JoinSet};

/// The future of one run.
type Run<'t, E, R = ()> = Pin<Box<dyn Future<Output = Result<R, E>> + Send + 't>>;

impl<T: Send + 'static, O: Order<T> + 'static> WorkersBuilder<T, O> {
    /// How many tasks [`run_async`](Self::run_async) spawns: another word for
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
    /// If `count` is 0: nobody would work.
    #[track_caller]
    pub fn tasks(self, count: usize) -> Self {
        self.threads(count)
    }

    /// Spawns tasks that run `run` on one item at a time, each in a transaction of its own: `Ok` commits,
    /// `Err` and a panic give the item back and undo what was pushed by the [`Staging`]; see
    /// [failed runs](crate::Workers#failed-runs). Feature `tokio`.
    ///
    /// The future borrows the item, so it comes in a box:
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use requeue::{Queue, Workers};
    ///
    /// let queue = Queue::unbounded();
    /// queue.push(vec![1, 2])?;
    /// queue.close();
    /// let (send, mut sums) = tokio::sync::mpsc::unbounded_channel();
    /// let tasks = Workers::builder(&queue).run_async(move |numbers, _staging| {
    ///     let send = send.clone();
    ///     Box::pin(async move { send.send(numbers.iter().sum::<u32>()) })
    /// });
    /// assert_eq!(sums.recv().await, Some(3));
    /// assert_eq!(tasks.join().await.done, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    #[track_caller]
    pub fn run_async<E, F>(self, run: F) -> Tasks
    where
        E: Debug + 'static,
        F: for<'t> Fn(Item<'t, T>, Staging<'t, T, O>) -> Run<'t, E>,
        F: Send + Sync + 'static,
    {
        self.spawn(run)
    }

    #[track_caller]
    fn spawn<R, E, F>(self, run: F) -> Tasks
    where
        R: Into<Ran> + 'static,
        E: Debug + 'static,
        F: for<'t> Fn(Item<'t, T>, Staging<'t, T, O>) -> Run<'t, E, R>,
        F: Send + Sync + 'static,
    {
        let (crew, run) = (self.crew(), Arc::new(run));
        let mut spawned = JoinSet::new();
        for index in 0..crew.len() {
            let shift = Shift::new(&crew, index);
            spawned.spawn(work(self.handle(&shift), Arc::clone(&run), shift));
        }
        Tasks::new(crew, spawned)
    }
}

impl<O: Order<Job> + 'static> WorkersBuilder<Job, O> {
    /// Spawns tasks that run the jobs of the queue: futures, which they await, and closures, which they call. A job that
    /// has run is committed, even if it panicked: that is for its [`Outcome`](crate::Outcome) to tell. Feature `tokio`.
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
        self.spawn(|mut job, _| {
            Box::pin(async move { Ok::<_, Infallible>(Ran::of_job(job.run_async().await)) })
        })
    }
}

/// Works until it is told to stop, or the queue is closed and drained.
async fn work<T, O: Order<T>, R: Into<Ran>, E: Debug, F>(
    mut handle: Handle<T, O>,
    run: Arc<F>,
    shift: Shift,
) where
    T: Send,
    F: for<'t> Fn(Item<'t, T>, Staging<'t, T, O>) -> Run<'t, E, R>,
{
    let worker = shift.worker();
    while poll_fn(|context| worker.poll_go_on(context.waker())).await {
        let step = pin!(step(handle.begin(), worker, &*run));
        if !settle(&shift, Caught::new(step).await) {
            break;
        }
        consume_budget().await;
    }
    drop(handle);
}

async fn step<T, O: Order<T>, R: Into<Ran>, E: Debug, F>(
    tx: Transaction<'_, T, O>,
    worker: &Worker,
    run: &F,
) -> Step
where
    T: Send,
    F: for<'t> Fn(Item<'t, T>, Staging<'t, T, O>) -> Run<'t, E, R>,
{
    let mut pop = tx.pop_async();
    let popped = poll_fn(|context| poll_pop(&mut pop, worker, context.waker())).await;
    drop(pop);
    let item = match popped {
        Some(Ok(item)) => item,
        Some(Err(_)) => return Step::Closed,
        None => return Step::CalledOff,
    };
    worker.begin_run(tx.now());
    let ended = match catch_unwind(AssertUnwindSafe(|| run(item, Staging::new(&tx)))) {
        Ok(running) => Caught::new(running).await,
        Err(payload) => Err(payload),
    };
    end(tx, worker, ended)
}
