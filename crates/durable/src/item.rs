//! Held items.

use crate::order::{EntryOf, Order};
use crate::Fifo;
use std::fmt;
use std::iter::FusedIterator;
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
        self.ram.item().expect(LOADED)
    }
}

/// A crash undoes changes.
impl<T: Send + 'static, O: Order<T>> DerefMut for Item<'_, T, O> {
    fn deref_mut(&mut self) -> &mut T {
        self.ram.item_mut().expect(LOADED)
    }
}

impl<T: fmt::Debug + Send + 'static, O: Order<T>> fmt::Debug for Item<'_, T, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<T: fmt::Display + Send + 'static, O: Order<T>> fmt::Display for Item<'_, T, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, f)
    }
}

/// A batch of held items.
pub struct Items<'t, T: Send + 'static, O: Order<T> = Fifo>(Source<'t, T, O>);

enum Source<'t, T: Send + 'static, O: Order<T>> {
    Ram(requeue::iter::Items<'t, EntryOf<T, O>, O::Ram>),
    Received(vec::IntoIter<Item<'t, T, O>>),
}

impl<'t, T: Send + 'static, O: Order<T>> Items<'t, T, O> {
    pub(crate) fn of_ram(items: requeue::iter::Items<'t, EntryOf<T, O>, O::Ram>) -> Self {
        Self(Source::Ram(items))
    }

    pub(crate) fn received(items: Vec<Item<'t, T, O>>) -> Self {
        Self(Source::Received(items.into_iter()))
    }
}

impl<'t, T: Send + 'static, O: Order<T>> Iterator for Items<'t, T, O> {
    type Item = Item<'t, T, O>;

    fn next(&mut self) -> Option<Item<'t, T, O>> {
        match &mut self.0 {
            Source::Ram(items) => items.next().map(|ram| Item { ram }),
            Source::Received(items) => items.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.0 {
            Source::Ram(items) => items.size_hint(),
            Source::Received(items) => items.size_hint(),
        }
    }
}

impl<T: Send + 'static, O: Order<T>> ExactSizeIterator for Items<'_, T, O> {}
impl<T: Send + 'static, O: Order<T>> FusedIterator for Items<'_, T, O> {}

impl<T: Send + 'static, O: Order<T>> fmt::Debug for Items<'_, T, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Items").field("len", &self.len()).finish()
    }
}
