//! A store: a directory with queues.

use crate::batch::{Batch, Change};
use crate::entry::Budget;
use crate::error::{Damage, StoreError};
use crate::format::{OrderTag, QueueRow, VERSION};
use crate::log::{Directory, Disk, Durability, Log, Urgency};
use crate::queue::{Builder, DurableQueue};
use crate::{Codec, Postcard};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A directory with durable queues. Clones are the same store.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("work.db");
/// use requeue_durable::{DurableQueue, Store};
///
/// let store = Store::open(&path)?;
/// let jobs: DurableQueue<String> = store.queue("jobs")?;
/// jobs.push("fetch the page".to_string())?; // on the disk when it returns
/// drop((jobs, store));
///
/// let store = Store::open(&path)?; // another process, after a crash
/// let jobs: DurableQueue<String> = store.queue("jobs")?;
/// assert_eq!(jobs.pop()?, "fetch the page");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The store is closed when its last clone and its last queue are dropped, with their handles and transactions: then
/// everything is on the disk. A directory is open in one store at a time.
#[derive(Clone)]
pub struct Store {
    pub(crate) inner: Arc<StoreInner>,
}

pub(crate) struct StoreInner {
    pub(crate) log: Log,
    pub(crate) durability: Durability,
    /// What the queues with pages take together.
    pub(crate) memory: Option<Arc<Budget>>,
    wall_clock: Option<WallClock>,
    open: Mutex<HashSet<String>>,
    path: PathBuf,
}

type WallClock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// The default size of a memtable, in bytes, and the least that a budget gives it.
const MEMTABLE: u64 = 8 << 20;
const LEAST_MEMTABLE: u64 = 1 << 20;
/// How many memtables fit into the memory of a store. There are three under load, in which each small row takes twice what is counted;
/// the allocator keeps as much again, since rows of several memtables share its pages.
const MEMTABLES: u64 = 48;
/// The most bytes of commits that are collected: further commits wait.
const MOST_BUFFERED: u64 = 64 << 20;
/// The part of the memory of a store that its pages take.
const PAGES: usize = 4;

