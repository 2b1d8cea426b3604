//! Makes queues, handles and owned transactions.

use super::{Builder, Queue};
use crate::order::Order;
use crate::{Handle, OwnedTransaction};
use std::sync::Arc;

impl<T> Queue<T> {
    /// Makes a queue without a capacity limit.
    ///
    /// ```
    /// let queue = requeue::Queue::<String>::unbounded();
    /// assert!(queue.is_empty());
    /// ```
    pub fn unbounded() -> Self {
        Self::builder().build()
    }

    /// Makes a queue that takes at most `capacity` items.
    ///
    /// The ready items count, plus, for each open transaction, the larger of the numbers it holds and has staged:
    /// held items may have to go back, and staged ones replace them. So a transaction may push as many items as it
    /// holds even when the queue is full, and commits and aborts never fail for lack of room.
    ///
    /// The limit is strict. [`PushError::Full`](crate::PushError::Full) means that at some point during the call there was no room; room also
    /// counts as taken while another call briefly reserves it.
    ///
    /// ```
    /// let queue = requeue::Queue::bounded(1);
    /// queue.push("first")?;
    /// assert_eq!(queue.push("second").unwrap_err().into_inner(), "second");
    ///
    /// let mut worker = queue.handle();
    /// let tx = worker.begin();
    /// let _first = tx.pop()?;
    /// assert!(queue.push("second").is_err()); // the first may come back
    /// tx.push("its follow-up")?; // uses the permit of the first
    /// tx.commit();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If `capacity` is 0: a queue must have room for at least one item.
    #[track_caller]
    pub fn bounded(capacity: usize) -> Self {
        Self::builder().capacity(capacity).build()
    }

    /// Returns a builder for a queue with settings.
    ///
    /// ```
    /// let queue = requeue::Queue::<u32>::builder().capacity(8).build();
    /// assert_eq!(queue.capacity(), Some(8));
    /// ```
    pub fn builder() -> Builder<T> {
        Builder::default()
    }
}

/// As [`Queue::unbounded`].
impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self::unbounded()
    }
}

/// So that `Queue::default()` is not ambiguous: queues of several orders have a default.
impl<T> Queue<T> {
    /// As [`Queue::unbounded`]; see also the trait [`Default`].
    ///
    /// ```
    /// let queue = requeue::Queue::default();
    /// queue.push("job").unwrap();
    /// ```
    #[allow(clippy::should_implement_trait)] // it does
    pub fn default() -> Self {
        Self::unbounded()
    }
}

impl<T, O: Order<T>> Queue<T, O> {
    /// Makes a handle, one for each thread or task that works with the queue.
    ///
    /// Handles are cheap. A handle acquires a shard of the queue at its first push and releases it, with the items in
    /// it, when it is dropped.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// std::thread::scope(|scope| {
    ///     for id in 0..4 {
    ///         let mut handle = queue.handle();
    ///         scope.spawn(move || handle.push(id));
    ///     }
    /// });
    /// assert_eq!(queue.len(), 4);
    /// ```
    ///
    /// # Panics
    ///
    /// If two billion handles of this queue are alive.
    pub fn handle(&self) -> Handle<T, O> {
        self.make_handle(None)
    }

    /// Makes a handle with a name, for [`Queue::held`] and [`Queue::recover`].
    ///
    /// Names need not be unique: handles with the same name are listed one by one, and recovered together. For a
    /// named handle the queue records the time and the thread of the first pop of each transaction, which reads the
    /// clock.
    ///
    /// ```
    /// let queue = requeue::Queue::<u32>::unbounded();
    /// assert_eq!(queue.named_handle("mailer").name(), Some("mailer"));
    /// ```
    ///
    /// # Panics
    ///
    /// As for [`Queue::handle`].
    pub fn named_handle(&self, name: impl Into<Arc<str>>) -> Handle<T, O> {
        self.make_handle(Some(name.into()))
    }

    /// Begins a transaction that may be stored, sent, and committed or aborted elsewhere, like the ack or nack of a
    /// message broker's delivery.
    ///
    /// It uses a handle from a pool of the queue. The pool keeps some idle handles, so that not every delivery makes
    /// a new one; each counts as alive for [costs that grow with the number of handles](crate::guide::performance#trade-offs). For a
    /// transaction with a worker's name see [`Handle::begin_owned`].
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push("job")?;
    /// let delivery = queue.begin_owned();
    /// assert_eq!(*delivery.pop()?, "job");
    /// let acknowledge = std::thread::spawn(move || delivery.commit());
    /// assert!(acknowledge.join().unwrap().eq(["job"]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// As for [`Queue::handle`].
    #[doc(alias = "delivery")]
    pub fn begin_owned(&self) -> OwnedTransaction<T, O> {
        OwnedTransaction::begin(self.check_out())
    }

    fn make_handle(&self, name: Option<Arc<str>>) -> Handle<T, O> {
        Handle::new(Arc::clone(&self.shared), Arc::clone(&self.pool), name)
    }
}
