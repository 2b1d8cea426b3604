//! One worker: its command, state and counters.

use super::{WorkerState, WorkerStatus};
use crate::sync::{lock, swallow_panic, Mutex};
use crate::wait::{block, Deadline};
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
    Done,
    Failed,
    Panicked,
}

impl Ran {
    /// How the run of a [`Job`](super::Job) ended.
    pub(super) fn of_job(returned: bool) -> Self {
        if returned {
            Self::Done
        } else {
            Self::Panicked
        }
    }
}

/// A run that returned `()` is done.
impl From<()> for Ran {
    fn from((): ()) -> Self {
        Self::Done
    }
}

/// The state of a worker, shared with its pool.
pub(super) struct Worker {
    record: Mutex<WorkerRecord>,
}

struct WorkerRecord {
    command: Command,
    status: WorkerStatus,
    /// Wakes the worker while it waits.
    waker: Option<Waker>,
}

impl Worker {
    pub(super) fn new(name: Arc<str>) -> Self {
        let status = WorkerStatus {
            name,
            state: WorkerState::Idle,
            done: 0,
            failed: 0,
            panicked: 0,
        };
        Self {
            record: Mutex::new(WorkerRecord {
                command: Command::Work,
                status,
                waker: None,
            }),
        }
    }

    pub(super) fn status(&self) -> WorkerStatus {
        lock(&self.record).status.clone()
    }

    pub(super) fn name(&self) -> Arc<str> {
        Arc::clone(&lock(&self.record).status.name)
    }

    /// Sets the command and bell the worker. After `Stop` all other commands are ignored.
    pub(super) fn command(&self, command: Command) {
        let mut record = lock(&self.record);
        if record.command != Command::Stop {
            record.command = command;
        }
        let waker = record.waker.take();
        drop(record);
        swallow_panic(|| waker.into_iter().for_each(Waker::wake));
    }

    fn current(&self) -> Command {
        lock(&self.record).command
    }

    /// Whether the worker must take no items now.
    pub(super) fn is_interrupted(&self) -> bool {
        self.current() != Command::Work
    }

    /// Ready when the worker must take no items.
    pub(super) fn poll_interrupted(&self, waker: &Waker) -> Poll<()> {
        self.poll_command(waker, |command| command != Command::Work)
            .map(drop)
    }

    /// Ready when the worker is not paused; true if it goes on.
    pub(super) fn poll_go_on(&self, waker: &Waker) -> Poll<bool> {
        let command = self.poll_command(waker, |command| command != Command::Pause);
        self.show(match command {
            Poll::Ready(_) => WorkerState::Idle,
            Poll::Pending => WorkerState::Paused,
        });
        command.map(|command| command == Command::Work)
    }

    /// Waits while the worker is paused. Returns whether it goes on.
    pub(super) fn goes_on(&self) -> bool {
        match self.current() {
            Command::Work => true,
            Command::Stop => false,
            Command::Pause => {
                block(Deadline::NEVER, |wake_target| {
                    self.poll_go_on(wake_target.waker)
                }) == Some(true)
            }
        }
    }

    /// Ready with the command if it is an awaited one; otherwise the next command bell the worker.
    fn poll_command(&self, waker: &Waker, awaited: impl Fn(Command) -> bool) -> Poll<Command> {
        let mut command = self.current();
        if !awaited(command) {
            let mut waker = Some(waker.clone());
            mem::swap(&mut lock(&self.record).waker, &mut waker);
            command = self.current();
        }
        if awaited(command) {
            Poll::Ready(command)
        } else {
            Poll::Pending
        }
    }

    fn show(&self, state: WorkerState) {
        lock(&self.record).status.state = state;
    }

    /// The worker has taken an item. It no longer waits, so a command must not wake the task that runs.
    pub(super) fn begin_run(&self, since: Instant) {
        let mut record = lock(&self.record);
        record.status.state = WorkerState::Busy { since };
        let waker = record.waker.take();
        drop(record);
        swallow_panic(|| drop(waker));
    }

    pub(super) fn end_run(&self, ran: Ran) {
        let status = &mut lock(&self.record).status;
        status.state = WorkerState::Idle;
        *match ran {
            Ran::Done => &mut status.done,
            Ran::Failed => &mut status.failed,
            Ran::Panicked => &mut status.panicked,
        } += 1;
    }

    pub(super) fn end(&self) {
        self.show(WorkerState::Stopped);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Bell;
    use super::{Command, Worker};
    use std::task::Poll;
    use std::time::Instant;

    #[test]
    fn a_worker_ignores_commands_after_stop() {
        let worker = Worker::new("worker".into());
        for command in [Command::Stop, Command::Pause, Command::Work] {
            worker.command(command);
            assert!(worker.is_interrupted());
            assert!(!worker.goes_on());
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
        worker.begin_run(Instant::now());
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
