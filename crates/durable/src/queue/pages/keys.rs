//! Unique keys of items that are on the disk only.
//!
//! A push takes its key in memory, and then looks here for an item on the disk that has it. An item that comes into memory takes the key
//! over meanwhile, under the lock of the index: then the push finds that it has it no longer.

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
use std::sync::Weak;
use std::time::Duration;

/// The most keys in memory of rows that may not be in the tables yet.
const MOST_KEYS: usize = if cfg!(test) { 4 } else { 16_384 };
/// How many rows are written, or removed, by one commit when a queue is opened.
const ROWS: usize = 1_024;
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
    fn confirm(&self, pushed: &EntryOf<T, O>) -> Result<(), PushError<()>> {
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
        let recent = index.keys.get(&hash).copied();
        let mut owner = recent.filter(|id| index.has(*id));
        if owner.is_none() {
            let stored = shared.log().disk().key_owner(shared.id, hash)?;
            let stored = stored.filter(|id| index.has(*id));
            if let Some(id) = stored {
                owner = self.has_key(index, id, hash)?.then_some(id);
            }
        }
        Ok(owner)
    }

    /// Whether the item has the key of its row: it may have been removed, or that was the key by another key function.
    fn has_key(&self, index: &mut Index, id: u64, hash: u128) -> Result<bool, StoreError> {
        if index.is_unwritten(id) {
            self.settle(index)?;
        }
        self.shared.has_key(id, hash)
    }
}

impl<T: Send + 'static, O: Engine<T>> Shared<T, O> {
    /// Called with the entry of a push that has taken its key in memory.
    pub(in crate::queue) fn confirm(&self, pushed: &EntryOf<T, O>) -> Result<(), PushError<()>> {
        let pages = self.pages.get().and_then(Weak::upgrade);
        pages.map_or(Ok(()), |pages| pages.confirm(pushed))
    }

    /// Whether an item that is on the disk only has the key with this hash.
    pub(in crate::queue) fn is_taken(&self, hash: u128) -> bool {
        let pages = self.pages.get().and_then(Weak::upgrade);
        let look = |pages: &Pages<T, O>| pages.look(|it| Ok(pages.look_up(it, hash)?.is_some()));
        pages
            .filter(|_| self.has_keys)
            .and_then(|pages| look(&pages))
            == Some(true)
    }

    /// The row of the unique key of an item on the disk, unless it cannot be decoded.
    pub(in crate::queue) fn row_of(&self, item: &Item) -> Option<UniqueRow> {
        let id = item.at.id;
        let row = || self.unique_row(id, &self.decode(id, &item.content).ok()?.1);
        catch_unwind(AssertUnwindSafe(row)).ok().flatten()
    }

    /// Whether the tables have an item of this number with this key.
    fn has_key(&self, id: u64, hash: u128) -> Result<bool, StoreError> {
        let item = self.log().disk().item(self.key(id))?;
        let row = item.and_then(|item| self.row_of(&item));
        Ok(row.is_some_and(|row| row.hash == hash))
    }

    /// When a queue is opened: has rows say which items have unique keys, or says that none do.
    pub(in crate::queue) fn prepare_keys(&self) -> Result<(), StoreError> {
        let disk = self.log().disk();
        disk.forget_keys(self.id);
        let row = disk.catalog().queues.get(self.id).cloned();
        let has_keys = row.is_some_and(|row| row.has_keys);
        if has_keys == self.has_keys && (!has_keys || self.are_keys_right()?) {
            return Ok(());
        }
        if has_keys {
            self.write(Change::HasKeys(self.id, false))?;
        }
        if self.has_keys {
            self.remove_keys()?;
            self.write_keys()?;
            self.write(Change::HasKeys(self.id, true))?;
        }
        Ok(())
    }

    /// Whether the first items, or others with their keys, have rows: they do not if the key function is another one.
    fn are_keys_right(&self) -> Result<bool, StoreError> {
        let disk = self.log().disk();
        for item in disk.items(self.key(0), 0..=u64::MAX)?.take(LOOKED_AT) {
            if let Some(row) = self.row_of(&item?) {
                let is_right = match disk.key_owner(self.id, row.hash)? {
                    None => false,
                    Some(owner) => owner == row.item.id || self.has_key(owner, row.hash)?,
                };
                if !is_right {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn remove_keys(&self) -> Result<(), StoreError> {
        let mut rows = log::rows(&self.log().disk().tables[MARKS], key_rows(self.id))?;
        loop {
            let mut hashes = Vec::new();
            for row in rows.by_ref().take(ROWS) {
                let (key, value) = row?;
                hashes.push(UniqueRow::read(&key, &value)?.hash);
            }
            if hashes.is_empty() {
                return self.log().settle(); // no group removes rows and writes them
            }
            self.write_some(&mut Batch::of([Change::Unkey(self.id, hashes)]))?;
        }
    }

    fn write_keys(&self) -> Result<(), StoreError> {
        let (mut batch, is_cold) = (Batch::default(), true);
        for item in self.log().disk().items(self.key(0), 0..=u64::MAX)? {
            let row = self.row_of(&item?);
            batch.keys.extend(row.map(|row| NewKey { row, is_cold }));
            if batch.keys.len() >= ROWS {
                self.write_some(&mut batch)?;
            }
        }
        self.write_some(&mut batch)
    }

    /// Writes some of many rows, which are synced with what follows.
    fn write_some(&self, batch: &mut Batch) -> Result<(), StoreError> {
        let at_most = Duration::from_secs(1);
        self.log()
            .commit(&mut [batch], Durability::Buffered { at_most })
    }
}
