//! Unique keys of items that are on the disk only.
//!
//! A push takes its key in memory, and then looks here for an item on the disk that has it. An item that comes into memory takes the key
//! over meanwhile, under the lock of the index: then the push finds that it has it no longer.

use super::due_rows::DueRows;
use super::{Index, Pages, State};
use crate::batch::{Batch, Change, NewKey};
use crate::error::StoreError;
use crate::format::{key_rows, UniqueRow, MARKS};
use crate::log::chunks::Item;
use crate::log::{self, Durability};
use crate::order::{Engine, EntryOf};
use crate::queue::shared::Shared;
use requeue::{DuplicateOf, PushError};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::time::Duration;

/// The most keys in memory of rows that may not be in the tables yet.
const MOST_KEYS: usize = if cfg!(test) { 4 } else { 16_384 };
/// How many rows are written, or removed, by one commit when a queue is opened.
pub(super) const ROWS: usize = 1_024;
/// How many items are looked at to tell whether the rows are those of this key function.
const LOOKED_AT: usize = 16;

impl<T: Send + 'static, O: Engine<T>> Pages<T, O> {
    /// The unique keys of a commit that has ended.
    pub(super) fn add_keys(&self, state: &mut State<T, O>, keys: &[UniqueRow]) {
        for row in keys {
            if state.index.keys.len() >= MOST_KEYS {
                if let Err(error) = self.settle(&mut state.index) {
                    return self.fail(state, error);
                }
            }
            state.index.keys.insert(row.hash, row.item.id);
        }
    }

    /// Refuses a push if an item that is on the disk only has its key. If the push may replace that, it comes into memory.
    pub(in crate::queue) fn confirm(&self, pushed: &EntryOf<T, O>) -> Result<(), PushError<()>> {
        let Some(hash) = pushed.hash() else {
            return Ok(());
        };
        let brings = self.shared.supersedes;
        let taken = self.look(|index| match self.look_up(index, hash)? {
            Some(id) if brings => self.bring_to(index, id).map(|()| true),
            owner => Ok(owner.is_some()),
        });
        match taken {
            Some(false) => Ok(()),
            Some(true) => Err(PushError::Duplicate((), DuplicateOf::Queued)),
            None => Err(PushError::Closed(())),
        }
    }

    /// Whether an item that is on the disk only has the key with this hash.
    pub(in crate::queue) fn is_taken(&self, hash: u128) -> bool {
        let look = |index: &mut Index| Ok(self.look_up(index, hash)?.is_some());
        self.shared.besides.has_keys && self.look(look) == Some(true)
    }

    /// Looks for items that are on the disk only. `None`: no more can be read.
    fn look(&self, look: impl FnOnce(&mut Index) -> Result<bool, StoreError>) -> Option<bool> {
        if !self.is_cold() {
            return Some(false);
        }
        let mut state = self.state();
        let looked = look(&mut state.index);
        looked.map_err(|error| self.fail(&mut state, error)).ok()
    }

    /// The number of the item on the disk only that has the key with this hash.
    fn look_up(&self, index: &mut Index, hash: u128) -> Result<Option<u64>, StoreError> {
        let shared = &self.shared;
        if let Some(id) = index.keys.get(&hash).copied() {
            if index.has(id, DueRows(&self.shared).of_id(id, &[])?) {
                return Ok(Some(id));
            }
        }
        match shared.log().disk().key_owner(shared.id, hash)? {
            Some(id)
                if index.has(id, DueRows(&self.shared).of_id(id, &[])?)
                    && self.has_key(index, id, hash)? =>
            {
                Ok(Some(id))
            }
            _ => Ok(None),
        }
    }

    /// Whether the item has the key of its row: it may have been removed, or that was the key by another key function.
    fn has_key(&self, index: &mut Index, id: u64, hash: u128) -> Result<bool, StoreError> {
        if index.is_unwritten(id) {
            self.settle(index)?;
        }
        KeyRows(&self.shared).has(id, hash)
    }
}

