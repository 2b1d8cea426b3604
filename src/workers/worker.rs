//! One worker: its command, and what it shows of itself.

use super::progress::{Phase, Seen, WorkerProgress};
use super::{WorkerState, WorkerStatus};
use crate::sync::{lock, swallow_panic, AtomicU8, Mutex, Ordering};
use crossbeam_utils::CachePadded;
use std::future::{poll_fn, Future};
use std::mem;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Instant;

/// A command to a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Work,
    Pause,
    Stop,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ran {
    /// Committed with all items.
    Done,
    /// Committed, but some items were retried or failed by the run itself.
    GivenUp,
    Failed,
    Panicked,
}

impl Ran {
    /// As it is, but for items that were given up instead of being done.
    pub(super) fn but(self, given_up: bool) -> Self {
        match self {
            Self::Done if given_up => Self::GivenUp,
            ran => ran,
        }
    }
}

impl From<()> for Ran {
    fn from((): ()) -> Self {
        Self::Done
    }
}

/// Whether a [`Job`](super::Job) has returned.
impl From<bool> for Ran {
    fn from(returned: bool) -> Self {
        if returned {
            Self::Done
        } else {
            Self::Panicked
        }
    }
}

/// The state of a worker, shared with its pool. Each item costs it three stores and a load; the lock is for the rest.
pub(super) struct Worker {
    name: Arc<str>,
    progress: CachePadded<WorkerProgress>,
    /// The command, which is written under the lock.
    command: AtomicU8,
    record: Mutex<WorkerRecord>,
}

#[derive(Default)]
struct WorkerRecord {
    /// The runs that were not done, by how they ended.
    ran: [u64; Ran::Panicked as usize + 1],
    /// Wakes the worker while it waits.
    waker: Option<Waker>,
}

/// What others do with a worker.
impl Worker {
    pub(super) fn new(name: Arc<str>) -> Self {
        Self {
            name,
            progress: CachePadded::new(WorkerProgress::new()),
            command: AtomicU8::new(Command::Work as u8),
            record: Mutex::default(),
        }
    }

    pub(super) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The status; `time` is that of the queue.
    pub(super) fn status(&self, instant: &dyn Fn(u64) -> Instant) -> WorkerStatus {
        let record = lock(&self.record);
        let Seen { phase, done, since } = self.progress.read();
        WorkerStatus {
            name: Arc::clone(&self.name),
            state: match phase {
                Phase::Idle => WorkerState::Idle,
                Phase::Busy => WorkerState::Busy {
                    since: instant(since),
                },
                Phase::Paused => WorkerState::Paused,
                Phase::Stopped => WorkerState::Stopped,
            },
            done,
            given_up: record.ran[Ran::GivenUp as usize],
            failed: record.ran[Ran::Failed as usize],
            panicked: record.ran[Ran::Panicked as usize],
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.progress.read().phase == Phase::Stopped
    }

    /// Whether it neither runs nor has ended.
    pub(super) fn is_idle(&self) -> bool {
        !matches!(self.progress.read().phase, Phase::Busy | Phase::Stopped)
    }

    /// Sets the command and wakes the worker. After `Stop` all other commands are ignored.
    pub(super) fn command(&self, command: Command) {
        let mut record = lock(&self.record);
        if self.current() != Command::Stop {
            // ORDERING: Relaxed; a worker that has left its waker reads it again after the lock.
            self.command.store(command as u8, Ordering::Relaxed);
        }
        let waker = record.waker.take();
        drop(record);
        swallow_panic(|| waker.into_iter().for_each(Waker::wake));
    }
}

/// The worker's commands.
impl Worker {
    #[inline]
    fn current(&self) -> Command {
        // ORDERING: Relaxed; as in `command`.
        match self.command.load(Ordering::Relaxed) {
            0 => Command::Work,
            1 => Command::Pause,
            _ => Command::Stop,
        }
    }

    /// Whether the worker must take no items now.
    #[inline]
    pub(super) fn is_interrupted(&self) -> bool {
        self.current() != Command::Work
    }

    /// Ready when the worker must take no items.
    pub(super) fn poll_interrupted(&self, waker: &Waker) -> Poll<()> {
        self.poll_command(waker, |command| command != Command::Work)
            .map(drop)
    }

