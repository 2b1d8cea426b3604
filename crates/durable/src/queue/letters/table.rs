//! The dead letters that a queue keeps.

use super::{Cause, DeadLetter};
use crate::batch::{Batch, Change, Run};
use crate::codec::CodecError;
use crate::error::StoreError;
use crate::format::LetterRow;
use crate::log::Urgency;
use crate::order::{Engine, EntryOf};
use crate::queue::shared::Shared;
use parking_lot::{Condvar, Mutex};
use requeue::{AfterTtl, Reason};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, UNIX_EPOCH};

/// The dead letters of a queue, by number.
pub(crate) struct Letters<T> {
    pub(crate) rows: Mutex<BTreeMap<u64, LetterRow>>,
    /// Those whose items could not be read. They are written when their items can be read.
    pub(in crate::queue) unread: Mutex<Vec<LetterRow>>,
    /// Those that are known not to be decodable, which the limit does not count.
    undecodable: Mutex<BTreeSet<u64>>,
    arrivals: Mutex<Arrivals>,
    /// A letter was added.
    arrived: Condvar,
    limit: Option<Limit<T>>,
}

/// Items that died in memory.
#[derive(Default)]
struct Arrivals {
    /// How many have become letters.
    added: u64,
    /// How many of the others nobody waits for any more.
    skipped: u64,
}

/// How many letters a queue keeps, and who gets the ones beyond.
pub(crate) struct Limit<T> {
    pub(crate) most: usize,
    pub(crate) overflow: Arc<dyn Fn(DeadLetter<T>) + Send + Sync>,
}

/// How long a commit waits for another thread to add a letter.
const PATIENCE: Duration = Duration::from_millis(100);

/// Counts a letter as added when it is dropped.
struct Added<'l, T>(&'l Letters<T>);

impl<T> Drop for Added<'_, T> {
    fn drop(&mut self) {
        self.0.arrivals.lock().added += 1;
        self.0.arrived.notify_all();
    }
}

impl<T> Letters<T> {
    pub(crate) fn new(rows: BTreeMap<u64, LetterRow>, limit: Option<Limit<T>>) -> Self {
        Self {
            rows: Mutex::new(rows),
            unread: Mutex::default(),
            undecodable: Mutex::default(),
            arrivals: Mutex::default(),
            arrived: Condvar::new(),
            limit,
        }
    }

    /// Takes a letter out of memory.
    pub(super) fn take(&self, id: u64) -> Option<LetterRow> {
        let mut rows = self.rows.lock();
        self.undecodable.lock().remove(&id);
        rows.remove(&id)
    }

    /// One that the limit does not count, if it is still there.
    fn keep_undecodable(&self, id: u64) {
        let rows = self.rows.lock();
        if rows.contains_key(&id) {
            self.undecodable.lock().insert(id);
        }
    }

    /// The oldest letter beyond the limit.
    fn oldest_beyond(&self, most: usize) -> Option<(u64, LetterRow)> {
        let rows = self.rows.lock();
        let undecodable = self.undecodable.lock();
        if rows.len() - undecodable.len() <= most {
            return None;
        }
        // Letters become known as undecodable from the oldest on.
        let after = undecodable.last().map_or(0, |last| last + 1);
        let (id, row) = rows.range(after..).next()?;
        Some((*id, row.clone()))
    }
}

