//! The queue, which all its handles share.

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

use crate::core::pool::{CheckedOut, Pool};
use crate::core::settings::Settings;
use crate::core::shared::Shared;
use crate::core::CellOf;
use crate::order::Order;
use crate::{Fifo, Handle, OwnedTransaction, PopError, PushError};
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

/// A lock-free queue for many producers and many consumers whose dequeues are transactions.
///
/// Cloning a queue returns another reference to the same queue. [`Queue::push`], [`Queue::pop`] and their forms that
/// wait or take batches work from anywhere. A thread or task that uses the queue often should make a [`Handle`],
/// which has the same methods and transactions, and is faster.
///
/// A queue may be [bounded](Queue::bounded), and may be [closed](Queue::close). Dropping the last producer does not
/// close it: handles can be made from any clone and become producers at their first push, so the last one cannot be
/// determined. Waiters would wait forever; close the queue to release them.
///
/// The remaining items are dropped with the last queue or handle.
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
/// The second parameter is the [`Order`](trait@crate::Order): [`Fifo`] by default. [`FairQueue`](crate::FairQueue)
/// and [`PriorityQueue`](crate::PriorityQueue) are queues in other orders; a function for all of them is generic:
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
/// No order has a `new`, which would select an order implicitly:
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
    /// The limit is strict. [`PushError::Full`] means that at some point during the call there was no room; room also
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

    /// The capacity of the queue; `None` if it is unbounded.
    ///
    /// ```
    /// assert_eq!(requeue::Queue::<u32>::bounded(8).capacity(), Some(8));
    /// assert_eq!(requeue::Queue::<u32>::unbounded().capacity(), None);
    /// ```
    pub fn capacity(&self) -> Option<usize> {
        self.shared.room().map(|room| room.limit)
    }

    /// Returns `true` if there is no room for another item. Approximate under concurrency, exact at rest; always
    /// `false` for an unbounded queue. A key of a [`FairQueue`](crate::FairQueue) may be at its limit before the
    /// queue is full.
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

    /// Returns `true` if both are clones of the same queue.
    ///
    /// ```
    /// let (a, b) = (requeue::Queue::<u32>::unbounded(), requeue::Queue::unbounded());
    /// assert!(a.same_queue(&a.clone()));
    /// assert!(!a.same_queue(&b));
    /// ```
    pub fn same_queue(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Closes the queue. Returns `true` if it was open.
    ///
    /// From then on pushes fail with [`PushError::Closed`], except those of a transaction that holds at least one
    /// item of this queue: the follow-ups of accepted work are accepted. Items staged before are still committed.
    /// Pops take the remaining items, those aborted later included, and return [`PopError::Closed`] once nothing is
    /// ready or delayed and no transaction holds or has staged anything. Until then waiting pops go on waiting. Every
    /// waiter is woken when its call can return.
    ///
    /// So a graph of jobs terminates: push the first items, close, and work until `Closed`. In a pipeline, close the
    /// next queue when the one before returns `Closed`.
    ///
    /// A push that races with the close either returns `Ok`, and the item can be popped, or `Closed`, and it cannot.
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

    /// Returns `true` if the queue was closed. It may still contain items.
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

    /// Makes a call with the handle of the current thread.
    #[inline]
    pub(crate) fn call<R>(&self, call: impl FnOnce(&mut CellOf<T, O>) -> R) -> R {
        self.pool.call(&self.shared, call)
    }

    /// A handle of the pool.
    #[cold]
    fn check_out(&self) -> CheckedOut<T, O> {
        self.pool.check_out(&self.shared)
    }

    pub(crate) fn pool(&self) -> &Arc<Pool<T, O>> {
        &self.pool
    }

    fn make_handle(&self, name: Option<Arc<str>>) -> Handle<T, O> {
        Handle::new(Arc::clone(&self.shared), Arc::clone(&self.pool), name)
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
    pub fn begin_owned(&self) -> OwnedTransaction<T, O> {
        OwnedTransaction::begin(self.check_out())
    }

    /// Pushes an item without a handle; it is ready at once.
    ///
    /// The queue keeps a handle for each thread that uses it, and uses that of the current thread; it is created by the
    /// first call, and taken over by another thread when this one has ended. So the items that a thread pushes are popped
    /// in the order of their pushes, and a push costs little more than [`Handle::push`](crate::Handle::push). If the
    /// handle is in use, because user code that a call runs uses the queue in turn, or the thread is being destroyed, the
    /// call uses another one, and takes a lock for it.
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
    /// [`PushError::Full`] if the queue is bounded and had no room at some point during the call,
    /// [`PushError::Closed`] if it is closed. The item comes back with the error.
    #[inline(always)]
    #[allow(clippy::inline_always)] // beyond the compiler's estimate: most of it is never executed
    pub fn push(&self, item: T) -> Result<(), PushError<T>> {
        // As `Queue::call`, but inlined.
        match self.pool.own(&self.shared) {
            Some(mut own) => own.push(item),
            None => self.check_out().push_slowly(item),
        }
    }

    /// Pops an item without a handle; the pop is committed at once. It uses the handle of the current thread, as
    /// [`Queue::push`] does, with the progress of [`Handle::pop`](crate::Handle::pop).
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
    /// [`PopError::Empty`] if nothing was ready at some point during the call, or nothing [may be
    /// taken](PopError::Empty) now; [`PopError::Closed`] if nothing can become ready any more.
    #[inline(always)]
    #[allow(clippy::inline_always)] // as above
    pub fn pop(&self) -> Result<T, PopError> {
        match self.pool.own(&self.shared) {
            Some(mut own) => own.pop(),
            None => self.check_out().pop_slowly(),
        }
    }
}

impl<T, O: Order<T>> Handle<T, O> {
    /// Returns a clone of the handle's queue.
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

/// As [`Queue::unbounded`].
impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self::unbounded()
    }
}

/// A panic leaves a queue in a consistent state, as any other end of a transaction does.
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
