//! The storage engine, and what a group of commits changes in it.

use super::directory::Directory;
use super::journal::{self, Alone};
use super::salvage::salvage;
use super::tables::{guarded, visit, Tables};
use super::witness::Witness;
use crate::batch::{Batch, Change, Run};
use crate::error::{Damage, StoreError};
use crate::format::{
    decode_row, encode_row, open, queue_digest, row_digest, seal, Digest, Key, LetterRow, Mark,
    QueueRow, StoreRow, STORE_ROW,
};
use fjall::{Keyspace, OwnedWriteBatch, PersistMode};
use parking_lot::{Mutex, MutexGuard};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// How often, and how long, it is waited for tables that are written to give back room.
const RECLAIM_POLLS: u32 = 1_000;
const RECLAIM_POLL: Duration = Duration::from_millis(10);

/// The files of a store.
pub(crate) struct Disk {
    pub(crate) tables: Tables,
    witness: Witness,
    books: Mutex<Books>,
    pub(crate) next_id: AtomicU64,
    /// How much of the disk is kept free for commits without pushes.
    reserve: u64,
    /// How much of the disk was free after the last write.
    free: AtomicU64,
    /// The damage that was accepted.
    pub(crate) salvaged: Option<Damage>,
    /// The last, so that it is locked as long as anything is open.
    directory: Directory,
}

/// What the store has, by count.
pub(crate) struct Books {
    pub(crate) store: StoreRow,
    pub(crate) queues: HashMap<u32, QueueRow>,
    /// The digests of the rows of the queues that are on the disk.
    written: HashMap<u32, u64>,
    /// How many items were removed since their room was given back.
    removed: u64,
    /// The marks of open queues, with their digests.
    pub(crate) marks: HashMap<Key, (Mark, u64)>,
}

impl Disk {
    /// Opens the files of a store. With `accept_damage` what can be read of a damaged store becomes a new one.
    pub(crate) fn open(
        directory: Directory,
        memtable: u64,
        reserve: u64,
        accept_damage: bool,
    ) -> Result<Self, StoreError> {
        let witness = directory.at("acknowledged");
        if !witness.exists() && directory.at("db").exists() && !accept_damage {
            return Err(StoreError::damaged("the file `acknowledged` is missing"));
        }
        let (witness, acknowledged) = match Witness::open(&witness) {
            Err(StoreError::Damaged(_)) if accept_damage => {
                Witness::create(&witness)?;
                Witness::open(&witness)?
            }
            opened => opened?,
        };
        let mut salvaged = None;
        let (tables, books) =
            match Self::open_tables(&directory, acknowledged, memtable, accept_damage) {
                Err(StoreError::Damaged(_)) if accept_damage => {
                    salvaged = Some(salvage(&directory, acknowledged, memtable)?);
                    Self::open_tables(&directory, acknowledged, memtable, false)?
                }
                opened => opened?,
            };
        let disk = Self {
            tables,
            witness,
            next_id: AtomicU64::new(books.store.next_id.max(1)),
            books: Mutex::new(books),
            reserve,
            free: AtomicU64::new(u64::MAX),
            salvaged,
            directory,
        };
        disk.measure();
        Ok(disk)
    }

    fn open_tables(
        directory: &Directory,
        acknowledged: u64,
        memtable: u64,
        accept_damage: bool,
    ) -> Result<(Tables, Books), StoreError> {
        if !directory.tidy()? {
            // It is there as a whole or not at all.
            drop(Tables::open(&directory.at("db.new"), memtable)?);
            directory.put_in_place()?;
        }
        let db = directory.at("db");
        Tables::check_lists(&db)?;
        journal::mend(&db, acknowledged, || {
            Self::tables_alone(directory, memtable)
        })?;
        let tables = Tables::open(&db, memtable)?;
        let books = Books::read(&tables, acknowledged)?;
        if accept_damage {
            books.check_all(&tables)?;
        }
        Ok((tables, books))
    }

    /// What the tables have without the journals.
    #[cold]
    fn tables_alone(directory: &Directory, memtable: u64) -> Result<Alone, StoreError> {
        let alone = Tables::open(&directory.copy_tables()?, memtable).and_then(|tables| {
            let books = Books::read(&tables, 0)?;
            let are_whole = books.check_all(&tables).is_ok();
            let group = books.store.group;
            Ok(Alone { group, are_whole })
        });
        directory.remove_copies()?;
        match alone {
            Err(StoreError::Damaged(_)) => Ok(Alone::default()),
            alone => alone,
        }
    }

