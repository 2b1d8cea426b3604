//! The log: transactions hand in their changes, which are written in groups, one group at a time.
//!
//! | who | does |
//! |---|---|
//! | a commit | adds its batch to the group that is being collected, under a short lock |
//! | a synced commit | writes the group itself if no other group is being written, else waits; then shows its items |
//! | a delivery that counts | does the same, and is content with a group that is written and not synced |
//! | a buffered commit | shows its items at once |
//! | the writer, a thread | writes and syncs the groups that no thread waits for: those of buffered and asynchronous commits |
//!
//! A thread that writes a group first takes it, so that the next group is collected meanwhile. It writes the group as one batch of
//! the storage engine, and syncs it if a commit asked for that; a group that only deliveries wait for is not synced. Then a thread
//! that waits for the next group writes it, or the writer does.
//!
//! Groups are written in the order in which they were collected, so what a crash leaves is a prefix. A transaction that
//! popped an item is later in the log than the one that pushed it, since items are shown after their batch was added.
//!
//! What changes within one group is not written: an item that is pushed and removed there never reaches the disk.

mod ahead;
mod catalog;
pub(crate) mod chunks;
mod directory;
mod disk;
mod gaps;
mod group;
mod journal;
mod keys;
mod listed;
mod memtables;
#[cfg(feature = "metrics")]
mod meter;
mod pushed;
mod queues;
mod replay;
mod salvage;
mod shrink;
mod snapshot;
mod source;
mod tables;
mod witness;

#[cfg(feature = "metrics")]
pub(crate) use meter::swallow_panic;
pub(crate) use tables::{guarded, rows, visit, Visit};
pub(crate) use {directory::Directory, disk::Disk};
#[cfg(fuzzing)]
pub(crate) use {
    gaps::Readable,
    journal::{mend, RowChange},
    source::Alone,
};

use crate::batch::Batch;
use crate::error::StoreError;
use crate::oneshot::Oneshot;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::mpsc::{channel, Sender};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{mem, slice};

/// The size of a group that is written although nobody waits for it, in bytes.
const WRITE_AT: usize = 1 << 20;
/// The largest buffer of a group that is kept for the next one, in bytes.
const MAX_KEPT_BUFFER: usize = 16 << 20;

/// When a commit is on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// When the commit returns. Its items become visible then.
    Synced,
    /// At most this long after the commit returns. Its items become visible at once. A crash loses the last commits, in
    /// the order of the log: what is left is a prefix.
    Buffered {
        /// How long a commit may be lost by a crash. A process that is killed loses less, and one that drops the
        /// [`Store`](crate::Store) nothing.
        at_most: Duration,
    },
}

/// The log of a store.
pub(crate) struct Log {
    inner: Arc<Inner>,
    writer: Option<JoinHandle<()>>,
}

struct Inner {
    disk: Disk,
    /// The number of buffered bytes from which on further commits wait.
    full_at: usize,
    state: Mutex<State>,
    /// There is work for the writer.
    work: Condvar,
    /// A group with this parity has ended.
    ended: [Condvar; 2],
    /// A group was taken.
    taken: Condvar,
}

#[derive(Default)]
struct State {
    group: Group,
    /// The number of the group that is being collected.
    number: u64,
    /// The number of the last group that was written.
    written: u64,
    /// The number of the last group that is on the disk.
    synced: u64,
    /// When the written groups must be synced, and how long after the commit that asked for it.
    sync_by: Option<(Instant, Duration)>,
    failed: Option<StoreError>,
    /// The buffers of the group after this one.
    next: Batch,
    /// A group is being written.
    writing: bool,
    /// The size of that group: the storage engine has not taken room for it yet.
    in_flight: usize,
    /// The writer waits for the end of that.
    writer_waits: bool,
    stopping: bool,
    /// Runs completions, which are code of users.
    completions: Option<Sender<Box<dyn FnOnce() + Send>>>,
}

#[derive(Default)]
struct Group {
    /// The changes of all its commits, one after the other.
    batch: Batch,
    commits: usize,
    completions: Vec<Completion>,
    urgency: Urgency,
    /// How many threads wait for it.
    waiters: usize,
}

/// How soon a group is written.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    /// When its sync is due.
    #[default]
    Waits,
    Write,
    Sync,
}

/// What is done when a batch is on the disk, or is not.
pub(crate) type Completion = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

