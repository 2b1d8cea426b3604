//! Recording: pushed items become bytes in the batch, then they are staged in memory.

use super::Local;
use crate::batch::Extent;
use crate::codec::CodecError;
use crate::error::PushError;
use crate::order::{EntryOf, Order, Place};
use crate::ticket::{Ticket, Tickets};
use std::iter;
use std::mem;

/// Items that are in the batch, and not staged in memory yet. They are taken out of the batch when this is dropped.
pub(super) struct Recorded<'t, T: Send + 'static, O: Order<T>> {
    local: &'t Local<T, O>,
    /// The number of the first.
    pub(super) first: u64,
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
        let encode = |item: &T, bytes: &mut Vec<u8>| shared.codec.encode(item, bytes);
        let pushed = batch.push_all(first, schedule, items, encode);
        pushed.map_err(|error| error.at(&shared.name, None))?;
        drop(batch);
        Ok(recorded)
    }

    /// The entry in memory of an item.
    #[inline]
    pub(super) fn entry(&self, item: T) -> EntryOf<T, O> {
        let Local { shared, batch, .. } = self.local;
        let bytes = match &shared.budget {
            None => 0,
            Some(_) => batch.lock().lengths[self.before.items] as usize,
        };
        shared.entry(self.first, item, bytes)
    }

    /// The entries of the items.
    #[inline]
    pub(super) fn entries(&self, items: Vec<T>) -> Vec<EntryOf<T, O>> {
        let Local { shared, batch, .. } = self.local;
        let lengths = match &shared.budget {
            None => Vec::new(),
            Some(_) => batch.lock().lengths[self.before.items..].to_vec(),
        };
        let lengths = lengths.into_iter().chain(iter::repeat(0));
        let numbered = items.into_iter().zip(self.first..).zip(lengths);
        let entries = numbered.map(|((item, id), bytes)| shared.entry(id, item, bytes as usize));
        entries.collect()
    }

    /// After the attempt to stage the item.
    pub(super) fn settle(
        self,
        staged: Result<(), requeue::PushError<EntryOf<T, O>>>,
    ) -> Result<Ticket, PushError<T>> {
        match staged {
            Ok(()) => Ok(Ticket(self.keep())),
            Err(error) => Err(PushError::from(error).map(|entry| self.item_of(entry))),
        }
    }

    pub(super) fn settle_batch(
        self,
        count: usize,
        staged: Result<(), requeue::PushError<Vec<EntryOf<T, O>>>>,
    ) -> Result<Tickets, PushError<Vec<T>>> {
        match staged {
            Ok(()) => {
                let first = self.keep();
                Ok(Tickets(first..first + count as u64))
            }
            Err(error) => {
                let item_of = |entry| self.item_of(entry);
                let items = |entries: Vec<_>| entries.into_iter().map(item_of).collect();
                Err(PushError::from(error).map(items))
            }
        }
    }

    /// The number of the first item.
    fn keep(self) -> u64 {
        mem::ManuallyDrop::new(self).first
    }

    /// The item of an entry that was not staged.
    fn item_of(&self, entry: EntryOf<T, O>) -> T {
        let Local { shared, batch, .. } = self.local;
        let key = shared.key(entry.id);
        entry.item.unwrap_or_else(|| {
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
