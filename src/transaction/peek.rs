//! Looking at what a pop would give.

use crate::core::port::Port;
use crate::core::side::Side;
use crate::order::{Order, StoredOf};
use crate::raw::Peeked;
use crate::sync::step;
use crate::{Fifo, Item, PopError};
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
pub struct Peek<'t, T, O: Order<T> = Fifo> {
    // Dropped in this order: the loan ends, and then others are told.
    peeked: Peeked<'t, StoredOf<T, O>>,
    back: Back<'t, T, O>,
    /// Whether something is owed for the item.
    owes: bool,
}

/// Tells others that the item is back.
struct Back<'t, T, O: Order<T>> {
    side: &'t Side<T, O>,
    is_back: bool,
}

impl<'t, T, O: Order<T>> Peek<'t, T, O> {
    #[track_caller]
    pub(crate) fn new(port: &'t Port<T, O>) -> Result<Self, PopError> {
        let (side, seat) = (port.side(), port.seat());
        seat.assert_not_lent();
        let (peeked, owes) = side.peek(seat)?;
        let is_back = false;
        let peek = Self {
            peeked,
            back: Back { side, is_back },
            owes,
        };
        side.note_look(&peek.peeked); // user code: a clock
        Ok(peek)
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
        let side = self.back.side;
        Item::new(side.hold_peeked(&mut self.peeked))
    }
}

impl<T, O: Order<T>> Deref for Peek<'_, T, O> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.peeked.item().item
    }
}

/// Puts the item back, unless it was taken, and pays for it before the loan ends: whoever uses the
/// transaction next may change what it owes.
impl<T, O: Order<T>> Drop for Peek<'_, T, O> {
    fn drop(&mut self) {
        self.back.is_back = self.peeked.put_back();
        if self.back.is_back && self.owes {
            self.back.side.owe_no_more();
        }
    }
}

impl<T, O: Order<T>> Drop for Back<'_, T, O> {
    fn drop(&mut self) {
        if self.is_back {
            step!("peek.ends-unsaid", self.side.shared().ended(1));
        }
    }
}

impl<T, O: Order<T>> fmt::Debug for Peek<'_, T, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peek").finish_non_exhaustive()
    }
}
