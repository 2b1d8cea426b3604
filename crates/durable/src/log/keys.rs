//! Rows of unique keys: which item has a key, also if it is on the disk only.
//!
//! A group writes the row of an item with the item, in place of that of an earlier one with the key, and removes it with the item if it
//! is known that the item has it: code that reads an item, which a transaction may remove later, calls [`Disk::know_keys`] first. So a row
//! may outlast its item, and code that finds a row checks the item.

use super::group::GroupWriter;
use super::pushed::PushState;
use super::tables::guarded;
use super::Disk;
use crate::batch::NewKey;
use crate::error::StoreError;
use crate::format::{key_row, Key, UniqueRow, MARKS};
use std::collections::HashMap;

/// The rows of items that may be removed.
#[derive(Default)]
pub(crate) struct Keys {
    /// By item.
    hashes: HashMap<Key, u128>,
    /// The numbers of the items, by queue and hash.
    owners: HashMap<(u32, u128), u64>,
}

impl Keys {
    fn know(&mut self, UniqueRow { item, hash }: UniqueRow) {
        self.hashes.insert(item, hash);
        self.owners.insert((item.queue, hash), item.id);
    }

    /// The hash of the row that an item has, which is gone.
    fn take(&mut self, item: Key) -> Option<u128> {
        if self.hashes.is_empty() {
            return None; // as in most stores
        }
        let hash = self.hashes.remove(&item)?;
        let row = (item.queue, hash);
        let is_its = self.owners.get(&row) == Some(&item.id);
        is_its.then(|| self.owners.remove(&row))?;
        Some(hash)
    }

    /// Nothing of a queue is known any more.
    pub(super) fn forget(&mut self, queue: u32) {
        self.hashes.retain(|item, _| item.queue != queue);
        self.owners.retain(|(of, _), _| *of != queue);
    }
}

impl Disk {
    /// Items with these rows may be removed from now on.
    pub(crate) fn know_keys(&self, rows: impl Iterator<Item = UniqueRow>) {
        let mut keys = self.keys.lock();
        rows.for_each(|row| keys.know(row));
    }

    pub(crate) fn forget_keys(&self, queue: u32) {
        self.keys.lock().forget(queue);
    }

    /// How many items with such rows are known.
    #[cfg(test)]
    pub(crate) fn known_keys(&self) -> usize {
        self.keys.lock().hashes.len()
    }

    /// The number of the item that has a key, or had it.
    pub(crate) fn key_owner(&self, queue: u32, hash: u128) -> Result<Option<u64>, StoreError> {
        let key = key_row(queue, hash);
        let Some(value) = guarded(|| Ok(self.tables[MARKS].get(key)?))? else {
            return Ok(None);
        };
        UniqueRow::read(&key, &value).map(|row| Some(row.item.id))
    }
}

impl GroupWriter<'_, '_> {
    /// The row of a removed item goes with it.
    pub(super) fn remove_key(&mut self, item: Key) {
        if let Some(hash) = self.keys.take(item) {
            self.unkeyed.insert((item.queue, hash));
        }
    }

    /// Writes the rows of the items that the group pushes, and that it does not remove; and of earlier ones, which had none.
    pub(super) fn write_keys(&mut self, keys: &[NewKey]) {
        for NewKey { row, is_cold } in keys {
            if self.pushed.get(row.item.id) == PushState::Cancelled {
                continue;
            }
            let of_hash = (row.item.queue, row.hash);
            self.unkeyed.remove(&of_hash);
            self.rows.insert(MARKS, row.key(), row.value());
            if *is_cold {
                self.keys.owners.remove(&of_hash);
            } else {
                self.keys.know(*row);
            }
        }
        for (queue, hash) in self.unkeyed.drain() {
            self.rows.remove(MARKS, key_row(queue, hash));
        }
    }
}
