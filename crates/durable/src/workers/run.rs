//! Workers that are threads.

use super::block::block_on;
use super::failure::drop_committed;
use super::guard::{Deliveries, Missing, Next, WorkerGuard};
use super::others::Others;
use super::{Workers, WorkersBuilder};
use crate::error::StoreError;
use crate::order::Order;
use crate::{DurableQueue, Item, Transaction};
use std::fmt::Debug;
use std::sync::Arc;
use std::thread::Scope;

impl<T: Send + 'static, O: Order<T>> WorkersBuilder<T, O> {
    /// Starts threads that call `run` for each item, with the transaction that holds it.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// use requeue_durable::{PushError, Workers};
    ///
    /// let numbers = store.queue("numbers")?;
    /// numbers.push(3)?;
    /// numbers.close()?;
    /// let workers = Workers::builder(&numbers).threads(2).run(|number, tx| {
    ///     if *number > 0 {
    ///         tx.push(*number - 1)?; // visible when this run is committed
    ///     }
    ///     Ok::<_, PushError<u32>>(())
    /// });
    /// assert_eq!(workers.join()?.done, 4);
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
        F: for<'t> Fn(Item<'t, T, O>, &'t Transaction<'t, T, O>) -> Result<(), E>,
        F: Send + Sync + 'static,
    {
        let queue = self.queue.clone();
        self.start(move |guard| each(&guard, &queue, &run))
    }

    /// As [`run`](Self::run), with a function that may borrow data that outlives `scope`. The scope joins the threads at its end,
    /// which blocks until the workers are stopped or dropped, or the queue is closed and drained.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// use requeue_durable::Workers;
    /// use std::sync::atomic::{AtomicU32, Ordering};
    ///
    /// let numbers = store.queue("numbers")?;
    /// numbers.push_batch(1..=4)?;
    /// numbers.close()?;
    /// let sum = AtomicU32::new(0);
    /// std::thread::scope(|scope| {
    ///     let workers = Workers::builder(&numbers).threads(2).run_scoped(scope, |number, _tx| {
    ///         sum.fetch_add(*number, Ordering::Relaxed);
    ///         Ok::<(), ()>(())
    ///     });
    ///     workers.join()
    /// })?;
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
        E: Debug,
        F: for<'t> Fn(Item<'t, T, O>, &'t Transaction<'t, T, O>) -> Result<(), E>,
        F: Send + Sync + 'scope,
    {
        let run = Arc::new(run);
        self.start_by(|thread, guard| {
            let (queue, run) = (self.queue.clone(), Arc::clone(&run));
            let thread = thread.spawn_scoped(scope, move || each(&guard, &queue, &*run));
            thread.map(|_| None) // the scope joins it
        })
    }

    /// Starts threads that call `run` for batches of up to `max` items: those that are ready, and at least one.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// use requeue_durable::Workers;
    ///
    /// let numbers = store.queue("numbers")?;
    /// numbers.push_batch([1, 2, 3])?;
    /// numbers.close()?;
    /// let workers = Workers::builder(&numbers).threads(1).run_batches(100, |items, _tx| {
    ///     assert_eq!(items.iter().map(|item| **item).sum::<u32>(), 6);
    ///     Ok::<(), ()>(())
    /// });
    /// assert_eq!(workers.join()?.done, 1); // one commit
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
        F: for<'t> Fn(Vec<Item<'t, T, O>>, &'t Transaction<'t, T, O>) -> Result<(), E>,
        F: Send + Sync + 'static,
    {
        assert!(max > 0, "batches of 0 items");
        let queue = self.queue.clone();
        self.start(move |guard| {
            let mut handle = queue.named_handle(guard.name());
            repeat(|| {
                let attempted = guard.attempt(handle.begin(), |tx| {
                    let items = take_batch(&guard, tx, max)?;
                    guard.begin_run();
                    Ok(run(items, tx))
                });
                commit(&guard, attempted, Transaction::commit)
            });
        })
    }

    /// As [`run`](Self::run), with transactions of other queues of the same store, which are committed as one with the
    /// transaction of the item. `others` is a reference to a queue, or a tuple of up to four.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// use requeue_durable::{PushError, Workers};
    ///
    /// let (orders, invoices) = (store.queue("orders")?, store.queue("invoices")?);
    /// orders.push(7)?;
    /// orders.close()?;
    /// let workers = Workers::builder(&orders).run_with(&invoices, |order, _tx, invoices| {
    ///     invoices.push(format!("invoice for order {}", *order))?;
    ///     Ok::<_, PushError<String>>(())
    /// });
    /// workers.join()?;
    /// assert_eq!(invoices.pop()?, "invoice for order 7");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the system refuses to start a thread.
    #[track_caller]
    pub fn run_with<Q, E, F>(self, others: Q, run: F) -> Workers
    where
        Q: Others,
        E: Debug,
        F: for<'t, 'h> Fn(
            Item<'t, T, O>,
            &'t Transaction<'t, T, O>,
            &'t Q::Transactions<'h>,
        ) -> Result<(), E>,
        F: Send + Sync + 'static,
    {
        let (queue, others) = (self.queue.clone(), others.queues());
        self.start(move |guard| {
            let mut handle = queue.named_handle(guard.name());
            let mut handles = Q::handles(&others, &guard.name());
            repeat(|| {
                let others = Q::begin(&mut handles);
                let attempted = guard.attempt(handle.begin(), |tx| {
                    let item = take(&guard, tx)?;
                    guard.begin_run();
                    Ok(run(item, tx, &others))
                });
                commit(&guard, attempted, |tx| Q::commit(tx, others))
            });
        })
    }
}

