//! The changes of one transaction.

use crate::codec::{Codec, CodecError};
use crate::format::{begin_value, item_bytes, Key, LetterRow, Schedule};

/// The changes of one transaction, or of a group of them.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// The values of the pushed items, one after the other.
    pub(crate) values: Vec<u8>,
    /// Their lengths.
    pub(crate) lengths: Vec<u32>,
    pub(crate) pushes: Vec<Run>,
    pub(crate) removes: Vec<Run>,
    pub(crate) others: Vec<Change>,
    /// The tickets in memory of pushed items.
    pub(crate) tickets: Vec<(u64, requeue::Ticket)>,
}

/// Items of a queue with consecutive numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) queue: u32,
    count: u32,
    pub(crate) first: u64,
}

impl Run {
    /// Adds an item to the last of the runs, or a run for it.
    #[inline]
    pub(crate) fn add(runs: &mut Vec<Self>, key: Key) {
        match runs.last_mut() {
            Some(run) if run.queue == key.queue && run.end() == key.id && run.count < u32::MAX => {
                run.count += 1;
            }
            _ => runs.push(Self {
                queue: key.queue,
                count: 1,
                first: key.id,
            }),
        }
    }

    pub(crate) fn end(self) -> u64 {
        self.first + u64::from(self.count)
    }

    pub(crate) fn keys(self) -> impl Iterator<Item = Key> {
        let queue = self.queue;
        (self.first..self.end()).map(move |id| Key { queue, id })
    }
}

/// A rare change.
#[derive(Debug)]
pub(crate) enum Change {
    /// The number of deliveries of an item.
    Delivered(Key, u32),
    /// The number of deliveries of an item, and the time before which it is not delivered again.
    Delayed(Key, u32, u64),
    Rescheduled(Key, Schedule),
    /// A dead letter, whose item is removed.
    Bury(Key, LetterRow),
    /// What is known of deliveries of the item is forgotten.
    Unmark(Key),
    /// A dead letter is removed.
    Unbury(Key),
    Close(u32, bool),
    /// A queue is removed, with all that it has on the disk.
    Remove(u32),
}

impl Batch {
    pub(crate) fn is_empty(&self) -> bool {
        self.lengths.is_empty() && self.removes.is_empty() && self.others.is_empty()
    }

    /// About how many bytes it takes.
    pub(crate) fn size(&self) -> usize {
        let runs = 16 * (self.pushes.len() + self.removes.len());
        self.values.len() + 4 * self.lengths.len() + runs + 256 * self.others.len()
    }

    /// How many bytes its large buffers have.
    pub(crate) fn capacity(&self) -> usize {
        let runs = 16 * (self.pushes.capacity() + self.removes.capacity());
        self.values.capacity() + 4 * self.lengths.capacity() + runs
    }

    /// Moves the changes of another one behind its own.
    pub(crate) fn append(&mut self, other: &mut Self) {
        self.values.extend_from_slice(&other.values);
        self.lengths.extend_from_slice(&other.lengths);
        self.pushes.extend_from_slice(&other.pushes);
        self.removes.extend_from_slice(&other.removes);
        self.others.append(&mut other.others);
        other.clear();
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
        self.push_with(key, schedule, |bytes| codec.encode(item, bytes))
    }

    /// Adds an item whose bytes `encode` appends.
    #[inline]
    pub(crate) fn push_with(
        &mut self,
        key: Key,
        schedule: Option<Schedule>,
        encode: impl FnOnce(&mut Vec<u8>) -> Result<(), CodecError>,
    ) -> Result<usize, CodecError> {
        let start = begin_value(&mut self.values, schedule);
        let encoded = encode(&mut self.values);
        let length = self.values.len() - start;
        let recorded = encoded.and_then(|()| {
            u32::try_from(length).map_err(|_| CodecError::new("the item takes more than 4 GiB"))
        });
        match recorded {
            Ok(length) => self.lengths.push(length),
            Err(error) => {
                self.values.truncate(start);
                return Err(error);
            }
        }
        Run::add(&mut self.pushes, key);
        Ok(length)
    }

    /// Takes back the items that are not among the first `count`.
    pub(crate) fn truncate(&mut self, count: usize) {
        while self.lengths.len() > count {
            let length = self.lengths.pop().map_or(0, |length| length as usize);
            self.values.truncate(self.values.len() - length);
            if let Some(run) = self.pushes.last_mut() {
                run.count -= 1;
            }
            self.pushes.pop_if(|run| run.count == 0);
        }
    }

    /// The bytes of a pushed item.
    pub(crate) fn bytes_of(&self, key: Key) -> Option<&[u8]> {
        let mut rest = &self.values[..];
        for (pushed, length) in self
            .pushes
            .iter()
            .flat_map(|run| run.keys())
            .zip(&self.lengths)
        {
            let (value, after) = rest.split_at(*length as usize);
            rest = after;
            if pushed == key {
                return item_bytes(value);
            }
        }
        None
    }

    pub(crate) fn clear(&mut self) {
        self.values.clear();
        self.lengths.clear();
        self.pushes.clear();
        self.tickets.clear();
        self.removes.clear();
        self.others.clear();
    }
}
