//! What a committed transaction held.

use crate::core::end::Outcome;
use crate::core::Port;
use crate::order::{EntryOf, Order};
use crate::Fifo;
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
pub struct Taken<'h, T, O: Order<T> = Fifo> {
    cell: &'h mut Port<T, O>,
    len: usize,
}

impl<'h, T, O: Order<T>> Taken<'h, T, O> {
    #[inline]
    pub(crate) fn new(cell: &'h mut Port<T, O>, outcome: Outcome) -> Self {
        Self {
            cell,
            len: outcome.freed,
        }
    }

    /// Wakes those who wait for what the commit has published or freed.
    #[inline]
    pub(crate) fn wake_for(&mut self, outcome: Outcome) {
        self.cell.get_mut().wake_for(outcome);
    }

    /// Ends the leases of the items, tells those who listen, and returns the copies.
    pub(crate) fn end_guard(&mut self) -> Vec<EntryOf<T, O>> {
        self.cell.end_guard(self.len > 0)
    }
}

impl<T, O: Order<T>> Iterator for Taken<'_, T, O> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        let item = self.cell.take_out()?;
        self.len -= 1;
        Some(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len, Some(self.len))
    }
}

impl<T, O: Order<T>> ExactSizeIterator for Taken<'_, T, O> {}
impl<T, O: Order<T>> FusedIterator for Taken<'_, T, O> {}

impl<T, O: Order<T>> Drop for Taken<'_, T, O> {
    #[inline]
    fn drop(&mut self) {
        if self.len > 0 {
            self.cell.drop_taken();
        }
    }
}

impl<T, O: Order<T>> fmt::Debug for Taken<'_, T, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Taken").field("len", &self.len()).finish()
    }
}
