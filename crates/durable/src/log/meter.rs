//! What a store tells the crate `metrics` of its files.
//!
//! The storage engine is asked by the thread that has written a group, while it is the only one that writes. The answers are kept
//! in atomics, so that a report takes no lock. Recorders are code of users: they run while no lock of the log is held, and their
//! panics are caught.

use super::tables::{guarded, Tables};
use fjall::Keyspace;
use metrics::{describe_gauge, describe_histogram, gauge, histogram, Unit};
use std::ffi::OsStr;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The label that holds the name of a store.
const STORE: &str = "store";

const WRITE: &str = "requeue_disk_write_seconds";
const SYNC: &str = "requeue_disk_sync_seconds";
const COMMITS: &str = "requeue_disk_group_commits";

/// The name of a gauge, its unit, its meaning, and its value, if it has one.
type Figure = (&'static str, Unit, &'static str, fn(&Meter) -> Option<f64>);

const GAUGES: [Figure; 8] = [
    (
        "requeue_disk_journal_bytes",
        Unit::Bytes,
        "size of the journals",
        |meter| Some(count(&meter.journal_bytes)),
    ),
    (
        "requeue_disk_journals",
        Unit::Count,
        "number of the journals",
        |meter| Some(count(&meter.journals)),
    ),
    (
        "requeue_disk_unwritten_bytes",
        Unit::Bytes,
        "changes that are in journals and in memory, but not in tables",
        |meter| Some(count(&meter.unwritten)),
    ),
    (
        "requeue_disk_sealed_memtables",
        Unit::Count,
        "memtables that wait to be written, of the table that has the most",
        |meter| Some(count(&meter.sealed)),
    ),
    (
        "requeue_disk_free_bytes",
        Unit::Bytes,
        "free space of the disk",
        |meter| Some(count(&meter.free)),
    ),
    (
        "requeue_disk_synced_timestamp_seconds",
        Unit::Seconds,
        "when the last sync ended, since the Unix epoch",
        Meter::synced,
    ),
    (
        "requeue_disk_unsynced_seconds",
        Unit::Seconds,
        "age of the oldest commit that is not synced",
        |meter| Some(meter.unsynced().as_secs_f64()),
    ),
    (
        "requeue_disk_poisoned",
        Unit::Count,
        "1 after a failed write or sync, else 0",
        |meter| Some(f64::from(u8::from(meter.poisoned.load(RELAXED)))),
    ),
];

/// Relaxed, all: statistics, each of which is read alone. Those of commits are written under the lock of the log.
const RELAXED: Ordering = Ordering::Relaxed;

#[allow(clippy::cast_precision_loss)] // exact up to 8 PiB
fn count(of: &AtomicU64) -> f64 {
    of.load(RELAXED) as f64
}

/// The figures of a store.
pub(super) struct Meter {
    store: String,
    start: Instant,
    journal_bytes: AtomicU64,
    journals: AtomicU64,
    unwritten: AtomicU64,
    sealed: AtomicU64,
    free: AtomicU64,
    /// When the last sync ended, in milliseconds since the Unix epoch; 0 if there was none.
    synced: AtomicU64,
    /// When the oldest commit was added that is not synced, by [`Meter::now`]; 0 if there is none.
    unsynced: AtomicU64,
    /// The same of the group that is being collected.
    collected: AtomicU64,
    poisoned: AtomicBool,
}

/// A group that is being written.
pub(super) struct Begun {
    commits: usize,
    sync: bool,
    at: Instant,
}

/// A group that was written, and how long that took.
pub(super) struct Written {
    commits: usize,
    sync: bool,
    took: Duration,
}

impl Begun {
    pub(super) fn new(commits: usize, sync: bool) -> Self {
        let at = Instant::now();
        Self { commits, sync, at }
    }

    pub(super) fn end(self) -> Written {
        let Self { commits, sync, at } = self;
        Written {
            commits,
            sync,
            took: at.elapsed(),
        }
    }
}

impl Meter {
    /// The meter of the store in a directory that is there.
    pub(super) fn of(directory: &Path) -> Self {
        swallow_panic(describe);
        Self {
            store: name_of(directory),
            start: Instant::now(),
            journal_bytes: AtomicU64::new(0),
            journals: AtomicU64::new(0),
            unwritten: AtomicU64::new(0),
            sealed: AtomicU64::new(0),
            free: AtomicU64::new(0),
            synced: AtomicU64::new(0),
            unsynced: AtomicU64::new(0),
            collected: AtomicU64::new(0),
            poisoned: AtomicBool::new(false),
        }
    }

    /// Nanoseconds since the store was opened, from 1 on.
    fn now(&self) -> u64 {
        let since = self.start.elapsed().as_nanos();
        u64::try_from(since).map_or(u64::MAX, |since| since.saturating_add(1))
    }

