//! Starts the threads of a pool.

use super::step::{QueueWorker, Stepped};
use super::work::{work, HeldOf, ViewOf, WorkerThread};
use super::{AnyQueue, CommitWith, Job, PoolBuilder, Workers};
use crate::backend::Backend;
use std::fmt::Debug;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle, Scope};

impl<B: Backend + 'static> PoolBuilder<B> {
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
        E: Debug,
        F: for<'t> Fn(HeldOf<'t, B>, &'t ViewOf<B>) -> Result<(), E>,
        F: Send + Sync + 'static,
    {
        self.start_shared(move |thread| thread.each(&run))
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
        Q: CommitWith<B>,
        E: Debug,
        F: for<'t, 'h> Fn(HeldOf<'t, B>, &'t ViewOf<B>, &'t Q::Transactions<'h>) -> Result<(), E>,
        F: Send + Sync + 'static,
    {
        let handles = others.handles();
        self.start_threads(move |worker| {
            let mut handles = handles(worker.worker.name());
            work(&worker, |thread| {
                thread.each_with::<Q, _>(&mut handles, &run)
            });
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
        E: Debug,
        F: for<'t> Fn(Vec<HeldOf<'t, B>>, &'t ViewOf<B>) -> Result<(), E>,
        F: Send + Sync + 'static,
    {
        let batches = self.batches(max);
        self.start_shared(move |thread| thread.batch(batches, &run))
    }

    /// Starts threads that share one step function.
    #[track_caller]
    pub(super) fn start_shared<S>(self, step: S) -> Workers
    where
        S: Fn(&mut WorkerThread<'_, B>) -> Stepped<B> + Send + Sync + 'static,
    {
        self.start_threads(move |worker| work(&worker, &step))
    }

    /// Starts threads that the pool joins.
    #[track_caller]
    fn start_threads(self, main: impl Fn(QueueWorker<B>) + Send + Sync + 'static) -> Workers {
        self.start(main, |thread, run| thread.spawn(run).map(Some))
    }
}

impl<B: Backend> PoolBuilder<B> {
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
        B: 'scope,
        E: Debug,
        F: for<'t> Fn(HeldOf<'t, B>, &'t ViewOf<B>) -> Result<(), E>,
        F: Send + Sync + 'scope,
    {
        let main = move |worker| work(&worker, |thread| thread.each(&run));
        self.start(main, move |thread, run| {
            thread.spawn_scoped(scope, run).map(|_| None) // the scope joins it
        })
    }

    /// Starts the workers, with `main` in each thread. `spawn` returns the thread that the pool joins, if any.
    #[track_caller]
    fn start<'q>(
        self,
        main: impl Fn(QueueWorker<B>) + Send + Sync + 'q,
        spawn: impl Fn(thread::Builder, Run<'q>) -> io::Result<Option<JoinHandle<()>>>
            + Send
            + Sync
            + 'q,
    ) -> Workers<AnyQueue<'q>>
    where
        B: 'q,
    {
        let (mut started, workers, of_queue) = self.workers();
        let main = Arc::new(main);
        // Threads keep it, and the pool does not: its destructor may be what others wait for when all threads have ended.
        let of_threads = Arc::downgrade(&main);
        started.queue.1 = Some(Box::new(move |workers, threads| {
            // All of them, so that those end that are not started.
            let workers: Vec<_> = workers.into_iter().map(&of_queue).collect();
            for worker in workers {
                let Some(main) = of_threads.upgrade() else {
                    break; // all have ended
                };
                let shown = Arc::clone(&worker.worker);
                let thread = thread::Builder::new().name(shown.name().to_string());
                let thread = spawn(thread, Box::new(move || main(worker)))?;
                threads.extend(thread.map(|thread| (shown, thread)));
            }
            Ok(())
        }));
        started.start(workers);
        drop(main);
        started
    }
}

/// What a thread runs.
type Run<'q> = Box<dyn FnOnce() + Send + 'q>;

impl<B: Backend<Item = Job> + 'static> PoolBuilder<B> {
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
        self.start_shared(|thread| thread.each(|mut job, _| Ok::<bool, ()>(job.run())))
    }
}
