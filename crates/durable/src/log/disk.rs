//! The storage engine, and what a group of commits changes in it.

use super::witness::Witness;
use crate::batch::{Batch, Change};
use crate::error::{Damage, StoreError};
use crate::format::{decode_row, encode_row, row_digest, seal, Key, Mark, QueueRow, StoreRow};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode};
use parking_lot::{Mutex, MutexGuard};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const STORE_ROW: &[u8] = b"store";

/// The files of a store.
pub(crate) struct Disk {
    database: Database,
    pub(crate) items: Keyspace,
    pub(crate) marks: Keyspace,
    pub(crate) letters: Keyspace,
    queues: Keyspace,
    store: Keyspace,
    witness: Witness,
    books: Mutex<Books>,
    pub(crate) next_id: AtomicU64,
    path: PathBuf,
    /// How much of the disk is kept free for commits without pushes.
    reserve: u64,
    full: AtomicBool,
}

/// What the store has, by count.
pub(crate) struct Books {
    pub(crate) store: StoreRow,
    pub(crate) queues: HashMap<u32, QueueRow>,
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
    pub(crate) fn open(
        path: &Path,
        memtable: u64,
        reserve: u64,
        accept_damage: bool,
    ) -> Result<Self, StoreError> {
        let database = Database::builder(path.join("db"))
            .manual_journal_persist(true)
            .open()
            .map_err(|error| match error {
                fjall::Error::Locked => StoreError::Locked(path.to_owned()),
                error => error.into(),
            })?;
        let options = || KeyspaceCreateOptions::default().max_memtable_size(memtable);
        let keyspace = |name| database.keyspace(name, options);
        let (items, marks) = (keyspace("items")?, keyspace("marks")?);
        let (letters, queues, store) = (
            keyspace("letters")?,
            keyspace("queues")?,
            keyspace("store")?,
        );

        let row = store.get(STORE_ROW)?;
        let row = row.map_or(Ok(StoreRow::default()), |row| decode_row(STORE_ROW, &row));
        let mut row: StoreRow = if accept_damage {
            row.unwrap_or_default()
        } else {
            row?
        };
        let (witness, acknowledged) = match Witness::open(&path.join("acknowledged")) {
            Err(StoreError::Damaged(_)) if accept_damage => {
                std::fs::remove_file(path.join("acknowledged"))?;
                Witness::open(&path.join("acknowledged"))?
            }
            witness => witness?,
        };
        if row.group < acknowledged {
            if !accept_damage {
                return Err(StoreError::Damaged(Damage {
                    commits: acknowledged - row.group,
                    details: "the end of the journal is missing or damaged".into(),
                    ..Damage::default()
                }));
            }
            row.group = acknowledged;
        }
        let mut rows = HashMap::new();
        for guard in queues.iter() {
            let (key, value) = guard.into_inner()?;
            let id = <[u8; 4]>::try_from(&*key).map(u32::from_be_bytes);
            let id = id.map_err(|_| StoreError::damaged("a queue has no number"))?;
            match decode_row::<QueueRow>(&key, &value) {
                Ok(queue) => drop(rows.insert(id, queue)),
                Err(_) if accept_damage => {}
                Err(error) => return Err(error),
            }
        }
        let next_id = AtomicU64::new(row.next_id.max(1));
        let disk = Self {
            database,
            items,
            marks,
            letters,
            queues,
            store,
            witness,
            books: Mutex::new(Books {
                store: row,
                queues: rows,
                marks: HashMap::new(),
            }),
            next_id,
            path: path.to_owned(),
            reserve,
            full: AtomicBool::new(false),
        };
        disk.measure();
        Ok(disk)
    }

    pub(crate) fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock()
    }

    /// Whether the disk has less room than is reserved.
    pub(crate) fn is_full(&self) -> bool {
        // Relaxed: a threshold, checked again after each write.
        self.full.load(Ordering::Relaxed) && self.measure()
    }

    fn measure(&self) -> bool {
        let full = rustix::fs::statvfs(&self.path)
            .is_ok_and(|stat| stat.f_bavail.saturating_mul(stat.f_frsize) < self.reserve);
        self.full.store(full, Ordering::Relaxed);
        full
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
            rows: self.database.batch().durability(Some(mode)),
            touched: HashSet::new(),
        };
        writing.changes(batches)?;
        writing.counts(number);
        writing.rows.commit()?;
        if sync {
            self.witness.write(number)?;
        }
        drop(books);
        self.measure();
        Ok(())
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
        self.rows.insert(&self.disk.items, bytes, &*value);
        self.queue(key.queue).items.add(key.digest());
    }

    fn remove(&mut self, key: Key, is_written: bool) {
        if is_written {
            self.rows.remove(&self.disk.items, key.to_bytes());
            self.queue(key.queue).items.remove(key.digest());
        }
        if let Some((_, digest)) = self.books.marks.remove(&key) {
            self.rows.remove(&self.disk.marks, key.to_bytes());
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
                if self.disk.items.contains_key(key.to_bytes())? {
                    self.mark(key, gone, |mark| mark.schedule = Some(schedule));
                }
            }
            Change::Bury(key, letter) => {
                let bytes = key.to_bytes();
                self.rows
                    .insert(&self.disk.letters, bytes, encode_row(&bytes, &letter));
                self.queue(key.queue).letters.add(key.digest());
            }
            Change::Unbury(key) => {
                self.rows.remove(&self.disk.letters, key.to_bytes());
                self.queue(key.queue).letters.remove(key.digest());
            }
            Change::Close(queue, closed) => self.queue(queue).closed = closed,
            Change::Remove(queue) => self.remove_queue(queue)?,
        }
        Ok(())
    }

    /// Nothing else in the group is of this queue.
    fn remove_queue(&mut self, queue: u32) -> Result<(), StoreError> {
        let disk = self.disk;
        let key = |id| Key { queue, id }.to_bytes();
        for rows in [&disk.items, &disk.marks, &disk.letters] {
            for row in rows.range(key(0)..=key(u64::MAX)) {
                self.rows.remove(rows, row.key()?);
            }
        }
        self.rows.remove(&disk.queues, queue.to_be_bytes());
        self.books.queues.remove(&queue);
        self.books.marks.retain(|key, _| key.queue != queue);
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
        self.rows.insert(&self.disk.marks, bytes, value);
    }

    /// Writes the counts that the group changes.
    fn counts(&mut self, number: u64) {
        for id in self.touched.drain() {
            let key = id.to_be_bytes();
            let row = encode_row(&key, &self.books.queues[&id]);
            self.rows.insert(&self.disk.queues, key, row);
        }
        self.books.store = StoreRow {
            group: number,
            // Relaxed: an item's number is in its batch, so it was taken before the group was.
            next_id: self.disk.next_id.load(Ordering::Relaxed),
        };
        let row = encode_row(STORE_ROW, &self.books.store);
        self.rows.insert(&self.disk.store, STORE_ROW, row);
    }
}
