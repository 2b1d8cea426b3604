//! A queue as a channel: a [`Sender`] and a [`Receiver`], whose last drop closes it.
//!
//! [Coming from a channel](crate::guide::channels) has a table of calls. Both sides are `Clone`,
//! `Send` and `Sync`, and all methods take `&self`, so a side may also be shared by reference or in an `Arc`. There
//! may be any number of each: receivers compete for the items.
//!
//! ```
//! use requeue::channel;
//!
//! let (sender, receiver) = channel::bounded(100);
//! let producer = std::thread::spawn(move || {
//!     for number in 0..1000 {
//!         sender.push_blocking(number).unwrap();
//!     }
//! }); // the last sender is dropped, so the loop below ends
//! assert_eq!(receiver.iter().sum::<u32>(), 499_500);
//! producer.join().unwrap();
//! ```
//!
//! | other channels | here |
//! |---|---|
//! | `send`, `try_send`, `send_timeout`, `send_async` | [`push_blocking`](Sender::push_blocking), [`push`](Sender::push), [`push_timeout`](Sender::push_timeout), [`push_async`](Sender::push_async) |
//! | `recv`, `try_recv`, `recv_timeout`, `recv_async` | [`pop_blocking`](Receiver::pop_blocking), [`pop`](Receiver::pop), [`pop_timeout`](Receiver::pop_timeout), [`pop_async`](Receiver::pop_async) |
//! | `iter`, `try_iter` | [`iter`](Receiver::iter), [`drain`](Receiver::drain) |
//! | disconnected | [closed](crate::Queue::close) |
//!
//! When the last sender is dropped, the queue is closed: receivers get the remaining items, then
//! [`PopError::Closed`]. When the last receiver is dropped, it is closed too: pushes fail with [`PushError::Closed`],
//! which gives the item back. Items not received are dropped with the last sender.
//!
//! # Order
//!
//! Items that one thread pushes through a sender are popped in that order; between threads the order is best effort,
//! for the same sender too. A task that may move between threads and needs its order pushes through a
//! [`Handle`](crate::Handle) of its own, and keeps its sender, since a handle does not keep the channel open.
//!
//! # Items that nobody receives
//!
//! When the last receiver is dropped, the items stay in the queue: handles of the queue may still pop them. A reply
//! channel in such an item stays alive too; a receiving side that ends for good calls
//! [`clear`](crate::Queue::clear) of its queue.
//!
//! # The queue
//!
//! All other functions are available through [`Sender::queue`] and [`Receiver::queue`]: a receiver that must not lose
//! an item when it fails uses a [`Handle`](crate::Handle) and transactions.
//!
//! ```
//! let (sender, receiver) = requeue::channel::unbounded();
//! sender.push("job")?;
//! let mut worker = receiver.queue().handle();
//! let tx = worker.begin();
//! assert_eq!(*tx.pop()?, "job");
//! drop(tx); // the worker fails
//! assert_eq!(receiver.pop()?, "job");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Clones of the queue, handles and futures of either side do not keep it open: only senders and receivers count.
//! [`Builder::channel`] makes a channel of a queue in another order, or with options.

mod both;
mod iter;

pub use iter::IntoIter;

use crate::future::{OwnedPop, OwnedPush, OwnedPushBatch, TakeBatchAsync};
use crate::order::Order;
use crate::queue::{Drain, Iter};
use crate::{Builder, Fifo, PopError, PushError, Queue};
use std::sync::Arc;

/// Makes an unbounded channel.
///
/// ```
/// let (sender, receiver) = requeue::channel::unbounded();
/// sender.push(1)?;
/// drop(sender);
/// assert!(receiver.iter().eq([1]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn unbounded<T>() -> (Sender<T>, Receiver<T>) {
    split(&Queue::unbounded())
}

/// Makes a channel that holds at most `capacity` items: see [`Queue::bounded`].
///
/// ```
/// let (sender, receiver) = requeue::channel::bounded(1);
/// sender.push(1)?;
/// assert!(sender.push(2).unwrap_err().is_full());
/// assert_eq!(receiver.pop()?, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
///
/// If `capacity` is 0: rendezvous channels are not supported.
#[track_caller]
pub fn bounded<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    split(&Queue::bounded(capacity))
}

