//! Peeking at the next item.

use crate::call::{now, pop, Call, Caller, Popped};
use crate::error::PopError;
use crate::item::Item;
use crate::order::{EntryOf, Order};
use crate::queue::shared::Shared;
use crate::transaction::Core;
use crate::{Fifo, Handle, Transaction};
use requeue::Wait;
use std::future::Future;
use std::ops::Deref;

/// The item that a pop would return, from [`Transaction::peek`]. Dropping it puts the item back in its place.
#[must_use = "a peek puts the item back when it is dropped"]
pub struct Peek<'t, T: Send + 'static, O: Order<T> = Fifo> {
    ram: requeue::Peek<'t, EntryOf<T, O>, O::Ram>,
    /// The item, if it is not in memory.
    read: Option<T>,
    shared: &'t Shared<T, O>,
}

impl<'t, T: Send + 'static, O: Order<T>> Peek<'t, T, O> {
    /// Takes the item, as a pop instead of the peek would have done. If the queue has
    /// [`max_attempts`](crate::Builder::max_attempts), this waits until the delivery is written.
    pub fn take(self) -> Item<'t, T, O> {
        now(self.hold(Caller::Thread(Wait::Never)))
    }

    /// As [`take`](Self::take), in a task. Dropping the future puts the item back.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// # futures::executor::block_on(async {
    /// let jobs = store.builder("jobs").max_attempts(3).build()?;
    /// jobs.push(7)?;
    /// let mut handle = jobs.handle();
    /// let tx = handle.begin();
    /// let job = tx.peek_async().await?.take_async().await;
    /// assert_eq!((*job, job.attempts()), (7, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn take_async(self) -> Item<'t, T, O> {
        self.hold(Caller::Task).await
    }

    async fn hold(self, caller: Caller) -> Item<'t, T, O> {
        let delivery = (self.ram.id, self.ram.attempts() + 1);
        // If the write fails, so does the commit.
        let _ = self.shared.mark_one(delivery, caller).await;
        let mut ram = self.ram.take();
        ram.item = ram.item.take().or(self.read);
        Item { ram }
    }
}

impl<T: Send + 'static, O: Order<T>> Deref for Peek<'_, T, O> {
    type Target = T;

    fn deref(&self) -> &T {
        let item = self.ram.item.as_ref().or(self.read.as_ref());
        item.expect("an item that is not in memory was read")
    }
}

show!(Debug for Peek);

/// Looks at the next item. A peek is not a delivery.
impl<T: Send + 'static, O: Order<T>> Transaction<'_, T, O> {
    fn look(
        &self,
        caller: Caller,
    ) -> impl Future<Output = Result<Peek<'_, T, O>, PopError>> + Send + '_ {
        let Core { ram, local } = self.core();
        let (shared, ram) = (self.shared(), &**ram);
        let peeking = pop!(caller, local, ram.[peek_waiting peek_async]());
        async {
            let ram = peeking.await??;
            let read = match ram.item {
                Some(_) => None,
                None => Some(shared.read(ram.id)?),
            };
            Ok(Peek { ram, read, shared })
        }
    }

    requeue::verb! {
        peek(&self) -> Result<Peek<'_, T, O>, PopError>, |wait| now(self.look(Caller::Thread(wait)));
        now:
        /// Looks at the item that a pop would take.
        ///
        /// ```
        /// # let directory = tempfile::tempdir()?;
        /// # let store = requeue_durable::Store::open(directory.path())?;
        /// let jobs = store.queue("jobs")?;
        /// jobs.push(7)?;
        /// let mut handle = jobs.handle();
        /// let tx = handle.begin();
        /// assert_eq!(*tx.peek()?, 7);
        /// assert_eq!(*tx.peek()?.take(), 7); // now it is held
        /// assert!(tx.peek().unwrap_err().is_empty());
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// As [`pop`](Self::pop); nothing is held.
        ///
        /// # Panics
        ///
        /// Other uses of the transaction panic while the peek is alive.
        blocking:
        /// As [`peek`](Self::peek); waits for an item.
        ///
        /// # Errors
        ///
        /// As [`peek`](Self::peek).
        timed: "Looks at the item that a pop would take", "one",
        /// # let directory = tempfile::tempdir()?;
        /// # let store = requeue_durable::Store::open(directory.path())?;
        /// let jobs = store.queue::<u32>("jobs")?;
        /// let mut handle = jobs.handle();
        /// let tx = handle.begin();
        peeked = tx();
        /// assert!(peeked.unwrap_err().is_empty());
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// As [`peek`](Self::peek).
        async(&self) -> impl Future<Output = Result<Peek<'_, T, O>, PopError>> + '_ {
            self.look(Caller::Task)
        }
        /// As [`peek_blocking`](Self::peek_blocking), in a task.
        ///
        /// # Errors
        ///
        /// As [`peek`](Self::peek).
    }
}

impl<T: Send + 'static, O: Order<T>> Handle<T, O> {
    /// Calls `inspect` with the item that a pop would return. The item stays, and nothing is written.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// let jobs = store.queue("jobs")?;
    /// jobs.push("fetch".to_string())?;
    /// assert_eq!(jobs.handle().peek_with(|job| job.len())?, 5);
    /// assert_eq!(jobs.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Transaction::peek`].
    pub fn peek_with<R>(&mut self, inspect: impl FnOnce(&T) -> R) -> Result<R, PopError> {
        let tx = self.begin();
        let peeked = tx.peek()?;
        Ok(inspect(&peeked))
    }
}
