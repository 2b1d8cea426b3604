//! Recording: pushed items become bytes in the batch, then they are staged in memory.

use super::Local;
use crate::batch::{Extent, Run};
use crate::error::PushError;
use crate::order::{EntryOf, Load, Order, Place};
use crate::queue::pages::BESIDE;
use crate::ticket::Tickets;
use requeue::{DuplicateOf, StorePlace};
use std::mem;
use std::ops::Range;

/// Entries that were not staged in memory.
type Refused<L, T, O> = requeue::PushError<<L as Load>::Of<EntryOf<T, O>>>;

/// Items that are in the batch, and not staged in memory yet. They are taken out of the batch when this is dropped.
pub(super) struct Recorded<'t, T: Send + 'static, O: Order<T>> {
    local: &'t Local<T, O>,
    /// The numbers of the items.
    ids: Range<u64>,
    /// What the batch had before.
    before: Extent,
    /// Whether it is one item that may replace another one, or follow it.
    supersedes: bool,
}

impl<'t, T: Send + 'static, O: Order<T>> Recorded<'t, T, O> {
    /// Adds items to the batch: all, or none.
    #[inline]
    #[track_caller]
    pub(super) fn new(
        local: &'t Local<T, O>,
        items: &[T],
        place: Option<Place>,
    ) -> Result<Self, PushError<()>> {
        let shared = &local.shared;
        if shared.are_recent(items) {
            return Err(PushError::Duplicate((), DuplicateOf::Recent));
        }
        let front = shared.front(place);
        let first = shared.new_ids(items.len());
        let recorded; // dropped after the lock, if the codec fails or panics
        let mut batch = local.batch();
        recorded = Self {
            local,
            ids: first..first + items.len() as u64,
            before: batch.extent(),
            supersedes: local.at_once && items.len() == 1,
        };
        let first = shared.key(first);
        let encode = |item: &T, bytes: &mut Vec<u8>| shared.codec.encode(item, bytes);
        let pushed = batch.push_all(first, front, items, encode);
        pushed.map_err(|error| PushError::Codec((), error.at(&shared.name, None)))?;
        if recorded.supersedes {
            let value = batch.values[recorded.before.values..].to_vec();
            shared.pushing.lock().insert(first.id, value);
        }
        drop(batch);
        Ok(recorded)
    }

    /// Whether they stay on the disk, without entries in memory. They count as staged then.
    pub(super) fn keep_on_disk(
        &self,
        ram: &requeue::Transaction<'_, EntryOf<T, O>, O::Ram>,
    ) -> Result<bool, PushError<()>> {
        let Self {
            local, ids, before, ..
        } = self;
        let count = u32::try_from(ids.end - ids.start).unwrap_or(u32::MAX);
        if !local.shared.has_pages || count == 0 {
            return Ok(false);
        }
        let lengths = &local.batch.lock().lengths[before.items..];
        let bytes = lengths.iter().map(|length| *length as usize + BESIDE).sum();
        let run = Run::of(local.shared.key(ids.start), count);
        local.keep_on_disk(run, bytes, ram)
    }

    /// They are staged.
    pub(super) fn keep(self) -> Tickets {
        Tickets(mem::ManuallyDrop::new(self).ids.clone())
    }

    /// Where they go in memory.
    #[inline]
    pub(super) fn place(&self, place: Option<Place>) -> StorePlace {
        let mut place = place.unwrap_or_default().numbered(self.ids.start);
        place.supersedes = self.supersedes;
        place
    }

    /// The entries in memory of the items.
    #[inline]
    pub(super) fn entries<L: Load>(&self, load: L::Of<T>) -> L::Of<EntryOf<T, O>> {
        let Local { shared, batch, .. } = self.local;
        let lengths = if shared.besides.budget.is_some() {
            batch.lock().lengths[self.before.items..].to_vec()
        } else {
            Vec::new()
        };
        let (mut id, mut lengths) = (self.ids.start, lengths.into_iter());
        L::map(load, |item| {
            let bytes = lengths.next().unwrap_or(0);
            let entry = shared.entry(id, item, bytes as usize);
            id += 1;
            entry
        })
    }

    /// After the attempt to stage the items.
    #[inline]
    pub(super) fn settle<L: Load>(
        self,
        staged: Result<(), Refused<L, T, O>>,
    ) -> Result<Tickets, PushError<L::Of<T>>> {
        let waits = self.supersedes && self.take_pushing().is_none();
        match staged {
            // It is in the log, and not in the batch.
            Ok(()) if waits => {
                self.local.set_noted();
                Ok(Tickets(self.ids.clone()))
            }
            Ok(()) => Ok(self.keep()),
            Err(error) => {
                let items = |entries| L::map(entries, |entry| self.item_of(entry));
                Err(PushError::from(error).map(items))
            }
        }
    }

    /// The value that another item would get; `None` if one has it.
    fn take_pushing(&self) -> Option<Vec<u8>> {
        let pushing = self.supersedes.then(|| self.local.shared.pushing.lock());
        pushing?.remove(&self.ids.start)
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
        self.take_pushing();
        self.local.batch.lock().rewind(self.before);
    }
}
