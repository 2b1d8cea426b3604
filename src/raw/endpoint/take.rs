//! The pops of a endpoint, and what it holds.

use super::Endpoint;
use crate::raw::block::HeldSlot;
use crate::raw::cell::Fresh;
use crate::raw::entry::{DeliveryMeta, Entry, Stored};
use crate::raw::hold::{HeldPosition, Hold};
use crate::raw::item_ref::ItemRef;
use crate::raw::sink::Sink;

impl<T> Endpoint<T> {
    /// Goes to where items were put back without a handle, if there are any, since they come first.
    pub(crate) fn go_to_head(&mut self) {
        self.consumer.go_to_head(&self.shards);
    }

    /// Whether an item may be ready where the next one is looked for. If it is not, that is known after an attempt.
    pub(crate) fn sees_one(&self) -> bool {
        self.consumer.backlog(&self.shards) > 0
    }

    /// Whether no item is visible: a hint, unlike a pop that finds none.
    pub(crate) fn looks_empty(&self) -> bool {
        self.shards.collect_if_empty().is_some()
    }

    /// Takes one item, committed at once.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        let item = self.consumer.take_one(&self.shards)?;
        self.counters().count_popped(1);
        Some(item)
    }

    /// Takes up to `most` items, committed at once.
    pub(in crate::raw) fn pop_into(&mut self, most: usize, items: &mut impl Sink<T>) -> usize {
        let count = self.consumer.take_all(&self.shards, items, most);
        self.counters().count_popped(count);
        count
    }

    /// Counts an item that was popped elsewhere.
    pub(crate) fn count_popped(&mut self) {
        self.counters().count_popped(1);
    }

    /// Holds one item more: true if there is one.
    #[inline(always)]
    #[allow(clippy::inline_always)] // the pop of a transaction
    pub(crate) fn hold(&mut self) -> bool {
        self.counters().count_taken(1);
        let held = self.consumer.take(&self.shards, &mut self.hold, 1) > 0;
        if !held {
            self.counters().uncount_taken(1);
        }
        held
    }

    /// Holds up to `most` items more, and says how many those are.
    pub(crate) fn hold_batch(&mut self, most: usize) -> usize {
        if most == 0 {
            return 0;
        }
        self.counters().count_taken(1);
        let count = self.consumer.take_all(&self.shards, &mut self.hold, most);
        match count {
            0 => self.counters().uncount_taken(1),
            _ => self.counters().count_taken(count - 1),
        }
        count
    }

    /// Holds all items that the next shard has now, from `shard` on, which moves behind it. False: there is
    /// none.
    pub(crate) fn hold_shard(&mut self, shard: &mut usize) -> bool {
        let Some(next) = self.shards.next_from(*shard) else {
            return false;
        };
        *shard = next + 1;
        let most = usize::try_from(self.shards.ready_in(next)).unwrap_or(usize::MAX);
        self.counters().count_taken(most);
        let held = self
            .consumer
            .take_shard(&self.shards, next, &mut self.hold, most);
        self.counters().uncount_taken(most - held);
        true
    }

    /// Counts items as taken that are elsewhere: shown to somebody, or about to be [accepted](Endpoint::accept).
    pub(crate) fn count_taken(&mut self, items: usize) {
        self.counters().count_taken(items);
    }

    /// Counts no more what was [counted](Endpoint::count_taken).
    pub(crate) fn uncount_taken(&mut self, items: usize) {
        self.counters().uncount_taken(items);
    }

    /// Makes room for an item that is taken elsewhere, and [counts](Endpoint::count_taken) it.
    pub(crate) fn expect(&mut self, purpose: Purpose) {
        let injector = self.shards.injector();
        Self::hold_of(&mut self.hold, &mut self.peeked, purpose).reserve(1, injector.front());
        injector.set_used();
        self.count_taken(1);
    }

    /// Holds an item that was [counted](Endpoint::expect). If it is given back it goes to the injector.
    pub(crate) fn accept(&mut self, purpose: Purpose, Entry { item, delivery }: Entry<T>) {
        let hold = Self::hold_of(&mut self.hold, &mut self.peeked, purpose);
        hold.reserve(1, self.shards.injector().front());
        // SAFETY: there is room for it.
        unsafe { hold.accept(item, delivery) };
    }

    pub(in crate::raw) fn hold_of<'s>(
        hold: &'s mut Hold<T>,
        peeked: &'s mut Option<Box<Hold<T>>>,
        purpose: Purpose,
    ) -> &'s mut Hold<T> {
        match purpose {
            Purpose::Hold => hold,
            Purpose::Peek => peeked.get_or_insert_with(|| Box::new(Hold::new())),
        }
    }
}

/// What an item is taken for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// To be held by the transaction.
    Hold,
    /// To be looked at.
    Peek,
}

/// What is held.
impl<T> Endpoint<T> {
    /// Where the next held item will be.
    pub(in crate::raw) fn end_of_hold(&self) -> HeldPosition {
        self.hold.end()
    }

    /// The next item that was given out to nobody yet, and its delivery.
    pub(crate) fn next_fresh(&self, Fresh(spot): &mut Fresh) -> Option<(&T, DeliveryMeta)> {
        let held = self.hold.step(spot)?;
        // SAFETY: held, and lent to nobody who may write to it.
        Some(unsafe { (&*held.item(), held.delivery()) })
    }

    /// The parts of the hold from `spot` on: the first place of each, and how many it has.
    pub(in crate::raw) fn places_from(
        &self,
        spot: HeldPosition,
    ) -> impl Iterator<Item = (*const HeldSlot<T>, usize)> + '_ {
        self.hold.places_from(spot)
    }

    /// The item that was held last, and how often it was delivered.
    #[inline]
    pub(in crate::raw) fn newest(&self) -> (*mut T, u32) {
        let held = self.hold.newest();
        // SAFETY: the newest is held.
        (held.item(), unsafe { held.delivery() }.attempts)
    }

    /// What is known of the item at an address, if this transaction holds it.
    pub(crate) fn delivery_of(&self, address: usize) -> Option<DeliveryMeta> {
        self.hold.delivery_of(address)
    }

    /// Counts removed items that are somewhere else by now.
    pub(crate) fn count_aborted(&mut self, items: usize) {
        self.counters().count_aborted(items);
    }
}

impl<T, M> Endpoint<Stored<T, M>> {
    /// Takes up to `most` items, committed at once, without what the order knows of them.
    pub(crate) fn pop_batch(&mut self, most: usize, items: &mut Vec<T>) -> usize {
        self.pop_into(most, items)
    }

    /// Takes a held item out of the transaction, which must say later how that ended, by
    /// [`Endpoint::count_aborted`].
    ///
    /// # Panics
    ///
    /// If another transaction holds the item.
    #[allow(clippy::needless_pass_by_value)] // whoever has it has it no more
    pub(crate) fn remove(&mut self, item: ItemRef<'_, T>) -> Entry<Stored<T, M>> {
        // SAFETY: the reference, which ends here, was the only way to use the item, and a reference is of the
        // present transaction: it borrows the cell.
        unsafe { self.hold.remove(item.address()) }
    }
}
