//! The queue: what all its handles share.

use crate::raw::Lanes;
use crate::{Handle, PopError, PushError, Stats};
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

/// A lock-free queue for many producers and many consumers whose dequeues are transactions.
///
/// Cloning a queue gives another reference to the same one. A thread or task that uses it more than
/// now and then takes a [`Handle`], which is faster and has transactions; [`Queue::push`] and
/// [`Queue::pop`] work from anywhere.
///
/// When the last queue and handle are gone, the items left are dropped.
///
/// # Example
///
/// ```
/// use requeue::Queue;
///
/// let queue = Queue::unbounded();
/// let mut worker = queue.handle();
/// worker.push("job")?;
///
/// let tx = worker.begin();
/// assert_eq!(*tx.pop()?, "job");
/// drop(tx); // not committed, so the job goes back to the head
///
/// assert_eq!(queue.pop()?, "job");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Queue<T> {
    lanes: Arc<Lanes<T>>,
}

impl<T> Queue<T> {
    /// Makes a queue that takes as many items as memory holds.
    ///
    /// ```
    /// let queue = requeue::Queue::<String>::unbounded();
    /// assert!(queue.is_empty());
    /// ```
    pub fn unbounded() -> Self {
        Self {
            lanes: Arc::new(Lanes::new()),
        }
    }

    /// Makes a handle: one for each thread or task that works with the queue.
    ///
    /// Handles are cheap. A handle leases a shard of the queue at its first push and gives it back,
    /// items and all, when it is dropped.
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
    /// When two billion handles of this queue are alive.
    pub fn handle(&self) -> Handle<T> {
        Handle::new(Arc::clone(&self.lanes))
    }

    /// Pushes an item without a handle; it is ready at once.
    ///
    /// Pushes without a handle share one FIFO: of two that happen one before the other, on whatever
    /// threads, the first leaves first. Lock-free; a handle's push is faster.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push(1)?;
    /// queue.push(2)?;
    /// assert_eq!((queue.pop()?, queue.pop()?), (1, 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// None: a queue without bounds always has room.
    pub fn push(&self, item: T) -> Result<(), PushError<T>> {
        self.lanes.push(item);
        Ok(())
    }

    /// Pops an item without a handle; the pop is committed at once. Lock-free.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push("job")?;
    /// assert_eq!(queue.pop()?, "job");
    /// assert!(queue.pop().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PopError::Empty`] if at some instant during the call nothing was ready.
    pub fn pop(&self) -> Result<T, PopError> {
        self.lanes.pop().ok_or(PopError::Empty)
    }

    /// How many items are ready: neither staged nor held. Approximate while others work, exact at
    /// rest. Looks at every shard.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// let mut handle = queue.handle();
    /// handle.push_batch([10, 20, 30])?;
    /// let tx = handle.begin();
    /// let held = tx.pop()?;
    /// assert_eq!(queue.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn len(&self) -> usize {
        usize::try_from(self.lanes.ready()).unwrap_or(usize::MAX)
    }

    /// Whether nothing was ready at some instant during the call. Strict, unlike `len() == 0`.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push(1)?;
    /// assert!(!queue.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// What the queue has done so far. Looks at every shard and handle.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push(1)?;
    /// queue.pop()?;
    /// assert_eq!(queue.stats().committed, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stats(&self) -> Stats {
        let tally = self.lanes.tally();
        Stats {
            pushed: self.lanes.pushed(),
            ready: self.lanes.ready(),
            held: tally.held,
            committed: tally.committed,
            aborted: tally.aborted,
        }
    }
}

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Self {
        Self {
            lanes: Arc::clone(&self.lanes),
        }
    }
}

/// [`Queue::unbounded`].
impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self::unbounded()
    }
}

/// A panic leaves a queue as whole as any other end of a transaction does.
impl<T> UnwindSafe for Queue<T> {}
impl<T> RefUnwindSafe for Queue<T> {}

impl<T> fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("stats", &self.stats())
            .finish()
    }
}
