//! Operations that depend on the order of the queue.

use super::Shared;
use crate::order::{EntryOf, Order, Registry, RegistryOf, Source, StoredOf};
use crate::raw::{Endpoint, Entry};

impl<T, O: Order<T>> Shared<T, O> {
    /// Whether items are taken from the shards by a [`Source`], and not directly.
    pub(crate) const SORTS: bool = <O::Source as Source<T, O::Meta>>::SORTS;

    /// Whether each item is registered before it is pushed, since the order needs it.
    pub(crate) const REGISTERS: bool = <RegistryOf<T, O> as Registry<T, O::Meta>>::RECORDS;

    pub(super) fn registry(&self) -> &RegistryOf<T, O> {
        self.source.registry()
    }

    /// Whether each item is registered before it is pushed.
    pub(crate) fn registers(&self) -> bool {
        self.timed || Self::REGISTERS
    }

    /// Whether the order has room for some items; checked before any permit is taken for them, so that none has to be
    /// released. May run user code.
    #[inline]
    pub(crate) fn fits(&self, items: &[T]) -> bool {
        !self.is_limited() || self.registry().fits(items)
    }

    /// Whether the order can lack room for an item while the queue has room.
    #[inline]
    pub(crate) fn is_limited(&self) -> bool {
        self.registry().is_limited()
    }

    /// Records that a held item is gone for good. May run the destructor of its key, whose panics are caught.
    #[inline(never)] // out of the pop, which seldom needs it
    pub(crate) fn retire(&self, meta: O::Meta) {
        if Self::REGISTERS {
            let ready = self.source.leave(meta, true);
            if ready > 0 {
                // After a close, another thread may have checked when the item was gone and these were not ready yet.
                self.notify_end(ready);
            }
        }
    }

    /// As [`Shared::retire`], for an item that was never delivered, or not pushed after all.
    pub(crate) fn unregister(&self, meta: O::Meta) {
        if Self::REGISTERS {
            self.registry().unregister(meta, 1);
        }
    }

    /// Takes the next item for good, for the handle with this endpoint, which counts it.
    #[inline(never)]
    pub(crate) fn pop_next(&self, by: &Endpoint<StoredOf<T, O>>) -> Option<T> {
        let Entry { item, .. } = self.source.take(by, true, &mut 0)?;
        if self.source.tracks_removal() {
            self.retire(item.meta);
        }
        Some(item.item)
    }

    /// Releases for good an item that was removed by its ticket, is counted as popped, and was forgotten: it had
    /// these permits.
    pub(super) fn part_with(&self, Entry { item, .. }: EntryOf<T, O>, permits: usize) -> T {
        self.give_back(permits);
        self.unregister(item.meta);
        // After the close, waiters may wait for this item to be gone.
        self.notify_end(0);
        item.item
    }

    /// Releases all due items, and takes those of the shards in.
    pub(crate) fn bring_up_to_date(&self) {
        self.release_due();
        self.source.take_in();
    }

    /// The time when something may become ready: [`NEVER`](crate::time::NEVER) if nothing is planned.
    pub(crate) fn next_due(&self) -> u64 {
        if Self::SORTS {
            self.bring_up_to_date();
        }
        self.due_timer.next()
    }

    /// The approximate number of ready items, never more than the capacity.
    pub(crate) fn ready_items(&self) -> u64 {
        let (sorted, _) = self.source.counts();
        let seen = self.shards.ready() + sorted as u64;
        // An item may be counted twice while it moves. One of weight 0 needs no room.
        let room = self.room().filter(|_| !self.weighs());
        room.map_or(seen, |room| seen.min(room.capacity.limit() as u64))
    }

    /// Whether nothing is ready; linearizable.
    pub(crate) fn is_empty(&self) -> bool {
        if Self::SORTS {
            self.source.is_empty()
        } else {
            self.shards.is_empty()
        }
    }
}