impl<T, O: Order<T>> Builder<T, O> {
    /// Builds the queue as a [channel](mod@crate::channel), in any order and with all options: both sides refer to it, and
    /// dropping the last one of a side closes it.
    ///
    /// ```
    /// let (sender, receiver) = requeue::Queue::builder().by_priority().capacity(8).channel();
    /// sender.push("whenever")?;
    /// sender.queue().priority(1).push("soon")?;
    /// drop(sender);
    /// assert!(receiver.iter().eq(["soon", "whenever"]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn channel(self) -> (Sender<T, O>, Receiver<T, O>) {
        split(&self.build())
    }
}

fn split<T, O: Order<T>>(queue: &Queue<T, O>) -> (Sender<T, O>, Receiver<T, O>) {
    let side = || Arc::new(Side(queue.clone()));
    (Sender(side()), Receiver(side()))
}

/// One side of a channel: closes the queue when its last clone is dropped.
struct Side<T, O: Order<T>>(Queue<T, O>);

impl<T, O: Order<T>> Drop for Side<T, O> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The side of a channel that pushes. Dropping the last one closes the queue.
///
/// ```
/// use requeue::PopError;
///
/// let (sender, receiver) = requeue::channel::unbounded();
/// let other = sender.clone();
/// drop(sender);
/// other.push(1)?;
/// drop(other);
/// assert_eq!(receiver.pop_blocking(), Ok(1));
/// assert_eq!(receiver.pop_blocking(), Err(PopError::Closed));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Sender<T, O: Order<T> = Fifo>(Arc<Side<T, O>>);

/// The side of a channel that pops. Dropping the last one closes the queue.
///
/// ```
/// let (sender, receiver) = requeue::channel::unbounded();
/// drop(receiver);
/// assert!(sender.push(1).unwrap_err().is_closed());
/// ```
pub struct Receiver<T, O: Order<T> = Fifo>(Arc<Side<T, O>>);

impl<T, O: Order<T>> Sender<T, O> {
    /// Pushes an item, without waiting: see [`Queue::push`].
    ///
    /// ```
    /// let (sender, receiver) = requeue::channel::bounded(1);
    /// sender.push("first")?;
    /// assert_eq!(sender.push("second").unwrap_err().into_inner(), "second");
    /// # drop(receiver);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PushError::Full`] if there was no room, [`PushError::Closed`] if all receivers were dropped or the queue was
    /// closed. The item comes back with the error.
    #[doc(alias = "try_send")]
    pub fn push(&self, item: T) -> Result<(), PushError<T>> {
        self.0 .0.push(item)
    }

