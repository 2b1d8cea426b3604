//! What is on the disk: keys, values and their checksums. `docs/format.md` describes it.

mod chunk;
mod due;
pub(crate) mod level;
mod ranges;
mod unique;

pub(crate) use chunk::{
    is_key, last_row, tombstone, tombstone_key, value_of, ItemRow, Layout, NewChunk, MOST_ITEMS,
};

pub(crate) use due::{due_rows, DueRow};
pub(crate) use ranges::{gone_key, Ranges};
pub(crate) use unique::{key_row, key_rows, UniqueRow};

use crate::error::StoreError;
use serde::{de::DeserializeOwned, Deserialize, Deserializer, Serialize};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The versions of the format that stores get: the first one, those with times of pushes, with all that queues with pages have, and with
/// chunks in all queues, and that with chunks of scheduled items, in which they are made.
pub(crate) const FIRST_VERSION: u32 = 1;
pub(crate) const WITH_TIMES: u32 = 2;
pub(crate) const WITH_GONE: u32 = 6;
pub(crate) const WITH_CHUNKS: u32 = 7;
pub(crate) const WITH_DUE_CHUNKS: u32 = 8;
pub(crate) const VERSION: u32 = WITH_DUE_CHUNKS;

/// The tables of a store, in this order.
pub(crate) const ITEMS: usize = 0;
pub(crate) const MARKS: usize = 1;
pub(crate) const LETTERS: usize = 2;
pub(crate) const QUEUES: usize = 3;
pub(crate) const STORE: usize = 4;

/// The length of a checksum, which is in front of each value.
pub(crate) const CHECKSUM: usize = 8;
/// Most rows that are structs are shorter.
const USUAL_ROW: usize = 256;
/// The bit of an item's first byte that says that the time of its push follows.
const PUSHED: u8 = 4;

/// Identifies an item, or a dead letter, in a store. By bytes keys are in the order of the queues, then of the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) queue: u32,
    pub(crate) id: u64,
}

impl Key {
    pub(crate) fn to_bytes(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&self.queue.to_be_bytes());
        bytes[4..].copy_from_slice(&self.id.to_be_bytes());
        bytes
    }

    /// That with which the key of a row begins.
    pub(crate) fn from_prefix(bytes: &[u8]) -> Option<Self> {
        Self::from_bytes(bytes.get(..12)?)
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (queue, id) = bytes.split_at_checked(4)?;
        Some(Self {
            queue: u32::from_be_bytes(queue.try_into().ok()?),
            id: u64::from_be_bytes(id.try_into().ok()?),
        })
    }

    /// That of a row that was read.
    pub(crate) fn of(bytes: &[u8]) -> Result<Self, StoreError> {
        Self::from_bytes(bytes).ok_or_else(|| StoreError::damaged("a key of another length"))
    }

    /// A number for the key in sums that tell whether keys are missing.
    pub(crate) fn digest(self) -> u64 {
        mix(self.id ^ u64::from(self.queue) << 40)
    }
}

/// Spreads the bits of a number: the finalizer of `SplitMix64` (Steele, Lea, Flood: "Fast splittable pseudorandom number
/// generators", 2014).
fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// The priority and the due time of an item of a priority queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Schedule {
    pub(crate) priority: u16,
    /// In milliseconds since the Unix epoch.
    pub(crate) due: Option<u64>,
}

/// What a value has besides the bytes of its item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Front {
    pub(crate) schedule: Option<Schedule>,
    /// When the item was pushed, in milliseconds since the Unix epoch, if it has a time to live.
    pub(crate) pushed: Option<u64>,
}

/// What has happened to an item since it was pushed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    /// How often it was delivered.
    pub(crate) attempts: u32,
    /// When it is to be delivered again, in milliseconds since the Unix epoch.
    pub(crate) delayed: Option<u64>,
    /// Its new schedule.
    pub(crate) schedule: Option<Schedule>,
    /// Missing in most rows.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "if_there")]
    pub(crate) more: Option<More>,
}

/// The end of a mark. Versions of this crate that do not know it read the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct More {
    /// The last error with which a delivery of the item has failed.
    pub(crate) error: Option<String>,
    /// If there is no item of this number, but one that was committed: until when its key is taken, and the hash of that.
    pub(crate) recent: Option<(u64, u128)>,
}

/// The last field of a row, if it has it: the row has the checksum.
#[allow(clippy::unnecessary_wraps)] // as `serde` calls it
fn if_there<'de, F: Deserialize<'de> + Default, D: Deserializer<'de>>(
    rest: D,
) -> Result<F, D::Error> {
    Ok(F::deserialize(rest).unwrap_or_default())
}

