//! The changes of one transaction.

use crate::codec::CodecError;
use crate::format::{
    begin_value, item_bytes, Digest, DueRow, Front, Key, Layout, LetterRow, Schedule, UniqueRow,
    CHECKSUM,
};
use std::mem;
use std::ops::Range;

/// The changes of one transaction, or of a group of them.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// The values of the pushed items, one after the other.
    pub(crate) values: Vec<u8>,
    /// Their lengths.
    pub(crate) lengths: Vec<u32>,
    pub(crate) pushes: Vec<Run>,
    /// The rows of their unique keys.
    pub(crate) keys: Vec<NewKey>,
    pub(crate) removes: Vec<Run>,
    pub(crate) others: Vec<Change>,
    /// How many bytes its dead letters have, and the values that replace others.
    more: usize,
}

/// The row of a unique key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewKey {
    pub(crate) row: UniqueRow,
    /// Whether its item is on the disk only.
    pub(crate) is_cold: bool,
}

/// Items of a queue with consecutive numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) queue: u32,
    count: u32,
    pub(crate) first: u64,
    /// How they are written, if they are pushed.
    pub(crate) layout: Layout,
}

impl Run {
    /// Adds items with consecutive numbers to the last of the runs, or a run for them.
    #[inline]
    pub(crate) fn add(runs: &mut Vec<Self>, first: Key, count: u32) {
        if let Some(run) = runs.last_mut() {
            if run.queue == first.queue && run.end() == first.id {
                if let Some(count) = run.count.checked_add(count) {
                    run.count = count;
                    return;
                }
            }
        }
        runs.push(Self::of(first, count));
    }

    /// Adds items one by one.
    #[inline]
    pub(crate) fn add_each(runs: &mut Vec<Self>, queue: u32, ids: impl Iterator<Item = u64>) {
        let mut items = 0..0;
        for id in ids {
            if id != items.end {
                Self::add_range(runs, queue, mem::replace(&mut items, id..id));
            }
            items.end += 1;
        }
        Self::add_range(runs, queue, items);
    }

    /// Adds items with consecutive numbers.
    #[inline]
    pub(crate) fn add_range(runs: &mut Vec<Self>, queue: u32, mut items: Range<u64>) {
        while !items.is_empty() {
            let id = items.start;
            let count = u32::try_from(items.end - id).unwrap_or(u32::MAX);
            Self::add(runs, Key { queue, id }, count);
            items.start += u64::from(count);
        }
    }

    /// A run of one or more items.
    pub(crate) fn of(first: Key, count: u32) -> Self {
        Self {
            queue: first.queue,
            count,
            first: first.id,
            layout: Layout::Alone,
        }
    }

    pub(crate) fn len(self) -> usize {
        self.count as usize
    }

    pub(crate) fn end(self) -> u64 {
        self.first + u64::from(self.count)
    }

    pub(crate) fn keys(self) -> impl Iterator<Item = Key> {
        let queue = self.queue;
        (self.first..self.end()).map(move |id| Key { queue, id })
    }
}

/// How far a batch goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub(crate) values: usize,
    pub(crate) items: usize,
    keys: usize,
    runs: usize,
    /// The number of items of the last run.
    last: u32,
}

/// A rare change.
#[derive(Debug)]
pub(crate) enum Change {
    /// The number of deliveries of an item.
    Delivered(Key, u32),
    /// The last delivery of an item, by its number, did not take place.
    Undelivered(Key, u32),
    /// The number of deliveries of an item, and the time before which it is not delivered again.
    Delayed(Key, u32, u64),
    /// The number of deliveries of an item, and the error with which the last one failed.
    Failed(Key, u32, String),
    Rescheduled(Key, Schedule),
    /// The items of a chunk, under its first one, get rows of their own.
    Spread(Key),
    /// The value that an item has from now on. What is in front of it stays.
    Replaced(Key, Vec<u8>),
    /// A dead letter, whose item is removed.
    Bury(Key, LetterRow),
    /// Until when the key of an item is taken that was committed, and the hash of that, under a number of their own.
    Recent(Key, u64, u128),
    /// What is known of deliveries of the item is forgotten.
    Unmark(Key),
    /// A dead letter is removed.
    Unbury(Key),
    Close(u32, bool),
    /// No items of a queue are left with these numbers.
    Gone(u32, Range<u64>),
    /// Whether the items of a queue have rows of their unique keys.
    HasKeys(u32, bool),
    /// These rows of unique keys are removed, unless the group writes them: of a queue, by their hashes.
    Unkey(u32, Vec<u128>),
    /// Rows of due times, besides those of pushed and removed items.
    Due(DueChange),
    /// A queue is removed, with all that it has on the disk.
    Remove(u32),
}

/// A change of the rows of due times.
#[derive(Debug)]
pub(crate) enum DueChange {
    /// Which items of a queue have such rows, if it has them from now on.
    Set(u32, Option<Digest>),
    /// A row of a queue that does not have them yet.
    Add(DueRow),
    /// A row of a queue that does not have them any more.
    Remove(DueRow),
}

impl AsMut<Self> for Batch {
    fn as_mut(&mut self) -> &mut Self {
        self
    }
}

