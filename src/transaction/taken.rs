//! What a committed transaction held.

use crate::core::port::{Outcome, Port};
use crate::raw::Entry;
use std::fmt;
use std::iter::FusedIterator;

/// The items that a committed transaction held, by value, in the order of the pops.
///
/// They come straight from the hold, so the handle is borrowed meanwhile. Dropping it drops the
/// rest; after a `mem::forget` the rest is dropped when the handle is used again or dropped. Nothing
/// goes back to the queue.
///
/// ```
/// let queue = requeue::Queue::unbounded();
/// let mut handle = queue.handle();
/// handle.push_batch([1, 2])?;
/// let tx = handle.begin();
/// tx.pop_batch(2);
/// let taken = tx.commit();
/// assert_eq!(taken.len(), 2);
/// assert_eq!(taken.collect::<Vec<_>>(), [1, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Taken<'h, T> {
    port: &'h mut Port<T>,
    len: usize,
}

impl<'h, T> Taken<'h, T> {
    #[inline]
    pub(crate) fn new(port: &'h mut Port<T>, outcome: Outcome) -> Self {
        Self {
            port,
            len: outcome.freed,
        }
    }

    /// Wakes those who wait for what the commit has published or freed.
    #[inline]
    pub(crate) fn wake_for(&self, outcome: Outcome) {
        self.port.wake_for(outcome);
    }

    /// Ends the leases of the items, tells those who listen, and returns the copies.
    pub(crate) fn end_guard(&mut self) -> Vec<Entry<T>> {
        self.port.end_guard(self.len > 0)
    }
}

impl<T> Iterator for Taken<'_, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        let item = self.port.take_out()?;
        self.len -= 1;
        Some(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len, Some(self.len))
    }
}

impl<T> ExactSizeIterator for Taken<'_, T> {}
impl<T> FusedIterator for Taken<'_, T> {}

impl<T> Drop for Taken<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.len > 0 {
            self.port.drop_taken();
        }
    }
}

impl<T> fmt::Debug for Taken<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Taken").field("len", &self.len()).finish()
    }
}
