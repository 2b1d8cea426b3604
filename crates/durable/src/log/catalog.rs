//! What a store has, by count: so what is missing is found.

use super::queues::Queues;
use super::tables::{visit, Tables};
use crate::error::{Damage, StoreError};
use crate::format::{
    decode_row, level, queue_digest, Counts, Digest, ItemRow, Key, Mark, QueueRow, Row, StoreRow,
    ITEMS, LETTERS, MARKS, QUEUES, STORE,
};
use std::collections::HashMap;

/// What the store has, by count.
#[derive(Default)]
pub(crate) struct Catalog {
    pub(crate) store: StoreRow,
    pub(crate) queues: Queues,
    /// The digests of the rows of the queues that are on the disk.
    pub(super) written: HashMap<u32, u64>,
    /// How many items were removed since their room was given back.
    pub(super) removed: u64,
    /// How many of them have left their rows, since tables of such items were dropped.
    pub(super) retired: u64,
    /// The marks of open queues, with their digests.
    pub(crate) marks: HashMap<Key, (Mark, u64)>,
}

/// The items of level 0 of a queue, and their rows of due times.
#[derive(Default)]
struct DueCounts {
    items: Digest,
    /// The rows of due times that the rows of items require, minus those that were found.
    missing: Digest,
}

impl DueCounts {
    fn add(&mut self, row: &Row<'_>, value: &[u8]) {
        match row {
            Row::Due(due) => self.missing.remove(due.digest()),
            Row::Items(items) if level::of(items.ids().start) == 0 => {
                let keys = items.keys().map(Key::digest);
                if let ItemRow::Tombstone(..) = items {
                    return keys.for_each(|key| self.items.remove(key));
                }
                keys.for_each(|key| self.items.add(key));
                if let Some(due) = items.due(value) {
                    self.missing.add(due.digest());
                }
            }
            _ => {}
        }
    }

    /// Whether it has these items, and the rows of their due times, and no others.
    fn is_right(&self, items: Digest) -> bool {
        (self.items, self.missing) == (items, Digest::default())
    }
}

impl Catalog {
    /// Reads the catalog of a store, and checks that they are those of the last acknowledged commit.
    pub(super) fn read(tables: &Tables, acknowledged: u64) -> Result<Self, StoreError> {
        let mut catalog = Self::default();
        visit::<&[u8]>(&tables[STORE], .., |key, value| {
            catalog.store = decode_row(&key, &value)?;
            Ok(())
        })?;
        if catalog.store.group < acknowledged {
            return Err(StoreError::Damaged(Damage {
                commits: acknowledged - catalog.store.group,
                details: "the last commits are missing".into(),
                ..Damage::default()
            }));
        }
        let mut digest = Digest::default();
        visit::<&[u8]>(&tables[QUEUES], .., |key, value| {
            let id = <[u8; 4]>::try_from(&*key).map(u32::from_be_bytes);
            let id = id.map_err(|_| StoreError::damaged("a queue has no number"))?;
            catalog.queues.insert(id, decode_row(&key, &value)?);
            let row = queue_digest(id, &value);
            digest.add(row);
            catalog.written.insert(id, row);
            Ok(())
        })?;
        if digest != catalog.store.queues {
            return Err(StoreError::damaged(
                "the rows of the queues are not those that were committed",
            ));
        }
        Ok(catalog)
    }

    /// Whether more items were removed than are there.
    pub(super) fn removed_most(&self) -> bool {
        self.removed > self.queues.items()
    }

    /// Checks all rows, as each queue does when it is opened.
    pub(super) fn check_all(&self, tables: &Tables) -> Result<(), StoreError> {
        let ids = self.queues.all().map(|(id, _)| (id, Default::default()));
        let mut found: HashMap<u32, (Counts, DueCounts)> = ids.collect();
        let stray = || StoreError::damaged("a row of no queue");
        for table in [ITEMS, LETTERS, MARKS] {
            visit::<&[u8]>(&tables[table], .., |key, value| {
                let row = Row::read(table, &key, &value)?;
                let gone = tables.gone(row.queue())?;
                let Some((counts, due)) = found.get_mut(&row.queue()) else {
                    let was_removed = table == ITEMS && gone.contains_all(&(0..u64::MAX));
                    return was_removed.then_some(()).ok_or_else(stray);
                };
                counts.add(&row, &value, &gone);
                due.add(&row, &value);
                Ok(())
            })?;
        }
        let mut rows = self.queues.all();
        let is_right = |(queue, row): (_, &QueueRow)| {
            let found = found.get(&queue);
            found.is_some_and(|(counts, due)| {
                *counts == row.counts && row.index.due.is_none_or(|items| due.is_right(items))
            })
        };
        if rows.all(is_right) {
            Ok(())
        } else {
            Err(StoreError::damaged(
                "the rows of a queue are not those that were committed",
            ))
        }
    }
}
