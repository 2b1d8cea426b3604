//! The changes of one transaction.

use crate::codec::{Codec, CodecError};
use crate::format::{begin_value, item_bytes, Key, LetterRow, Schedule};

/// The changes of one transaction, in the order in which they are written.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// The values of the pushed items, one after the other.
    pub(crate) values: Vec<u8>,
    pub(crate) pushes: Vec<Push>,
    pub(crate) removes: Vec<Key>,
    pub(crate) others: Vec<Change>,
    /// The tickets in memory of pushed items.
    pub(crate) tickets: Vec<(u64, requeue::Ticket)>,
}

/// A pushed item, whose value ends there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Push {
    pub(crate) key: Key,
    pub(crate) end: usize,
}

/// A rare change.
#[derive(Debug)]
pub(crate) enum Change {
    /// The item was delivered so often.
    Delivered(Key, u32),
    /// The item was delivered so often, and is not delivered again before a time.
    Delayed(Key, u32, u64),
    Rescheduled(Key, Schedule),
    /// A dead letter, whose item is removed.
    Bury(Key, LetterRow),
    /// A dead letter is removed.
    Unbury(Key),
    Close(u32, bool),
    /// A queue is removed, with all that it has on the disk.
    Remove(u32),
}

impl Batch {
    pub(crate) fn is_empty(&self) -> bool {
        self.pushes.is_empty() && self.removes.is_empty() && self.others.is_empty()
    }

    /// About how many bytes it takes.
    pub(crate) fn size(&self) -> usize {
        self.values.len() + 24 * (self.pushes.len() + self.removes.len()) + 256 * self.others.len()
    }

    /// Adds an item, and returns the length of its value.
    #[inline]
    pub(crate) fn push<T: 'static>(
        &mut self,
        key: Key,
        schedule: Option<Schedule>,
        item: &T,
        codec: &dyn Codec<T>,
    ) -> Result<usize, CodecError> {
        let start = begin_value(&mut self.values, schedule);
        if let Err(error) = codec.encode(item, &mut self.values) {
            self.values.truncate(start);
            return Err(error);
        }
        let end = self.values.len();
        self.pushes.push(Push { key, end });
        Ok(end - start)
    }

    /// Takes back the items that are not among the first `count`.
    pub(crate) fn truncate(&mut self, count: usize) {
        self.pushes.truncate(count);
        self.values
            .truncate(self.pushes.last().map_or(0, |push| push.end));
    }

    /// The bytes of a pushed item.
    pub(crate) fn bytes_of(&self, key: Key) -> Option<&[u8]> {
        let at = self.pushes.iter().position(|push| push.key == key)?;
        let start = at
            .checked_sub(1)
            .map_or(0, |before| self.pushes[before].end);
        item_bytes(&self.values[start..self.pushes[at].end])
    }

    pub(crate) fn clear(&mut self) {
        self.truncate(0);
        self.tickets.clear();
        self.removes.clear();
        self.others.clear();
    }
}
