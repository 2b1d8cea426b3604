//! Taking out all that is left in a queue that is closed.

use crate::order::Order;
use crate::{Fifo, Handle};
use std::fmt;
use std::iter::FusedIterator;

/// The items of a queue until it is closed and drained: an iterator from
/// [`Queue::drain`](crate::Queue::drain).
///
/// Each item is popped, and the pop committed, when the iterator gives it out. It waits while nothing
/// is ready, and ends when pops say [`PopError::Closed`](crate::PopError::Closed): when the queue is closed, nothing is ready or delayed, and
/// no transaction holds or has staged anything. Dropping it leaves the rest in the queue.
///
/// ```
/// let queue = requeue::Queue::unbounded();
/// queue.handle().push_batch([1, 2, 3])?;
/// queue.close();
/// assert_eq!(queue.drain().sum::<i32>(), 6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Drain<T, O: Order<T> = Fifo> {
    handle: Handle<T, O>,
}

impl<T, O: Order<T>> Drain<T, O> {
    pub(crate) fn new(handle: Handle<T, O>) -> Self {
        Self { handle }
    }
}

impl<T, O: Order<T>> Iterator for Drain<T, O> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.handle.pop_blocking().ok()
    }
}

/// Closed and drained is for ever.
impl<T, O: Order<T>> FusedIterator for Drain<T, O> {}

impl<T, O: Order<T>> fmt::Debug for Drain<T, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drain").finish_non_exhaustive()
    }
}
