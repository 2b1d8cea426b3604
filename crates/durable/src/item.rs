//! Held items.

use crate::order::{EntryOf, Order};
use crate::Fifo;
use std::ops::{Deref, DerefMut};
use std::vec;

/// An item held by a transaction. Dropping it gives nothing back: its transaction does.
pub struct Item<'t, T: Send + 'static, O: Order<T> = Fifo> {
    pub(crate) ram: requeue::Item<'t, EntryOf<T, O>>,
}

const LOADED: &str = "an item is read from the disk when it is popped";

impl<T: Send + 'static, O: Order<T>> Item<'_, T, O> {
    /// How often it was delivered, this delivery included. If the queue has
    /// [`max_attempts`](crate::Builder::max_attempts), also in earlier processes.
    pub fn attempts(&self) -> u32 {
        self.ram.attempts()
    }
}

impl<T: Send + 'static, O: Order<T>> Deref for Item<'_, T, O> {
    type Target = T;

    fn deref(&self) -> &T {
        self.ram.item.as_ref().expect(LOADED)
    }
}

/// A crash undoes changes.
impl<T: Send + 'static, O: Order<T>> DerefMut for Item<'_, T, O> {
    fn deref_mut(&mut self) -> &mut T {
        self.ram.item.as_mut().expect(LOADED)
    }
}

show!(Debug for Item, Display for Item);

/// A batch of held items.
pub type Items<'t, T, O = Fifo> = vec::IntoIter<Item<'t, T, O>>;
