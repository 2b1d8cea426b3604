//! The log: transactions hand in their changes, and one thread writes them in groups.
//!
//! | who | does |
//! |---|---|
//! | a commit | adds its batch to the group that is being collected, under a short lock |
//! | the writer | takes the group, writes it as one batch of the storage engine, syncs if anybody waits for that |
//! | a synced commit | waits until its group is on the disk, then shows its items |
//! | a buffered commit | shows its items at once; the writer syncs them in time |
//!
//! Groups are written in the order in which they were collected, so what a crash leaves is a prefix. A transaction that
//! popped an item is later in the log than the one that pushed it, since items are shown after their batch was added.
//!
//! What changes within one group is not written: an item that is pushed and removed there never reaches the disk.

mod directory;
mod disk;
mod journal;
mod salvage;
mod tables;
mod witness;

pub(crate) use directory::Directory;
pub(crate) use disk::Disk;
#[cfg(fuzzing)]
pub(crate) use journal::{mend, replay, RowChange};
pub(crate) use tables::{guarded, visit};

use crate::batch::Batch;
use crate::error::StoreError;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::mem;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::slice;
use std::sync::mpsc::{channel, Sender};
use std::sync::Arc;
use std::thread::{self, JoinHandle, ThreadId};
use std::time::{Duration, Instant};

/// At how many bytes a group is written, if nobody waits for it.
const WRITE_AT: usize = 4 << 20;
/// At how many bytes further buffered commits wait.
const FULL_AT: usize = 64 << 20;
/// Up to how many bytes the buffers of a group are kept.
const KEPT: usize = 16 << 20;

/// When a commit is on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// When the commit returns. Its items become visible then.
    Synced,
    /// At the latest so long after the commit returned. Its items become visible at once. A crash loses the last commits, in
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
    writer_id: ThreadId,
}

struct Inner {
    disk: Disk,
    state: Mutex<State>,
    /// There is work for the writer.
    work: Condvar,
    /// A group with this parity has ended.
    ended: [Condvar; 2],
    /// A group was taken.
    taken: Condvar,
}

struct State {
    group: Group,
    /// The number of the group that is being collected.
    number: u64,
    /// The number of the last group that is on the disk.
    synced: u64,
    /// When the written groups must be synced, and how long after the commit that asked for it.
    sync_by: Option<(Instant, Duration)>,
    failed: Option<StoreError>,
    /// The buffers of the group after this one.
    next: Batch,
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
}

/// How soon a group is written.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Urgency {
    /// When its sync is due.
    #[default]
    Waits,
    Write,
    Sync,
}

/// What is done when a batch is on the disk, or is not.
pub(crate) type Completion = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

impl Log {
    pub(crate) fn new(disk: Disk) -> Result<Self, StoreError> {
        let number = disk.books().store.group + 1;
        let inner = Arc::new(Inner {
            disk,
            state: Mutex::new(State {
                group: Group::default(),
                number,
                synced: number - 1,
                sync_by: None,
                failed: None,
                next: Batch::default(),
                stopping: false,
                completions: None,
            }),
            work: Condvar::new(),
            ended: [Condvar::new(), Condvar::new()],
            taken: Condvar::new(),
        });
        let writer = Arc::clone(&inner);
        let writer = thread::Builder::new()
            .name("requeue log".into())
            .spawn(move || writer.write_groups())?;
        Ok(Self {
            inner,
            writer_id: writer.thread().id(),
            writer: Some(writer),
        })
    }

    pub(crate) fn disk(&self) -> &Disk {
        &self.inner.disk
    }

    /// Adds the batches, as one, and waits as the durability asks. They are empty then. An error: nothing of them takes
    /// effect, unless the store is poisoned.
    pub(crate) fn commit(
        &self,
        batches: &mut [Batch],
        durability: Durability,
    ) -> Result<(), StoreError> {
        let mut state = self.inner.add(batches, durability)?;
        if durability != Durability::Synced {
            return Ok(());
        }
        let number = state.number;
        self.inner.wait(&mut state, number)
    }

    /// Adds a batch; `then` is called when it is on the disk, by a thread of the log.
    pub(crate) fn commit_then(
        &self,
        batch: &mut Batch,
        then: Completion,
    ) -> Result<(), (StoreError, Completion)> {
        match self.inner.add(slice::from_mut(batch), Durability::Synced) {
            Ok(mut state) => {
                state.group.completions.push(then);
                Ok(())
            }
            Err(error) => Err((error, then)),
        }
    }

    /// Adds a batch that nobody waits for. It is written soon, not synced.
    pub(crate) fn note(&self, mut batch: Batch) {
        let mut state = self.inner.state.lock();
        if state.failed.is_none() {
            state.add(&mut batch);
            self.inner.hasten(&mut state, Urgency::Write);
        }
    }

    /// Waits until everything that was added is on the disk.
    pub(crate) fn flush(&self) -> Result<(), StoreError> {
        self.commit(&mut [], Durability::Synced)
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
        let writer = self.writer.take();
        if thread::current().id() != self.writer_id {
            let _ = writer.map(JoinHandle::join);
        }
    }
}

impl State {
    /// Copies the changes into the group: the buffers of the batch stay with the caller, those of the group with the writer.
    fn add(&mut self, batch: &mut Batch) {
        self.group.commits += 1;
        self.group.batch.append(batch);
    }
}

