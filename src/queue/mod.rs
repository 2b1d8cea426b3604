//! The queue: what all its handles share.

mod builder;
mod dead_letters;
pub(crate) mod fair;
mod idle;
mod inspect;
mod iter;
mod pace;
mod pop_batch;
pub(crate) mod priority;
mod verbs;

pub use builder::Builder;
pub use dead_letters::DeadLetters;
pub use iter::{Drain, Iter};

use crate::core::settings::Settings;
use crate::core::shared::Shared;
use crate::order::Order;
use crate::transaction::pool::Pool;
use crate::{Fifo, Handle, OwnedTransaction, PopError, PushError};
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

/// A lock-free queue for many producers and many consumers whose dequeues are transactions.
///
/// Cloning a queue gives another reference to the same one. [`Queue::push`], [`Queue::pop`] and their forms that
/// wait or take batches work from anywhere. A thread or task that uses the queue more than now and then takes a
/// [`Handle`], which has the same methods, is faster, and has transactions.
///
/// A queue may be [bounded](Queue::bounded), and may be [closed](Queue::close). Dropping the last
/// queue and the last handle that pushes is not a close: handles are made from any clone and lease
/// what they push to only when they do, so nobody could say which one was the last. Those who wait
/// would wait for ever; close the queue to let them go.
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
///
/// # Order
///
/// The second parameter is the [`Order`](trait@crate::Order): [`Fifo`] unless it is said. [`FairQueue`](crate::FairQueue) and
/// [`PriorityQueue`](crate::PriorityQueue) are queues in other orders, so a function for all of them is generic:
///
/// ```
/// use requeue::{Order, PriorityQueue, Queue};
///
/// fn pop_all<T, O: Order<T>>(queue: &Queue<T, O>) -> Vec<T> {
///     queue.drain().collect()
/// }
///
/// let queue = PriorityQueue::by_priority();
/// queue.push_with(2, None, "later")?;
/// queue.push_with(1, None, "sooner")?;
/// assert_eq!(pop_all(&queue), ["sooner", "later"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// No order has a `new`, as it would say silently which order is meant:
///
/// ```compile_fail,E0599
/// let queue = requeue::Queue::new();
/// queue.push_with(1, None, "urgent");
/// ```
pub struct Queue<T, O: Order<T> = Fifo> {
    shared: Arc<Shared<T, O>>,
    pool: Arc<Pool<T, O>>,
}

impl<T> Queue<T> {
    /// Makes a queue that takes as many items as memory holds.
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
    /// What counts are the ready items, and for each open transaction those it holds or those it has
    /// staged, whichever are more: what it holds may have to go back, and what it has staged takes the
    /// place of what it holds. So a transaction may push as many items as it holds even when the queue is
    /// full, and commits and aborts never fail for lack of room.
    ///
    /// The limit is strict. [`PushError::Full`] says that at some instant of the call there was no room
    /// anywhere; room counts as taken while another call has it in hand, be it for a moment only.
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
    /// tx.push("its follow-up")?; // takes its place
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

    /// Begins to make a queue with settings.
    ///
    /// ```
    /// let queue = requeue::Queue::<u32>::builder().capacity(8).build();
    /// assert_eq!(queue.capacity(), Some(8));
    /// ```
    pub fn builder() -> Builder<T> {
        Builder::default()
    }
}

