//! What a store has, by count: so what is missing is found.

use super::queues::Queues;
use super::tables::{visit, Tables};
use crate::error::{Damage, StoreError};
use crate::format::{
    decode_row, open, queue_digest, row_digest, Digest, Key, LetterRow, Mark, QueueRow, StoreRow,
};
use std::collections::HashMap;

/// What the store has, by count.
pub(crate) struct Books {
    pub(crate) store: StoreRow,
    pub(crate) queues: Queues,
    /// The digests of the rows of the queues that are on the disk.
    pub(super) written: HashMap<u32, u64>,
    /// How many items were removed since their room was given back.
    pub(super) removed: u64,
    /// The marks of open queues, with their digests.
    pub(crate) marks: HashMap<Key, (Mark, u64)>,
}

impl Books {
    /// Reads the books of a store, and checks that they are those of the last acknowledged commit.
    pub(super) fn read(tables: &Tables, acknowledged: u64) -> Result<Self, StoreError> {
        let (mut store, mut queues) = (StoreRow::default(), Queues::default());
        visit::<&[u8]>(&tables.store, .., |key, value| {
            store = decode_row(&key, &value)?;
            Ok(())
        })?;
        if store.group < acknowledged {
            return Err(StoreError::Damaged(Damage {
                commits: acknowledged - store.group,
                details: "the last commits are missing".into(),
                ..Damage::default()
            }));
        }
        let (mut written, mut digest) = (HashMap::new(), Digest::default());
        visit::<&[u8]>(&tables.queues, .., |key, value| {
            let id = <[u8; 4]>::try_from(&*key).map(u32::from_be_bytes);
            let id = id.map_err(|_| StoreError::damaged("a queue has no number"))?;
            queues.insert(id, decode_row(&key, &value)?);
            let row = queue_digest(id, &value);
            digest.add(row);
            written.insert(id, row);
            Ok(())
        })?;
        if digest != store.queues {
            return Err(StoreError::damaged(
                "the rows of the queues are not those that were committed",
            ));
        }
        Ok(Self {
            store,
            queues,
            written,
            removed: 0,
            marks: HashMap::new(),
        })
    }

    /// Whether more items were removed than are there.
    pub(super) fn removed_most(&self) -> bool {
        self.removed > self.queues.items()
    }

    /// Checks all rows, as each queue does when it is opened.
    pub(super) fn check_all(&self, tables: &Tables) -> Result<(), StoreError> {
        let empty = |row: &QueueRow| QueueRow {
            items: Digest::default(),
            letters: Digest::default(),
            marks: Digest::default(),
            ..row.clone()
        };
        let rows = self.queues.all();
        let mut found: HashMap<u32, QueueRow> = rows.map(|(id, row)| (id, empty(row))).collect();
        let stray = || StoreError::damaged("a row of no queue");
        visit::<&[u8]>(&tables.items, .., |key, value| {
            let item = Key::from_bytes(&key).filter(|_| open(&key, &value).is_some());
            let queue = item.and_then(|item| found.get_mut(&item.queue));
            queue
                .zip(item)
                .ok_or_else(stray)
                .map(|(row, item)| row.items.add(item.digest()))
        })?;
        visit::<&[u8]>(&tables.letters, .., |key, value| {
            decode_row::<LetterRow>(&key, &value)?;
            let letter = Key::from_bytes(&key);
            let queue = letter.and_then(|letter| found.get_mut(&letter.queue));
            queue
                .zip(letter)
                .ok_or_else(stray)
                .map(|(row, letter)| row.letters.add(letter.digest()))
        })?;
        visit::<&[u8]>(&tables.marks, .., |key, value| {
            decode_row::<Mark>(&key, &value)?;
            let mark = Key::from_bytes(&key);
            let queue = mark.and_then(|mark| found.get_mut(&mark.queue));
            queue
                .zip(mark)
                .ok_or_else(stray)
                .map(|(row, mark)| row.marks.add(row_digest(mark, &value)))
        })?;
        let mut rows = self.queues.all();
        if rows.all(|(queue, row)| found.get(&queue) == Some(row)) {
            Ok(())
        } else {
            Err(StoreError::damaged(
                "the rows of a queue are not those that were committed",
            ))
        }
    }
}