impl Log {
    /// The log of a disk. Commits wait while `full_at` bytes are buffered.
    pub(crate) fn new(disk: Disk, full_at: usize) -> Result<Self, StoreError> {
        let number = disk.catalog().store.group + 1;
        let inner = Arc::new(Inner {
            disk,
            full_at,
            state: Mutex::new(State {
                number,
                written: number - 1,
                synced: number - 1,
                ..State::default()
            }),
            work: Condvar::new(),
            ended: [Condvar::new(), Condvar::new()],
            taken: Condvar::new(),
        });
        let writer = Arc::clone(&inner);
        let writer = thread::Builder::new()
            .name("requeue log".into())
            .spawn(move || writer.write_groups())?;
        let writer = Some(writer);
        Ok(Self { inner, writer })
    }

    pub(crate) fn disk(&self) -> &Disk {
        &self.inner.disk
    }

    /// Adds the batches, as one, and waits as the durability asks. They are empty then. An error: nothing of them takes
    /// effect, unless the store is poisoned.
    pub(crate) fn commit<B: AsMut<Batch>>(
        &self,
        batches: &mut [B],
        durability: Durability,
    ) -> Result<(), StoreError> {
        let mut state = self.inner.add(batches)?;
        match durability {
            Durability::Synced => self.inner.wait(&mut state, Urgency::Sync),
            Durability::Buffered { at_most } => {
                self.inner.sync_within(&mut state, at_most);
                Ok(())
            }
        }
    }

    /// Adds a batch, and waits until it is written: the end of the process does not undo it any more.
    pub(crate) fn write(&self, batch: &mut Batch) -> Result<(), StoreError> {
        let mut state = self.inner.add(slice::from_mut(batch))?;
        self.inner.wait(&mut state, Urgency::Write)
    }

    /// Adds a batch; `then` is called when it is as far as the urgency asks, by a thread of the log, or with an error at once.
    pub(crate) fn add_then(&self, batch: &mut Batch, urgency: Urgency, then: Completion) {
        match self.inner.add(slice::from_mut(batch)) {
            Ok(mut state) => {
                state.group.completions.push(then);
                state.need(urgency);
                self.inner.work.notify_one();
            }
            Err(error) => then(Err(error)),
        }
    }

    /// Adds a batch, and waits in a task until it is as far as the urgency asks.
    pub(crate) async fn add_async(
        &self,
        batch: &mut Batch,
        urgency: Urgency,
    ) -> Result<(), StoreError> {
        let written = Oneshot::new();
        let at_end = Arc::clone(&written);
        self.add_then(batch, urgency, Box::new(move |result| at_end.send(result)));
        written.receive().await
    }

    /// Adds a batch that nobody waits for. It is written soon, not synced.
    pub(crate) fn note(&self, mut batch: Batch) {
        let mut state = self.inner.state.lock();
        if state.failed.is_none() && !batch.is_empty() {
            state.add(&mut batch);
            #[cfg(feature = "metrics")]
            self.inner.disk.meter.added();
            self.inner.hasten(&mut state, Urgency::Write);
        }
    }

    /// Waits until everything that was added is in the tables.
    pub(crate) fn settle(&self) -> Result<(), StoreError> {
        self.reach(Urgency::Write)
    }

    /// Waits until everything that was added is so far. Writes nothing if nothing was added since.
    pub(crate) fn reach(&self, urgency: Urgency) -> Result<(), StoreError> {
        let mut state = self.inner.state.lock();
        if let Some(error) = &state.failed {
            return Err(error.clone());
        }
        let last = state.number - 1;
        if state.group.commits == 0 && state.reached(urgency) >= last {
            return Ok(());
        }
        if state.group.commits == 0 && urgency == Urgency::Write {
            return self.inner.wait_for(&mut state, last, urgency);
        }
        self.inner.wait(&mut state, urgency)
    }

    /// Whether everything that was added is on the disk.
    #[cfg(test)]
    pub(crate) fn is_on_disk(&self) -> bool {
        let state = self.inner.state.lock();
        state.group.commits == 0 && state.synced + 1 == state.number
    }

    /// Whether everything that was added is written.
    #[cfg(test)]
    pub(crate) fn is_written(&self) -> bool {
        let state = self.inner.state.lock();
        state.group.commits == 0 && state.written + 1 == state.number
    }

    /// How many groups there were, the collected one included if it has anything.
    #[cfg(test)]
    pub(crate) fn groups(&self) -> u64 {
        let state = self.inner.state.lock();
        state.number - 1 + u64::from(state.group.commits > 0)
    }

