//! Deliveries: items that a transaction takes, until they are handed out.
//!
//! If the queue counts deliveries over all processes, a delivery is written before the item is handed out: written, and not
//! synced, since a process that is killed does not take that back. A call that pops and commits hands nothing out before
//! the commit is on the disk, so its delivery needs no mark.

use crate::batch::{Batch, Change};
use crate::call::Caller;
use crate::error::StoreError;
use crate::item::{Item, Items};
use crate::log::Urgency;
use crate::order::{Engine, EntryOf, Order};
use crate::queue::shared::Shared;
use std::future::Future;
use std::iter;
use std::mem;

/// An item that was taken in memory.
pub(crate) type RamItem<'t, T, O> = requeue::Item<'t, EntryOf<T, O>>;
/// A batch of them.
pub(crate) type RamItems<'t, T, O> = requeue::iter::Items<'t, EntryOf<T, O>, <O as Engine<T>>::Ram>;

impl<T: Send + 'static, O: Engine<T>> Shared<T, O> {
    /// Writes down that items are delivered, if deliveries count, and waits until that is written.
    #[inline]
    pub(crate) fn mark(
        &self,
        deliveries: impl Iterator<Item = (u64, u32)>,
        caller: Caller,
    ) -> impl Future<Output = Result<(), StoreError>> + Send + '_ {
        let marks = deliveries.map(|(id, attempts)| Change::Delivered(self.key(id), attempts));
        let batch = self.max_attempts.map(|_| Batch::of(marks));
        async move {
            match batch.filter(|batch| !batch.is_empty()) {
                None => Ok(()),
                Some(mut batch) if caller == Caller::Task => {
                    self.log().add_async(&mut batch, Urgency::Write).await
                }
                Some(mut batch) => self.log().write(&mut batch),
            }
        }
    }

    /// The same for one item, by its number and that of the delivery. If the future is dropped before, the delivery has not
    /// taken place: it is taken back. Others take the item later, unless its lease has expired.
    pub(crate) async fn mark_one(
        &self,
        delivery: (u64, u32),
        caller: Caller,
    ) -> Result<(), StoreError> {
        let undelivered = Undelivered {
            shared: self,
            delivery,
        };
        self.mark(iter::once(delivery), caller).await?;
        mem::forget(undelivered);
        Ok(())
    }
}

/// A delivery that is taken back when this is dropped.
struct Undelivered<'s, T: Send + 'static, O: Engine<T>> {
    shared: &'s Shared<T, O>,
    delivery: (u64, u32),
}

impl<T: Send + 'static, O: Engine<T>> Drop for Undelivered<'_, T, O> {
    fn drop(&mut self) {
        let (id, attempts) = self.delivery;
        let undone = Change::Undelivered(self.shared.key(id), attempts);
        self.shared.note(iter::once(undone));
    }
}

impl<T: Send + 'static, O: Order<T>> Shared<T, O> {
    /// Hands out an item whose delivery is written.
    #[inline]
    pub(crate) fn hand_out<'t>(
        &self,
        mut ram: RamItem<'t, T, O>,
    ) -> Result<Item<'t, T, O>, StoreError> {
        self.load(&mut ram)?;
        Ok(Item { ram })
    }

    /// Hands out the items of a batch that a transaction holds.
    pub(crate) async fn deliver_batch<'t>(
        &self,
        items: impl IntoIterator<Item = RamItem<'t, T, O>>,
        caller: Caller,
    ) -> Result<Items<'t, T, O>, StoreError> {
        let mut items: Vec<_> = items.into_iter().map(|ram| Item { ram }).collect();
        let deliveries = items.iter().map(|item| (item.ram.id, item.attempts()));
        self.mark(deliveries, caller).await?;
        for item in &mut items {
            self.load(&mut item.ram)?;
        }
        Ok(items.into_iter())
    }
}

#[cfg(test)]
mod tests;
