//! Changes of queues that are not open, without the types of the items.

use super::{to_millis, Inspector, ItemInfo, LetterInfo};
use crate::batch::{Batch, Change, Run};
use crate::error::StoreError;
use crate::format::{
    decode_row, row_digest, Front, Key, LetterRow, OrderTag, Schedule, MARKS, WITH_TIMES,
};
use crate::log::Durability;
use crate::order::DEFAULT_PRIORITY;
use crate::queue::letters::Cause;
use crate::store::StoreInner;
use requeue::Reason;
use std::io;
use std::iter;
use std::ops::RangeBounds;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

/// What a change is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)] // a queue has nothing else
pub enum Kind {
    /// Items.
    Items,
    /// Dead letters.
    DeadLetters,
}

/// What [`Inspector::insert`] adds to a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)] // as above
pub enum Record {
    /// An item.
    Item(ItemInfo),
    /// A dead letter.
    DeadLetter(LetterInfo),
}

/// Where records go.
#[derive(Clone, Copy)]
enum To<'a> {
    Nowhere,
    /// The items of the same queue, as new ones.
    Ready,
    /// The dead letters of the same queue, with an error.
    Letters(&'a str),
    /// A queue, which may be the same.
    Queue(u32),
}

/// Records with their numbers.
type Records = Box<dyn Iterator<Item = Result<(u64, Record), StoreError>>>;

impl Inspector {
    /// Makes the item of a dead letter a new item at the end of the queue, in one commit; returns whether the letter was there.
    /// The capacity of the queue is not known here, so there is room.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoQueue`], [`InUse`](StoreError::InUse) if the queue is open, or as for
    /// [`Transaction::commit`](crate::Transaction::commit).
    pub fn requeue(&self, queue: &str, id: u64) -> Result<bool, StoreError> {
        Ok(self.transfer(queue, Kind::DeadLetters, id..=id, To::Ready)? > 0)
    }

    /// [Requeues](Self::requeue) all dead letters, oldest first, in one commit; returns how many.
    ///
    /// # Errors
    ///
    /// As for [`requeue`](Self::requeue); then none was requeued.
    pub fn requeue_all(&self, queue: &str) -> Result<usize, StoreError> {
        self.transfer(queue, Kind::DeadLetters, .., To::Ready)
    }

    /// Removes the items, or the dead letters, whose numbers are in a range, in one commit; returns how many.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// use requeue_durable::Kind;
    ///
    /// store.queue("jobs")?.push_batch(0..5)?;
    /// assert_eq!(store.inspector().remove("jobs", Kind::Items, ..)?, 5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`requeue`](Self::requeue); then none was removed.
    pub fn remove(
        &self,
        queue: &str,
        kind: Kind,
        ids: impl RangeBounds<u64>,
    ) -> Result<usize, StoreError> {
        self.transfer(queue, kind, ids, To::Nowhere)
    }

    /// Makes the items whose numbers are in a range dead letters with this error, in one commit; returns how many.
    ///
    /// # Errors
    ///
    /// As for [`requeue`](Self::requeue); then none was changed.
    pub fn bury(
        &self,
        queue: &str,
        ids: impl RangeBounds<u64>,
        error: &str,
    ) -> Result<usize, StoreError> {
        self.transfer(queue, Kind::Items, ids, To::Letters(error))
    }

    /// Moves the items, or the dead letters, whose numbers are in a range to the end of another queue of the store, or of the same
    /// one, in one commit; returns how many. What the other queue cannot decode becomes a dead letter when it is opened.
    ///
    /// All that [`ItemInfo`] and [`LetterInfo`] say of them stays, except their numbers.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// use requeue_durable::Kind;
    ///
    /// store.queue("jobs")?.push_batch(0..5)?;
    /// let later = store.queue::<i32>("later")?;
    /// later.push(7)?;
    /// drop(later);
    /// assert_eq!(store.inspector().move_to("jobs", Kind::Items, .., "later")?, 5);
    /// assert_eq!(store.queue::<i32>("later")?.pop_batch(9)?, [7, 0, 1, 2, 3, 4]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`requeue`](Self::requeue), for both queues; then none was moved.
    pub fn move_to(
        &self,
        queue: &str,
        kind: Kind,
        ids: impl RangeBounds<u64>,
        to: &str,
    ) -> Result<usize, StoreError> {
        let target = self.find(to)?;
        let _open = (queue != to)
            .then(|| self.store.inner.enter(to))
            .transpose()?;
        self.transfer(queue, kind, ids, To::Queue(target))
    }

