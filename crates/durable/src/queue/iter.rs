//! Iterators over the items of a queue.

use super::DurableQueue;
use crate::error::{yielded, StoreError};
use crate::handle::Handle;
use crate::order::Order;
use crate::Fifo;
use requeue::Wait;
use std::iter::FusedIterator;

/// Items that are popped one by one, from [`DurableQueue::iter`] and [`DurableQueue::drain`].
///
/// Each call of `next` pops an item, and the pop is durable when it returns. The iterator ends after an error. Dropping it
/// leaves the remaining items in the queue.
#[must_use = "an iterator does nothing unless it is used"]
pub struct Iter<T: Send + 'static, O: Order<T> = Fifo> {
    handle: Option<Handle<T, O>>,
    wait: Wait,
}

impl<T: Send + 'static, O: Order<T>> Iterator for Iter<T, O> {
    type Item = Result<T, StoreError>;

    fn next(&mut self) -> Option<Result<T, StoreError>> {
        let handle = self.handle.as_mut()?;
        let popped = handle.pop_waiting(self.wait);
        if popped.is_err() {
            self.handle = None;
        }
        yielded(popped)
    }
}

impl<T: Send + 'static, O: Order<T>> FusedIterator for Iter<T, O> {}

requeue::debug_struct!([T: Send + 'static, O: Order<T>] Iter<T, O>);

impl<T: Send + 'static, O: Order<T>> DurableQueue<T, O> {
    /// The items of the queue, popped one by one: waits while nothing is ready, and ends when the queue is closed and
    /// drained. `for item in &queue` does the same.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// let numbers = store.queue("numbers")?;
    /// numbers.push_batch([1, 2, 3])?;
    /// numbers.close()?;
    /// let mut sum = 0;
    /// for number in &numbers {
    ///     sum += number?;
    /// }
    /// assert_eq!(sum, 6);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn iter(&self) -> Iter<T, O> {
        let handle = Some(self.handle());
        Iter {
            handle,
            wait: Wait::Forever,
        }
    }

    /// The items that are ready, popped one by one, without waiting.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// let numbers = store.queue("numbers")?;
    /// numbers.push_batch([1, 2, 3])?;
    /// let two: Vec<u32> = numbers.drain().take(2).collect::<Result<_, _>>()?;
    /// assert_eq!((two, numbers.len()), (vec![1, 2], 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn drain(&self) -> Iter<T, O> {
        Iter {
            wait: Wait::Never,
            ..self.iter()
        }
    }

    /// Pops and drops the items that are ready now, in one commit, and returns their number. Held, staged, delayed and
    /// scheduled items stay; [`clear_all`](Self::clear_all) leaves only what is held or staged.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// let numbers = store.queue("numbers")?;
    /// numbers.push_batch([1, 2, 3])?;
    /// assert_eq!(numbers.clear()?, 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`pop_batch`](Self::pop_batch).
    pub fn clear(&self) -> Result<usize, StoreError> {
        if self.pages.is_some() {
            return self.remove_ready();
        }
        Ok(self.pop_batch(self.len())?.len())
    }
}

/// As [`DurableQueue::iter`].
impl<T: Send + 'static, O: Order<T>> IntoIterator for &DurableQueue<T, O> {
    type Item = Result<T, StoreError>;
    type IntoIter = Iter<T, O>;

    fn into_iter(self) -> Iter<T, O> {
        self.iter()
    }
}
