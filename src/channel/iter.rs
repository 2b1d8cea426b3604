//! Iterators over the items of a channel.

use super::Receiver;
use crate::queue::Iter;

/// As [`Receiver::iter`].
impl<T> IntoIterator for &Receiver<T> {
    type Item = T;
    type IntoIter = Iter<T>;

    fn into_iter(self) -> Iter<T> {
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
impl<T> IntoIterator for Receiver<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        IntoIter {
            items: self.iter(),
            _receiver: self,
        }
    }
}

/// The iterator of [`Receiver::into_iter`].
#[must_use = "an iterator does nothing unless it is used"]
#[derive(Debug)]
pub struct IntoIter<T> {
    items: Iter<T>,
    _receiver: Receiver<T>,
}

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.items.next()
    }
}

impl<T> std::iter::FusedIterator for IntoIter<T> {}