    pub(crate) fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock()
    }

    /// Whether a write of `bytes` bytes leaves less free space than is reserved.
    pub(crate) fn is_full(&self, bytes: usize) -> bool {
        let needed = self.reserve.saturating_add(bytes as u64);
        // Relaxed: a threshold, checked again after each write.
        self.reserve > 0 && self.free.load(Ordering::Relaxed) < needed && self.measure() < needed
    }

    fn measure(&self) -> u64 {
        let stat = rustix::fs::statvfs(self.directory.path());
        let free = stat.map_or(u64::MAX, |stat| stat.f_bavail.saturating_mul(stat.f_frsize));
        self.free.store(free, Ordering::Relaxed);
        free
    }

    /// Writes a group of commits.
    pub(crate) fn write(
        &self,
        batch: &mut Batch,
        number: u64,
        sync: bool,
    ) -> Result<(), StoreError> {
        let mode = if sync {
            PersistMode::SyncData
        } else {
            PersistMode::Buffer
        };
        let mut books = self.books.lock();
        let mut group = GroupWriter {
            disk: self,
            books: &mut books,
            rows: self.tables.database.batch().durability(Some(mode)),
            pushed: Pushed::of(&batch.pushes, batch.lengths.len()),
            removed: HashSet::new(),
            changed: Vec::new(),
        };
        group.items(batch);
        group.rest(batch)?;
        group.counts(number);
        group.rows.commit()?;
        if sync {
            self.witness.write(number)?;
        }
        let removed = books.removed_most();
        drop(books);
        // A push that is as large as the reserve shall fit again.
        if self.measure() < self.reserve.saturating_mul(2) && removed {
            self.reclaim();
        }
        Ok(())
    }

    /// Lets the storage engine give back the room of removed items. By itself it does so only much later.
    #[cold]
    fn reclaim(&self) {
        let tables = self.tables.all();
        for table in tables {
            // An error is one of the next commit too.
            let _ = guarded(|| Ok(table.rotate_memtable()?));
        }
        for _ in 0..RECLAIM_POLLS {
            let sealed = guarded(|| Ok(tables.map(Keyspace::sealed_memtable_count)));
            if sealed.is_ok_and(|sealed| sealed == [0; 5]) {
                let _ = guarded(|| Ok(self.tables.items.major_compact()?));
                break;
            }
            thread::sleep(RECLAIM_POLL);
        }
        self.books.lock().removed = 0;
        self.measure();
    }
}

impl Books {
    /// Reads the books of a store, and checks that they are those of the last acknowledged commit.
    fn read(tables: &Tables, acknowledged: u64) -> Result<Self, StoreError> {
        let (mut store, mut queues) = (StoreRow::default(), HashMap::new());
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
    fn removed_most(&self) -> bool {
        let items = self.queues.values().map(|row| row.items.count);
        self.removed > items.sum()
    }

    /// Checks all rows, as each queue does when it is opened.
    fn check_all(&self, tables: &Tables) -> Result<(), StoreError> {
        let mut found: HashMap<u32, QueueRow> = self.queues.clone();
        for row in found.values_mut() {
            (row.items, row.letters, row.marks) = Default::default();
        }
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
        if found == self.queues {
            Ok(())
        } else {
            Err(StoreError::damaged(
                "the rows of a queue are not those that were committed",
            ))
        }
    }
}

/// A group that is being written.
struct GroupWriter<'d> {
    disk: &'d Disk,
    books: &'d mut Books,
    rows: OwnedWriteBatch,
    pushed: Pushed,
    /// The removed items that it did not push, if it has changes that depend on them.
    removed: HashSet<u64>,
    changed: Vec<(u32, Counts)>,
}

/// How the counts of a queue change.
#[derive(Default)]
struct Counts {
    items: Digest,
    letters: Digest,
    marks: Digest,
    closed: Option<bool>,
}

