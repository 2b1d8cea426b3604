//! Looking at what a pop would give.

use crate::port::Port;
use crate::raw::Peeked;
use crate::side::Side;
use crate::{Item, PopError};
use std::fmt;
use std::ops::Deref;

/// The item that a pop would give, from [`Transaction::peek`](crate::Transaction::peek). Dropping it
/// puts the item back to its place.
///
/// If it is leaked by [`std::mem::forget`], the item is put back when the transaction ends.
///
/// ```
/// let queue = requeue::Queue::unbounded();
/// queue.push("job")?;
/// let mut handle = queue.handle();
/// let tx = handle.begin();
/// assert_eq!(*tx.peek()?, "job");
/// assert_eq!(tx.pop()?.attempts(), 1); // a look is no delivery
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a look alone does nothing"]
pub struct Peek<'t, T> {
    peeked: Option<Peeked<'t, T>>,
    side: &'t Side<T>,
}

impl<'t, T> Peek<'t, T> {
    pub(crate) fn new(port: &'t Port<T>) -> Result<Self, PopError> {
        let side = port.side();
        let peeked = side.peek(port.seat())?;
        Ok(Self {
            peeked: Some(peeked),
            side,
        })
    }

    /// Takes the item: what a pop would have done instead of the look.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push(1)?;
    /// let mut handle = queue.handle();
    /// let tx = handle.begin();
    /// let mut item = tx.peek()?.take();
    /// *item += 1;
    /// assert_eq!(tx.commit().next(), Some(2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn take(mut self) -> Item<'t, T> {
        let peeked = self.peeked.take().expect("taken once");
        Item::new(self.side.hold_peeked(peeked))
    }
}

impl<T> Deref for Peek<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.peeked.as_ref().expect("not taken yet").item()
    }
}

impl<T> Drop for Peek<'_, T> {
    fn drop(&mut self) {
        if let Some(peeked) = self.peeked.take() {
            drop(peeked);
            self.side.shared().ended(1);
        }
    }
}

impl<T> fmt::Debug for Peek<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peek").finish_non_exhaustive()
    }
}