    /// The error after which nothing more is written.
    pub(crate) fn failure(&self) -> Option<StoreError> {
        self.inner.state.lock().failed.clone()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let mut state = self.inner.state.lock();
        state.stopping = true;
        self.inner.work.notify_one();
        drop(state);
        let is_other = |writer: &JoinHandle<()>| writer.thread().id() != thread::current().id();
        let _ = self.writer.take().filter(is_other).map(JoinHandle::join);
    }
}

impl Inner {
    fn add<B: AsMut<Batch>>(&self, batches: &mut [B]) -> Result<MutexGuard<'_, State>, StoreError> {
        let mut state = self.state.lock();
        while state.group.batch.size() > self.full_at && state.failed.is_none() {
            self.hasten(&mut state, Urgency::Write);
            self.taken.wait(&mut state);
        }
        if let Some(error) = &state.failed {
            return Err(error.clone());
        }
        let sizes = batches.iter_mut().map(|batch| batch.as_mut().size());
        let bytes = sizes.sum::<usize>() + state.group.batch.size() + state.in_flight;
        let mut pushes = batches.iter_mut().map(|batch| &batch.as_mut().lengths);
        if pushes.any(|lengths| !lengths.is_empty()) && self.disk.is_full(bytes) {
            return Err(StoreError::DiskFull);
        }
        for batch in batches {
            state.add(batch.as_mut());
        }
        #[cfg(feature = "metrics")]
        self.disk.meter.added();
        Ok(state)
    }

    fn hasten(&self, state: &mut State, urgency: Urgency) {
        if state.group.urgency < urgency {
            state.group.urgency = urgency;
            self.work.notify_one();
        }
    }

    fn sync_within(&self, state: &mut State, at_most: Duration) {
        // The clock is read once for each sync: a later commit that may be lost for as long has more time than the first.
        if state.sync_by.is_none_or(|(_, known)| at_most < known) {
            let by = after(at_most);
            if state.sync_by.is_none_or(|(known, _)| by < known) {
                state.sync_by = Some((by, at_most));
                self.work.notify_one();
            }
        }
        if state.group.batch.size() > WRITE_AT {
            self.hasten(state, Urgency::Write);
        }
    }

    /// Waits until the group that is being collected is as far as the urgency asks.
    fn wait(&self, state: &mut MutexGuard<'_, State>, urgency: Urgency) -> Result<(), StoreError> {
        let number = state.number;
        state.need(urgency);
        state.group.waiters += 1;
        self.wait_for(state, number, urgency)
    }

    /// Waits until a group is so far: the one that is being collected, or the one that is being written.
    fn wait_for(
        &self,
        state: &mut MutexGuard<'_, State>,
        number: u64,
        urgency: Urgency,
    ) -> Result<(), StoreError> {
        while state.reached(urgency) < number {
            if let Some(error) = &state.failed {
                return Err(error.clone());
            }
            if state.writing || state.number != number {
                self.ended[(number % 2) as usize].wait(state);
            } else {
                let sync = state.group.urgency == Urgency::Sync;
                self.write_group(state, sync);
            }
        }
        Ok(())
    }

    /// The writer.
    fn write_groups(&self) {
        let mut state = self.state.lock();
        while let Some(sync) = self.wait_for_group(&mut state) {
            self.write_group(&mut state, sync);
        }
    }

    /// Waits until the writer has to write a group; returns whether it is to be synced. `None`: the log is dropped, or failed.
    fn wait_for_group(&self, state: &mut MutexGuard<'_, State>) -> Option<bool> {
        loop {
            let is_due = state.sync_by.is_some_and(|(by, _)| by <= Instant::now());
            match state.group.urgency {
                _ if state.failed.is_some() => return None,
                _ if state.writing => {
                    state.writer_waits = true;
                    self.work.wait(state);
                }
                Urgency::Sync => return Some(true),
                _ if is_due => return Some(true),
                Urgency::Write => return Some(state.stopping),
                Urgency::Waits if state.stopping => {
                    let is_empty = state.sync_by.is_none() && state.group.commits == 0;
                    return (!is_empty).then_some(true);
                }
                Urgency::Waits => match state.sync_by {
                    Some((by, _)) => drop(self.work.wait_until(state, by)),
                    None => self.work.wait(state),
                },
            }
        }
    }

    /// Writes the group that was collected. No other is being written.
    fn write_group(&self, state: &mut MutexGuard<'_, State>, sync: bool) {
        let (number, group) = self.take_group(state, sync);
        let (mut batch, completions) = (group.batch, group.completions);
        #[cfg(feature = "metrics")]
        let begun = meter::Begun::new(group.commits, sync);
        let written = MutexGuard::unlocked(state, || {
            let written = guarded(|| self.disk.write(&mut batch, number, sync));
            batch.clear();
            written.map_err(|error| self.disk.failure(&error))
        });
        #[cfg(feature = "metrics")]
        let report = written.is_ok().then(|| begun.end());
        if batch.capacity() <= MAX_KEPT_BUFFER {
            state.next = batch;
        }
        state.complete(completions, &written);
        self.end_group(state, number, sync, written);
        // After the others were woken, since a recorder may be slow, and without the lock, since it may commit.
        #[cfg(feature = "metrics")]
        MutexGuard::unlocked(state, || self.disk.meter.report(report));
    }

    fn take_group(&self, state: &mut State, sync: bool) -> (u64, Group) {
        if sync {
            state.sync_by = None;
        } else if state.sync_by.is_none() {
            // What is written without a wait is synced in time too.
            state.sync_by = Some((after(NOTED), NOTED));
        }
        #[cfg(feature = "metrics")]
        self.disk.meter.taken();
        state.writing = true;
        state.in_flight = state.group.batch.size();
        let number = state.number;
        state.number += 1;
        self.taken.notify_all();
        let next = Group {
            batch: mem::take(&mut state.next),
            ..Group::default()
        };
        (number, mem::replace(&mut state.group, next))
    }

    /// Wakes the threads that wait for the group that was written, and one thread that waits for the next group, to write it.
    fn end_group(
        &self,
        state: &mut State,
        number: u64,
        sync: bool,
        written: Result<(), StoreError>,
    ) {
        state.writing = false;
        state.in_flight = 0;
        #[cfg(feature = "metrics")]
        self.disk.meter.ended(written.is_ok(), sync);
        let [next, this] = [number + 1, number].map(|number| &self.ended[(number % 2) as usize]);
        this.notify_all();
        if let Err(error) = written {
            let group = mem::take(&mut state.group);
            state.complete(group.completions, &Err(error.clone()));
            state.failed = Some(error);
            self.taken.notify_all();
            next.notify_all();
        } else {
            state.written = number;
            if sync {
                state.synced = number;
            }
        }
        if state.group.waiters > 0 {
            next.notify_one();
        }
        if mem::take(&mut state.writer_waits) {
            self.work.notify_one();
        }
    }
}