    verb! {
        push(&self, item: T) -> Result<(), PushError<T>>, |wait| self.0 .0.push_waiting(item, wait);
        blocking:
        /// Pushes an item, and waits for room if there is none: see [`Queue::push_blocking`].
        ///
        /// ```
        /// let (sender, receiver) = requeue::channel::bounded(1);
        /// sender.push_blocking("job")?;
        /// assert_eq!(receiver.pop()?, "job");
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`PushError::Closed`] with the item, also if the queue is closed during the wait.
        #[doc(alias = "send")]
        timed: "Pushes an item", "room",
        #[doc(alias = "send_timeout")]
        /// let (sender, _receiver) = requeue::channel::bounded(1);
        /// sender.push(1)?;
        refused = sender(2);
        /// assert!(refused.unwrap_err().is_full());
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`PushError::Full`] on timeout, [`PushError::Closed`] as for [`Sender::push`].
        async(&self, item: T) -> OwnedPush<T, O> { self.0 .0.push_async(item) }
        /// A future that pushes the item when there is room, cancel safe: see [`Queue::push_async`]. It does not count as
        /// a sender.
        ///
        /// ```
        /// # futures::executor::block_on(async {
        /// let (sender, receiver) = requeue::channel::bounded(1);
        /// sender.push_async("job").await?;
        /// assert_eq!(receiver.pop_async().await?, "job");
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// # }).unwrap();
        /// ```
        #[doc(alias = "send_async")]
    }

    /// Pushes all items at once: see [`Queue::push_batch`].
    ///
    /// ```
    /// let (sender, receiver) = requeue::channel::unbounded();
    /// sender.push_batch([1, 2])?;
    /// assert!(receiver.drain().eq([1, 2]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Queue::push_batch`]: all items come back.
    pub fn push_batch(
        &self,
        items: impl IntoIterator<Item = T>,
    ) -> Result<usize, PushError<Vec<T>>> {
        self.0 .0.push_batch(items)
    }

    verb! {
        push_batch(&self, items: impl IntoIterator<Item = T>) -> Result<usize, PushError<Vec<T>>>,
            |wait| self.0 .0.push_batch_waiting(items, wait);
        blocking:
        /// Pushes all items at once, and waits until there is room for all of them: see
        /// [`Queue::push_batch_blocking`].
        ///
        /// ```
        /// let (sender, receiver) = requeue::channel::bounded(2);
        /// sender.push_batch_blocking([1, 2])?;
        /// assert!(receiver.drain().eq([1, 2]));
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// As for [`Queue::push_batch_blocking`]: all items come back.
        timed: "Pushes all items at once", "room for all of them",
        /// let (sender, _receiver) = requeue::channel::bounded(2);
        /// sender.push(1)?;
        refused = sender([2, 3]);
        /// assert_eq!(refused.unwrap_err().into_inner(), [2, 3]);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        ///
        /// # Errors
        ///
        /// As for [`Queue::push_batch_timeout`]: all items come back.
        async(&self, items: impl IntoIterator<Item = T>) -> OwnedPushBatch<T, O> { self.0 .0.push_batch_async(items) }
        /// A future that pushes all items at once when there is room for all of them, cancel safe: see
        /// [`Queue::push_batch_async`]. It does not count as a sender.
        ///
        /// ```
        /// # futures::executor::block_on(async {
        /// let (sender, receiver) = requeue::channel::bounded(2);
        /// sender.push_batch_async([1, 2]).await?;
        /// assert!(receiver.drain().eq([1, 2]));
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// # }).unwrap();
        /// ```
    }

    /// A clone of the queue: for handles, transactions, statistics and all other functions. It does not count as a
    /// sender.
    ///
    /// ```
    /// let (sender, receiver) = requeue::channel::unbounded();
    /// sender.push(1)?;
    /// assert_eq!(sender.queue().len(), 1);
    /// # drop(receiver);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn queue(&self) -> Queue<T, O> {
        self.0 .0.clone()
    }
}

impl<T, O: Order<T>> Receiver<T, O> {
    /// Pops an item, without waiting: see [`Queue::pop`].
    ///
    /// ```
    /// use requeue::PopError;
    ///
    /// let (sender, receiver) = requeue::channel::unbounded();
    /// assert_eq!(receiver.pop(), Err(PopError::Empty));
    /// sender.push(1)?;
    /// assert_eq!(receiver.pop(), Ok(1));
    /// drop(sender);
    /// assert_eq!(receiver.pop(), Err(PopError::Closed));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PopError::Empty`] if nothing was ready; [`PopError::Closed`] if all senders were dropped, or the queue was
    /// closed, and no items remain.
    #[doc(alias = "try_recv")]
    pub fn pop(&self) -> Result<T, PopError> {
        self.0 .0.pop()
    }

    verb! {
        pop(&self) -> Result<T, PopError>, |wait| self.0 .0.pop_waiting(wait);
        blocking:
        /// Pops an item, and waits for one if there is none: see [`Queue::pop_blocking`].
        ///
        /// ```
        /// let (sender, receiver) = requeue::channel::unbounded();
        /// std::thread::spawn(move || sender.push(1));
        /// assert_eq!(receiver.pop_blocking(), Ok(1));
        /// ```
        ///
        /// # Errors
        ///
        /// [`PopError::Closed`] as for [`Receiver::pop`].
        #[doc(alias = "recv")]
        timed: "Pops an item", "one",
        #[doc(alias = "recv_timeout")]
        /// let (_sender, receiver) = requeue::channel::unbounded::<u32>();
        popped = receiver();
        /// assert!(popped.unwrap_err().is_empty());
        /// ```
        ///
        /// # Errors
        ///
        /// [`PopError::Empty`] on timeout; [`PopError::Closed`] as for [`Receiver::pop`].
        async(&self) -> OwnedPop<T, O> { self.0 .0.pop_async() }
        /// A future that pops an item when there is one, cancel safe: see [`Queue::pop_async`]. It does not count as a
        /// receiver.
        ///
        /// ```
        /// # futures::executor::block_on(async {
        /// let (sender, receiver) = requeue::channel::unbounded();
        /// sender.push("job")?;
        /// assert_eq!(receiver.pop_async().await?, "job");
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// # }).unwrap();
        /// ```
        #[doc(alias = "recv_async")]
    }

