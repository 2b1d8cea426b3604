//! The queues of a store, without the types of their items.

mod change;

pub use change::{Kind, Record};

use super::letters::Cause;
use crate::error::StoreError;
use crate::format::{
    decode_row, gone_key, Key, LetterRow, Mark, Ranges, Schedule, ITEMS, LETTERS, MARKS,
};
use crate::log::chunks::{earliest, Item, Items};
use crate::log::{guarded, Visit};
use crate::store::{millis, Store};
use fjall::{Readable, Snapshot};
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Looks at the queues of a store, and changes what they hold, without the types of the items: for tools.
///
/// The command `requeue-inspect` is made of it.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let store = requeue_durable::Store::open(directory.path())?;
/// let jobs = store.builder("jobs").build()?;
/// jobs.push_batch(["good".to_string(), "bad".to_string()])?;
/// let tx = jobs.begin_owned();
/// tx.pop()?;
/// tx.fail(tx.pop()?, "no such page")?;
/// tx.abort();
/// drop(jobs); // an open queue is inspected by its own methods
///
/// let inspector = store.inspector();
/// let queue = &inspector.queues()?[0];
/// assert_eq!((queue.name.as_str(), queue.items, queue.dead_letters), ("jobs", 1, 1));
/// let letters = inspector.dead_letters("jobs")?;
/// assert_eq!(letters[0].error.as_deref(), Some("no such page"));
/// assert!(inspector.requeue("jobs", letters[0].id)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Inspector {
    store: Store,
}

/// A queue of a store, from [`Inspector::queues`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueInfo {
    /// Its name.
    pub name: String,
    /// Its order, in words.
    pub order: &'static str,
    /// Whether it is [closed](crate::DurableQueue::close).
    pub closed: bool,
    /// How many items it has: ready, delayed, scheduled and held ones.
    pub items: u64,
    /// How many dead letters it has.
    pub dead_letters: u64,
}

/// An item, from [`Inspector::items`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ItemInfo {
    /// The number that identifies it in the store.
    pub id: u64,
    /// How often it was delivered, if its queue counts that.
    pub attempts: u32,
    /// Its priority, if it was pushed with one.
    pub priority: Option<u16>,
    /// The time for which it is scheduled.
    pub due: Option<SystemTime>,
    /// The time before which it is not delivered again.
    pub delayed: Option<SystemTime>,
    /// When it was pushed, in a queue with a [time to live](crate::Builder::ttl).
    pub pushed: Option<SystemTime>,
    /// The error of the last delivery, if any.
    pub error: Option<String>,
    /// The item, as its codec encoded it.
    pub bytes: Vec<u8>,
}

impl ItemInfo {
    /// An item that was never delivered. Its number is 0.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self {
            id: 0,
            attempts: 0,
            priority: None,
            due: None,
            delayed: None,
            pushed: None,
            error: None,
            bytes,
        }
    }
}

/// A dead letter, from [`Inspector::dead_letters`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LetterInfo {
    /// The number that identifies it in the store.
    pub id: u64,
    /// How often its item was delivered.
    pub attempts: u32,
    /// Why the last delivery failed.
    pub reason: Cause,
    /// The error of the last delivery, if any.
    pub error: Option<String>,
    /// When the last delivery failed.
    pub died_at: SystemTime,
    /// The priority of its item, if that has one.
    pub priority: Option<u16>,
    /// The time for which its item was scheduled.
    pub due: Option<SystemTime>,
    /// The item, as its codec encoded it.
    pub bytes: Vec<u8>,
}

impl LetterInfo {
    /// The letter of an item that failed. Its number is 0.
    pub fn new(bytes: Vec<u8>, reason: Cause, died_at: SystemTime) -> Self {
        Self {
            id: 0,
            attempts: 0,
            reason,
            error: None,
            died_at,
            priority: None,
            due: None,
            bytes,
        }
    }

    fn of(key: Key, row: LetterRow) -> Self {
        let (priority, due) = from_schedule(row.schedule);
        Self {
            id: key.id,
            attempts: row.attempts,
            reason: Cause::from_byte(row.reason),
            error: row.error,
            died_at: from_millis(row.died),
            priority,
            due,
            bytes: row.item_bytes,
        }
    }
}

fn from_millis(time: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(time)
}

