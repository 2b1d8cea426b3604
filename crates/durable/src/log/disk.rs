//! The files of a store.

use super::ahead::Ahead;
use super::catalog::Catalog;
use super::chunks::Reads;
use super::directory::Directory;
use super::group;
use super::journal;
use super::keys::Keys;
use super::memtables::Memtables;
#[cfg(feature = "metrics")]
use super::meter::Meter;
use super::replay::{self, Replayed};
use super::salvage::salvage;
use super::shrink::Shrink;
use super::source::Alone;
use super::tables::{guarded, Tables};
use super::witness::Witness;
use crate::batch::Batch;
use crate::error::{Damage, StoreError};
use crate::format::{encode_row, Ranges, ITEMS, STORE_ROW};
use crate::StoreOptions;
use fjall::{Keyspace, PersistMode};
use parking_lot::{Mutex, MutexGuard};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Polls, and the pause between two, while tables that are written give back room.
const RECLAIM_POLLS: u32 = 1_000;
const RECLAIM_POLL: Duration = Duration::from_millis(10);

/// How old the measured free space may be.
const MEASURED: Duration = Duration::from_millis(10);

/// What is worth a flush of all tables, in bytes that are not in them yet or can be given back.
const WORTH: u64 = 1 << 20;

/// The most that the storage engine merges at once: in memtables, or if that is more, in bytes. It takes fifty tables at most.
const MERGED: u64 = 8;
const LEAST_MERGED: u64 = 512 << 20;

/// The files of a store.
pub(crate) struct Disk {
    /// Dropped before the tables, whose rows it may keep.
    pub(crate) reads: Reads,
    pub(crate) tables: Tables,
    witness: Witness,
    /// Locked after the catalog.
    ahead: Mutex<Ahead>,
    catalog: Mutex<Catalog>,
    /// Locked after the catalog.
    pub(super) keys: Mutex<Keys>,
    pub(crate) next_id: AtomicU64,
    /// How much of the disk is kept free for commits without pushes.
    reserve: u64,
    /// The most that the storage engine merges at once.
    merged: u64,
    /// How much of the disk was free when that was measured, less what was written since.
    free: AtomicU64,
    measured: Mutex<Instant>,
    /// For tests: the disk has no more.
    #[cfg(test)]
    most_free: AtomicU64,
    /// Whether it has journals that were found, which the tables may not need.
    has_found: AtomicBool,
    shrink: Shrink,
    memtables: Memtables,
    #[cfg(feature = "metrics")]
    pub(super) meter: Meter,
    /// The damage that was accepted.
    pub(crate) salvaged: Option<Damage>,
    /// The last, so that it is locked as long as anything is open.
    directory: Directory,
}

impl Disk {
    /// Opens the files of a store. With `accept_damage` what can be read of a damaged store becomes a new one.
    pub(crate) fn open(directory: Directory, options: &StoreOptions) -> Result<Self, StoreError> {
        let (accept_damage, memtable) = (options.accept_damage, options.memtable_size());
        let witness = directory.at("acknowledged");
        if !witness.exists() && directory.at("db").exists() && !accept_damage {
            return Err(StoreError::damaged("the file `acknowledged` is missing"));
        }
        let opened = Witness::open(&witness, accept_damage);
        let (witness, acknowledged) = opened.map_err(|error| error.at(&witness))?;
        let open = |check| Self::open_tables(&directory, acknowledged, memtable, check);
        let mut salvaged = None;
        let (tables, catalog, ahead) = match open(accept_damage || options.check) {
            Err(StoreError::Damaged(_)) if accept_damage => {
                salvaged = Some(salvage(&directory, acknowledged, memtable)?);
                open(false)?
            }
            opened => opened?,
        };
        let disk = Self {
            reads: Reads::default(),
            tables,
            witness,
            ahead: Mutex::new(ahead),
            next_id: AtomicU64::new(catalog.store.next_id.max(1)),
            catalog: Mutex::new(catalog),
            keys: Mutex::default(),
            reserve: options.reserve,
            merged: MERGED.saturating_mul(memtable).max(LEAST_MERGED),
            free: AtomicU64::new(u64::MAX),
            measured: Mutex::new(Instant::now()),
            #[cfg(test)]
            most_free: AtomicU64::new(u64::MAX),
            has_found: AtomicBool::new(true),
            shrink: Shrink::new(memtable),
            memtables: Memtables::new(memtable),
            #[cfg(feature = "metrics")]
            meter: Meter::of(directory.path()),
            salvaged,
            directory,
        };
        disk.measure();
        #[cfg(feature = "metrics")]
        {
            disk.read_meter();
            disk.report();
        }
        Ok(disk)
    }

