//! The storage engine, and what a group of commits changes in it.

use super::witness::Witness;
use crate::batch::{Batch, Change, Run};
use crate::error::{Damage, StoreError};
use crate::format::{
    decode_row, encode_row, row_digest, seal, Digest, Key, LetterRow, Mark, QueueRow, StoreRow,
};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode};
use parking_lot::{Mutex, MutexGuard};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const STORE_ROW: &[u8] = b"store";

/// At how many bytes of journals the storage engine sorts its changes into files. A crash leaves at most so many to read.
const JOURNALS: u64 = 128 << 20;

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

impl Disk {
    pub(crate) fn open(
        path: &Path,
        memtable: u64,
        reserve: u64,
        accept_damage: bool,
    ) -> Result<Self, StoreError> {
        let database = Database::builder(path.join("db"))
            .manual_journal_persist(true)
            .max_journaling_size(JOURNALS)
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
        let file = path.join("acknowledged");
        let (witness, acknowledged) = match Witness::open(&file, row.group > 0) {
            Err(StoreError::Damaged(_)) if accept_damage => {
                if file.exists() {
                    std::fs::remove_file(&file)?;
                }
                Witness::open(&file, false)?
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
        let mut group = Group {
            disk: self,
            books: &mut books,
            rows: self.database.batch().durability(Some(mode)),
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
        drop(books);
        self.measure();
        Ok(())
    }
}

/// A group that is being written.
struct Group<'d> {
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

impl Group<'_> {
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
        self.rows.insert(&self.disk.items, bytes, &*value);
        self.counts_of(key.queue).items.add(key.digest());
    }

    fn remove(&mut self, key: Key, depends: bool) {
        if self.pushed.get(key.id) == Fate::Pushed {
            self.pushed.set(key.id, Fate::Cancelled);
            return;
        }
        self.rows.remove(&self.disk.items, key.to_bytes());
        self.counts_of(key.queue).items.remove(key.digest());
        if depends {
            self.removed.insert(key.id);
        }
        if self.books.marks.is_empty() {
            return;
        }
        if let Some((_, digest)) = self.books.marks.remove(&key) {
            self.rows.remove(&self.disk.marks, key.to_bytes());
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
                    if pushed || self.disk.items.contains_key(key.to_bytes())? {
                        self.mark(&mut marks, key, |mark| mark.schedule = Some(schedule));
                    }
                }
                Change::Bury(key, letter) => drop(letters.insert(key, Some(letter))),
                // One that the group wrote is not written after all.
                Change::Unbury(key) if letters.remove(&key).is_some() => {}
                Change::Unbury(key) => drop(letters.insert(key, None)),
                Change::Close(queue, closed) => self.counts_of(queue).closed = Some(closed),
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
            self.rows.insert(&self.disk.letters, bytes, row);
        } else {
            letters.remove(key.digest());
            self.rows.remove(&self.disk.letters, bytes);
        }
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
        self.rows.insert(&self.disk.marks, bytes, value);
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
            self.rows
                .insert(&self.disk.queues, key, encode_row(&key, row));
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
