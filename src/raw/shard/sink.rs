//! Sinks for claimed items.

use crate::raw::memory::{DeliveryMeta, Entry, Row, Stored};
use crate::raw::shard::run::{Block, Home};

/// A destination of claimed items.
///
/// Room is reserved before the claim, so that nothing can fail between a claim and its acceptance.
pub(in crate::raw) trait Sink<T> {
    /// Whether it is told the rank of an item before it accepts it.
    const RANKS: bool = false;

    /// Notes the rank of the item that is accepted next.
    fn note_rank(&mut self, _rank: u64) {}

    /// Reserves room for up to `wanted` items (at least one) of the shard with this `home`. Returns for how many, at least one.
    fn reserve(&mut self, wanted: usize, home: Home) -> usize;

    /// Accepts one item.
    ///
    /// # Safety
    ///
    /// No more items are accepted than the last `reserve` granted.
    unsafe fn accept(&mut self, item: T, delivery: DeliveryMeta);

    /// Takes over the block of the items that were accepted last.
    ///
    /// # Safety
    ///
    /// The block is vacant, and the caller, its only user, gives it up.
    unsafe fn recycle(&mut self, block: Block<T>) {
        // SAFETY: by contract.
        unsafe { Row::free(block) };
    }

    /// Accepts several items that are delivered for the first time and have no time.
    ///
    /// # Safety
    ///
    /// As for [`Sink::accept`].
    #[inline]
    unsafe fn accept_all(&mut self, items: impl Iterator<Item = T>) {
        for item in items {
            // SAFETY: by contract.
            unsafe { self.accept(item, DeliveryMeta::first(0)) };
        }
    }
}

/// Accepts one item.
impl<T> Sink<T> for Option<T> {
    #[inline]
    fn reserve(&mut self, _wanted: usize, _home: Home) -> usize {
        1
    }

    #[inline]
    unsafe fn accept(&mut self, item: T, _delivery: DeliveryMeta) {
        *self = Some(item);
    }
}

/// Accepts any number of items, without their metadata.
impl<T, M> Sink<Stored<T, M>> for Vec<T> {
    #[inline]
    fn reserve(&mut self, wanted: usize, _home: Home) -> usize {
        Vec::reserve(self, wanted);
        wanted
    }

    #[inline]
    unsafe fn accept(&mut self, stored: Stored<T, M>, _delivery: DeliveryMeta) {
        self.push(stored.item);
    }

    #[inline]
    unsafe fn accept_all(&mut self, items: impl Iterator<Item = Stored<T, M>>) {
        let mut len = self.len();
        for item in items.map(Stored::into_item) {
            // SAFETY: there is room by contract, and moving an item cannot panic.
            unsafe { self.as_mut_ptr().add(len).write(item) };
            len += 1;
        }
        // SAFETY: written above.
        unsafe { self.set_len(len) };
    }
}

/// Accepts any number of items, with their delivery metadata.
impl<T> Sink<T> for Vec<Entry<T>> {
    fn reserve(&mut self, wanted: usize, _home: Home) -> usize {
        Vec::reserve(self, wanted);
        wanted
    }

    unsafe fn accept(&mut self, item: T, delivery: DeliveryMeta) {
        self.push(Entry { item, delivery });
    }
}
