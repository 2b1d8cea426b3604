//! Starts a pool of threads.

use super::step::RunStep;
use super::work::{batch, each, each_with, job, work};
use super::worker::Worker;
use super::{AnyQueue, Job, Others, Workers, WorkersBuilder};
use crate::order::Order;
use crate::{Item, Transaction};
use std::fmt::Debug;
use std::sync::Arc;
use std::thread::{Builder, Scope};

const REFUSED: &str = "the system refused to start a thread";

impl<T, O: Order<T>> WorkersBuilder<T, O> {
    /// Starts threads that run `run` on one item at a time, each in a transaction of its own: `Ok`
    /// commits, `Err` and a panic give the item back and undo the pushes of the transaction.
    ///
    /// A failed item is delayed [by a backoff](Workers#failed-runs), and the worker takes the next item.
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
    /// If the compiler cannot infer the error, write `Ok::<(), MyError>(())`. Write the closure in the call, where its
    /// lifetimes are inferred, or pass a function:
    ///
    /// ```
    /// use requeue::{Item, Queue, Transaction, Workers};
    ///
    /// fn parse(text: Item<'_, &str>, _: &Transaction<'_, &str>) -> Result<(), std::num::ParseIntError> {
    ///     text.parse::<u32>().map(drop)
    /// }
    ///
    /// let queue = Queue::unbounded();
    /// queue.push("7")?;
    /// queue.close();
    /// assert_eq!(Workers::builder(&queue).run(parse).join().done, 1);
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
        self.start_shared(move |tx, worker| each(tx, worker, &run))
    }

    /// Like [`run`](Self::run), with transactions of other queues that are committed [atomically](crate::commit_all())
    /// with that of the item: `Ok` makes all pushes visible at once, `Err` and a panic undo
    /// all of them. So no item is lost or duplicated between two queues.
    ///
    /// `others` is a reference to a queue or a tuple of references, of any item types and orders; the function gets
    /// a transaction of that queue or a tuple of them. The pool ends when its own queue is closed and drained; then
    /// the next queue can be closed.
    ///
    /// ```
    /// use requeue::{Queue, Workers};
    ///
    /// let (orders, invoices) = (Queue::unbounded(), Queue::unbounded());
    /// orders.push_batch([7, 8])?;
    /// orders.close();
    /// let workers = Workers::builder(&orders).run_with(&invoices, |order, _tx, out| {
    ///     out.push(format!("invoice for order {}", *order))
    /// });
    /// assert_eq!(workers.join().done, 2);
    /// assert_eq!((orders.stats().committed, invoices.len()), (2, 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the system refuses to start a thread.
    #[track_caller]
    #[allow(clippy::needless_pass_by_value)] // references, and tuples of them
    pub fn run_with<Q, E, F>(self, others: Q, run: F) -> Workers
    where
        T: Send + 'static,
        O: 'static,
        Q: Others,
        E: Debug,
        F: for<'t, 'h> Fn(
            Item<'t, T>,
            &'t Transaction<'t, T, O>,
            &'t Q::Transactions<'h>,
        ) -> Result<(), E>,
        F: Send + Sync + 'static,
    {
        let run = Arc::new(run);
        self.start(|worker| {
            let (mut handles, run) = (others.handles(worker.name()), Arc::clone(&run));
            move |tx: Transaction<'_, T, O>, worker: &Worker| {
                each_with::<Q, _, _, _>(tx, &mut handles, worker, &*run)
            }
        })
    }

    /// Starts threads that run `run` on up to `max` items at a time, all of them in one transaction: those that
    /// are ready when the worker has taken the first, or become ready while it [lingers](Self::linger). `Ok` commits them
    /// together, `Err` and a panic give all of them back.
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
    /// If `max` is 0, or if the system refuses to start a thread.
    #[track_caller]
    pub fn run_batches<E, F>(self, max: usize, run: F) -> Workers
    where
        T: Send + 'static,
        O: 'static,
        E: Debug,
        F: for<'t> Fn(Vec<Item<'t, T>>, &'t Transaction<'t, T, O>) -> Result<(), E>,
        F: Send + Sync + 'static,
    {
        let batches = self.batches(max);
        self.start_shared(move |tx, worker| batch(tx, worker, batches, &run))
    }

    /// Like [`run`](Self::run), with a function that may borrow data that outlives `scope`. The scope joins the
    /// threads at its end, which blocks until the workers are stopped or dropped, or the queue is closed and drained.
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
    pub fn run_scoped<'scope, E, F>(
        self,
        scope: &'scope Scope<'scope, '_>,
        run: F,
    ) -> Workers<AnyQueue<'scope>>
    where
        T: Send + 'scope,
        O: 'scope,
        E: Debug,
        F: for<'t> Fn(Item<'t, T>, &'t Transaction<'t, T, O>) -> Result<(), E>,
        F: Send + Sync + 'scope,
    {
        let run = Arc::new(run);
        let workers = Workers::new(self.pool(), AnyQueue::of(self.queue()));
        for guard in workers.shifts() {
            let (handle, run) = (self.handle(&guard), Arc::clone(&run));
            let step = move |tx: Transaction<'_, T, O>, worker: &Worker| each(tx, worker, &*run);
            let thread = Builder::new().name(guard.worker().name().to_string());
            // The scope joins it.
            drop(
                thread
                    .spawn_scoped(scope, move || work(&guard, handle, step))
                    .expect(REFUSED),
            );
        }
        workers
    }

    /// Starts threads that share one step function.
    #[track_caller]
    fn start_shared<S>(self, step: S) -> Workers
    where
        T: Send + 'static,
        O: 'static,
        S: Fn(Transaction<'_, T, O>, &Worker) -> RunStep + Send + Sync + 'static,
    {
        let step = Arc::new(step);
        self.start(|_| {
            let step = Arc::clone(&step);
            move |tx: Transaction<'_, T, O>, worker: &Worker| step(tx, worker)
        })
    }

    /// Starts threads, each with a step function made by `prepare`.
    #[track_caller]
    fn start<S>(self, prepare: impl Fn(&Worker) -> S) -> Workers
    where
        T: Send + 'static,
        O: 'static,
        S: FnMut(Transaction<'_, T, O>, &Worker) -> RunStep + Send + 'static,
    {
        let mut workers = Workers::new(self.pool(), AnyQueue::of(self.queue()));
        for guard in workers.shifts() {
            let (handle, step) = (self.handle(&guard), prepare(guard.worker()));
            let thread = Builder::new().name(guard.worker().name().to_string());
            let thread = thread.spawn(move || work(&guard, handle, step));
            workers.add(thread.expect(REFUSED));
        }
        workers
    }
}

impl<O: Order<Job> + 'static> WorkersBuilder<Job, O> {
    /// Starts threads that run the jobs of the queue. A job that has run is committed, even if it
    /// panicked: its [`Outcome`](crate::Outcome) reports the panic.
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
        self.start_shared(job)
    }
}