    /// Creates a queue, unless it is there; returns whether it was created. The order is one of [`QueueInfo::order`](super::QueueInfo::order).
    ///
    /// # Errors
    ///
    /// [`StoreError::OtherOrder`] if the queue is there, [`Io`](StoreError::Io) if there is no such order, or
    /// [`Poisoned`](StoreError::Poisoned).
    pub fn create(&self, queue: &str, order: &str, closed: bool) -> Result<bool, StoreError> {
        let tags = [OrderTag::Fifo, OrderTag::ByKey, OrderTag::ByPriority];
        let tag = tags.into_iter().find(|tag| tag.name() == order);
        let unknown = || io::Error::new(io::ErrorKind::InvalidInput, format!("no order {order:?}"));
        let (store, tag) = (&self.store.inner, tag.ok_or_else(unknown)?);
        let _open = store.enter(queue)?;
        let is_new = store.find(queue).is_none();
        let queue = store.queue(queue, tag)?;
        if is_new {
            let batch = Batch::of([Change::Close(queue, closed)]);
            store.log.commit(&mut [batch], Durability::Synced)?;
        }
        Ok(is_new)
    }

    /// Adds records to the end of a queue, in one commit; returns how many. They get new numbers; all else that [`ItemInfo`] and
    /// [`LetterInfo`] say of them is kept. The capacity of the queue and the unique keys of its items are not known here.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// use requeue_durable::{ItemInfo, Record};
    ///
    /// store.queue("jobs")?.push("first".to_string())?;
    /// let inspector = store.inspector();
    /// let items: Vec<ItemInfo> = inspector.items("jobs", ..)?.collect::<Result<_, _>>()?;
    /// inspector.insert("jobs", items.into_iter().map(Record::Item))?;
    /// assert_eq!(store.queue::<String>("jobs")?.pop_batch(3)?, ["first", "first"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`requeue`](Self::requeue), or [`DiskFull`](StoreError::DiskFull); then none was added.
    pub fn insert(
        &self,
        queue: &str,
        records: impl IntoIterator<Item = Record>,
    ) -> Result<usize, StoreError> {
        let (store, target) = (&self.store.inner, self.find(queue)?);
        let _open = store.enter(queue)?;
        let (mut batch, mut count) = (Batch::default(), 0);
        for record in records {
            store.add(&mut batch, target, record)?;
            count += 1;
        }
        if count > 0 {
            store.forget_keys(&mut batch, target);
            store.log.commit(&mut [batch], Durability::Synced)?;
        }
        Ok(count)
    }

    fn transfer(
        &self,
        name: &str,
        kind: Kind,
        ids: impl RangeBounds<u64>,
        to: To<'_>,
    ) -> Result<usize, StoreError> {
        let (store, queue) = (&self.store.inner, self.find(name)?);
        let _open = store.enter(name)?;
        let (mut batch, mut count) = (Batch::default(), 0);
        for record in self.records(name, kind, ids)? {
            let (id, record) = record?;
            let (key, now) = (Key { queue, id }, store.wall_time());
            if kind == Kind::Items {
                store.know_mark(key)?;
            }
            count += 1;
            match (record, to) {
                (Record::Item(item), To::Letters(error)) => {
                    // The row of the item is removed with that.
                    store.bury(&mut batch, key, buried(item, error, now));
                    continue;
                }
                (Record::DeadLetter(letter), To::Ready) => {
                    let item = Record::Item(requeued(letter, now));
                    store.add(&mut batch, queue, item)?;
                }
                (record, To::Queue(target)) => store.add(&mut batch, target, record)?,
                _ => {}
            }
            match kind {
                Kind::Items => Run::add_each(&mut batch.removes, queue, iter::once(id)),
                Kind::DeadLetters => batch.others.push(Change::Unbury(key)),
            }
        }
        if count > 0 {
            match to {
                To::Queue(target) => store.forget_keys(&mut batch, target),
                To::Ready => store.forget_keys(&mut batch, queue),
                _ => {}
            }
            store.log.commit(&mut [batch], Durability::Synced)?;
        }
        Ok(count)
    }

    /// Those of a kind whose numbers are in a range, with these.
    fn records(
        &self,
        queue: &str,
        kind: Kind,
        ids: impl RangeBounds<u64>,
    ) -> Result<Records, StoreError> {
        let ids = (ids.start_bound().cloned(), ids.end_bound().cloned());
        let (items, letters) = match kind {
            Kind::Items => (Some(self.known_items(queue, ids, true)?), None),
            Kind::DeadLetters => (None, Some(self.letters(queue, ids)?)),
        };
        let items = items.into_iter().flatten();
        let items = items.map(|item| item.map(|item| (item.id, Record::Item(item))));
        let letters = letters.into_iter().flatten();
        let letters = letters.map(|letter| letter.map(|it| (it.id, Record::DeadLetter(it))));
        Ok(Box::new(items.chain(letters)))
    }
}

/// A new item of a dead letter. Without the time of the push, which is that of the next opening then.
fn requeued(letter: LetterInfo, now: u64) -> ItemInfo {
    let now = super::from_millis(now);
    ItemInfo {
        priority: letter.priority,
        due: letter.due.map(|due| due.max(now)),
        ..ItemInfo::new(letter.bytes)
    }
}