/// How a [`Store`] is opened.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// use requeue_durable::{Durability, StoreOptions};
/// use std::time::Duration;
///
/// let store = StoreOptions::new()
///     .durability(Durability::Buffered { at_most: Duration::from_millis(50) })
///     .open(directory.path())?;
/// # Ok::<(), requeue_durable::StoreError>(())
/// ```
#[derive(Clone)]
#[must_use = "options do nothing until `open` is called"]
pub struct StoreOptions {
    durability: Durability,
    pub(crate) reserve: u64,
    pub(crate) accept_damage: bool,
    pub(crate) check: bool,
    memtable: Option<u64>,
    memory: Option<usize>,
    wall_clock: Option<WallClock>,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl StoreOptions {
    /// The default options.
    pub fn new() -> Self {
        Self {
            durability: Durability::Synced,
            reserve: 64 << 20,
            accept_damage: false,
            check: false,
            memtable: None,
            memory: None,
            wall_clock: None,
        }
    }

    /// Sets when commits are on the disk. The default is [`Durability::Synced`]. A transaction can choose for
    /// [itself](crate::Transaction::commit_with).
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets how many bytes of the disk are kept free for the pops that drain the queues. With less, pushes fail with
    /// [`StoreError::DiskFull`]. The default is 64 MiB; 0 turns this off.
    ///
    /// Kept free is also what the storage engine needs to go on: the room to write what is in [memory](Self::memtable) only, and
    /// to merge tables, which are there twice meanwhile (up to eight times the memtable, or 512 MiB). Less than 64 MiB is not
    /// enough for another journal.
    pub fn reserve(mut self, bytes: u64) -> Self {
        self.reserve = bytes;
        self
    }

    /// Opens a store although acknowledged data is missing, and goes on with what is left, which becomes a new database; the
    /// damaged one is renamed to `damaged-1` in the directory of the store, and [`Store::salvaged`] says what is missing.
    ///
    /// Of a lost commit nothing is restored. Later commits survive its loss; items that they removed stay removed. Items that it removed are
    /// there again, or missing if a later commit has removed others that were pushed with them, or others of a queue with
    /// [pages](Self::memory): so what it moved from one queue to another is in the first one, or in none. Removed items may reappear if
    /// a lost commit has replaced an item, or a file other than a journal is damaged. A queue that lost its name is called `lost queue` and
    /// its number. A lost or damaged `version` is written again. All rows are read when the store is opened.
    ///
    /// By default [`StoreError::Damaged`] says what is missing.
    pub fn accept_damage(mut self) -> Self {
        self.accept_damage = true;
        self
    }

    /// Reads and checks all rows when the store is opened, so that nothing that is missing is found later. By default opening a queue
    /// does so, except that of one with [pages](Self::memory), which checks its rows when they are read.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// use requeue_durable::StoreOptions;
    ///
    /// let store = StoreOptions::new().memory(16 << 20).check().open(directory.path())?;
    /// # Ok::<(), requeue_durable::StoreError>(())
    /// ```
    pub fn check(mut self) -> Self {
        self.check = true;
        self
    }

    /// Sets how many bytes of changes the storage engine collects in memory before it sorts them into a file. The default
    /// is 8 MiB, or a fortieth of [`memory`](Self::memory) if that is less, and at least 1 MiB. More takes more memory, and longer
    /// to open after a crash; less has the storage engine merge files more often. Commits wait while so many bytes of earlier ones are
    /// not written yet, 64 MiB at most.
    pub fn memtable(mut self, bytes: u64) -> Self {
        self.memtable = Some(bytes);
        self
    }

    pub(crate) fn memtable_size(&self) -> u64 {
        let of_memory = |memory| (memory as u64 / MEMTABLES).clamp(LEAST_MEMTABLE, MEMTABLE);
        let by_default = || self.memory.map_or(MEMTABLE, of_memory);
        self.memtable.unwrap_or_else(by_default)
    }

    /// Sets how many bytes the store takes in memory, about. A quarter is for the items of all queues together that have no [limit of
    /// their own](Builder::memory), and can have pages: those without weights, [ageing](Builder::age_after), or a [capacity of each
    /// key](Builder::key_capacity). The others of their items are on the disk only, and are read by pages when
    /// their turn comes, so opening a queue reads its first page, and what was delivered before. The rows of such a queue
    /// are [checked](Self::check) when they are read. The rest is for commits that are not written yet, for the
    /// [memtables](Self::memtable) and for the cache of the storage engine; less than 16 MiB for the store is not kept.
    ///
    /// Not counted are the items that are held, delayed by a retry or returned, the items of queues without pages, their keys included,
    /// and what transactions have not committed.
    ///
    /// The default is unlimited: all items are in memory, and opening a queue reads them.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// use requeue_durable::StoreOptions;
    ///
    /// let store = StoreOptions::new().memory(64 << 20).open(directory.path())?;
    /// let jobs = store.queue("jobs")?;
    /// jobs.push_batch(0..200_000)?; // most of them are on the disk only
    /// assert_eq!((jobs.pop()?, jobs.len()), (0, 199_999));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn memory(mut self, bytes: usize) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Sets the clock from which the times of delays, schedules, pushes and dead letters are written. It also says when
    /// [scheduled](crate::DurableQueue::at) items are due that are not in [memory](Self::memory). The default is [`SystemTime::now`]; in
    /// a queue with a [clock](Builder::clock) of its own, schedules and pushes go on with that clock from the opening of the queue on.
    pub fn wall_clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.wall_clock = Some(Arc::new(clock));
        self
    }