    /// Waits while the worker is paused. Returns whether it goes on.
    pub(super) fn go_on(&self) -> impl Future<Output = bool> + '_ {
        poll_fn(|context| self.poll_go_on(context.waker()))
    }

    /// Ready when the worker is not paused; true if it goes on.
    fn poll_go_on(&self, waker: &Waker) -> Poll<bool> {
        let command = self.poll_command(waker, |command| command != Command::Pause);
        self.progress.show(match command {
            Poll::Ready(_) => Phase::Idle,
            Poll::Pending => Phase::Paused,
        });
        command.map(|command| command == Command::Work)
    }

    /// Ready with the command if it is an awaited one; otherwise the next command wakes the worker. The command is read again
    /// behind the lock: either the worker sees it, or it is woken for it.
    fn poll_command(&self, waker: &Waker, awaited: impl Fn(Command) -> bool) -> Poll<Command> {
        let command = self.current();
        if awaited(command) {
            return Poll::Ready(command);
        }
        self.leave_waker(Some(waker.clone()));
        let command = self.current();
        if !awaited(command) {
            return Poll::Pending;
        }
        self.end_wait();
        Poll::Ready(command)
    }

    /// The worker no longer waits, so a command must not wake the task that runs.
    pub(super) fn end_wait(&self) {
        self.leave_waker(None);
    }

    /// Replaces the waker that the next command calls.
    fn leave_waker(&self, mut waker: Option<Waker>) {
        mem::swap(&mut lock(&self.record).waker, &mut waker);
        swallow_panic(|| drop(waker));
    }
}

/// What the worker shows of itself.
impl Worker {
    /// The worker has taken an item, at the time of this stamp.
    #[inline]
    pub(super) fn begin_run(&self, since: u64) {
        self.progress.begin(since);
    }

    #[inline]
    pub(super) fn end_run(&self, ran: Ran) {
        if ran == Ran::Done {
            return self.progress.succeed();
        }
        self.count(ran);
        self.rest();
    }

    /// Counts a run. The worker is busy until it [rests](Self::rest), so that a thread that sees it idle sees the count.
    #[cold]
    pub(super) fn count(&self, ran: Ran) {
        match ran {
            Ran::Done => self.progress.count(),
            _ => lock(&self.record).ran[ran as usize] += 1,
        }
    }

    /// The worker is idle from now on.
    pub(super) fn rest(&self) {
        self.progress.show(Phase::Idle);
    }

    pub(super) fn end(&self) {
        self.end_wait();
        self.progress.show(Phase::Stopped);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::super::tests::Bell;
    use super::{Command, Worker};
    use std::task::Poll;

    #[test]
    fn a_worker_ignores_commands_after_stop() {
        let worker = Worker::new("worker".into());
        let (_, waker) = Bell::new();
        for command in [Command::Stop, Command::Pause, Command::Work] {
            worker.command(command);
            assert!(worker.is_interrupted());
            assert_eq!(worker.poll_go_on(&waker), Poll::Ready(false));
        }
    }

    #[test]
    fn a_command_wakes_a_worker_that_waits() {
        let worker = Worker::new("worker".into());
        let (bell, waker) = Bell::new();
        assert!(worker.poll_interrupted(&waker).is_pending());
        worker.command(Command::Pause);
        assert_eq!(bell.rings(), 1);
        assert!(worker.poll_interrupted(&waker).is_ready());
        assert!(worker.poll_go_on(&waker).is_pending());
        worker.command(Command::Work);
        assert_eq!(bell.rings(), 2);
        assert_eq!(worker.poll_go_on(&waker), Poll::Ready(true));
    }

    #[test]
    fn a_command_wakes_no_worker_that_runs() {
        let worker = Worker::new("worker".into());
        let (bell, waker) = Bell::new();
        assert!(worker.poll_interrupted(&waker).is_pending());
        worker.end_wait();
        worker.command(Command::Stop);
        assert_eq!(bell.rings(), 0);
    }

    /// A command between the worker's check and the registration of its waker finds no waker to call.
    #[test]
    fn a_worker_rereads_its_command_after_its_waker_is_set() {
        let worker = Worker::new("worker".into());
        let (_, waker) = Bell::new();
        let poll = worker.poll_command(&waker, |command| {
            worker.command(Command::Stop);
            command == Command::Stop
        });
        assert_eq!(poll, Poll::Ready(Command::Stop));
    }
}
