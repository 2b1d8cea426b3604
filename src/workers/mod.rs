//! Worker pools: threads or tasks that wait for items, run a function on each, and commit or abort.
//!
//! [`Workers::builder`] starts a pool. Closures and futures can be items: see [`Job`].

// | file | contents |
// |---|---|
// | `worker` | one worker: its command, and what it shows of itself |
// | `progress` | its state and its successful runs |
// | `pool` | the workers of a pool, and the wait for their end |
// | `builder` | the settings of a pool |
// | `any_queue` | the queue of a pool, without its types |
// | `step` | the loop of a worker and the steps of a run, by threads or tasks |
// | `run`, `work`, `threads` | starts threads, their steps, and their pool |
// | `owned` | runs that own their item |
// | `others` | other queues that a run commits to |
// | `spawn`, `task`, `tasks` | the same for tasks |
// | `in_flight` | commits of a task that are under way while it goes on |
// | `block` | drives futures on a thread |
// | `status`, `failure` | the status of workers, and failed runs |
// | `job`, `submit` | closures and futures as items |
// | `outcome`, `job_error` | their results |
// | `caught` | panics of futures |
//
// A worker waits in the queue's wait queue with a future, and checks for a command at each poll. A
// command wakes the worker by the same waker, and the worker drops the future, which passes an unused
// wake-up on. So a command disturbs no other waiter, and takes no wake-up away from one. The worker leaves its waker only after
// a poll that found no item, and removes it when the wait has ended, so a command polls no run.
//
// A panic of a run is caught before the transaction ends, so both ways to fail are one: an abort with the error and a backoff.

mod any_queue;
mod block;
mod builder;
mod caught;
mod failure;
mod in_flight;
mod job;
mod job_error;
mod others;
mod outcome;
mod owned;
mod pause;
mod pool;
mod progress;
mod run;
mod spawn;
mod status;
mod step;
mod submit;
mod task;
#[cfg(feature = "tokio")]
mod tasks;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
mod threads;
mod work;
mod worker;

pub use any_queue::AnyQueue;
pub use builder::PoolBuilder;
#[doc(hidden)]
pub use failure::text_of_panic;
pub use failure::{Failure, Success};
pub use job::Job;
pub use job_error::JobError;
pub use others::{CommitWith, Others};
pub use outcome::Outcome;
pub use status::{Report, WorkerState, WorkerStatus};
pub use task::{KeptItem, KeptTransaction, TaskItem, TaskTransaction};
#[cfg(feature = "tokio")]
pub use tasks::Tasks;
pub use threads::Workers;

/// Settings of a new pool of workers of a [`Queue`](crate::Queue).
pub type WorkersBuilder<T, O = crate::Fifo> = PoolBuilder<crate::Queue<T, O>>;