impl State {
    /// The group that is being collected is written as soon as that at least.
    fn need(&mut self, urgency: Urgency) {
        self.group.urgency = self.group.urgency.max(urgency);
    }

    /// The number of the last group that is so far.
    fn reached(&self, urgency: Urgency) -> u64 {
        match urgency {
            Urgency::Sync => self.synced,
            _ => self.written,
        }
    }

    /// Copies the changes into the group. The buffers of the batch stay with the caller.
    fn add(&mut self, batch: &mut Batch) {
        self.group.commits += 1;
        self.group.batch.append(batch);
    }

    /// Completions run destructors and wakers, which may commit to the same store: so not here.
    fn complete(&mut self, completions: Vec<Completion>, written: &Result<(), StoreError>) {
        if completions.is_empty() {
            return;
        }
        let sender = self.completions.get_or_insert_with(|| {
            let (sender, receiver) = channel::<Box<dyn FnOnce() + Send>>();
            let run = move || {
                for complete in receiver {
                    let _ = catch_unwind(AssertUnwindSafe(complete));
                }
            };
            let thread = thread::Builder::new().name("requeue completions".into());
            thread.spawn(run).expect("a thread can be started");
            sender
        });
        for completion in completions {
            let written = written.clone();
            let _ = sender.send(Box::new(move || completion(written)));
        }
    }
}

/// When what is written without a wait is synced. Tests count groups, of which a sync is one.
const NOTED: Duration = Duration::from_millis(if cfg!(test) { 3_600_000 } else { 500 });

/// The time after a duration; very late if the clock does not reach so far.
fn after(duration: Duration) -> Instant {
    let now = Instant::now();
    let late = Duration::from_secs(365 * 24 * 3600);
    now.checked_add(duration).unwrap_or_else(|| now + late)
}

#[cfg(test)]
mod tests;