/// The rows of the unique keys of a queue.
pub(crate) struct KeyRows<'s, T: Send + 'static, O: Engine<T>>(pub(crate) &'s Shared<T, O>);

impl<T: Send + 'static, O: Engine<T>> Copy for KeyRows<'_, T, O> {}

impl<T: Send + 'static, O: Engine<T>> Clone for KeyRows<'_, T, O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Send + 'static, O: Engine<T>> KeyRows<'_, T, O> {
    /// That of an item, in a queue that has such rows. Runs user code.
    pub(crate) fn of(self, id: u64, item: &T) -> Option<UniqueRow> {
        let besides = &self.0.besides;
        let hash_of = besides.hash.as_ref().filter(|_| besides.has_keys)?;
        Some(UniqueRow {
            item: self.0.key(id),
            hash: hash_of(item),
        })
    }

    /// That of an item on the disk, unless it cannot be decoded.
    pub(super) fn of_stored(self, item: &Item) -> Option<UniqueRow> {
        let id = item.at.id;
        let row = || self.of(id, &self.0.decode(id, &item.content).ok()?.1);
        catch_unwind(AssertUnwindSafe(row)).ok().flatten()
    }

    /// Whether the tables have an item of this number with this key.
    fn has(self, id: u64, hash: u128) -> Result<bool, StoreError> {
        let item = self.0.log().disk().item(self.0.key(id))?;
        let row = item.and_then(|item| self.of_stored(&item));
        Ok(row.is_some_and(|row| row.hash == hash))
    }

    /// When a queue is opened, and these of its items were read: has rows say which items have unique keys, or says that none do.
    pub(in crate::queue) fn prepare(
        self,
        read: impl Iterator<Item = UniqueRow>,
    ) -> Result<(), StoreError> {
        let Self(shared) = self;
        let (disk, queue) = (shared.log().disk(), shared.id);
        disk.forget_keys(queue);
        let row = disk.catalog().queues.get(queue).cloned();
        let has_keys = row.is_some_and(|row| row.index.has_keys);
        let is_right = has_keys && shared.besides.has_keys && self.are_right()?;
        if has_keys && !is_right {
            shared.write(Change::HasKeys(queue, false))?;
        }
        if !shared.besides.has_keys {
            return Ok(());
        }
        if !is_right {
            self.remove_all()?;
            self.write_all()?;
            shared.write(Change::HasKeys(queue, true))?;
        }
        disk.know_keys(read);
        Ok(())
    }

    /// Whether the last items, or others with their keys, have rows: they do not if the key function is another one. (Before the first
    /// ones there are those of removed ones, which take time.)
    fn are_right(self) -> Result<bool, StoreError> {
        let disk = self.0.log().disk();
        let Some(first) = disk.last_row(self.0.id)? else {
            return Ok(true);
        };
        for item in disk.items(first, first.id..=u64::MAX)?.take(LOOKED_AT) {
            if let Some(row) = self.of_stored(&item?) {
                let is_right = match disk.key_owner(self.0.id, row.hash)? {
                    None => false,
                    Some(owner) => owner == row.item.id || self.has(owner, row.hash)?,
                };
                if !is_right {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn remove_all(self) -> Result<(), StoreError> {
        let mut rows = log::rows(&self.0.log().disk().tables[MARKS], key_rows(self.0.id))?;
        loop {
            let mut hashes = Vec::new();
            for row in rows.by_ref().take(ROWS) {
                let (key, value) = row?;
                hashes.push(UniqueRow::read(&key, &value)?.hash);
            }
            if hashes.is_empty() {
                return Ok(());
            }
            write(self.0, &mut Batch::of([Change::Unkey(self.0.id, hashes)]))?;
        }
    }

    fn write_all(self) -> Result<(), StoreError> {
        let (mut batch, is_cold) = (Batch::default(), true);
        for item in self.0.log().disk().items(self.0.key(0), 0..=u64::MAX)? {
            let row = self.of_stored(&item?);
            batch.keys.extend(row.map(|row| NewKey { row, is_cold }));
            if batch.keys.len() >= ROWS {
                write(self.0, &mut batch)?;
            }
        }
        write(self.0, &mut batch)
    }
}

/// Writes some of many rows, which are synced with what follows.
pub(super) fn write<T: Send + 'static, O: Engine<T>>(
    shared: &Shared<T, O>,
    batch: &mut Batch,
) -> Result<(), StoreError> {
    let at_most = Duration::from_secs(1);
    let durability = Durability::Buffered { at_most };
    shared.log().commit(&mut [batch], durability)
}
