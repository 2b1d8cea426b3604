//! The pops of an endpoint, and its held items.

use super::Endpoint;
use crate::raw::handle::cell::Fresh;
use crate::raw::hold::{HeldPosition, Hold, ItemRef};
use crate::raw::memory::{DeliveryMeta, Entry, Stored};
use crate::raw::registry::{Consumer, Shards};
use crate::raw::shard::Sink;

impl<T> Endpoint<T> {
    /// Moves to the common shard if items were put back there without a handle, since these come first.
    #[inline]
    pub(crate) fn go_to_head(&mut self) {
        self.consumer.go_to_head(&self.shards);
    }

    /// Whether an item may be ready in the current shard. It is a hint: only an attempt to pop is conclusive.
    #[inline]
    pub(crate) fn sees_one(&self) -> bool {
        self.consumer.backlog() > 0
    }

    /// Whether certainly no item is visible in any shard, each at an instant of its own. A hint: only a pop that finds
    /// none has proved that there was none. Every item is visible that was published before the caller's last barrier,
    /// and not taken since.
    #[inline(always)] // the wait of a task
    pub(crate) fn looks_empty(&self) -> bool {
        self.consumer.looks_empty(&self.shards)
    }

    /// Frees the memory of the consumer's empty shard before it waits, if the shard has no owner.
    #[inline]
    pub(crate) fn rest(&mut self) {
        self.consumer.rest(&self.shards);
    }

    /// Pops one item without a transaction.
    #[inline(always)] // the pop
    pub(crate) fn pop(&mut self) -> Option<T> {
        let item = self.consumer.take_one(&self.shards)?;
        self.counters().count_popped(1);
        Some(item)
    }

    /// Pops the next item of the present shard if [nothing else has to be done](crate::raw::shard::cursor::Cursor::take_next).
    #[inline(always)] // the pop
    pub(crate) fn pop_next(&mut self) -> Option<T> {
        let item = self.consumer.take_next()?;
        self.counters().count_popped(1);
        Some(item)
    }

    /// Pops the item that this handle has pushed last, if it is the only one in its shard. Nothing is staged.
    #[inline(always)] // the pop of a stack
    pub(crate) fn pop_last(&mut self) -> Option<T> {
        let item = self.producer.take_last(self.shard()?)?;
        self.counters().count_popped(1);
        Some(item)
    }

    /// Takes one more item into the hold if [nothing else has to be done](crate::raw::shard::cursor::Cursor::take_next).
    #[inline(always)] // the pop of a transaction
    pub(crate) fn hold_next(&mut self) -> bool {
        let counters = self.counters();
        let begin = || counters.count_taken(1);
        // `None`: nothing was counted either; a hold without a block is about to adopt one.
        let held = self.consumer.hold_next(&mut self.hold, begin);
        if held == Some(false) {
            counters.uncount_taken(1);
        }
        held == Some(true)
    }

    /// Takes one more item into the hold if an abort has returned one to the current shard.
    #[inline]
    pub(crate) fn hold_returned(&mut self) -> bool {
        hold_by(self, |consumer, _, hold| {
            consumer.hold_returned(hold, 1) > 0
        })
    }

    /// Takes one more item into the hold. Returns false if the queue is empty.
    pub(crate) fn hold(&mut self) -> bool {
        hold_by(self, Consumer::hold_one)
    }

    /// Takes up to `most` more items into the hold, and returns their number.
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

    /// Makes room for an item taken from elsewhere.
    pub(crate) fn expect(&mut self, purpose: Purpose) {
        let home = self.shards.common().front().home();
        hold_of(&mut self.hold, &mut self.peeked, purpose).reserve(1, home);
    }

    /// Holds an item for which there is [room](Endpoint::expect), and which is counted as taken. An abort puts it into the
    /// common shard.
    pub(crate) fn accept(&mut self, purpose: Purpose, Entry { item, delivery }: Entry<T>) {
        let hold = hold_of(&mut self.hold, &mut self.peeked, purpose);
        hold.reserve(1, self.shards.common().front().home());
        // SAFETY: there is room for the item.
        unsafe { hold.accept(item, delivery) };
    }
}

/// Takes one more item into the hold by `take`.
#[inline(always)] // the pop of a worker
fn hold_by<T>(
    endpoint: &mut Endpoint<T>,
    take: impl FnOnce(&mut Consumer<T>, &Shards<T>, &mut Hold<T>) -> bool,
) -> bool {
    endpoint.counters().count_taken(1);
    let held = take(&mut endpoint.consumer, &endpoint.shards, &mut endpoint.hold);
    if !held {
        endpoint.counters().uncount_taken(1);
    }
    held
}

/// The purpose of taking an item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// To be held by the transaction.
    Hold,
    /// To be peeked at.
    Peek,
}

/// The hold for this purpose.
pub(in crate::raw) fn hold_of<'s, T>(
    hold: &'s mut Hold<T>,
    peeked: &'s mut Option<Box<Hold<T>>>,
    purpose: Purpose,
) -> &'s mut Hold<T> {
    match purpose {
        Purpose::Hold => hold,
        Purpose::Peek => peeked.get_or_insert_with(|| Box::new(Hold::new())),
    }
}

/// The held items.
impl<T> Endpoint<T> {
    /// The position behind the last held item.
    pub(crate) fn end_of_hold(&self) -> HeldPosition {
        self.hold.end()
    }

    /// The next item that was not delivered yet, and its delivery metadata.
    pub(crate) fn next_fresh(&self, Fresh(position): &mut Fresh) -> Option<(&T, DeliveryMeta)> {
        let held = self.hold.step(position)?;
        // SAFETY: the item is held, and nobody can write to it.
        Some(unsafe { (&*held.item(), self.hold.delivery(held)) })
    }

    /// Moves behind all held items, which were examined.
    pub(crate) fn skip_fresh(&self, fresh: &mut Fresh) {
        fresh.0 = self.end_of_hold();
    }

    /// The position behind an item, if this transaction holds it.
    pub(crate) fn position_of(&mut self, item: &ItemRef<'_, impl Sized>) -> Option<HeldPosition> {
        self.hold.position_of(item.address())
    }

    /// The delivery metadata of the held item before `position`.
    pub(crate) fn delivery_before(&self, position: HeldPosition) -> DeliveryMeta {
        self.hold.delivery_before(position)
    }
}

impl<T, M> Endpoint<Stored<T, M>> {
    /// Pops up to `most` items without a transaction and without their metadata.
    pub(crate) fn pop_batch(&mut self, most: usize, items: &mut Vec<T>) -> usize {
        let count = self.consumer.take_all(&self.shards, items, most);
        self.counters().count_popped(count);
        count
    }

    /// Removes the held item before `position` from the transaction. The caller must count it later, by
    /// [`Counters::count_aborted`](crate::raw::registry::Counters::count_aborted).
    ///
    /// # Panics
    ///
    /// If another item is there.
    #[allow(clippy::needless_pass_by_value)] // consumes the only reference
    pub(crate) fn remove(
        &mut self,
        item: ItemRef<'_, T>,
        position: HeldPosition,
    ) -> Entry<Stored<T, M>> {
        assert!(
            self.hold.has_before(position, item.address()),
            "another item is there"
        );
        // SAFETY: the reference, a pointer that is used no more, was the only access to the item, and it belongs to the
        // current transaction: it borrows the cell.
        unsafe { self.hold.remove_before(position) }
    }
}