    /// Opens the store in a directory, which is created if it is not there.
    ///
    /// # Errors
    ///
    /// [`StoreError::Locked`], [`NotAStore`](StoreError::NotAStore), [`Version`](StoreError::Version),
    /// [`Damaged`](StoreError::Damaged) or [`Io`](StoreError::Io).
    pub fn open(self, path: impl AsRef<Path>) -> Result<Store, StoreError> {
        let path = path.as_ref();
        let disk = Directory::enter(path, self.accept_damage)
            .and_then(|directory| Disk::open(directory, &self))
            .map_err(|error| error.at(path))?;
        let buffer = self.memtable_size().clamp(LEAST_MEMTABLE, MOST_BUFFERED);
        let buffer = usize::try_from(buffer).unwrap_or(usize::MAX);
        let inner = StoreInner {
            log: Log::new(disk, buffer)?,
            durability: self.durability,
            memory: self.memory.map(|memory| Budget::new(memory / PAGES)),
            wall_clock: self.wall_clock,
            open: Mutex::new(HashSet::new()),
            path: path.to_owned(),
        };
        Ok(Store {
            inner: Arc::new(inner),
        })
    }
}

requeue::debug_struct!([] StoreOptions, |it| durability: it.durability, reserve: it.reserve, accept_damage: it.accept_damage);

impl Store {
    /// Opens the store in a directory with the default options, or creates it there.
    ///
    /// # Errors
    ///
    /// As for [`StoreOptions::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        StoreOptions::new().open(path)
    }

    /// Opens the queue with this name, or creates it.
    ///
    /// # Errors
    ///
    /// As for [`Builder::build`].
    pub fn queue<T: Send + 'static>(&self, name: &str) -> Result<DurableQueue<T>, StoreError>
    where
        Postcard: Codec<T>,
    {
        self.builder(name).build()
    }

    /// A builder of the queue with this name.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// let jobs = store.builder("jobs").by_priority().capacity(1_000).max_attempts(5).build()?;
    /// jobs.priority(1).push("urgent".to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder<T: Send + 'static>(&self, name: &str) -> Builder<T> {
        Builder::new(self.clone(), name)
    }

    /// The names of all queues of the store, in alphabetical order.
    pub fn queues(&self) -> Vec<String> {
        let catalog = self.inner.log.disk().catalog();
        let mut names: Vec<_> = catalog
            .queues
            .all()
            .map(|(_, row)| row.name.clone())
            .collect();
        names.sort();
        names
    }

    /// Removes the queue with this name, with its items and dead letters; returns whether it was there.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// store.queue("old")?.push(1)?;
    /// assert!(store.remove("old")?);
    /// assert!(store.queues().is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`StoreError::InUse`] if the queue is open, or [`Poisoned`](StoreError::Poisoned).
    pub fn remove(&self, name: &str) -> Result<bool, StoreError> {
        let _open = self.inner.enter(name)?;
        self.inner.remove(name)
    }

    /// Waits until all commits, buffered ones too, are on the disk.
    ///
    /// # Errors
    ///
    /// [`StoreError::Poisoned`] if a write failed.
    pub fn flush(&self) -> Result<(), StoreError> {
        self.inner.log.reach(Urgency::Sync)
    }

    /// Copies the store to a new directory while it is in use: a backup, which opens as a store.
    ///
    /// The copy has all that was committed before the call, buffered commits too, and of later commits the first ones at most. It is
    /// written under the name with `.incomplete` at its end, opened, compared with its counts and checksums, and only then renamed;
    /// so what a crash leaves does not have the name, and can be removed. Commits go on meanwhile; they wait for the copy no longer
    /// than for each other. It needs as much room on the disk as the tables, without the journals.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let (path, backup) = (directory.path().join("work.db"), directory.path().join("backup.db"));
    /// use requeue_durable::{DurableQueue, Store};
    ///
    /// let store = Store::open(&path)?;
    /// let jobs: DurableQueue<String> = store.queue("jobs")?;
    /// jobs.push("fetch the page".to_string())?;
    /// store.snapshot_to(&backup)?;
    /// jobs.pop()?; // not in the copy
    /// assert_eq!(Store::open(&backup)?.queue::<String>("jobs")?.pop()?, "fetch the page");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`] if there is something at the path or at its incomplete name, or a file cannot be written,
    /// [`Damaged`](StoreError::Damaged) if a row of the store cannot be read or the copy is not right, or
    /// [`Poisoned`](StoreError::Poisoned). Then there is no copy.
    pub fn snapshot_to(&self, path: impl AsRef<Path>) -> Result<(), StoreError> {
        self.inner.log.settle()?;
        self.inner.log.disk().snapshot_to(path.as_ref())
    }

    /// Makes the store one of the newest version of the format, and returns that. By itself it becomes one when it needs what the
    /// version has. Earlier versions of this crate refuse it from then on. A new store is of the newest version.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`] or [`Damaged`](StoreError::Damaged) if the version cannot be read or written.
    pub fn upgrade(&self) -> Result<u32, StoreError> {
        self.inner.log.disk().upgrade(VERSION)?;
        Ok(VERSION)
    }

    /// What was lost, if the store was damaged and [`StoreOptions::accept_damage`] went on with what was left.
    pub fn salvaged(&self) -> Option<&Damage> {
        self.inner.log.disk().salvaged.as_ref()
    }

    /// The error after which the store writes nothing more, if there was one.
    pub fn failure(&self) -> Option<StoreError> {
        self.inner.log.failure()
    }
}