impl Batch {
    pub(crate) fn of(changes: impl IntoIterator<Item = Change>) -> Self {
        Self {
            others: changes.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Whether chunks may be spread.
    pub(crate) fn may_spread(&self) -> bool {
        let may_spread = |it: &Change| matches!(it, Change::Spread(_) | Change::Replaced(..));
        self.others.iter().any(may_spread)
    }

    pub(crate) fn is_empty(&self) -> bool {
        let is_same = self.lengths.is_empty() && self.removes.is_empty();
        is_same && self.keys.is_empty() && self.others.is_empty()
    }

    /// About how many bytes it takes.
    pub(crate) fn size(&self) -> usize {
        let runs = size_of::<Run>() * (self.pushes.len() + self.removes.len());
        let others = 256 * self.others.len() + self.more;
        let keys = size_of::<NewKey>() * self.keys.len();
        self.values.len() + 4 * self.lengths.len() + keys + runs + others
    }

    /// How many bytes its large buffers have.
    pub(crate) fn capacity(&self) -> usize {
        let runs = size_of::<Run>() * (self.pushes.capacity() + self.removes.capacity());
        let keys = size_of::<NewKey>() * self.keys.capacity();
        self.values.capacity() + 4 * self.lengths.capacity() + keys + runs
    }

    /// Moves the changes of another one behind its own.
    pub(crate) fn append(&mut self, other: &mut Self) {
        if !other.pushes.is_empty() {
            self.values.extend_from_slice(&other.values);
            self.lengths.extend_from_slice(&other.lengths);
            self.pushes.extend_from_slice(&other.pushes);
        }
        self.keys.extend_from_slice(&other.keys);
        self.removes.extend_from_slice(&other.removes);
        self.others.append(&mut other.others);
        self.more += other.more;
        other.clear();
    }

    pub(crate) fn bury(&mut self, key: Key, letter: LetterRow) {
        self.more += letter.item_bytes.len();
        self.others.push(Change::Bury(key, letter));
    }

    /// A pushed item, by its value.
    pub(crate) fn of_push(key: Key, values: Vec<u8>) -> Self {
        let (mut batch, length) = (Self::default(), u32::try_from(values.len()));
        Run::add(&mut batch.pushes, key, 1);
        batch.lengths.extend(length); // it was pushed before, so it has one
        Self { values, ..batch }
    }

    /// An item that gets this value.
    pub(crate) fn of_replacement(key: Key, value: Vec<u8>) -> Self {
        let more = value.len();
        let batch = Self::of([Change::Replaced(key, value)]);
        Self { more, ..batch }
    }

    /// Adds the values of items; their runs are added next, in the same order. After an error, or a panic of `encode`, the caller
    /// [takes back](Self::rewind) what was added.
    #[inline]
    pub(crate) fn push_values<T>(
        &mut self,
        front: Front,
        items: impl ExactSizeIterator<Item = T>,
        mut encode: impl FnMut(T, &mut Vec<u8>) -> Result<(), CodecError>,
    ) -> Result<(), CodecError> {
        self.lengths.reserve(items.len());
        for item in items {
            let start = begin_value(&mut self.values, front);
            encode(item, &mut self.values)?;
            let length = u32::try_from(self.values.len() - start);
            let length = length.map_err(|_| CodecError::new("the item takes more than 4 GiB"))?;
            self.lengths.push(length);
        }
        Ok(())
    }

    /// How many items it pushes.
    pub(crate) fn extent(&self) -> Extent {
        Extent {
            values: self.values.len(),
            items: self.lengths.len(),
            keys: self.keys.len(),
            runs: self.pushes.len(),
            last: self.pushes.last().map_or(0, |run| run.count),
        }
    }

    /// Takes back the items that were added since then.
    pub(crate) fn rewind(&mut self, before: Extent) {
        self.values.truncate(before.values);
        self.lengths.truncate(before.items);
        self.keys.truncate(before.keys);
        self.pushes.truncate(before.runs);
        if let Some(run) = self.pushes.last_mut() {
            run.count = before.last;
        }
    }

    /// The pushed items, and their values, which are not sealed yet.
    fn pushed(&self) -> impl Iterator<Item = (Key, &[u8])> {
        let mut rest = &self.values[..];
        let keys = self.pushes.iter().flat_map(|run| run.keys());
        keys.zip(&self.lengths).map(move |(key, length)| {
            let (value, after) = rest.split_at(*length as usize);
            rest = after;
            (key, value)
        })
    }

    /// The bytes of a pushed item.
    pub(crate) fn bytes_of(&self, key: Key) -> Option<&[u8]> {
        let (_, value) = self.pushed().find(|(pushed, _)| *pushed == key)?;
        item_bytes(value)
    }

    /// The rows of the due times of the pushed items that are to have one.
    pub(crate) fn due(&self, has_due: impl Fn(u64) -> bool) -> Vec<DueRow> {
        if !self.pushes.iter().any(|run| has_due(run.first)) {
            return Vec::new();
        }
        let due = self.pushed().filter(|(key, _)| has_due(key.id));
        let rows = due.map(|(key, value)| DueRow::of(key, 1, &value[CHECKSUM..]));
        rows.flatten().collect()
    }

    pub(crate) fn clear(&mut self) {
        self.values.clear();
        self.lengths.clear();
        self.pushes.clear();
        self.keys.clear();
        self.removes.clear();
        self.others.clear();
        self.more = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_letter_has_the_size_of_its_item() {
        let letter = LetterRow {
            item: 1,
            attempts: 1,
            reason: 0,
            error: None,
            died: 0,
            schedule: None,
            item_bytes: vec![0; 10_000],
        };
        let (mut batch, mut group) = (Batch::default(), Batch::default());
        batch.bury(Key { queue: 1, id: 2 }, letter);
        assert!(batch.size() > 10_000);
        group.append(&mut batch);
        assert!(group.size() > 10_000);
        assert_eq!(batch.size(), 0);
    }
}
