//! How a pool of threads is started.

use super::work::{batch, each, job, work, Step};
use super::worker::Worker;
use super::{Job, Workers, WorkersBuilder};
use crate::order::Order;
use crate::{Item, Transaction};
use std::fmt::Debug;
use std::sync::Arc;
use std::thread::{Builder, Scope};

const REFUSED: &str = "the system refused to start a thread";

impl<T, O: Order<T>> WorkersBuilder<T, O> {
    /// Starts threads that run `run` on one item at a time, each in a transaction of its own: `Ok`
    /// commits, `Err` and a panic give the item back and undo what `run` has pushed by the transaction.
    ///
    /// What failed is out of the way [for a time](Workers#failed-runs), and the worker takes the next item.
    ///
    /// ```
    /// use requeue::{Queue, Workers};
    ///
    /// let queue = Queue::unbounded();
    /// queue.handle().push_batch(["7", "x", "8"])?;
    /// queue.close();
    /// let workers = Workers::builder(&queue).run(|text, _tx| match text.parse::<u32>() {
    ///     Err(wrong) if text.attempts() == 1 => Err(wrong), // once more
    ///     _ => Ok(()),
    /// });
    /// let report = workers.join();
    /// assert_eq!((report.done, report.failed), (3, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the system refuses to start a thread.
    #[track_caller]
    pub fn run<E, F>(self, run: F) -> Workers
    where
        T: Send + 'static,
        O: 'static,
        E: Debug,
        F: for<'t> Fn(Item<'t, T>, &'t Transaction<'t, T, O>) -> Result<(), E>,
        F: Send + Sync + 'static,
    {
        self.start(move |tx, worker| each(tx, worker, &run))
    }

    /// Starts threads that run `run` on up to `max` items at a time, all of them in one transaction: as
    /// many as are ready when the worker has got the first. `Ok` commits them together, `Err` and a panic
    /// give all of them back.
    ///
    /// ```
    /// use requeue::{Queue, Workers};
    ///
    /// let queue = Queue::unbounded();
    /// queue.handle().push_batch(0..100)?;
    /// queue.close();
    /// let workers = Workers::builder(&queue).threads(1).run_batches(50, |rows, _tx| {
    ///     assert_eq!(rows.len(), 50); // write them by one statement
    ///     Ok::<(), ()>(())
    /// });
    /// assert_eq!(workers.join().done, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If `max` is 0, and if the system refuses to start a thread.
    #[track_caller]
    pub fn run_batches<E, F>(self, max: usize, run: F) -> Workers
    where
        T: Send + 'static,
        O: 'static,
        E: Debug,
        F: for<'t> Fn(Vec<Item<'t, T>>, &'t Transaction<'t, T, O>) -> Result<(), E>,
        F: Send + Sync + 'static,
    {
        assert!(max > 0, "batches of 0 items: no run would have work");
        self.start(move |tx, worker| batch(tx, worker, max, &run))
    }

    /// [`run`](Self::run) with a function that may borrow what outlives `scope`. The scope joins the
    /// threads at its end; until the workers are stopped or dropped, or the queue is closed and drained,
    /// that waits for them.
    ///
    /// ```
    /// use requeue::{Queue, Workers};
    /// use std::sync::atomic::{AtomicU32, Ordering};
    ///
    /// let queue = Queue::unbounded();
    /// queue.handle().push_batch(1..=4)?;
    /// queue.close();
    /// let sum = AtomicU32::new(0);
    /// std::thread::scope(|scope| {
    ///     let workers = Workers::builder(&queue).run_scoped(scope, |number, _tx| {
    ///         sum.fetch_add(*number, Ordering::Relaxed);
    ///         Ok::<(), ()>(())
    ///     });
    ///     workers.join()
    /// });
    /// assert_eq!(sum.into_inner(), 10);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the system refuses to start a thread.
    #[track_caller]
    pub fn run_scoped<'scope, E, F>(self, scope: &'scope Scope<'scope, '_>, run: F) -> Workers
    where
        T: Send + 'scope,
        O: 'scope,
        E: Debug,
        F: for<'t> Fn(Item<'t, T>, &'t Transaction<'t, T, O>) -> Result<(), E>,
        F: Send + Sync + 'scope,
    {
        let run = Arc::new(run);
        let workers = Workers::new(self.crew());
        for shift in workers.shifts() {
            let (handle, run) = (self.handle(&shift), Arc::clone(&run));
            let step = move |tx: Transaction<'_, T, O>, worker: &Worker| each(tx, worker, &*run);
            let thread = Builder::new().name(shift.worker().name().to_string());
            // The scope joins it.
            drop(
                thread
                    .spawn_scoped(scope, move || work(&shift, handle, step))
                    .expect(REFUSED),
            );
        }
        workers
    }

    #[track_caller]
    fn start<S>(self, step: S) -> Workers
    where
        T: Send + 'static,
        O: 'static,
        S: Fn(Transaction<'_, T, O>, &Worker) -> Step + Send + Sync + 'static,
    {
        let step = Arc::new(step);
        let mut workers = Workers::new(self.crew());
        for shift in workers.shifts() {
            let (handle, step) = (self.handle(&shift), Arc::clone(&step));
            let thread = Builder::new().name(shift.worker().name().to_string());
            let thread = thread.spawn(move || work(&shift, handle, |tx, worker| step(tx, worker)));
            workers.add(thread.expect(REFUSED));
        }
        workers
    }
}

impl<O: Order<Job> + 'static> WorkersBuilder<Job, O> {
    /// Starts threads that run the jobs of the queue. A job that has run is committed, even if it
    /// panicked: that is for its [`Outcome`](crate::Outcome) to tell.
    ///
    /// ```
    /// use requeue::{Queue, Workers};
    ///
    /// let queue = Queue::unbounded();
    /// let _workers = Workers::builder(&queue).run_jobs();
    /// let product = queue.submit(|| 6 * 7)?;
    /// assert_eq!(product.wait().unwrap(), 42);
    /// # Ok::<(), requeue::PushError<_>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the system refuses to start a thread.
    #[track_caller]
    pub fn run_jobs(self) -> Workers {
        self.start(job)
    }
}
