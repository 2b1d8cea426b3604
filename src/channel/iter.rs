//! Iterators over the items of a channel.

use super::Receiver;
use crate::order::Order;
use crate::queue::Iter;
use crate::Fifo;

/// As [`Receiver::iter`].
impl<T, O: Order<T>> IntoIterator for &Receiver<T, O> {
    type Item = T;
    type IntoIter = Iter<T, O>;

    fn into_iter(self) -> Iter<T, O> {
        self.iter()
    }
}

/// All items until the channel is closed and drained; waits for them. The iterator owns the receiver.
///
/// ```
/// let (sender, receiver) = requeue::channel::unbounded();
/// sender.push_batch([1, 2])?;
/// drop(sender);
/// let thread = std::thread::spawn(move || receiver.into_iter().sum::<u32>());
/// assert_eq!(thread.join().unwrap(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<T, O: Order<T>> IntoIterator for Receiver<T, O> {
    type Item = T;
    type IntoIter = IntoIter<T, O>;

    fn into_iter(self) -> IntoIter<T, O> {
        IntoIter {
            items: self.iter(),
            receiver: self,
        }
    }
}

/// The iterator of [`Receiver::into_iter`].
#[must_use = "an iterator does nothing unless it is used"]
pub struct IntoIter<T, O: Order<T> = Fifo> {
    items: Iter<T, O>,
    receiver: Receiver<T, O>,
}

impl<T, O: Order<T>> Iterator for IntoIter<T, O> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.items.next()
    }
}

impl<T, O: Order<T>> std::iter::FusedIterator for IntoIter<T, O> {}

debug_struct!([T, O: Order<T>] IntoIter<T, O>, |it| receiver: it.receiver);
