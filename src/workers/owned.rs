//! Runs that own their item.

use super::spawn::Takes;
use super::step::{Own, QueueWorker, Stop};
use super::PoolBuilder;
use super::Workers;
#[cfg(feature = "tokio")]
use super::{TaskTransaction, Tasks};
use crate::backend::Backend;
use crate::core::delivery::Acking;
use crate::order::Order;
use crate::raw::Keeper;
use crate::sync::swallow_panic;
use crate::{OwnedTransaction, Queue, Transaction};
use std::fmt::Debug;
#[cfg(feature = "tokio")]
use std::future::Future;

impl<T: Send, O: Order<T>> QueueWorker<Queue<T, O>> {
    /// Waits for an item, takes it out of the queue for good, and begins a run. Its delivery is open until the end of the
    /// run, so until then the queue is not drained, and the item counts: as held, for its key, and for what may be held at
    /// a time. It can come back no more: the transaction of the run does not hold it, and its lease, if any, has ended.
    pub(super) async fn take_out(
        &self,
    ) -> Result<(T, Own<Acking<T, O>>), Stop<<Queue<T, O> as Backend>::Error>> {
        loop {
            let taking = self.queue.take_async();
            // It fails only if the queue is closed and drained.
            let mut delivery = self.take(async { Ok(taking.await.ok()) }).await?.0;
            // The clock is user code: if it panics, the item goes back.
            let (attempts, since) = (delivery.attempts(), self.queue.shared().time.stamp());
            let Ok(lease) = delivery.end_lease() else {
                continue; // it was reclaimed meanwhile
            };
            let (item, delivery) = delivery.into_parts();
            swallow_panic(|| drop(lease)); // its copy is user code
            self.worker.begin_run(since);
            let own = Own {
                attempts,
                since,
                delivery,
            };
            return Ok((item, own));
        }
    }
}

/// For runs of tasks that own their item.
#[cfg_attr(not(feature = "tokio"), allow(dead_code))] // only `run_owned_async` has it
#[derive(Clone, Copy)]
pub(super) struct Owned;

impl<T: Send, O: Order<T>> Takes<Queue<T, O>> for Owned {
    type Items = T;
    type Delivery = Acking<T, O>;

    fn prepare(self, tx: &mut OwnedTransaction<T, O>) {
        tx.vouch();
    }

    async fn take(
        self,
        worker: &QueueWorker<Queue<T, O>>,
        _: &Keeper<OwnedTransaction<T, O>>,
    ) -> Result<(T, u32, Option<Own<Acking<T, O>>>), Stop<<Queue<T, O> as Backend>::Error>> {
        let (item, own) = worker.take_out().await?;
        Ok((item, own.attempts, Some(own)))
    }
}

/// For queues in memory.
impl<T: Send + 'static, O: Order<T> + 'static> PoolBuilder<Queue<T, O>> {
    /// Like [`run`](Self::run), with the item by value: for work that is not to be retried.
    ///
    /// Each item is delivered *at most once*: it has left the queue when `run` begins, and no error, panic or lease brings
    /// it back. A run that fails loses its item, and what it has pushed in its transaction is undone;
    /// [`on_error`](Self::on_error) and the [report](crate::Report) tell of it as of other failed runs, with 0 items that
    /// were given back. An item that a failed run should give back is pushed again: by itself, or by a [`run`](Self::run)
    /// that holds it.
    ///
    /// Until the run has ended the item counts as held: for [`serial`](crate::Builder::serial) keys,
    /// [`max_held`](crate::Builder::max_held), the [capacity](crate::Builder::capacity) and
    /// [`wait_idle`](Queue::wait_idle); and the run can [push follow-up items](Queue::close) after the close. In a bounded
    /// queue each of these needs a place of its own.
    ///
    /// ```
    /// use requeue::{Queue, Workers};
    ///
    /// let queue = Queue::unbounded();
    /// queue.push_batch([vec![3, 1], vec![2]])?;
    /// queue.close();
    /// let (send, sorted) = std::sync::mpsc::channel();
    /// let workers = Workers::builder(&queue).run_owned(move |mut numbers, _tx| {
    ///     numbers.sort_unstable();
    ///     send.send(numbers) // without a clone
    /// });
    /// assert_eq!(workers.join().done, 2);
    /// assert_eq!(sorted.iter().flatten().sum::<u32>(), 6);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the system refuses to start a thread.
    #[doc(alias("at most once", "by value"))]
    #[track_caller]
    pub fn run_owned<E, F>(self, run: F) -> Workers
    where
        E: Debug,
        F: for<'t> Fn(T, &'t Transaction<'static, T, O>) -> Result<(), E>,
        F: Send + Sync + 'static,
    {
        self.start_shared(move |thread| thread.owned(&run))
    }

    /// Spawns tasks that run `run` on one item at a time, by value and at most once, like
    /// [`run_owned`](Self::run_owned) with threads. Feature `tokio`.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use requeue::{Queue, Workers};
    ///
    /// let queue = Queue::unbounded();
    /// queue.push(String::from("page"))?;
    /// queue.close();
    /// let (send, mut sent) = tokio::sync::mpsc::unbounded_channel();
    /// let tasks = Workers::builder(&queue).tasks(2).run_owned_async(move |page, _tx| {
    ///     let send = send.clone();
    ///     async move { send.send(page) }
    /// });
    /// assert_eq!(tasks.join().await.done, 1);
    /// assert_eq!(sent.recv().await.as_deref(), Some("page"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// A task that is aborted, or takes [too long](Self::run_timeout), loses its item too.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    #[cfg(feature = "tokio")]
    #[track_caller]
    pub fn run_owned_async<E, F, R>(self, run: F) -> Tasks
    where
        E: Debug + 'static,
        F: Fn(T, TaskTransaction<T, O>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), E>> + Send + 'static,
    {
        Tasks::new(self.futures(Owned, run))
    }
}