impl StoreInner {
    /// Opens the queue with this name, until what is returned is dropped.
    pub(crate) fn enter(self: &Arc<Self>, name: &str) -> Result<OpenName, StoreError> {
        if self.open.lock().insert(name.to_owned()) {
            Ok(OpenName(Arc::clone(self), name.to_owned()))
        } else {
            Err(StoreError::InUse(name.into()))
        }
    }

    /// The number of the queue with this name, which is created if it is not there.
    pub(crate) fn queue(&self, name: &str, order: OrderTag) -> Result<u32, StoreError> {
        let disk = self.log.disk();
        let mut catalog = disk.catalog();
        match catalog.queues.find(name) {
            Some((id, row)) if row.order == order => Ok(id),
            Some((_, row)) => Err(StoreError::OtherOrder {
                queue: name.into(),
                found: row.order.name(),
            }),
            // A removed queue may have left a row that says that all of its items are gone.
            None => catalog.queues.add(QueueRow::new(name, order), |id| {
                Ok(disk.gone(id)?.len() == 0)
            }),
        }
    }

    /// Removes a queue that nobody can open meanwhile.
    fn remove(&self, name: &str) -> Result<bool, StoreError> {
        self.log.settle()?;
        let Some(id) = self.find(name) else {
            return Ok(false);
        };
        let batch = Batch::of([Change::Remove(id)]);
        self.log.commit(&mut [batch], Durability::Synced)?;
        Ok(true)
    }

    /// The number of the queue with this name, if it is there.
    pub(crate) fn find(&self, name: &str) -> Option<u32> {
        let catalog = self.log.disk().catalog();
        catalog.queues.find(name).map(|(id, _)| id)
    }

    /// The wall clock's time in milliseconds since the Unix epoch.
    pub(crate) fn wall_time(&self) -> u64 {
        millis(self.wall())
    }

    /// The wall clock's time since the Unix epoch.
    pub(crate) fn wall(&self) -> Duration {
        let now = self
            .wall_clock
            .as_ref()
            .map_or_else(SystemTime::now, |clock| clock());
        now.duration_since(UNIX_EPOCH).unwrap_or_default()
    }

    /// Whether that is the time of the system.
    pub(crate) fn has_system_time(&self) -> bool {
        self.wall_clock.is_none()
    }
}

/// The name of a queue that is open.
pub(crate) struct OpenName(Arc<StoreInner>, String);

impl Drop for OpenName {
    fn drop(&mut self) {
        self.0.open.lock().remove(&self.1);
    }
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

requeue::debug_struct!([] Store, |it| path: it.inner.path);