    fn open_tables(
        directory: &Directory,
        acknowledged: u64,
        memtable: u64,
        check: bool,
    ) -> Result<(Tables, Catalog, Ahead), StoreError> {
        if !directory.tidy()? {
            // It is there as a whole or not at all.
            let new = directory.at("db.new");
            drop(Tables::open(&new, memtable)?);
            journal::remove_all(&new)?;
            directory.put_in_place()?;
        }
        let db = directory.at("db");
        Tables::check_lists(&db)?;
        let length = journal::mend(&db, acknowledged, || Alone::read(directory, memtable))?;
        let mut replayed = None;
        if length >= replay::LEAST {
            replayed = match Replayed::new(&db, directory.journals()) {
                // The storage engine can open it without room on the disk.
                Err(StoreError::Io(_)) => None,
                replayed => replayed.map_err(|error| error.at(&db))?,
            }
        }
        let opened = Self::open_mended(&db, acknowledged, memtable, check);
        if let Some(replayed) = replayed {
            if opened.is_ok() {
                replayed.keep()?;
            } else {
                replayed.undo()?;
            }
        }
        opened
    }

    /// Opens the tables in a directory whose journals have no torn ends.
    fn open_mended(
        db: &Path,
        acknowledged: u64,
        memtable: u64,
        check: bool,
    ) -> Result<(Tables, Catalog, Ahead), StoreError> {
        let found = journal::newest(db)?;
        let tables = Tables::open(db, memtable).map_err(|error| error.at(db))?;
        let ahead = Ahead::of(db, found.is_some())?;
        let catalog = Catalog::read(&tables, acknowledged)?;
        if check {
            catalog.check_all(&tables)?;
        }
        Ok((tables, catalog, ahead))
    }

    /// Whether it is of this version of the format, or a later one.
    pub(crate) fn is_of(&self, version: u32) -> bool {
        self.directory.version() >= version
    }

    /// Before what earlier versions of the format do not have is written.
    pub(crate) fn upgrade(&self, version: u32) -> Result<(), StoreError> {
        self.directory.upgrade(version)
    }

    /// The numbers of items of a queue that are gone, whose rows may be left.
    pub(crate) fn gone(&self, queue: u32) -> Result<Arc<Ranges>, StoreError> {
        self.tables.gone(queue)
    }

    /// From now on items of this queue are noted as gone, so that their rows need not be removed. Returns those that are.
    pub(crate) fn let_gone_grow(&self, queue: u32) -> Result<Arc<Ranges>, StoreError> {
        self.tables.let_gone_grow(queue)
    }

    pub(super) fn directory(&self) -> &Directory {
        &self.directory
    }