impl GroupWriter<'_> {
    /// Pushes and removals. An item that the group pushes and removes is not written: the storage engine keeps no order
    /// within a batch.
    fn items(&mut self, batch: &mut Batch) {
        let depends = !batch.others.is_empty();
        for key in batch.removes.iter().flat_map(|run| run.keys()) {
            self.remove(key, depends);
        }
        for change in &batch.others {
            if let Change::Bury(key, letter) = change {
                let id = letter.item;
                self.remove(Key { id, ..*key }, depends);
            }
        }
        let keys = batch.pushes.iter().flat_map(|run| run.keys());
        let mut rest = &mut batch.values[..];
        for (key, length) in keys.zip(&batch.lengths) {
            let (value, after) = rest.split_at_mut(*length as usize);
            rest = after;
            if self.pushed.get(key.id) == Fate::Pushed {
                self.insert(key, value);
            }
        }
    }

    fn insert(&mut self, key: Key, value: &mut [u8]) {
        let bytes = key.to_bytes();
        seal(&bytes, value);
        self.rows.insert(&self.disk.tables.items, bytes, &*value);
        self.counts_of(key.queue).items.add(key.digest());
    }

    fn remove(&mut self, key: Key, depends: bool) {
        if self.pushed.get(key.id) == Fate::Pushed {
            self.pushed.set(key.id, Fate::Cancelled);
            return;
        }
        self.rows.remove(&self.disk.tables.items, key.to_bytes());
        self.books.removed += 1;
        self.counts_of(key.queue).items.remove(key.digest());
        if depends {
            self.removed.insert(key.id);
        }
        if self.books.marks.is_empty() {
            return;
        }
        self.remove_mark(key);
    }

    fn remove_mark(&mut self, key: Key) {
        if let Some((_, digest)) = self.books.marks.remove(&key) {
            self.rows.remove(&self.disk.tables.marks, key.to_bytes());
            self.counts_of(key.queue).marks.remove(digest);
        }
    }

    fn is_gone(&self, id: u64) -> bool {
        self.removed.contains(&id) || self.pushed.get(id) == Fate::Cancelled
    }

    /// The changes that are not of items alone.
    fn rest(&mut self, batch: &mut Batch) -> Result<(), StoreError> {
        let mut marks = HashMap::new();
        let mut letters = HashMap::new();
        for change in batch.others.drain(..) {
            match change {
                Change::Delivered(key, attempts) => self.mark(&mut marks, key, |mark| {
                    (mark.attempts, mark.delayed) = (attempts, None);
                }),
                Change::Delayed(key, attempts, due) => self.mark(&mut marks, key, |mark| {
                    (mark.attempts, mark.delayed) = (attempts, Some(due));
                }),
                Change::Rescheduled(key, schedule) => {
                    // The item may have been popped since its schedule was changed in memory.
                    let pushed = self.pushed.get(key.id) == Fate::Pushed;
                    if pushed || self.disk.tables.items.contains_key(key.to_bytes())? {
                        self.mark(&mut marks, key, |mark| mark.schedule = Some(schedule));
                    }
                }
                Change::Bury(key, letter) => drop(letters.insert(key, Some(letter))),
                Change::Unmark(key) => {
                    marks.remove(&key);
                    self.remove_mark(key);
                }
                // One that the group wrote is not written after all.
                Change::Unbury(key) if letters.remove(&key).is_some() => {}
                Change::Unbury(key) => drop(letters.insert(key, None)),
                Change::Close(queue, closed) => self.counts_of(queue).closed = Some(closed),
                Change::Remove(queue) => self.remove_queue(queue)?,
            }
        }
        for (key, mark) in marks {
            self.write_mark(key, mark);
        }
        for (key, letter) in letters {
            self.write_letter(key, letter);
        }
        Ok(())
    }

    fn write_letter(&mut self, key: Key, letter: Option<LetterRow>) {
        let bytes = key.to_bytes();
        let letters = &mut self.counts_of(key.queue).letters;
        if let Some(letter) = letter {
            letters.add(key.digest());
            let row = encode_row(&bytes, &letter);
            self.rows.insert(&self.disk.tables.letters, bytes, row);
        } else {
            letters.remove(key.digest());
            self.rows.remove(&self.disk.tables.letters, bytes);
        }
    }

    /// Nothing else in the group is of this queue.
    fn remove_queue(&mut self, queue: u32) -> Result<(), StoreError> {
        let tables = &self.disk.tables;
        let key = |id| Key { queue, id }.to_bytes();
        for table in [&tables.items, &tables.marks, &tables.letters] {
            visit(table, key(0)..=key(u64::MAX), |key, _| {
                self.rows.remove(table, key);
                Ok(())
            })?;
        }
        self.rows.remove(&tables.queues, queue.to_be_bytes());
        if let Some(digest) = self.books.written.remove(&queue) {
            self.books.store.queues.remove(digest);
        }
        self.books.queues.remove(&queue);
        self.books.marks.retain(|key, _| key.queue != queue);
        Ok(())
    }

    /// Changes the mark of an item that is still there.
    fn mark(&self, marks: &mut HashMap<Key, Mark>, key: Key, change: impl FnOnce(&mut Mark)) {
        if self.is_gone(key.id) {
            return;
        }
        let known = || {
            self.books
                .marks
                .get(&key)
                .map_or_else(Mark::default, |known| known.0)
        };
        change(marks.entry(key).or_insert_with(known));
    }

    fn write_mark(&mut self, key: Key, mark: Mark) {
        let bytes = key.to_bytes();
        let value = encode_row(&bytes, &mark);
        let digest = row_digest(key, &value);
        let before = self.books.marks.insert(key, (mark, digest));
        let marks = &mut self.counts_of(key.queue).marks;
        if let Some((_, before)) = before {
            marks.remove(before);
        }
        marks.add(digest);
        self.rows.insert(&self.disk.tables.marks, bytes, value);
    }

    /// How the counts of a queue change: groups change few queues.
    fn counts_of(&mut self, queue: u32) -> &mut Counts {
        let known = self.changed.iter().position(|(known, _)| *known == queue);
        let index = known.unwrap_or_else(|| {
            self.changed.push((queue, Counts::default()));
            self.changed.len() - 1
        });
        &mut self.changed[index].1
    }

    /// Writes the counts.
    fn counts(&mut self, number: u64) {
        for (queue, counts) in self.changed.drain(..) {
            let row = self.books.queues.get_mut(&queue);
            let row = row.expect("the row of a queue is there before its first change");
            row.items.merge(counts.items);
            row.letters.merge(counts.letters);
            row.marks.merge(counts.marks);
            row.closed = counts.closed.unwrap_or(row.closed);
            let key = queue.to_be_bytes();
            let row = encode_row(&key, row);
            let (queues, digest) = (&mut self.books.store.queues, queue_digest(queue, &row));
            if let Some(before) = self.books.written.insert(queue, digest) {
                queues.remove(before);
            }
            queues.add(digest);
            self.rows.insert(&self.disk.tables.queues, key, row);
        }
        self.books.store.group = number;
        // Relaxed: an item's number is in its batch, so it was taken before the group was.
        self.books.store.next_id = self.disk.next_id.load(Ordering::Relaxed);
        let row = encode_row(STORE_ROW, &self.books.store);
        self.rows.insert(&self.disk.tables.store, STORE_ROW, row);
    }
}