fn is_default<F: Default + PartialEq>(field: &F) -> bool {
    *field == F::default()
}

/// A queue of a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct QueueRow {
    pub(crate) name: String,
    pub(crate) order: OrderTag,
    pub(crate) closed: bool,
    pub(crate) counts: Counts,
    /// Missing in most rows.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "if_there")]
    pub(crate) index: IndexRows,
}

/// The rows by which items are found that are on the disk only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IndexRows {
    /// Whether each item whose key is to be unique has a [row](UniqueRow) of it.
    pub(crate) has_keys: bool,
    /// If each item of level 0 has a [row](DueRow) of its time: these items. Versions of this crate that do not know it read the rest.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "if_there")]
    pub(crate) due: Option<Digest>,
}

impl QueueRow {
    /// That of a queue without rows.
    pub(crate) fn new(name: &str, order: OrderTag) -> Self {
        Self {
            name: name.to_owned(),
            order,
            closed: false,
            counts: Counts::default(),
            index: IndexRows::default(),
        }
    }
}

/// The rows of a queue by kind, or how they change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counts {
    pub(crate) items: Digest,
    pub(crate) letters: Digest,
    pub(crate) marks: Digest,
}

impl Counts {
    /// Adds a row, except items that are gone.
    pub(crate) fn add(&mut self, row: &Row<'_>, value: &[u8], gone: &Ranges) {
        let is_there = |key: &Key| !gone.contains(key.id);
        match row {
            Row::Mark(at) => self.marks.add(row_digest(*at, value)),
            Row::Letter(at, _) => self.letters.add(at.digest()),
            Row::Items(tombstone @ ItemRow::Tombstone(..)) => {
                let keys = tombstone.keys().filter(is_there);
                keys.for_each(|key| self.items.remove(key.digest()));
            }
            Row::Items(items) => {
                let keys = items.keys().filter(is_there);
                keys.for_each(|key| self.items.add(key.digest()));
            }
            // Those of the first two may be the rows of earlier items.
            Row::Due(_) | Row::Unique(_) | Row::Gone(..) => {}
        }
    }

    pub(crate) fn merge(&mut self, change: Self) {
        self.items.merge(change.items);
        self.letters.merge(change.letters);
        self.marks.merge(change.marks);
    }

    /// The number of items, and of those that are dead letters.
    pub(crate) fn all_items(&self) -> u64 {
        self.items.count.wrapping_add(self.letters.count)
    }
}

/// The order of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum OrderTag {
    Fifo,
    ByKey,
    ByPriority,
}

impl OrderTag {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fifo => "first in, first out",
            Self::ByKey => "fair by key",
            Self::ByPriority => "by priority",
        }
    }
}

/// The number of rows of a kind, and the sum of their digests: equal for equal sets of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Digest {
    pub(crate) count: u64,
    pub(crate) sum: u64,
}

impl Digest {
    pub(crate) fn add(&mut self, row: u64) {
        self.count = self.count.wrapping_add(1);
        self.sum = self.sum.wrapping_add(row);
    }

    pub(crate) fn remove(&mut self, row: u64) {
        self.count = self.count.wrapping_sub(1);
        self.sum = self.sum.wrapping_sub(row);
    }

    /// Adds the rows that another digest has, and removes those that it lacks.
    pub(crate) fn merge(&mut self, change: Self) {
        self.count = self.count.wrapping_add(change.count);
        self.sum = self.sum.wrapping_add(change.sum);
    }
}

/// The state of the store as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoreRow {
    /// The number of the last group of commits.
    pub(crate) group: u64,
    /// The number of the next item or dead letter.
    pub(crate) next_id: u64,
    /// The rows of the queues.
    pub(crate) queues: Digest,
}

/// The key of the [`StoreRow`].
pub(crate) const STORE_ROW: &[u8] = b"store";

/// A dead letter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LetterRow {
    pub(crate) item: u64,
    pub(crate) attempts: u32,
    pub(crate) reason: u8,
    pub(crate) error: Option<String>,
    /// In milliseconds since the Unix epoch.
    pub(crate) died: u64,
    pub(crate) schedule: Option<Schedule>,
    /// The item in bytes.
    pub(crate) item_bytes: Vec<u8>,
}

/// A row of a queue.
pub(crate) enum Row<'v> {
    Items(ItemRow<'v>),
    Letter(Key, LetterRow),
    Mark(Key),
    Unique(UniqueRow),
    Due(DueRow),
    /// Which items of a queue are gone.
    Gone(u32, Ranges),
}