    pub(crate) fn catalog(&self) -> MutexGuard<'_, Catalog> {
        self.catalog.lock()
    }

    #[cfg(test)]
    pub(super) fn ahead(&self) -> MutexGuard<'_, Ahead> {
        self.ahead.lock()
    }

    /// Whether a push of `bytes` bytes leaves less free space than is needed. They are written to a journal, and then to a table.
    pub(crate) fn is_full(&self, bytes: usize) -> bool {
        let bytes = 2 * bytes as u64;
        // Relaxed: a threshold, checked again after each write.
        self.is_short(self.free.load(Ordering::Relaxed), bytes)
            && self.is_short(self.measure(), bytes)
    }

    /// Whether so much free space is less than what is needed for commits without pushes and for `more` bytes: the reserve,
    /// which has room for a journal; what is not in tables yet, since the storage engine cannot go on without writing it
    /// there; and another copy of the tables that it may merge at any time.
    fn is_short(&self, free: u64, more: u64) -> bool {
        if self.reserve == 0 {
            return false;
        }
        let unwritten = self.tables.database.write_buffer_size();
        let needed = self.reserve.saturating_add(unwritten).saturating_add(more);
        // The sizes of the tables are added up only if they matter.
        free < needed.saturating_add(self.merged)
            && free < needed.saturating_add(self.merged.min(self.tables_size()))
    }

    fn tables_size(&self) -> u64 {
        self.tables.all().iter().map(Keyspace::disk_space).sum()
    }

    fn journals_size(&self) -> u64 {
        self.ahead.lock().journals.bytes(&self.tables.database)
    }

    /// Whether the rows of removed items take much of the disk, and it has room for those that are left, which are there twice
    /// until a merge ends.
    fn can_merge(&self, catalog: &Catalog, free: u64) -> bool {
        let size = self.tables[ITEMS].disk_space();
        size >= WORTH && catalog.removed_most() && merged_size(size, catalog) < free
    }

    fn measure(&self) -> u64 {
        let stat = rustix::fs::statvfs(self.directory.path());
        let free = stat.map_or(u64::MAX, |stat| stat.f_bavail.saturating_mul(stat.f_frsize));
        #[cfg(test)]
        let free = free.min(self.most_free.load(Ordering::Relaxed));
        *self.measured.lock() = Instant::now();
        self.free.store(free, Ordering::Relaxed);
        free
    }

    /// How much of the disk is free after this much was written. To measure it takes as long as to write a small group.
    fn free_after(&self, bytes: u64) -> u64 {
        let free = self.free.load(Ordering::Relaxed).saturating_sub(bytes);
        if self.measured.lock().elapsed() >= MEASURED || self.is_short(free, self.reserve) {
            return self.measure();
        }
        self.free.store(free, Ordering::Relaxed);
        free
    }

    /// Has it give back what it does by itself when there is more of it; returns the size of the table of items then.
    #[cfg(test)]
    pub(crate) fn give_back(&self) -> u64 {
        self.give_back_by(false)
    }

    /// Drops the tables of items that are gone, or has all of their rows left out by a merge, while the ranges are in memory.
    #[cfg(test)]
    pub(crate) fn drop_gone(&self, merge: bool) {
        self.end_trim();
        self.tables.gone.note_written();
        self.tables.drop_gone().unwrap();
        if merge {
            self.tables[ITEMS].major_compact().unwrap();
        }
    }

    /// The same, with a merge of all.
    #[cfg(test)]
    pub(crate) fn merge(&self) -> u64 {
        self.give_back_by(true)
    }

    /// Waits for the thread that gives back room.
    #[cfg(test)]
    pub(crate) fn end_trim(&self) {
        self.shrink.trim.join();
    }

    #[cfg(test)]
    fn give_back_by(&self, merge: bool) -> u64 {
        self.end_trim();
        self.tables.gone.note_written();
        super::shrink::shrink(&self.tables, merge).unwrap();
        self.tables[ITEMS].disk_space()
    }

    /// The disk has no more free space from now on.
    #[cfg(test)]
    pub(crate) fn pretend_free(&self, most: u64) {
        self.most_free.store(most, Ordering::Relaxed);
        self.measure();
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
        if self.memtables.are_full() {
            self.let_go();
            self.memtables.make_room(&self.tables)?;
            // What was opened while it waited.
            self.let_go();
        }
        let mut catalog = self.catalog.lock();
        let mut ahead = self.ahead.lock();
        // Relaxed: a threshold.
        let has_room = !self.is_short(self.free.load(Ordering::Relaxed), self.reserve);
        // Before the group, which is in the new journal then: that never is without one for long.
        if sync && has_room && ahead.is_due() {
            let store = encode_row(STORE_ROW, &catalog.store);
            ahead.renew(&self.tables, &store)?;
        }
        let whole = batch.may_spread().then(|| self.reads.spreading.write());
        let rows = group::rows(self, &mut catalog, batch, number)?;
        let length = rows.length();
        ahead.reserve(length, sync && has_room);
        self.memtables.add(rows.size());
        rows.commit(mode)?;
        self.note_spread();
        if sync {
            self.witness.write(number)?;
        }
        self.shrink.trim.after(&self.tables, &mut catalog, length);
        let is_empty = catalog.queues.items() == 0;
        drop((ahead, catalog, whole));
        self.keep_free(2 * length);
        if is_empty {
            self.let_go();
            self.shrink.empty(&self.tables, self.journals_size());
        }
        #[cfg(feature = "metrics")]
        self.read_meter();
        Ok(())
    }

    /// Gives back room if the disk has less than is needed, after a group of this size was written.
    fn keep_free(&self, written: u64) {
        let free = self.free_after(written);
        // A push that is as large as the reserve shall fit again.
        if self.is_short(free, self.reserve) {
            // Journals are needed until what they have is in tables.
            let unwritten = self.tables.database.write_buffer_size();
            let is_worth = self.has_found.swap(false, Ordering::Relaxed)
                || unwritten >= WORTH.max(self.reserve / 2);
            if is_worth || self.can_merge(&self.catalog.lock(), free) {
                self.reclaim();
            }
        }
    }

    /// Emits the gauges. Takes no lock.
    #[cfg(feature = "metrics")]
    pub(crate) fn report(&self) {
        self.meter.report(None);
    }

    /// Keeps the figures that are reported.
    #[cfg(feature = "metrics")]
    fn read_meter(&self) {
        // Relaxed: statistics.
        let free = self.free.load(Ordering::Relaxed);
        self.meter.read(&self.tables, self.journals_size(), free);
    }

    /// Why a write failed, with what may have been the cause: the storage engine does not say why it could not write a table.
    pub(super) fn failure(&self, error: &StoreError) -> StoreError {
        let why = match error {
            StoreError::Io(error) => error.to_string(),
            StoreError::Poisoned(why) => why.to_string(),
            // A panic of the storage engine.
            StoreError::Damaged(damage) => damage.to_string(),
            error => error.to_string(),
        };
        let free = self.measure();
        StoreError::Poisoned(format!("{why} ({free} bytes of the disk are free)").into())
    }

    /// Lets the storage engine write its tables, so that older journals are removed, and give back the room of removed
    /// items. By itself it does so only much later.
    #[cold]
    fn reclaim(&self) {
        self.let_go();
        self.tables.gone.note_written();
        // An error is one of the next commit too. The files are removed when a memtable is sealed.
        let _ = self.tables.drop_gone();
        for table in self.tables.all() {
            // An error is one of the next commit too.
            let _ = guarded(|| Ok(table.rotate_memtable()?));
        }
        for _ in 0..RECLAIM_POLLS {
            let sealed = || {
                self.tables
                    .all()
                    .iter()
                    .map(Keyspace::sealed_memtable_count)
                    .sum()
            };
            if guarded(|| Ok(sealed())).is_ok_and(|sealed: usize| sealed == 0) {
                self.merge_items();
                break;
            }
            thread::sleep(RECLAIM_POLL);
        }
        self.measure();
    }

    fn merge_items(&self) {
        if !self.can_merge(&self.catalog.lock(), self.measure()) {
            return;
        }
        let merged = guarded(|| Ok(self.tables[ITEMS].major_compact()?));
        if merged.is_ok() {
            self.catalog.lock().removed = 0;
        }
    }
}

