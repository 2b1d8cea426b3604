//! Workers that are threads.

use super::crew::{block_on, quietly, Next, Ran, Shift};
use super::others::Others;
use super::{Workers, WorkersBuilder};
use crate::error::{PopError, StoreError};
use crate::order::Order;
use crate::{Item, Transaction};
use std::fmt::Debug;
use std::panic::{catch_unwind, AssertUnwindSafe};

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
    pub fn run<E, F>(self, run: F) -> Workers
    where
        E: Debug,
        F: for<'t> Fn(Item<'t, T, O>, &'t Transaction<'t, T, O>) -> Result<(), E>,
        F: Send + Sync + 'static,
    {
        let queue = self.queue.clone();
        self.start(move |shift| {
            let mut handle = queue.named_handle(shift.name());
            while each(&shift, handle.begin(), &run, |tx| tx.commit().map(lose)) == Next::Goes {}
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
    /// If `max` is 0.
    #[track_caller]
    pub fn run_batches<E, F>(self, max: usize, run: F) -> Workers
    where
        E: Debug,
        F: for<'t> Fn(Vec<Item<'t, T, O>>, &'t Transaction<'t, T, O>) -> Result<(), E>,
        F: Send + Sync + 'static,
    {
        assert!(max > 0, "batches of 0 items");
        let queue = self.queue.clone();
        self.start(move |shift| {
            let mut handle = queue.named_handle(shift.name());
            while batch(&shift, handle.begin(), max, &run) == Next::Goes {}
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
        self.start(move |shift| {
            let mut handle = queue.named_handle(shift.name());
            let mut handles = Q::handles(&others, &shift.name());
            loop {
                let others = Q::begin(&mut handles);
                let work = |shift: &Shift, tx: Transaction<'_, T, O>| -> Next {
                    let item = match take(shift, &tx) {
                        Ok(item) => item,
                        Err(Missing::End) => return Next::Ends,
                        Err(Missing::Unread(error)) => return shift.unread(tx, error),
                    };
                    shift.begin_run();
                    let ran = catch_unwind(AssertUnwindSafe(|| run(item, &tx, &others)));
                    end(shift, tx, ran, |tx| Q::commit(tx, others))
                };
                if work(&shift, handle.begin()) == Next::Ends {
                    break;
                }
            }
        })
    }
}

/// Why there is no item.
enum Missing {
    /// The worker is stopped, or the queue is closed and drained.
    End,
    /// It is held, and could not be read.
    Unread(StoreError),
}

fn take<'t, T: Send + 'static, O: Order<T>>(
    shift: &Shift,
    tx: &'t Transaction<'_, T, O>,
) -> Result<Item<'t, T, O>, Missing> {
    match block_on(shift.wait(tx.hold_async())) {
        Some(Ok(item)) => Ok(item),
        Some(Err(PopError::Store(error))) => Err(Missing::Unread(error)),
        Some(Err(PopError::Empty | PopError::Closed)) | None => Err(Missing::End),
    }
}

fn each<'h, T: Send + 'static, O: Order<T>, E: Debug>(
    shift: &Shift,
    tx: Transaction<'h, T, O>,
    run: &impl for<'t> Fn(Item<'t, T, O>, &'t Transaction<'t, T, O>) -> Result<(), E>,
    commit: impl FnOnce(Transaction<'h, T, O>) -> Result<(), StoreError>,
) -> Next {
    let item = match take(shift, &tx) {
        Ok(item) => item,
        Err(Missing::End) => return Next::Ends,
        Err(Missing::Unread(error)) => return shift.unread(tx, error),
    };
    shift.begin_run();
    let ran = catch_unwind(AssertUnwindSafe(|| run(item, &tx)));
    end(shift, tx, ran, commit)
}

fn batch<T: Send + 'static, O: Order<T>, E: Debug>(
    shift: &Shift,
    tx: Transaction<'_, T, O>,
    max: usize,
    run: &impl for<'t> Fn(Vec<Item<'t, T, O>>, &'t Transaction<'t, T, O>) -> Result<(), E>,
) -> Next {
    let items: Vec<_> = match block_on(shift.wait(tx.hold_batch_async(1, max))) {
        Some(Ok(items)) => items.collect(),
        Some(Err(error)) => return shift.unread(tx, error),
        None => return Next::Ends,
    };
    if items.is_empty() {
        return Next::Ends;
    }
    shift.begin_run();
    let ran = catch_unwind(AssertUnwindSafe(|| run(items, &tx)));
    end(shift, tx, ran, |tx| tx.commit().map(lose))
}

fn end<'h, T: Send + 'static, O: Order<T>, E: Debug>(
    shift: &Shift,
    tx: Transaction<'h, T, O>,
    ran: Ran<E>,
    commit: impl FnOnce(Transaction<'h, T, O>) -> Result<(), StoreError>,
) -> Next {
    match shift.judge(tx, ran) {
        Some((tx, deliveries)) => shift.count(commit(tx), deliveries),
        None => Next::Goes,
    }
}

/// Drops what was committed. Destructors of users may panic.
pub(super) fn lose<R>(taken: R) {
    quietly(|| drop(taken));
}