impl<'v> Row<'v> {
    /// Reads a row of a table, as the queue does when it is opened.
    pub(crate) fn read(table: usize, key: &[u8], value: &'v [u8]) -> Result<Self, StoreError> {
        let at = || Key::from_bytes(key).ok_or_else(|| unreadable(key));
        match table {
            LETTERS => Ok(Self::Letter(at()?, decode_row(key, value)?)),
            MARKS if DueRow::is_key(key) => DueRow::read(key, value).map(Self::Due),
            MARKS if UniqueRow::is_key(key) => UniqueRow::read(key, value).map(Self::Unique),
            MARKS => decode_row::<Mark>(key, value).and_then(|_| Ok(Self::Mark(at()?))),
            _ if Ranges::is_key(key) => {
                let at = Key::from_prefix(key).ok_or_else(|| unreadable(key))?;
                Ok(Self::Gone(at.queue, decode_row(key, value)?))
            }
            _ => {
                let row = ItemRow::read(key, value)?;
                let is_readable = |content: &[u8]| split_value(content).is_some();
                if row.contents(value).all(is_readable) {
                    Ok(Self::Items(row))
                } else {
                    Err(unreadable(key))
                }
            }
        }
    }

    /// Its queue.
    pub(crate) fn queue(&self) -> u32 {
        match self {
            Self::Items(row) => row.queue(),
            Self::Letter(at, _) | Self::Mark(at) => at.queue,
            Self::Unique(row) => row.item.queue,
            Self::Due(row) => row.item.queue,
            Self::Gone(queue, _) => *queue,
        }
    }
}

/// Begins a value at the end of `values`, and returns where. [`seal`] ends it.
#[inline]
pub(crate) fn begin_value(values: &mut Vec<u8>, front: Front) -> usize {
    let start = values.len();
    values.extend_from_slice(&[0; CHECKSUM + 1]);
    if front != Front::default() {
        add_front(values, front);
    }
    start
}

/// Adds what is in front of an item, whose first byte is 0 so far.
fn add_front(values: &mut Vec<u8>, Front { schedule, pushed }: Front) {
    let due = schedule.and_then(|schedule| schedule.due);
    let kind = u8::from(schedule.is_some()) + u8::from(due.is_some());
    if let Some(first) = values.last_mut() {
        *first = kind + PUSHED * u8::from(pushed.is_some());
    }
    if let Some(Schedule { priority, .. }) = schedule {
        values.extend_from_slice(&priority.to_be_bytes());
    }
    for time in [due, pushed].into_iter().flatten() {
        values.extend_from_slice(&time.to_be_bytes());
    }
}

/// Splits the content of a value into what is in front and the bytes of the item.
pub(crate) fn split_value(content: &[u8]) -> Option<(Front, &[u8])> {
    let (kind, mut rest) = content.split_first()?;
    let mut front = Front::default();
    if kind & !PUSHED > 0 {
        let (priority, after) = rest.split_first_chunk()?;
        let (priority, due) = (u16::from_be_bytes(*priority), None);
        (front.schedule, rest) = (Some(Schedule { priority, due }), after);
    }
    let due = match kind & !PUSHED {
        0 | 1 => None,
        2 => front.schedule.as_mut().map(|schedule| &mut schedule.due),
        _ => return None,
    };
    let pushed = (kind & PUSHED > 0).then_some(&mut front.pushed);
    for time in [due, pushed].into_iter().flatten() {
        let (bytes, after) = rest.split_first_chunk()?;
        (*time, rest) = (Some(u64::from_be_bytes(*bytes)), after);
    }
    Some((front, rest))
}

/// The bytes of the item in a value that is not sealed yet.
pub(crate) fn item_bytes(value: &[u8]) -> Option<&[u8]> {
    split_value(value.get(CHECKSUM..)?).map(|(_, bytes)| bytes)
}

/// A value that is not sealed yet, with the item of another one.
pub(crate) fn with_item(value: &[u8], other: &[u8]) -> Option<Vec<u8>> {
    let front = value.len() - item_bytes(value)?.len();
    Some([&value[..front], item_bytes(other)?].concat())
}

/// Writes the checksum of a value, which depends on its key too, to its front.
pub(crate) fn seal(key: &[u8], value: &mut [u8]) {
    let (front, content) = value.split_at_mut(CHECKSUM);
    front.copy_from_slice(&checksum(key, content).to_le_bytes());
}

/// The content of a value, if its checksum is right.
pub(crate) fn open<'v>(key: &[u8], value: &'v [u8]) -> Option<&'v [u8]> {
    let (front, content) = value.split_first_chunk()?;
    (u64::from_le_bytes(*front) == checksum(key, content)).then_some(content)
}

