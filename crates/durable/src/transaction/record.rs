//! Recording: pushed items become bytes in the batch, then they are staged in memory.

use super::Local;
use crate::batch::Extent;
use crate::codec::CodecError;
use crate::entry::Entry;
use crate::error::PushError;
use crate::order::{EntryOf, Order, Place, Staged, StagedBatch};
use crate::ticket::{Ticket, Tickets};
use std::mem;

/// Items that are in the batch, and not staged in memory yet. They are taken out of the batch when this is dropped.
pub(super) struct Recorded<'t, T: Send + 'static, O: Order<T>> {
    local: &'t Local<T, O>,
    /// The number of the first.
    first: u64,
    /// What the batch had before.
    before: Extent,
}

impl<'t, T: Send + 'static, O: Order<T>> Recorded<'t, T, O> {
    /// Adds items to the batch: all, or none.
    #[inline]
    #[track_caller]
    pub(super) fn new(
        local: &'t Local<T, O>,
        items: &[T],
        place: Option<Place>,
    ) -> Result<Self, CodecError> {
        let shared = &local.shared;
        let schedule = place.map(|place| shared.schedule(place));
        let first = shared.new_ids(items.len());
        let recorded; // dropped after the lock, if the codec fails or panics
        let mut batch = local.batch();
        recorded = Self {
            local,
            first,
            before: batch.extent(),
        };
        let first = shared.key(first);
        let pushed = shared.codec.push_all(&mut batch, first, schedule, items);
        pushed.map_err(|error| error.at(&shared.name, None))?;
        drop(batch);
        Ok(recorded)
    }

    /// The entry in memory of an item.
    #[inline]
    pub(super) fn entry(&self, item: T) -> EntryOf<T, O> {
        let Local { shared, batch, .. } = self.local;
        let key = O::key(&shared.settings, &item);
        match &shared.budget {
            None => Entry::new(self.first, key, item),
            Some(budget) => {
                let bytes = batch.lock().lengths[self.before.items];
                Entry::within(budget, bytes as usize, self.first, key, item)
            }
        }
    }

    /// The entries of all items.
    #[inline]
    pub(super) fn entries(&self, items: Vec<T>) -> Vec<EntryOf<T, O>> {
        let Local { shared, batch, .. } = self.local;
        let numbered = items.into_iter().zip(self.first..);
        let key = |item: &T| O::key(&shared.settings, item);
        let Some(budget) = &shared.budget else {
            let entries = numbered.map(|(item, id)| Entry::new(id, key(&item), item));
            return entries.collect();
        };
        let lengths = batch.lock().lengths[self.before.items..].to_vec();
        let entries = numbered
            .zip(lengths)
            .map(|((item, id), bytes)| Entry::within(budget, bytes as usize, id, key(&item), item));
        entries.collect()
    }

    /// After the attempt to stage the item.
    pub(super) fn settle(self, staged: Staged<T, O>) -> Result<Ticket, PushError<T>> {
        match staged {
            Ok(ticket) => Ok(Ticket(self.keep(ticket))),
            Err(error) => Err(PushError::from(error).map(|entry| self.item_of(entry))),
        }
    }

    /// After the attempt to stage `count` items.
    pub(super) fn settle_batch(
        self,
        count: usize,
        staged: StagedBatch<T, O>,
    ) -> Result<Tickets, PushError<Vec<T>>> {
        match staged {
            Ok(tickets) => {
                let first = self.keep(tickets);
                Ok(Tickets(first..first + count as u64))
            }
            Err(error) => {
                let item_of = |entry| self.item_of(entry);
                let items = |entries: Vec<_>| entries.into_iter().map(item_of).collect();
                Err(PushError::from(error).map(items))
            }
        }
    }

    /// They stay, with their tickets in memory. Returns the number of the first.
    fn keep(self, tickets: impl IntoIterator<Item = requeue::Ticket>) -> u64 {
        let first = self.first;
        if self.local.shared.tickets.is_some() {
            let tickets = (first..).zip(tickets);
            self.local.batch.lock().tickets.extend(tickets);
        }
        mem::forget(self);
        first
    }

    /// The item of an entry that was not staged.
    fn item_of(&self, entry: EntryOf<T, O>) -> T {
        let Local { shared, batch, .. } = self.local;
        let key = shared.key(entry.id);
        entry.into_item().unwrap_or_else(|| {
            // There was no room for it in memory.
            let bytes = batch.lock().bytes_of(key).map(<[u8]>::to_vec);
            let item = bytes.and_then(|bytes| shared.codec.decode(&bytes).ok());
            item.expect("a codec decodes what it has encoded")
        })
    }
}

impl<T: Send + 'static, O: Order<T>> Drop for Recorded<'_, T, O> {
    fn drop(&mut self) {
        self.local.batch.lock().rewind(self.before);
    }
}
