//! The queues of a store, without the types of their items.

use super::letters::Cause;
use super::recover::visit;
use crate::batch::{Batch, Change};
use crate::error::StoreError;
use crate::format::{decode_row, Front, Key, LetterRow, Schedule, LETTERS};
use crate::log::Durability;
use crate::store::Store;
use std::slice;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Looks at the queues of a store and requeues dead letters, without the types of the items: for tools.
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

/// A dead letter, from [`Inspector::dead_letters`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LetterInfo {
    /// The number that identifies it.
    pub id: u64,
    /// How often its item was delivered.
    pub attempts: u32,
    /// Why the last delivery failed.
    pub reason: Cause,
    /// The error of the last delivery, if any.
    pub error: Option<String>,
    /// When the last delivery failed.
    pub died_at: SystemTime,
    /// The item, as its codec encoded it.
    pub bytes: Vec<u8>,
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

    /// The dead letters of a queue, oldest first.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoQueue`], or [`Damaged`](StoreError::Damaged) if a letter cannot be read.
    pub fn dead_letters(&self, queue: &str) -> Result<Vec<LetterInfo>, StoreError> {
        let queue = self.find(queue)?;
        let rows = self.rows(queue)?;
        let infos = rows.into_iter().map(|(key, row)| LetterInfo {
            id: key.id,
            attempts: row.attempts,
            reason: Cause::from_byte(row.reason),
            error: row.error,
            died_at: UNIX_EPOCH + Duration::from_millis(row.died),
            bytes: row.item_bytes,
        });
        Ok(infos.collect())
    }

    /// Makes the item of a dead letter a new item at the end of the queue, in one commit; returns whether the letter was there.
    /// The capacity of the queue is not known here, so there is room.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoQueue`], [`InUse`](StoreError::InUse) if the queue is open, or as for
    /// [`Transaction::commit`](crate::Transaction::commit).
    pub fn requeue(&self, queue: &str, id: u64) -> Result<bool, StoreError> {
        Ok(self.requeue_those(queue, |letter| letter == id)? > 0)
    }

    /// [Requeues](Self::requeue) all dead letters, oldest first, in one commit; returns how many.
    ///
    /// # Errors
    ///
    /// As for [`requeue`](Self::requeue); then none was requeued.
    pub fn requeue_all(&self, queue: &str) -> Result<usize, StoreError> {
        self.requeue_those(queue, |_| true)
    }

    fn requeue_those(&self, name: &str, choose: impl Fn(u64) -> bool) -> Result<usize, StoreError> {
        let queue = self.find(name)?;
        let store = &self.store.inner;
        let _open = store.enter(name)?;
        let mut rows = self.rows(queue)?;
        rows.retain(|(key, _)| choose(key.id));
        let (mut batch, now) = (Batch::default(), store.wall_time());
        for (letter, row) in &rows {
            // Relaxed: numbers only have to differ.
            let id = store.log.disk().next_id.fetch_add(1, Ordering::Relaxed);
            let (key, items) = (Key { queue, id }, slice::from_ref(&row.item_bytes));
            // Without the time of the push, which is that of the next opening then.
            let front = Front {
                schedule: row.schedule.map(|Schedule { priority, due }| Schedule {
                    priority,
                    due: due.map(|due| due.max(now)),
                }),
                pushed: None,
            };
            batch.push_all(key, front, items, |item, bytes| {
                bytes.extend_from_slice(item);
                Ok(())
            })?;
            batch.others.push(Change::Unbury(*letter));
        }
        if !rows.is_empty() {
            store.log.commit(&mut [batch], Durability::Synced)?;
        }
        Ok(rows.len())
    }

    fn find(&self, name: &str) -> Result<u32, StoreError> {
        let found = self.store.inner.find(name);
        found.ok_or_else(|| StoreError::NoQueue(name.into()))
    }

    fn rows(&self, queue: u32) -> Result<Vec<(Key, LetterRow)>, StoreError> {
        self.store.inner.log.settle()?;
        let mut rows = Vec::new();
        let letters = &self.store.inner.log.disk().tables[LETTERS];
        visit(letters, queue, |at, key, value| {
            rows.push((at, decode_row(&key, &value)?));
            Ok(())
        })?;
        Ok(rows)
    }
}