    fn synced(&self) -> Option<f64> {
        let synced = Duration::from_millis(self.synced.load(RELAXED));
        Some(synced.as_secs_f64()).filter(|_| !synced.is_zero())
    }

    fn unsynced(&self) -> Duration {
        match self.unsynced.load(RELAXED) {
            0 => Duration::ZERO,
            since => Duration::from_nanos(self.now().saturating_sub(since)),
        }
    }

    /// A commit was added to the group that is being collected.
    pub(super) fn added(&self) {
        if self.collected.load(RELAXED) == 0 {
            let now = self.now();
            self.collected.store(now, RELAXED);
            let _ = self.unsynced.compare_exchange(0, now, RELAXED, RELAXED);
        }
    }

    /// The group that was collected is about to be written, and another one is collected.
    pub(super) fn taken(&self) {
        self.collected.store(0, RELAXED);
    }

    /// That group was written, and synced if `sync`; or the store is poisoned.
    pub(super) fn ended(&self, written: bool, sync: bool) {
        if !written {
            self.poisoned.store(true, RELAXED);
        } else if sync {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            self.synced
                .store(crate::store::millis(now.unwrap_or_default()), RELAXED);
            self.unsynced.store(self.collected.load(RELAXED), RELAXED);
        }
    }

    /// Asks the storage engine. It takes locks for that, so only while no other group is written.
    pub(super) fn read(&self, tables: &Tables, journals: u64, free: u64) {
        // It may panic after a failed write; then the last answers stay.
        let _ = guarded(|| {
            let database = &tables.database;
            let sealed = tables.all().iter().map(Keyspace::sealed_memtable_count);
            let sealed = sealed.max().unwrap_or_default();
            self.journal_bytes.store(journals, RELAXED);
            self.journals
                .store(database.journal_count() as u64, RELAXED);
            self.unwritten.store(database.write_buffer_size(), RELAXED);
            self.sealed.store(sealed as u64, RELAXED);
            self.free.store(free, RELAXED);
            Ok(())
        });
    }

    /// Emits the gauges, and the figures of a group that was written.
    pub(super) fn report(&self, group: Option<Written>) {
        swallow_panic(|| {
            let store = || self.store.clone();
            if let Some(group) = group {
                let name = if group.sync { SYNC } else { WRITE };
                histogram!(name, STORE => store()).record(group.took);
                if group.commits > 0 {
                    let commits = u32::try_from(group.commits).unwrap_or(u32::MAX);
                    histogram!(COMMITS, STORE => store()).record(commits);
                }
            }
            for (name, _, _, value) in GAUGES {
                if let Some(value) = value(self) {
                    gauge!(name, STORE => store()).set(value);
                }
            }
        });
    }
}

/// The last part of the path of a directory.
fn name_of(directory: &Path) -> String {
    let name = directory.file_name().map(OsStr::to_owned);
    let absolute = || {
        directory
            .canonicalize()
            .ok()?
            .file_name()
            .map(OsStr::to_owned)
    };
    let name = name.or_else(absolute).unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Calls code of users.
pub(crate) fn swallow_panic(call: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(call));
}

/// Tells the recorder what the metrics mean, with their units.
fn describe() {
    for (name, unit, meaning, _) in GAUGES {
        describe_gauge!(name, unit, meaning);
    }
    let write = "for how long a group of commits was written that is not synced";
    describe_histogram!(WRITE, Unit::Seconds, write);
    let sync = "for how long a group of commits was written and synced";
    describe_histogram!(SYNC, Unit::Seconds, sync);
    let commits = "commits of a group";
    describe_histogram!(COMMITS, Unit::Count, commits);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A commit that was added while a group was synced is not synced.
    #[test]
    fn a_sync_is_of_the_commits_before_it() {
        let meter = Meter::of(Path::new("."));
        assert!(meter.unsynced().is_zero());
        meter.added();
        meter.taken();
        meter.ended(true, false);
        let first = meter.unsynced.load(RELAXED);
        meter.added();
        meter.taken();
        meter.added();
        assert_eq!(meter.unsynced.load(RELAXED), first);
        meter.ended(true, true);
        assert!(meter.unsynced.load(RELAXED) > first);
        meter.taken();
        meter.ended(true, true);
        assert!(meter.unsynced().is_zero());
        meter.ended(false, true);
        assert!(meter.poisoned.load(RELAXED));
    }

    #[test]
    fn a_store_is_called_by_the_last_part_of_its_path() {
        let files = tempfile::tempdir().unwrap();
        let name = files.path().file_name().unwrap().to_str().unwrap();
        std::fs::create_dir(files.path().join("work")).unwrap();
        assert_eq!(name_of(&files.path().join("work/")), "work");
        assert_eq!(name_of(&files.path().join("work/..")), name);
    }
}
