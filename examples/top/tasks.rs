//! The tasks of the three queues, and the simulated work on them.

use std::panic::resume_unwind;
use std::thread;
use std::time::Duration;

use requeue::{Backoff, Fifo, Leased, Queue};

const CAPACITY: usize = 2000;
/// The maximal duration of a task, and the duration of a report that hangs.
const LEASE: Duration = Duration::from_millis(1500);
const HANG: Duration = Duration::from_secs(2);

/// Every n-th task has a problem.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task(pub(crate) u64);

#[derive(Debug)]
pub(crate) struct Failed;

/// The work on the tasks of a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trade {
    /// Some addresses answer on the second attempt, some never.
    Mail,
    /// Some images make their worker panic.
    Images,
    /// One slow worker. Some reports take longer than their lease.
    Reports,
}

impl Trade {
    pub(crate) const ALL: [Self; 3] = [Self::Mail, Self::Images, Self::Reports];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Mail => "mail",
            Self::Images => "images",
            Self::Reports => "reports",
        }
    }

    pub(crate) fn workers(self) -> usize {
        match self {
            Self::Mail => 3,
            Self::Images => 2,
            Self::Reports => 1,
        }
    }

    /// Number of tasks per second, on average and at a load of 100 %.
    pub(crate) fn rate(self) -> f64 {
        match self {
            Self::Mail => 60.0,
            Self::Images => 18.0,
            Self::Reports => 3.0,
        }
    }

    /// The duration of a task.
    fn time(self) -> Duration {
        Duration::from_millis(match self {
            Self::Mail => 40,
            Self::Images => 90,
            Self::Reports => 220,
        })
    }

    pub(crate) fn queue(self) -> Queue<Task, Leased<Fifo>> {
        let builder = Queue::builder()
            .name(self.name())
            .capacity(CAPACITY)
            .timestamps()
            .leased(LEASE);
        let (attempts, builder) = match self {
            Self::Mail => {
                let (first, cap) = (Duration::from_secs(1), Duration::from_secs(8));
                let backoff = Backoff::exponential(first, cap).with_jitter();
                (3, builder.backoff(backoff))
            }
            Self::Images => (2, builder.backoff(Backoff::fixed(Duration::from_secs(1)))),
            Self::Reports => (1, builder),
        };
        builder.max_attempts(attempts).build()
    }

    /// Runs a task, on the given attempt.
    pub(crate) fn perform(self, task: Task, attempt: u32) -> Result<(), Failed> {
        thread::sleep(self.time());
        match self {
            Self::Mail if task.0 % 60 == 0 => Err(Failed),
            Self::Mail if task.0 % 8 == 0 && attempt == 1 => Err(Failed),
            // Unlike `panic!`, this calls no hook: the hook of the terminal would leave it.
            Self::Images if task.0 % 25 == 0 => resume_unwind(Box::new("a broken image")),
            Self::Reports if task.0 % 15 == 0 => {
                thread::sleep(HANG);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
