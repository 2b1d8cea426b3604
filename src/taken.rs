//! What a committed transaction held.

use crate::raw::Seat;
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
    seat: &'h mut Seat<T>,
}

impl<'h, T> Taken<'h, T> {
    #[inline]
    pub(crate) fn new(seat: &'h mut Seat<T>) -> Self {
        Self { seat }
    }
}

impl<T> Iterator for Taken<'_, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        self.seat.take_out()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.seat.held(), Some(self.seat.held()))
    }
}

impl<T> ExactSizeIterator for Taken<'_, T> {}
impl<T> FusedIterator for Taken<'_, T> {}

impl<T> Drop for Taken<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.seat.drop_taken();
    }
}

impl<T> fmt::Debug for Taken<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Taken").field("len", &self.len()).finish()
    }
}