fn checksum(key: &[u8], content: &[u8]) -> u64 {
    let mut seed = [0; 8];
    let tail = &key[key.len().saturating_sub(8)..];
    seed[..tail.len()].copy_from_slice(tail);
    let queue = key
        .first_chunk::<4>()
        .map_or(0, |queue| u32::from_be_bytes(*queue));
    xxh3_64_with_seed(content, u64::from_le_bytes(seed) ^ u64::from(queue) << 7)
}

/// A row with its checksum.
pub(crate) fn encode_row<R: Serialize>(key: &[u8], row: &R) -> Vec<u8> {
    let mut front = Vec::with_capacity(USUAL_ROW);
    front.resize(CHECKSUM, 0);
    let bytes = postcard::to_extend(row, front);
    let mut bytes = bytes.expect("rows have no types that postcard refuses");
    seal(key, &mut bytes);
    bytes
}

/// What [`encode_row`] has encoded.
pub(crate) fn decode_row<R: DeserializeOwned>(key: &[u8], value: &[u8]) -> Result<R, StoreError> {
    let row = open(key, value).and_then(|content| postcard::from_bytes(content).ok());
    row.ok_or_else(|| unreadable(key))
}

pub(crate) fn unreadable(key: &[u8]) -> StoreError {
    StoreError::damaged(format!("the row {key:02x?} cannot be read"))
}

/// A number for a row in sums that tell whether rows are missing.
pub(crate) fn row_digest(key: Key, value: &[u8]) -> u64 {
    xxh3_64_with_seed(value, key.digest())
}

/// The same for the row of a queue.
pub(crate) fn queue_digest(queue: u32, value: &[u8]) -> u64 {
    xxh3_64_with_seed(value, mix(u64::from(queue)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_is_two_bytes_on_the_disk() {
        let priorities = [
            (0, [0, 0]),
            (1, [0, 1]),
            (9999, [0x27, 0x0f]),
            (u16::MAX, [0xff; 2]),
        ];
        for (priority, bytes) in priorities {
            let (due, content) = (None, [&[1], &bytes[..], b"item"].concat());
            let (schedule, pushed) = (Some(Schedule { priority, due }), None);
            let (mut value, front) = (Vec::new(), Front { schedule, pushed });
            begin_value(&mut value, front);
            assert_eq!(value[CHECKSUM..], content[..3]);
            assert_eq!(split_value(&content), Some((front, &b"item"[..])));
        }
    }

    #[test]
    fn times_are_eight_bytes_on_the_disk() {
        let at = |due| Some(Schedule { priority: 5, due });
        let fronts: [(_, _, &[u8]); 6] = [
            (None, None, &[0]),
            (at(None), None, &[1, 0, 5]),
            (at(Some(6)), None, &[2, 0, 5, 0, 0, 0, 0, 0, 0, 0, 6]),
            (None, Some(7), &[4, 0, 0, 0, 0, 0, 0, 0, 7]),
            (at(None), Some(7), &[5, 0, 5, 0, 0, 0, 0, 0, 0, 0, 7]),
            (
                at(Some(6)),
                Some(7),
                &[6, 0, 5, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 7],
            ),
        ];
        for (schedule, pushed, bytes) in fronts {
            let (mut value, front) = (Vec::new(), Front { schedule, pushed });
            begin_value(&mut value, front);
            assert_eq!(value[CHECKSUM..], *bytes);
            assert_eq!(split_value(bytes), Some((front, &[][..])));
            let cut = split_value(&bytes[..bytes.len() - 1]);
            assert_eq!(cut, None);
        }
        assert!([3, 7, 8]
            .iter()
            .all(|kind| split_value(&[*kind; 30]).is_none()));
    }

    #[test]
    fn a_mark_without_more_is_that_of_the_first_version() {
        let mut mark = Mark {
            attempts: 3,
            delayed: Some(1),
            ..Mark::default()
        };
        let key = [7; 12];
        let value = encode_row(&key, &mark);
        assert_eq!(value[CHECKSUM..], [3, 1, 1, 0]);
        assert_eq!(decode_row::<Mark>(&key, &value).unwrap(), mark);
        mark.more.get_or_insert_default().error = Some("no".into());
        let value = encode_row(&key, &mark);
        assert_eq!(value[CHECKSUM..], [3, 1, 1, 0, 1, 1, 2, b'n', b'o', 0]);
        assert_eq!(decode_row::<Mark>(&key, &value).unwrap(), mark);
        // As earlier versions of this crate read it.
        let before = (3_u32, Some(1_u64), None::<Schedule>);
        assert_eq!(decode_row(&key, &value).ok(), Some(before));
    }
}