impl<T: Send + 'static, O: Engine<T>> Shared<T, O> {
    /// Writes an item that became a dead letter, without a wait. In memory all items are, whose time to live is over; here some
    /// are removed.
    pub(in crate::queue) fn bury(self: &Arc<Self>, letter: requeue::DeadLetter<EntryOf<T, O>>) {
        let _added = Added(&self.letters);
        let pages = self.pages.get().and_then(Weak::upgrade);
        let pages = pages.filter(|_| letter.reason == Reason::TimedOut);
        if letter.reason == Reason::TimedOut && self.after_ttl == Some(AfterTtl::Drop) {
            let mut batch = Batch::default();
            Run::add(&mut batch.removes, self.key(letter.item.id), 1);
            self.log().note(batch);
            // Relaxed: statistics.
            self.timed_out.fetch_add(1, Ordering::Relaxed);
        } else {
            let cause = Cause::Failed(letter.reason);
            let item = &letter.item;
            let mut row = self.new_letter(item.id, letter.attempts, cause, letter.error());
            match self.complete(&mut row, item.item.as_ref()) {
                Ok(()) => self.add_letters(vec![(self.new_ids(1), row)]),
                Err(_) => self.letters.unread.lock().push(row),
            }
        }
        if let Some(pages) = pages {
            pages.lose(letter.item);
        }
    }

    /// Waits until the items that died in memory so far are letters: another thread may be adding them. It is about to, unless
    /// its user code fails, so not for ever.
    pub(crate) fn await_letters(&self, died: u64) {
        let until = Instant::now() + PATIENCE;
        let mut arrivals = self.letters.arrivals.lock();
        loop {
            let missing = died.saturating_sub(arrivals.added);
            let is_late = missing > arrivals.skipped;
            if is_late && Instant::now() < until {
                self.letters.arrived.wait_until(&mut arrivals, until);
                continue;
            }
            // Those that came after all are waited for again, and nobody waits twice for the others.
            arrivals.skipped = missing;
            return;
        }
    }

    /// A dead letter that has to be [completed](Self::complete).
    pub(in crate::queue) fn new_letter(
        &self,
        item: u64,
        attempts: u32,
        cause: Cause,
        error: Option<&str>,
    ) -> LetterRow {
        LetterRow {
            item,
            attempts,
            reason: cause.to_byte(),
            error: error.map(str::to_owned),
            died: self.store.wall_time(),
            schedule: None,
            item_bytes: Vec::new(),
        }
    }

    /// Adds its item to a dead letter: as it is in memory, or, if that cannot be encoded, as it is on the disk.
    pub(in crate::queue) fn complete(
        &self,
        row: &mut LetterRow,
        item: Option<&T>,
    ) -> Result<(), StoreError> {
        let encode = |item| {
            let mut bytes = Vec::new();
            let encoded = self.codec.encode(item, &mut bytes);
            encoded.is_ok().then_some(bytes)
        };
        row.schedule = self.schedule_of(row.item)?;
        row.item_bytes = match item.and_then(encode) {
            Some(bytes) => bytes,
            None => self.read_bytes(row.item)?,
        };
        Ok(())
    }

    /// Writes the letters whose items could not be read.
    pub(in crate::queue) fn write_unread(self: &Arc<Self>) -> Result<(), StoreError> {
        let mut unread = self.letters.unread.lock();
        while let Some(row) = unread.first_mut() {
            self.complete(row, None)?;
            self.add_letters(vec![(self.new_ids(1), unread.remove(0))]);
        }
        Ok(())
    }

    /// Adds dead letters, which are written without a wait. The oldest ones beyond the limit are removed.
    pub(crate) fn add_letters(self: &Arc<Self>, new: Vec<(u64, LetterRow)>) {
        let mut batch = Batch::default();
        for (id, row) in &new {
            batch.bury(self.key(*id), row.clone());
        }
        // Until they are in the log: a removal is later there.
        let mut rows = self.letters.rows.lock();
        rows.extend(new);
        self.log().note(batch);
        drop(rows);
        if let Some(limit) = &self.letters.limit {
            self.remove_beyond(limit);
        }
    }

    /// Removes the oldest letters beyond the limit. Those that cannot be decoded stay: nobody could get them.
    fn remove_beyond(self: &Arc<Self>, limit: &Limit<T>) {
        let (mut batch, mut excess) = (Batch::default(), Vec::new());
        while let Some((id, row)) = self.letters.oldest_beyond(limit.most) {
            // The codec is code of users.
            let letter = catch_unwind(AssertUnwindSafe(|| self.letter(id, row)));
            let Ok(Ok(letter)) = letter else {
                self.letters.keep_undecodable(id);
                continue;
            };
            if self.letters.take(id).is_some() {
                batch.others.push(Change::Unbury(self.key(id)));
                excess.push(letter);
            }
        }
        if excess.is_empty() {
            return;
        }
        let overflow = Arc::clone(&limit.overflow);
        let then = move |written: Result<(), StoreError>| {
            if written.is_ok() {
                for letter in excess {
                    overflow(letter);
                }
            }
        };
        // On an error nothing was removed, and nothing is written any more.
        self.log()
            .add_then(&mut batch, Urgency::Sync, Box::new(then));
    }

    pub(super) fn letter_item(&self, row: &LetterRow) -> Result<T, CodecError> {
        let item = self.codec.decode(&row.item_bytes);
        item.map_err(|error| error.at(&self.name, Some(row.item)))
    }

    pub(super) fn letter(&self, id: u64, row: LetterRow) -> Result<DeadLetter<T>, StoreError> {
        Ok(DeadLetter {
            item: self.letter_item(&row)?,
            attempts: row.attempts,
            reason: Cause::from_byte(row.reason),
            error: row.error,
            died_at: UNIX_EPOCH + Duration::from_millis(row.died),
            id,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Added;
    use crate::entry::Entry;
    use crate::format::ITEMS;
    use crate::{Store, StoreError};

    #[test]
    fn a_letter_whose_item_cannot_be_read_is_counted_and_written_later() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let build = |store: &Store| store.builder::<u32>("jobs").memory(0).build().unwrap();
        let jobs = build(&store);
        jobs.push_batch([7, 8]).unwrap();
        let tx = jobs.begin_owned();
        let job = tx.pop().unwrap();
        let key = jobs.shared.key(job.ram.id).to_bytes();
        let items = &store.inner.log.disk().tables[ITEMS];
        let row = items.get(key).unwrap().unwrap();
        items.remove(key).unwrap();
        let mut tx = tx;
        let items_in_memory = tx.core_mut().ram.items();
        items_in_memory.for_each(|mut job| *job = Entry::on_disk(job.id, (), None));
        tx.fail_all("no good").unwrap();
        let letters = jobs.dead_letters();
        assert_eq!(letters.len(), 1);
        assert!(matches!(letters.oldest(), Err(StoreError::Damaged(_))));
        assert!(matches!(letters.all(), Err(StoreError::Damaged(_))));
        items.insert(key, row).unwrap();
        assert_eq!(letters.oldest().unwrap().unwrap().item, 7);
        drop((letters, tx, jobs));
        let jobs = build(&store);
        assert_eq!(jobs.dead_letters().requeue_all().unwrap(), 1);
        assert_eq!(jobs.pop_batch(9).unwrap(), [8, 7]);
    }

    #[test]
    fn the_statistics_add_up_after_a_requeue() {
        let files = tempfile::tempdir().unwrap();
        let store = Store::open(files.path()).unwrap();
        let jobs = store.builder::<u32>("jobs").max_attempts(1);
        let jobs = jobs.build().unwrap();
        jobs.push(1).unwrap();
        let tx = jobs.begin_owned();
        assert!(tx.pop().is_ok());
        drop(tx);
        assert_eq!((jobs.dead_letters().len(), jobs.stats().dead), (1, 1));
        jobs.stats().check().unwrap();
        assert_eq!(jobs.dead_letters().requeue_all().unwrap(), 1);
        jobs.stats().check().unwrap();
        assert_eq!(jobs.pop().unwrap(), 1);
        jobs.stats().check().unwrap();
    }

    /// One whose user code failed before it was added, and which another thread would add.
    #[test]
    fn nobody_waits_twice_for_a_letter_that_never_comes() {
        let files = tempfile::tempdir().unwrap();
        let store = Store::open(files.path()).unwrap();
        let jobs = store.queue::<u32>("jobs").unwrap();
        let letters = &jobs.shared.letters;
        let arrivals = || {
            let arrivals = letters.arrivals.lock();
            (arrivals.added, arrivals.skipped)
        };
        jobs.shared.await_letters(3);
        assert_eq!(arrivals(), (0, 3));
        drop(Added(letters));
        jobs.shared.await_letters(4);
        assert_eq!(arrivals(), (1, 3));
        // Those that come late are not counted twice.
        (0..3).for_each(|_| drop(Added(letters)));
        jobs.shared.await_letters(4);
        assert_eq!(arrivals(), (4, 0));
    }

    #[test]
    fn a_dead_letter_has_no_ticket() {
        let files = tempfile::tempdir().unwrap();
        let store = Store::open(files.path()).unwrap();
        let jobs = store.builder::<u32>("jobs").by_priority().max_attempts(1);
        let jobs = jobs.build().unwrap();
        let tickets = jobs.priority(1).push_batch([1, 2]).unwrap();
        jobs.begin_owned().pop().unwrap();
        assert_eq!(jobs.dead_letters().len(), 1);
        let cancelled = tickets
            .into_iter()
            .map(|ticket| jobs.cancel(ticket).unwrap());
        assert!(cancelled.eq([None, Some(2)]));
    }
}
