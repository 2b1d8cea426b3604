//! Iterators over the items of a queue, and queues collected from iterators.

use super::Queue;
use crate::order::Order;
use crate::{Fifo, Handle, PushError};
use std::iter::FusedIterator;

/// The items of a queue until it is closed and drained: an iterator from [`Queue::iter`].
///
/// Each call of `next` pops an item and commits the pop. It waits while nothing is ready, and ends when pops return
/// [`PopError::Closed`](crate::PopError::Closed): when the queue is closed, nothing is ready or delayed, and no
/// transaction holds or has staged anything. Dropping it leaves the remaining items in the queue.
///
/// ```
/// let queue: requeue::Queue<i32> = (1..=3).collect();
/// queue.close();
/// assert_eq!(queue.iter().sum::<i32>(), 6);
/// ```
#[must_use = "an iterator does nothing unless it is used"]
pub struct Iter<T, O: Order<T> = Fifo> {
    handle: Handle<T, O>,
}

impl<T, O: Order<T>> Iterator for Iter<T, O> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.handle.pop_blocking().ok()
    }
}

/// A closed and drained queue stays so.
impl<T, O: Order<T>> FusedIterator for Iter<T, O> {}

debug_struct!([T, O: Order<T>] Iter<T, O>);

/// The ready items of a queue: an iterator from [`Queue::drain`].
///
/// Each call of `next` pops an item and commits the pop. Dropping it leaves the remaining items in the queue.
///
/// ```
/// let queue: requeue::Queue<i32> = (1..=3).collect();
/// assert_eq!(queue.drain().take(2).sum::<i32>(), 3);
/// assert_eq!(queue.len(), 1);
/// ```
#[must_use = "an iterator does nothing unless it is used"]
pub struct Drain<T, O: Order<T> = Fifo> {
    handle: Handle<T, O>,
}

impl<T, O: Order<T>> Iterator for Drain<T, O> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.handle.pop().ok()
    }
}

debug_struct!([T, O: Order<T>] Drain<T, O>);

impl<T, O: Order<T>> Queue<T, O> {
    /// The items of the queue, popped one by one: waits while nothing is ready, and ends when the queue is closed
    /// and drained. Does not close it. `for item in &queue` does the same.
    ///
    /// For the items that are ready now, without waiting, see [`Queue::drain`].
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// std::thread::scope(|scope| {
    ///     let count = scope.spawn(|| queue.iter().count());
    ///     queue.push("a").unwrap();
    ///     queue.push("b").unwrap();
    ///     queue.close();
    ///     assert_eq!(count.join().unwrap(), 2);
    /// });
    /// ```
    pub fn iter(&self) -> Iter<T, O> {
        let handle = self.handle();
        Iter { handle }
    }

    /// The items that are ready, popped one by one in the [order](#order) of the queue, without waiting: ends when a pop
    /// finds nothing. Items that become ready meanwhile are popped too.
    ///
    /// For all items until the queue is closed, see [`Queue::iter`].
    ///
    /// ```
    /// let queue: requeue::Queue<i32> = (1..=3).collect();
    /// assert!(queue.drain().eq([1, 2, 3]));
    /// assert_eq!(queue.drain().next(), None);
    /// ```
    #[doc(alias = "try_iter")]
    pub fn drain(&self) -> Drain<T, O> {
        let handle = self.handle();
        Drain { handle }
    }

    /// Pops and drops the items that are ready now, and returns their number. It does not wait.
    ///
    /// It pops at most the items that [were ready](Queue::len) at its beginning, so it ends even if others push.
    /// Held, staged, delayed and scheduled items stay, and in a [serial](crate::Builder::serial) queue those that wait for
    /// another item of their key. Like any pop it takes nothing from a [paused](Queue::pause) queue, and no more than a
    /// [pace](crate::Builder::pace) allows. [`Queue::clear_all`] leaves only what is held or staged; [`Queue::retain`]
    /// removes some of the items.
    ///
    /// ```
    /// let queue: requeue::Queue<i32> = (1..=3).collect();
    /// assert_eq!(queue.clear(), 3);
    /// assert!(queue.is_empty());
    /// ```
    ///
    /// # Panics
    ///
    /// If the destructor of an item panics. The items after it stay in the queue.
    pub fn clear(&self) -> usize {
        self.drain().take(self.len()).map(drop).count()
    }
}

/// As [`Queue::iter`].
impl<T, O: Order<T>> IntoIterator for &Queue<T, O> {
    type Item = T;
    type IntoIter = Iter<T, O>;

    fn into_iter(self) -> Iter<T, O> {
        self.iter()
    }
}

/// Makes an unbounded queue with these items.
///
/// ```
/// let queue: requeue::Queue<_> = ["a", "b"].into_iter().collect();
/// assert_eq!(queue.len(), 2);
/// ```
impl<T> FromIterator<T> for Queue<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut queue = Self::unbounded();
        queue.extend(items);
        queue
    }
}

/// Pushes the items one by one, as [`Queue::push`] does.
///
/// ```
/// let mut queue = requeue::Queue::unbounded();
/// queue.extend([1, 2]);
/// assert!(queue.drain().eq([1, 2]));
/// ```
///
/// # Panics
///
/// If the queue is full or closed, or an item is a [duplicate](crate::Builder::unique_by). The items pushed before stay in the queue; the refused one and the rest of the
/// iterator are dropped. If this may happen, use [`Queue::push_batch`], which gives the items back, or
/// [`Queue::push_blocking`].
impl<T> Extend<T> for Queue<T> {
    #[track_caller]
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        for item in items {
            match self.push(item) {
                Ok(()) => {}
                Err(PushError::Full(_)) => panic!(
                    "extend of a full queue: there is no room for the next item \
                     (use `push_batch`, which gives the items back, or `push_blocking`, which waits)"
                ),
                Err(PushError::Closed(_)) => panic!(
                    "extend of a closed queue (use `push_batch`, which gives the items back)"
                ),
                Err(PushError::TooHeavy(_)) => panic!(
                    "extend of a queue by an item that is heavier than its capacity (use \
                     `push_batch`, which gives the items back)"
                ),
                Err(PushError::Duplicate(_, of)) => panic!(
                    "extend with a duplicate: {of} (use `push`, which gives the item back)"
                ),
            }
        }
    }
}