impl<T, O: Order<T>> Queue<T, O> {
    pub(crate) fn with(settings: Settings<T, O::Meta>, order: O::Settings) -> Self {
        Self {
            shared: Arc::new(Shared::new(settings, order)),
            pool: Arc::new(Pool::new()),
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared<T, O>> {
        &self.shared
    }

    /// The most items that the queue takes; `None` if there is no bound.
    ///
    /// ```
    /// assert_eq!(requeue::Queue::<u32>::bounded(8).capacity(), Some(8));
    /// assert_eq!(requeue::Queue::<u32>::unbounded().capacity(), None);
    /// ```
    pub fn capacity(&self) -> Option<usize> {
        self.shared.room().map(|room| room.limit)
    }

    /// Whether there was no room for another item at the time of the call. Approximate while others work, exact
    /// at rest; never true of a queue without a bound. A key of a [`FairQueue`](crate::FairQueue) may be at its
    /// limit before the queue is full.
    ///
    /// ```
    /// let queue = requeue::Queue::bounded(1);
    /// assert!(!queue.is_full());
    /// queue.push(1)?;
    /// assert!(queue.is_full());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_full(&self) -> bool {
        let room = self.shared.room();
        room.is_some_and(|room| room.capacity.free() == 0)
    }

    /// Whether both are the same queue: one a clone of the other.
    ///
    /// ```
    /// let (a, b) = (requeue::Queue::<u32>::unbounded(), requeue::Queue::unbounded());
    /// assert!(a.same_queue(&a.clone()));
    /// assert!(!a.same_queue(&b));
    /// ```
    pub fn same_queue(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Closes the queue: true if it was open.
    ///
    /// From now on pushes fail with [`PushError::Closed`], except those of a transaction that holds at least
    /// one item of this queue: the follow-ups of accepted work are accepted. A transaction that has staged
    /// items before still commits them. Pops take out what is left, what is aborted later included, and say
    /// [`PopError::Closed`] once nothing is ready or delayed and no transaction holds or has staged anything.
    /// Until then those who wait go on waiting. All who wait are woken.
    ///
    /// So work that makes work ends by itself: push the first items, close, and work until `Closed`. In a
    /// pipeline close the next queue when the one before says `Closed`.
    ///
    /// A push that races with the close either says `Ok`, and somebody receives the item, or
    /// `Closed`, and nobody does.
    ///
    /// ```
    /// use requeue::PopError;
    ///
    /// let queue = requeue::Queue::unbounded();
    /// queue.push(1)?;
    /// assert!(queue.close());
    /// assert!(!queue.close());
    /// assert!(queue.push(2).unwrap_err().is_closed());
    /// assert_eq!(queue.pop(), Ok(1));
    /// assert_eq!(queue.pop(), Err(PopError::Closed));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// A tree of jobs:
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push(3)?;
    /// queue.close();
    /// let (mut worker, mut done) = (queue.handle(), 0);
    /// loop {
    ///     let tx = worker.begin();
    ///     let Ok(depth) = tx.pop_blocking() else { break };
    ///     for _ in 0..*depth {
    ///         tx.push(*depth - 1)?; // it holds a job
    ///     }
    ///     tx.commit();
    ///     done += 1;
    /// }
    /// assert_eq!(done, 16);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn close(&self) -> bool {
        self.shared.close()
    }

    /// Whether the queue was closed. Items may be left.
    ///
    /// ```
    /// let queue = requeue::Queue::<u32>::unbounded();
    /// assert!(!queue.is_closed());
    /// queue.close();
    /// assert!(queue.is_closed());
    /// ```
    pub fn is_closed(&self) -> bool {
        self.shared.word().is_closed()
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
    pub fn handle(&self) -> Handle<T, O> {
        self.make_handle(None)
    }

    /// Makes a handle with a name, by which [`Queue::held`] and [`Queue::recover`] know it.
    ///
    /// Names need not be different: those who share one are listed one by one, and recovered together.
    /// Of a handle with a name the queue knows since when and on which thread its transaction holds
    /// something, for which each first pop of a transaction looks at the clock.
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

    fn make_handle(&self, name: Option<Arc<str>>) -> Handle<T, O> {
        Handle::new(Arc::clone(&self.shared), Arc::clone(&self.pool), name)
    }

    /// Begins a transaction that may be stored, sent, and committed or aborted elsewhere, as a message broker's
    /// delivery is acknowledged.
    ///
    /// It has a handle of its own, from a pool of the queue. The pool keeps some handles that are not in use, so
    /// that a delivery does not cost the making of one each time; each is alive to
    /// [what costs more with their number](crate#trade-offs). For a transaction with a worker's name see
    /// [`Handle::begin_owned`].
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
    pub fn begin_owned(&self) -> OwnedTransaction<T, O> {
        OwnedTransaction::begin(self.pool.check_out(&self.shared))
    }

    /// Pushes an item without a handle; it is ready at once.
    ///
    /// Pushes without a handle share one FIFO: of two that happen one before the other, on whatever
    /// threads, the first leaves first. Lock-free as [`Handle::pop`](crate::Handle::pop) is; a handle's push is
    /// faster.
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
    /// [`PushError::Full`] if the queue is bounded and had no room at some instant of the call,
    /// [`PushError::Closed`] if it is closed. The item comes back with the error.
    pub fn push(&self, item: T) -> Result<(), PushError<T>> {
        Ok(self.shared.push(item)?)
    }

    /// Pops an item without a handle; the pop is committed at once. Lock-free as [`Handle::pop`](crate::Handle::pop)
    /// is.
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
    /// [`PopError::Empty`] if at some instant during the call nothing was ready, or nothing
    /// [may be taken](PopError::Empty) now; [`PopError::Closed`] if nothing can become ready any more.
    pub fn pop(&self) -> Result<T, PopError> {
        self.shared.pop()
    }
}

impl<T, O: Order<T>> Handle<T, O> {
    /// The queue of the handle: a clone.
    ///
    /// ```
    /// let queue = requeue::Queue::<u32>::unbounded();
    /// assert!(queue.handle().queue().same_queue(&queue));
    /// ```
    pub fn queue(&self) -> Queue<T, O> {
        Queue {
            shared: Arc::clone(self.shared()),
            pool: Arc::clone(self.pool()),
        }
    }
}

impl<T, O: Order<T>> Clone for Queue<T, O> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            pool: Arc::clone(&self.pool),
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
impl<T, O: Order<T>> UnwindSafe for Queue<T, O> {}
impl<T, O: Order<T>> RefUnwindSafe for Queue<T, O> {}

impl<T, O: Order<T>> fmt::Debug for Queue<T, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("name", &self.shared.name)
            .field("capacity", &self.capacity())
            .field("closed", &self.is_closed())
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