fn to_millis(time: SystemTime) -> u64 {
    millis(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn from_schedule(schedule: Option<Schedule>) -> (Option<u16>, Option<SystemTime>) {
    let due = schedule.and_then(|schedule| schedule.due);
    (schedule.map(|it| it.priority), due.map(from_millis))
}

impl Store {
    /// Looks at queues without the types of their items.
    pub fn inspector(&self) -> Inspector {
        Inspector {
            store: self.clone(),
        }
    }
}

impl Inspector {
    /// All queues, by name.
    ///
    /// # Errors
    ///
    /// [`StoreError::Poisoned`] if a write failed before.
    pub fn queues(&self) -> Result<Vec<QueueInfo>, StoreError> {
        self.store.inner.log.settle()?;
        let catalog = self.store.inner.log.disk().catalog();
        let mut queues: Vec<_> = catalog
            .queues
            .all()
            .map(|(_, row)| QueueInfo {
                name: row.name.clone(),
                order: row.order.name(),
                closed: row.closed,
                items: row.counts.items.count,
                dead_letters: row.counts.letters.count,
            })
            .collect();
        queues.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(queues)
    }

    /// The items of a queue whose numbers are in a range, in the order of these: that of their pushes. They are read one by one,
    /// as they were at the time of the call.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// store.queue("jobs")?.push_batch(["first".to_string(), "second".to_string()])?;
    /// let items: Result<Vec<_>, _> = store.inspector().items("jobs", ..)?.collect();
    /// assert!(items?[1].bytes.ends_with(b"second"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`StoreError::NoQueue`], and for an item [`Damaged`](StoreError::Damaged) if it cannot be read.
    pub fn items(
        &self,
        queue: &str,
        ids: impl RangeBounds<u64>,
    ) -> Result<impl Iterator<Item = Result<ItemInfo, StoreError>>, StoreError> {
        self.known_items(queue, ids, false)
    }

    /// The same. The log [knows](crate::log::Disk::know) their chunks if they are to be removed.
    fn known_items(
        &self,
        queue: &str,
        ids: impl RangeBounds<u64>,
        known: bool,
    ) -> Result<impl Iterator<Item = Result<ItemInfo, StoreError>>, StoreError> {
        let store = Arc::clone(&self.store.inner);
        let from = match ids.start_bound() {
            Bound::Included(id) => *id,
            Bound::Excluded(id) => id.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = ids.end_bound().cloned();
        let spread = store.log.disk().spread();
        let (queue, snapshot, rows) = self.rows(ITEMS, queue, earliest(from)..)?;
        let key = gone_key(queue);
        let gone = guarded(|| Ok(snapshot.get(&store.log.disk().tables[ITEMS], key)?))?;
        let gone = gone.map_or(Ok(Ranges::default()), |row| decode_row(&key, &row))?;
        let items = Items::new(rows, Key { queue, id: from }, Arc::new(gone), spread);
        let is_in = move |item: &Result<Item, _>| {
            let id = item.as_ref().map_or(from, |item| item.at.id);
            (Bound::Unbounded, end).contains(&id)
        };
        Ok(items.take_while(is_in).map(move |item| {
            let (item, disk) = (item?, store.log.disk());
            disk.know(item.chunk.as_ref().filter(|_| known));
            let (front, bytes) = item.split()?;
            let key = item.at.to_bytes();
            let mark = guarded(|| Ok(snapshot.get(&disk.tables[MARKS], key)?))?;
            let mark = mark.map_or(Ok(Mark::default()), |mark| decode_row(&key, &mark))?;
            let (priority, due) = from_schedule(mark.schedule.or(front.schedule));
            Ok(ItemInfo {
                id: item.at.id,
                attempts: mark.attempts,
                priority,
                due,
                delayed: mark.delayed.map(from_millis),
                pushed: front.pushed.map(from_millis),
                error: mark.more.and_then(|more| more.error),
                bytes: bytes.to_vec(),
            })
        }))
    }

    /// The dead letters of a queue, oldest first.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoQueue`], or [`Damaged`](StoreError::Damaged) if a letter cannot be read.
    pub fn dead_letters(&self, queue: &str) -> Result<Vec<LetterInfo>, StoreError> {
        self.letters(queue, ..)?.collect()
    }

    fn letters(
        &self,
        queue: &str,
        ids: impl RangeBounds<u64>,
    ) -> Result<impl Iterator<Item = Result<LetterInfo, StoreError>>, StoreError> {
        let (_, _, rows) = self.rows(LETTERS, queue, ids)?;
        Ok(rows.map(|row| {
            let (key, value) = row?;
            Ok(LetterInfo::of(Key::of(&key)?, decode_row(&key, &value)?))
        }))
    }

    /// The number of a queue, and its rows in a table, by number, as they are now.
    fn rows(
        &self,
        table: usize,
        queue: &str,
        ids: impl RangeBounds<u64>,
    ) -> Result<(u32, Snapshot, Visit), StoreError> {
        let store = &self.store.inner;
        let queue = self.find(queue)?;
        store.log.settle()?;
        let tables = &store.log.disk().tables;
        let snapshot = tables.database.snapshot();
        let key = |bound: Bound<&u64>, end| match bound {
            Bound::Unbounded => Bound::Included(Key { queue, id: end }.to_bytes()),
            bound => bound.map(|id| Key { queue, id: *id }.to_bytes()),
        };
        let range = (key(ids.start_bound(), 0), key(ids.end_bound(), u64::MAX));
        let rows = guarded(|| Ok(snapshot.range(&tables[table], range)))?;
        Ok((queue, snapshot, rows.into()))
    }

    fn find(&self, name: &str) -> Result<u32, StoreError> {
        let found = self.store.inner.find(name);
        found.ok_or_else(|| StoreError::NoQueue(name.into()))
    }
}