impl Inner {
    fn add(
        &self,
        batches: &mut [Batch],
        durability: Durability,
    ) -> Result<MutexGuard<'_, State>, StoreError> {
        let mut state = self.state.lock();
        while state.group.batch.size() > FULL_AT && state.failed.is_none() {
            self.hasten(&mut state, Urgency::Write);
            self.taken.wait(&mut state);
        }
        if let Some(error) = &state.failed {
            return Err(error.clone());
        }
        let pushes = batches.iter().any(|batch| !batch.lengths.is_empty());
        let bytes = batches.iter().map(Batch::size).sum::<usize>() + state.group.batch.size();
        if pushes && self.disk.is_full(bytes) {
            return Err(StoreError::DiskFull);
        }
        for batch in batches {
            state.add(batch);
        }
        match durability {
            Durability::Synced => self.hasten(&mut state, Urgency::Sync),
            Durability::Buffered { at_most } => self.sync_within(&mut state, at_most),
        }
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

    fn wait(&self, state: &mut MutexGuard<'_, State>, number: u64) -> Result<(), StoreError> {
        while state.synced < number {
            if let Some(error) = &state.failed {
                return Err(error.clone());
            }
            self.ended[(number % 2) as usize].wait(state);
        }
        Ok(())
    }

    /// The writer.
    fn write_groups(&self) {
        while let Some((group, number, sync)) = self.take_group() {
            let Group {
                mut batch,
                completions,
                ..
            } = group;
            let writing = AssertUnwindSafe(|| self.disk.write(&mut batch, number, sync));
            let written = catch_unwind(writing)
                .unwrap_or_else(|_| Err(StoreError::damaged("the storage engine panicked")))
                .map_err(|error| StoreError::Poisoned(error.to_string().into()));
            self.end_group(number, sync, &written, batch);
            self.complete(completions, &written);
            if written.is_err() {
                break;
            }
        }
        // No more are added: nobody has the log, or it failed.
        let group = mem::take(&mut self.state.lock().group);
        let failed = self.state.lock().failed.clone();
        self.complete(group.completions, &failed.map_or(Ok(()), Err));
    }

    /// Waits for a group that is to be written; with whether it is to be synced. `None`: the log is dropped.
    fn take_group(&self) -> Option<(Group, u64, bool)> {
        let mut state = self.state.lock();
        let sync = loop {
            let is_due = state.sync_by.is_some_and(|(by, _)| by <= Instant::now());
            match state.group.urgency {
                Urgency::Sync => break true,
                _ if is_due => break true,
                Urgency::Write => break state.stopping,
                Urgency::Waits if state.stopping => {
                    if state.sync_by.is_none() && state.group.commits == 0 {
                        return None;
                    }
                    break true;
                }
                Urgency::Waits => match state.sync_by {
                    Some((by, _)) => drop(self.work.wait_until(&mut state, by)),
                    None => self.work.wait(&mut state),
                },
            }
        };
        if sync {
            state.sync_by = None;
        } else if state.sync_by.is_none() {
            // What is written without a wait is synced in time too.
            state.sync_by = Some((after(NOTED), NOTED));
        }
        let number = state.number;
        state.number += 1;
        self.taken.notify_all();
        let next = Group {
            batch: mem::take(&mut state.next),
            ..Group::default()
        };
        Some((mem::replace(&mut state.group, next), number, sync))
    }

    fn end_group(
        &self,
        number: u64,
        sync: bool,
        written: &Result<(), StoreError>,
        mut batch: Batch,
    ) {
        batch.clear();
        let mut state = self.state.lock();
        match written {
            Ok(()) if sync => state.synced = number,
            Ok(()) => {}
            Err(error) => {
                state.failed = Some(error.clone());
                self.taken.notify_all();
                self.ended[((number + 1) % 2) as usize].notify_all();
            }
        }
        if batch.capacity() <= KEPT {
            state.next = batch;
        }
        self.ended[(number % 2) as usize].notify_all();
    }

    /// Completions run destructors and wakers, which may commit to the same store: so not here.
    fn complete(&self, completions: Vec<Completion>, written: &Result<(), StoreError>) {
        if completions.is_empty() {
            return;
        }
        let mut state = self.state.lock();
        let sender = state.completions.get_or_insert_with(|| {
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

/// When what is written without a wait is synced.
const NOTED: Duration = Duration::from_millis(500);

/// The time after a duration; very late if the clock does not reach so far.
fn after(duration: Duration) -> Instant {
    let now = Instant::now();
    let late = Duration::from_secs(365 * 24 * 3600);
    now.checked_add(duration).unwrap_or_else(|| now + late)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_that_may_be_lost_for_less_brings_the_sync_forward() {
        let files = tempfile::tempdir().unwrap();
        let directory = Directory::enter(files.path()).unwrap();
        let log = Log::new(Disk::open(directory, 1 << 20, 0, false).unwrap()).unwrap();
        let sync_by = |at_most| {
            let buffered = Durability::Buffered { at_most };
            log.commit(&mut [Batch::default()], buffered).unwrap();
            log.inner.state.lock().sync_by.unwrap().0
        };
        let hour = Duration::from_secs(3600);
        let first = sync_by(hour);
        assert_eq!(sync_by(2 * hour), first);
        assert!(sync_by(hour / 2) < first);
    }
}