/// Runs on each item.
fn each<T: Send + 'static, O: Order<T>, E: Debug>(
    guard: &WorkerGuard,
    queue: &DurableQueue<T, O>,
    run: &impl for<'t> Fn(Item<'t, T, O>, &'t Transaction<'t, T, O>) -> Result<(), E>,
) {
    let mut handle = queue.named_handle(guard.name());
    repeat(|| {
        let attempted = guard.attempt(handle.begin(), |tx| {
            let item = take(guard, tx)?;
            guard.begin_run();
            Ok(run(item, tx))
        });
        commit(guard, attempted, Transaction::commit)
    });
}

/// Works until the worker ends.
pub(super) fn repeat(mut work: impl FnMut() -> Next) {
    while work() == Next::Goes {}
}

/// Commits the transaction of a run that succeeded.
pub(super) fn commit<X, R>(
    guard: &WorkerGuard,
    attempted: Result<(X, Deliveries), Next>,
    commit: impl FnOnce(X) -> Result<R, StoreError>,
) -> Next {
    match attempted {
        Ok((tx, deliveries)) => {
            let counted = guard.count(commit(tx).map(drop_committed), deliveries);
            counted.unwrap_or_else(|failed| guard.fail(failed))
        }
        Err(next) => next,
    }
}

/// Waits for an item.
pub(super) fn take<'t, T: Send + 'static, O: Order<T>>(
    guard: &WorkerGuard,
    tx: &'t Transaction<'_, T, O>,
) -> Result<Item<'t, T, O>, Missing> {
    let item = block_on(guard.take(tx.take_async()))?;
    tx.shared().deliver(item).map_err(Missing::Unread)
}

/// Waits for up to `max` items.
fn take_batch<'t, T: Send + 'static, O: Order<T>>(
    guard: &WorkerGuard,
    tx: &'t Transaction<'_, T, O>,
    max: usize,
) -> Result<Vec<Item<'t, T, O>>, Missing> {
    let items = block_on(guard.wait(tx.take_batch_async(1, max)));
    let items = items.filter(|items| items.len() > 0);
    let items = tx.shared().deliver_batch(items.ok_or(Missing::End)?);
    Ok(items.map_err(Missing::Unread)?.collect())
}
