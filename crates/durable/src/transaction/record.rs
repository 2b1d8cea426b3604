//! Recording: pushed items become bytes in the batch, then they are staged in memory.

use super::Local;
use crate::batch::{Extent, Run};
use crate::entry::Entry;
use crate::error::PushError;
use crate::order::{EntryOf, Load, Order, Place};
use crate::queue::pages::{Pages, BESIDE};
use crate::ticket::Tickets;
use requeue::{DuplicateOf, StorePlace};
use std::collections::VecDeque;
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
    place: Option<Place>,
    /// Whether it is one item that may replace another one, or follow it.
    supersedes: bool,
    /// Whether they stay on the disk. Then these are the items, in case they cannot be staged.
    is_cold: bool,
    apart: VecDeque<T>,
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
        let first = shared.new_items(items.len(), place);
        let recorded; // dropped after the lock, if the codec fails or panics
        let mut batch = local.batch();
        recorded = Self {
            local,
            ids: first..first + items.len() as u64,
            before: batch.extent(),
            place,
            supersedes: local.at_once && items.len() == 1,
            is_cold: false,
            apart: VecDeque::new(),
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

    /// Has them stay on the disk, if the memory has no room for them.
    pub(super) fn admit(&mut self, ram: &requeue::Transaction<'_, EntryOf<T, O>, O::Ram>) {
        let Self { local, before, .. } = self;
        if local.shared.has_pages && !self.ids.is_empty() {
            let lengths = &local.batch.lock().lengths[before.items..];
            let bytes = lengths.iter().map(|length| *length as usize + BESIDE).sum();
            self.is_cold = local.admit_cold(bytes, ram);
        }
    }

    /// They are staged.
    fn keep(self) -> Tickets {
        if self.is_cold {
            let count = u32::try_from(self.ids.end - self.ids.start).unwrap_or(u32::MAX);
            let run = Run::of(self.local.shared.key(self.ids.start), count);
            self.local.add_cold(run, self.place);
        }
        Tickets(mem::ManuallyDrop::new(self).ids.clone())
    }

    /// Where they go in memory.
    #[inline]
    pub(super) fn place(&self) -> StorePlace {
        let mut place = self.place.unwrap_or_default();
        place.due = place.due.filter(|_| !self.is_cold);
        let supersedes = self.supersedes;
        StorePlace {
            supersedes,
            ..place.numbered(self.ids.start)
        }
    }

    /// The entries in memory of the items.
    #[inline]
    pub(super) fn entries<L: Load>(&mut self, load: L::Of<T>) -> L::Of<EntryOf<T, O>> {
        let Local { shared, batch, .. } = self.local;
        if self.is_cold {
            let ids = &mut self.ids.clone();
            return L::map(load, |item| {
                self.apart.push_back(item);
                Entry::on_disk(ids.next().unwrap_or_default(), Pages::<T, O>::key())
            });
        }
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
        mut self,
        staged: Result<(), Refused<L, T, O>>,
    ) -> Result<Tickets, PushError<L::Of<T>>> {
        let waits = self.supersedes && self.take_pushing().is_none();
        let mut apart = mem::take(&mut self.apart);
        match staged {
            // It is in the log, and not in the batch.
            Ok(()) if waits => {
                self.local.set_noted();
                Ok(Tickets(self.ids.clone()))
            }
            Ok(()) => Ok(self.keep()),
            Err(error) => {
                let item_of = |entry| apart.pop_front().unwrap_or_else(|| self.item_of(entry));
                let items = |entries| L::map(entries, item_of);
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
        if self.is_cold {
            self.local.refuse_cold();
        }
    }
}
