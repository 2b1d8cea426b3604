//! Recording: pushed items become bytes in the batch, then they are staged in memory.

use super::numbers::Numbers;
use super::Local;
use crate::batch::{Batch, Extent, NewKey};
use crate::entry::Entry;
use crate::error::PushError;
use crate::order::{EntryOf, Load, Order, Place};
use crate::queue::pages::KeyRows;
use crate::ticket::Tickets;
use requeue::{DuplicateOf, StorePlace};
use std::collections::VecDeque;
use std::mem;

/// Entries that were not staged in memory.
type Refused<L, T, O> = requeue::PushError<<L as Load>::Of<EntryOf<T, O>>>;

/// Items that are in the batch, and not staged in memory yet. They are taken out of the batch when this is dropped.
pub(super) struct Recorded<'t, T: Send + 'static, O: Order<T>> {
    local: &'t Local<T, O>,
    numbers: Numbers,
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
        let numbers = Numbers::new(shared, items, place);
        let recorded; // dropped after the lock, if the codec fails or panics
        let mut batch = local.batch();
        recorded = Self {
            local,
            numbers,
            before: batch.extent(),
            place,
            supersedes: shared.supersedes && local.at_once && items.len() == 1 && {
                let due = place.and_then(|place| place.due);
                due.is_none_or(|due| due <= shared.times.clock.now())
            },
            is_cold: false,
            apart: VecDeque::new(),
        };
        let encode = |item: &T, bytes: &mut Vec<u8>| shared.codec.encode(item, bytes);
        let pushed = if recorded.numbers.are_consecutive() {
            batch.push_values(front, items.iter(), encode)
        } else {
            let sorted = recorded.numbers.sort(items);
            batch.push_values(front, sorted.into_iter(), encode)
        };
        pushed.map_err(|error| PushError::Codec((), error.at(&shared.name, None)))?;
        recorded.numbers.add_to(&mut batch.pushes);
        recorded.add_keys(&mut batch, items);
        if recorded.supersedes {
            let value = batch.values[recorded.before.values..].to_vec();
            shared
                .pushing
                .lock()
                .insert(recorded.numbers.first(), value);
        }
        drop(batch);
        Ok(recorded)
    }

    /// Adds the rows of unique keys.
    fn add_keys(&self, batch: &mut Batch, items: &[T]) {
        let shared = &self.local.shared;
        if shared.besides.has_keys {
            for (nth, item) in items.iter().enumerate() {
                let row = KeyRows(shared).of(self.numbers.nth(nth), item);
                let is_cold = false; // not yet
                batch.keys.extend(row.map(|row| NewKey { row, is_cold }));
            }
        }
    }

    /// Has them stay on the disk, if the memory has no room for them.
    pub(super) fn admit(&mut self, ram: &requeue::Transaction<'_, EntryOf<T, O>, O::Ram>) {
        let (local, before, first) = (self.local, self.before, self.numbers.first());
        if local.shared.has_pages && !self.numbers.is_empty() {
            let lengths = &local.batch.lock().lengths[before.items..];
            let beside = local.shared.besides.bytes();
            let bytes: usize = lengths.iter().map(|length| *length as usize + beside).sum();
            // Scheduled items leave half of the budget to others.
            let budget = local.shared.besides.budget.as_ref();
            let budget = budget.filter(|_| local.shared.is_scheduled(first));
            let left = budget.map_or(0, |budget| budget.most() / 2);
            self.is_cold = local.admit_cold(bytes + left, self.numbers.levels(), ram);
        }
    }

    /// They are staged.
    fn keep(self) -> Tickets {
        if self.is_cold {
            let mut runs = Vec::new();
            self.numbers.add_to(&mut runs);
            self.local.add_cold(runs);
        }
        let mut kept = mem::ManuallyDrop::new(self);
        kept.numbers.take_tickets()
    }

    /// Where they go in memory.
    #[inline]
    pub(super) fn place(&self) -> StorePlace {
        let mut place = self.place.unwrap_or_default();
        place.due = place.due.filter(|_| !self.is_cold);
        let supersedes = self.supersedes;
        StorePlace {
            supersedes,
            ..place.numbered(self.numbers.first())
        }
    }

    /// The entries in memory of the items.
    #[inline]
    pub(super) fn entries<L: Load>(&mut self, load: L::Of<T>) -> L::Of<EntryOf<T, O>> {
        let Local { shared, batch, .. } = self.local;
        let mut nths = 0..;
        let mut next = || nths.next().unwrap_or_default();
        if self.is_cold {
            return L::map(load, |item| {
                let id = self.numbers.nth(next());
                let beside = shared.besides.on_disk(&item);
                let staged = Entry::on_disk(id, (shared.key_of)(&item), beside);
                self.apart.push_back(item);
                staged
            });
        }
        let lengths = if shared.besides.budget.is_some() {
            batch.lock().lengths[self.before.items..].to_vec()
        } else {
            Vec::new()
        };
        L::map(load, |item| {
            let nth = next();
            let bytes = lengths.get(self.numbers.before(nth)).copied();
            shared.entry(self.numbers.nth(nth), item, bytes.unwrap_or(0) as usize)
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
                Ok(self.numbers.take_tickets())
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
        pushing?.remove(&self.numbers.first())
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
