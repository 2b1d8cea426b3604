//! The storage engine, and what a group of commits changes in it.

use super::directory::Directory;
use super::journal;
use super::salvage::salvage;
use super::tables::{guarded, visit, Tables};
use super::witness::Witness;
use crate::batch::{Batch, Change};
use crate::error::{Damage, StoreError};
use crate::format::{
    decode_row, encode_row, open, queue_digest, row_digest, seal, Digest, Key, LetterRow, Mark,
    QueueRow, StoreRow, STORE_ROW,
};
use fjall::{OwnedWriteBatch, PersistMode};
use parking_lot::{Mutex, MutexGuard};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
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

/// Keys whose numbers are already spread by a multiplication.
#[derive(Clone, Copy, Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(23) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

type KeySet = HashSet<Key, BuildHasherDefault<KeyHasher>>;

impl Disk {
    /// Opens the files of a store. With `accept_damage` what can be read of a damaged store becomes a new one.
    pub(crate) fn open(
        directory: Directory,
        memtable: u64,
        reserve: u64,
        accept_damage: bool,
    ) -> Result<Self, StoreError> {
        let witness = directory.at("acknowledged");
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
        journal::mend(&db, acknowledged, accept_damage)?;
        let tables = Tables::open(&db, memtable)?;
        let books = Books::read(&tables, acknowledged)?;
        if accept_damage {
            books.check_all(&tables)?;
        }
        Ok((tables, books))
    }

    pub(crate) fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock()
    }

    /// Whether the disk has less room than is reserved, after a write of so many bytes.
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
        batches: &mut [Batch],
        number: u64,
        sync: bool,
    ) -> Result<(), StoreError> {
        let mode = if sync {
            PersistMode::SyncData
        } else {
            PersistMode::Buffer
        };
        let mut books = self.books.lock();
        let mut writing = Writing {
            disk: self,
            books: &mut books,
            rows: self.tables.database.batch().durability(Some(mode)),
            touched: HashSet::new(),
        };
        writing.changes(batches)?;
        writing.counts(number);
        writing.rows.commit()?;
        if sync {
            self.witness.write(number)?;
        }
        let removed = books.removed_most();
        drop(books);
        if self.measure() < self.reserve && removed {
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
            if tables
                .iter()
                .all(|table| table.sealed_memtable_count() == 0)
            {
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
struct Writing<'d> {
    disk: &'d Disk,
    books: &'d mut Books,
    rows: OwnedWriteBatch,
    /// The queues that it changes.
    touched: HashSet<u32>,
}

impl Writing<'_> {
    fn changes(&mut self, batches: &mut [Batch]) -> Result<(), StoreError> {
        // What was removed, and what of that was pushed in this group too: it is not on the disk.
        let mut gone = KeySet::default();
        let mut unwritten = KeySet::default();
        for batch in batches.iter() {
            gone.extend(&batch.removes);
            gone.extend(batch.others.iter().filter_map(|change| match change {
                Change::Bury(key, letter) => Some(Key {
                    id: letter.item,
                    ..*key
                }),
                _ => None,
            }));
        }
        for batch in batches.iter_mut() {
            let mut start = 0;
            for push in &batch.pushes {
                let value = &mut batch.values[start..push.end];
                start = push.end;
                if !gone.is_empty() && gone.contains(&push.key) {
                    unwritten.insert(push.key);
                } else {
                    self.insert(push.key, value);
                }
            }
        }
        for key in &gone {
            self.remove(*key, !unwritten.contains(key));
        }
        for change in batches.iter_mut().flat_map(|batch| batch.others.drain(..)) {
            self.change(change, &gone)?;
        }
        Ok(())
    }

    fn queue(&mut self, queue: u32) -> &mut QueueRow {
        self.touched.insert(queue);
        let row = self.books.queues.get_mut(&queue);
        row.expect("the row of a queue is there before its first change")
    }

    fn insert(&mut self, key: Key, value: &mut [u8]) {
        let bytes = key.to_bytes();
        seal(&bytes, value);
        self.rows.insert(&self.disk.tables.items, bytes, &*value);
        self.queue(key.queue).items.add(key.digest());
    }

    fn remove(&mut self, key: Key, is_written: bool) {
        if is_written {
            self.rows.remove(&self.disk.tables.items, key.to_bytes());
            self.books.removed += 1;
            self.queue(key.queue).items.remove(key.digest());
        }
        if let Some((_, digest)) = self.books.marks.remove(&key) {
            self.rows.remove(&self.disk.tables.marks, key.to_bytes());
            self.queue(key.queue).marks.remove(digest);
        }
    }

    fn change(&mut self, change: Change, gone: &KeySet) -> Result<(), StoreError> {
        match change {
            Change::Delivered(key, attempts) => self.mark(key, gone, |mark| {
                (mark.attempts, mark.delayed) = (attempts, None);
            }),
            Change::Delayed(key, attempts, due) => self.mark(key, gone, |mark| {
                (mark.attempts, mark.delayed) = (attempts, Some(due));
            }),
            Change::Rescheduled(key, schedule) => {
                // The item may have been popped since its schedule was changed in memory.
                if self.disk.tables.items.contains_key(key.to_bytes())? {
                    self.mark(key, gone, |mark| mark.schedule = Some(schedule));
                }
            }
            Change::Bury(key, letter) => {
                let bytes = key.to_bytes();
                self.rows.insert(
                    &self.disk.tables.letters,
                    bytes,
                    encode_row(&bytes, &letter),
                );
                self.queue(key.queue).letters.add(key.digest());
            }
            Change::Unmark(key) => {
                if let Some((_, digest)) = self.books.marks.remove(&key) {
                    self.rows.remove(&self.disk.tables.marks, key.to_bytes());
                    self.queue(key.queue).marks.remove(digest);
                }
            }
            Change::Unbury(key) => {
                self.rows.remove(&self.disk.tables.letters, key.to_bytes());
                self.queue(key.queue).letters.remove(key.digest());
            }
            Change::Close(queue, closed) => self.queue(queue).closed = closed,
        }
        Ok(())
    }

    fn mark(&mut self, key: Key, gone: &KeySet, change: impl FnOnce(&mut Mark)) {
        if gone.contains(&key) {
            return;
        }
        let before = self.books.marks.get(&key).copied();
        let mut mark = before.unwrap_or_default().0;
        change(&mut mark);
        let bytes = key.to_bytes();
        let value = encode_row(&bytes, &mark);
        let digest = row_digest(key, &value);
        self.books.marks.insert(key, (mark, digest));
        let marks = &mut self.queue(key.queue).marks;
        if let Some((_, before)) = before {
            marks.remove(before);
        }
        marks.add(digest);
        self.rows.insert(&self.disk.tables.marks, bytes, value);
    }

    /// Writes the counts that the group changes.
    fn counts(&mut self, number: u64) {
        for id in self.touched.drain() {
            let key = id.to_be_bytes();
            let row = encode_row(&key, &self.books.queues[&id]);
            let (queues, digest) = (&mut self.books.store.queues, queue_digest(id, &row));
            if let Some(before) = self.books.written.insert(id, digest) {
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