fn buried(item: ItemInfo, error: &str, now: u64) -> LetterRow {
    LetterRow {
        item: item.id,
        attempts: item.attempts,
        reason: Cause::Failed(Reason::Failed).to_byte(),
        error: Some(error.to_owned()),
        died: now,
        schedule: schedule(item.priority, item.due),
        item_bytes: item.bytes,
    }
}

fn schedule(priority: Option<u16>, due: Option<SystemTime>) -> Option<Schedule> {
    (priority.is_some() || due.is_some()).then(|| Schedule {
        priority: priority.unwrap_or(DEFAULT_PRIORITY),
        due: due.map(to_millis),
    })
}

impl StoreInner {
    fn new_id(&self) -> u64 {
        // Relaxed: numbers only have to differ.
        self.log.disk().next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// A queue gets items without rows of their unique keys: it gets all of them when it is opened.
    fn forget_keys(&self, batch: &mut Batch, queue: u32) {
        let catalog = self.log.disk().catalog();
        if catalog
            .queues
            .get(queue)
            .is_some_and(|row| row.index.has_keys)
        {
            batch.others.push(Change::HasKeys(queue, false));
        }
    }

    /// Adds a record to the changes, as a new one of a queue.
    fn add(&self, batch: &mut Batch, queue: u32, record: Record) -> Result<(), StoreError> {
        let key = Key {
            queue,
            id: self.new_id(),
        };
        match record {
            Record::Item(item) => self.push(batch, key, &item),
            Record::DeadLetter(letter) => {
                // An item that comes and goes in one group is not written, so only the letter is.
                self.push(batch, key, &ItemInfo::new(Vec::new()))?;
                let row = LetterRow {
                    item: key.id,
                    attempts: letter.attempts,
                    reason: letter.reason.to_byte(),
                    error: letter.error,
                    died: to_millis(letter.died_at),
                    schedule: schedule(letter.priority, letter.due),
                    item_bytes: letter.bytes,
                };
                self.bury(batch, key, row);
                Ok(())
            }
        }
    }

    fn push(&self, batch: &mut Batch, key: Key, item: &ItemInfo) -> Result<(), StoreError> {
        let front = Front {
            schedule: schedule(item.priority, item.due),
            pushed: item.pushed.map(to_millis),
        };
        if front.pushed.is_some() {
            self.log.disk().upgrade(WITH_TIMES)?;
        }
        batch.push_values(front, iter::once(&item.bytes), |item, bytes| {
            bytes.extend_from_slice(item);
            Ok(())
        })?;
        Run::add(&mut batch.pushes, key, 1);
        let attempts = item.attempts;
        if let Some(delayed) = item.delayed {
            let change = Change::Delayed(key, attempts, to_millis(delayed));
            batch.others.push(change);
        } else if attempts > 0 {
            batch.others.push(Change::Delivered(key, attempts));
        }
        if let Some(error) = &item.error {
            let change = Change::Failed(key, attempts, error.clone());
            batch.others.push(change);
        }
        Ok(())
    }

    fn bury(&self, batch: &mut Batch, item: Key, row: LetterRow) {
        let id = self.new_id();
        batch.bury(Key { id, ..item }, row);
    }

    /// The mark of an item goes with it, if it is known: those of queues that were not opened are not.
    fn know_mark(&self, key: Key) -> Result<(), StoreError> {
        let (disk, bytes) = (self.log.disk(), key.to_bytes());
        if let Some(mark) = disk.tables[MARKS].get(bytes)? {
            let known = (decode_row(&bytes, &mark)?, row_digest(key, &mark));
            disk.catalog().marks.insert(key, known);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;

    #[test]
    fn what_is_known_of_deliveries_goes_with_its_item() {
        let files = tempfile::tempdir().unwrap();
        let store = Store::open(files.path()).unwrap();
        let jobs = store.builder::<u8>("jobs").max_attempts(3).build().unwrap();
        jobs.push_batch([1, 2]).unwrap();
        let tx = jobs.begin_owned();
        tx.pop_batch(2).unwrap();
        tx.abort();
        drop((jobs, store));
        let store = Store::open(files.path()).unwrap();
        let marks = || store.inner.log.disk().tables[MARKS].len().unwrap();
        assert_eq!(marks(), 2);
        let (inspector, first) = (store.inspector(), ..=1);
        assert_eq!(inspector.remove("jobs", Kind::Items, first).unwrap(), 1);
        assert_eq!(marks(), 1);
        assert_eq!(
            inspector.move_to("jobs", Kind::Items, .., "jobs").unwrap(),
            1
        );
        assert_eq!(marks(), 1);
        assert_eq!(inspector.bury("jobs", .., "no more").unwrap(), 1);
        assert_eq!(marks(), 0);
    }
}