    /// Pops up to `max` items into `items`, without waiting, and returns their number: see [`Queue::pop_batch`].
    ///
    /// ```
    /// let (sender, receiver) = requeue::channel::unbounded();
    /// sender.push_batch([1, 2, 3])?;
    /// let mut items = Vec::new();
    /// assert_eq!(receiver.pop_batch(2, &mut items), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "recv_many")]
    pub fn pop_batch(&self, max: usize, items: &mut Vec<T>) -> usize {
        self.0 .0.pop_batch(max, items)
    }

    verb! {
        pop_batch(&self, min: usize, max: usize, items: &mut Vec<T>) -> usize,
            |wait| self.0 .0.pop_batch_waiting(min, max, items, wait);
        blocking:
        /// Pops up to `max` items into `items`, and waits until there are at least `min` of them: see
        /// [`Queue::pop_batch_blocking`].
        ///
        /// ```
        /// let (sender, receiver) = requeue::channel::unbounded();
        /// sender.push_batch([1, 2, 3])?;
        /// let mut items = Vec::new();
        /// assert_eq!(receiver.pop_batch_blocking(1, 10, &mut items), 3);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        timed: "Pops up to `max` items into `items`", "the first `min` of them",
        /// let (sender, receiver) = requeue::channel::unbounded();
        /// sender.push(1)?;
        /// let mut items = Vec::new();
        popped = receiver(2, 10, &mut items);
        /// assert_eq!(popped, 1); // fewer than 2
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        async_within<'i>(&self, min: usize, max: usize, items: &'i mut Vec<T>) -> TakeBatchAsync<'i, T, O>, |wait| {
            self.0 .0.pop_batch_within(min, max, items, wait)
        }
        /// A future that pops up to `max` items into `items`, and is ready when there are at least `min` of them, cancel
        /// safe: see [`Queue::pop_batch_async`]. It does not count as a receiver.
        ///
        /// ```
        /// # futures::executor::block_on(async {
        /// let (sender, receiver) = requeue::channel::unbounded();
        /// sender.push_batch([1, 2, 3])?;
        /// let mut items = Vec::new();
        /// assert_eq!(receiver.pop_batch_async(1, 10, &mut items).await, 3);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// # }).unwrap();
        /// ```
        timeout_async:
        /// As [`pop_batch_async`](Self::pop_batch_async), but ready after `timeout` at the latest: see
        /// [`Queue::pop_batch_timeout_async`].
        ///
        /// ```
        /// use std::time::Duration;
        ///
        /// # futures::executor::block_on(async {
        /// let (sender, receiver) = requeue::channel::unbounded();
        /// sender.push(1)?;
        /// let (mut items, moment) = (Vec::new(), Duration::from_millis(1));
        /// assert_eq!(receiver.pop_batch_timeout_async(2, 10, &mut items, moment).await, 1);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// # }).unwrap();
        /// ```
    }

    /// All items until the channel is closed and drained; waits for them. `for item in &receiver` does the same. The
    /// iterator does not count as a receiver.
    ///
    /// ```
    /// let (sender, receiver) = requeue::channel::unbounded();
    /// sender.push_batch([1, 2])?;
    /// drop(sender);
    /// assert!(receiver.iter().eq([1, 2]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn iter(&self) -> Iter<T, O> {
        self.0 .0.iter()
    }

    /// The ready items, without waiting: see [`Queue::drain`].
    ///
    /// ```
    /// let (sender, receiver) = requeue::channel::unbounded();
    /// sender.push_batch([1, 2])?;
    /// assert!(receiver.drain().eq([1, 2]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "try_iter")]
    pub fn drain(&self) -> Drain<T, O> {
        self.0 .0.drain()
    }

    /// A clone of the queue: for handles, transactions, statistics and all other functions. It does not count as a
    /// receiver.
    ///
    /// ```
    /// let (sender, receiver) = requeue::channel::unbounded();
    /// sender.push(1)?;
    /// let job = receiver.queue().handle().transact(|tx| tx.pop().map(|job| *job))?;
    /// assert_eq!(job, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn queue(&self) -> Queue<T, O> {
        self.0 .0.clone()
    }
}