/// About how many bytes the items are that are left in a table of this size.
fn merged_size(size: u64, catalog: &Catalog) -> u64 {
    let left = u128::from(catalog.queues.items());
    let all = (left + u128::from(catalog.removed)).max(1);
    u64::try_from(u128::from(size) * left / all).unwrap_or(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_a_write_is_the_cause_of_a_poisoned_store() {
        let files = tempfile::tempdir().unwrap();
        let store = crate::Store::open(files.path()).unwrap();
        let panicked = guarded(|| -> Result<(), StoreError> { panic!("no such block") });
        let disk = store.inner.log.disk();
        let failure = disk.failure(&panicked.unwrap_err()).to_string();
        assert!(failure.contains("no such block"), "{failure}");
        assert!(!failure.contains("damaged"), "{failure}");
    }

    #[test]
    fn a_merge_needs_room_for_the_items_that_are_left() {
        let files = tempfile::tempdir().unwrap();
        let store = crate::Store::open(files.path()).unwrap();
        let jobs = store.queue::<u32>("jobs").unwrap();
        jobs.push_batch(0..10).unwrap();
        jobs.pop_batch(9).unwrap();
        let catalog = store.inner.log.disk().catalog();
        assert_eq!(merged_size(1_000, &catalog), 100);
        drop(catalog);
        jobs.pop().unwrap();
        assert_eq!(merged_size(u64::MAX, &store.inner.log.disk().catalog()), 0);
    }
}
