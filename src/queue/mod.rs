//! The queue, which all its handles share.

// In this order, since rustdoc shows the methods of a type in the order of their modules: first what every queue has.
mod make;
mod verbs;

mod close;
mod pop_batch;
mod take;

mod iter;

mod idle;
mod inspect;
mod pace;

mod builder;
#[cfg(all(test, not(any(loom, shuttle))))]
mod costs;
mod dead_letters;
pub(crate) mod fair;
mod leased;
pub(crate) mod priority;
mod restore;
mod retain;
pub(crate) mod schedule;
#[cfg(feature = "broker")]
mod tracked;
#[cfg(feature = "broker")]
mod unique;

pub use builder::Builder;
pub use dead_letters::DeadLetters;
pub use iter::{Drain, Iter};
pub use restore::Restore;
pub use retain::Queued;

use crate::core::pool::{CheckedOut, Pool};
use crate::core::shared::Shared;
use crate::core::CellOf;
use crate::order::Order;
use crate::policy::records::Callbacks;
use crate::policy::settings::Settings;
use crate::raw::Shareable;
use crate::{Fifo, Handle};
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
/// queue.priority(2).push("later")?;
/// queue.priority(1).push("sooner")?;
/// assert_eq!(pop_all(&queue), ["sooner", "later"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// No order has a `new`, which would select an order implicitly:
///
/// ```compile_fail,E0599
/// let queue = requeue::Queue::new();
/// queue.priority(1).push("urgent");
/// ```
pub struct Queue<T, O: Order<T> = Fifo> {
    shared: Arc<Shared<T, O>>,
    pool: Arc<Pool<T, O>>,
}

impl<T, O: Order<T>> Queue<T, O> {
    pub(crate) fn with(
        settings: Settings,
        callbacks: Option<Box<Callbacks<T>>>,
        order: O::Settings,
        proof: Shareable<O::Source>,
    ) -> Self {
        let shared = Arc::new(Shared::new(settings, callbacks, order, proof));
        Self {
            pool: Arc::new(Pool::new(Arc::clone(&shared))),
            shared,
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared<T, O>> {
        &self.shared
    }

    /// Makes a call with the handle of the current thread.
    #[inline]
    pub(crate) fn call<R>(&self, call: impl FnOnce(&mut CellOf<T, O>) -> R) -> R {
        self.pool.call(call)
    }

    /// A handle of the pool.
    #[cold]
    fn check_out(&self) -> CheckedOut<T, O> {
        self.pool.check_out()
    }

    pub(crate) fn pool(&self) -> &Arc<Pool<T, O>> {
        &self.pool
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

/// A panic leaves a queue in a consistent state, as any other end of a transaction does.
impl<T, O: Order<T>> UnwindSafe for Queue<T, O> {}
impl<T, O: Order<T>> RefUnwindSafe for Queue<T, O> {}

debug_struct!([T, O: Order<T>] Queue<T, O>, |queue|
    name: queue.shared.name, capacity: queue.capacity(), closed: queue.is_closed(), stats: queue.stats());