/// What a group does with the items that it pushes.
struct Pushed {
    /// The fates of items by number, from this one on: their numbers are nearly consecutive.
    base: u64,
    fates: Vec<Fate>,
    /// Those that were numbered long before.
    older: HashMap<u64, Fate>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The group does not push it.
    Absent,
    Pushed,
    /// The group pushes and removes it.
    Cancelled,
}

impl Pushed {
    fn of(runs: &[Run], count: usize) -> Self {
        let end = runs.iter().map(|run| run.end()).max().unwrap_or(0);
        let first = runs.iter().map(|run| run.first).min().unwrap_or(0);
        let base = first.max(end.saturating_sub(8 * count as u64 + 1024));
        let mut fates = Self {
            base,
            fates: vec![Fate::Absent; usize::try_from(end - base).unwrap_or(0)],
            older: HashMap::new(),
        };
        for key in runs.iter().flat_map(|run| run.keys()) {
            fates.set(key.id, Fate::Pushed);
        }
        fates
    }

    fn index(&self, id: u64) -> Option<usize> {
        id.checked_sub(self.base)
            .and_then(|index| usize::try_from(index).ok())
    }

    fn get(&self, id: u64) -> Fate {
        let fate = match self.index(id) {
            Some(index) => self.fates.get(index),
            None => self.older.get(&id),
        };
        fate.copied().unwrap_or(Fate::Absent)
    }

    fn set(&mut self, id: u64, fate: Fate) {
        match self.index(id).and_then(|index| self.fates.get_mut(index)) {
            Some(known) => *known = fate,
            None => drop(self.older.insert(id, fate)),
        }
    }
}
