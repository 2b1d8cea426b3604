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
// | `run`, `work`, `threads` | starts threads, their loop, and their pool |
// | `transaction` | the trait of transactions of any queue |
// | `others` | other queues that a run commits to |
// | `spawn`, `task`, `tasks` | the same for tasks, with feature `tokio` |
// | `status`, `failure` | the status of workers, and failed runs |
// | `job`, `submit` | closures and futures as items |
// | `outcome`, `job_error` | their results |
// | `caught` | panics of futures |
//
// A worker waits in the queue's wait queue with a future, and checks for a command at each poll. A
// command wakes the worker by the same waker, and the worker drops the future, which passes an unused
// wake-up on. So a command disturbs no other waiter, and takes no wake-up away from one.

mod any_queue;
mod builder;
mod caught;
mod failure;
mod job;
mod job_error;
mod others;
mod outcome;
mod pool;
mod progress;
mod run;
#[cfg(feature = "tokio")]
mod spawn;
mod status;
mod step;
mod submit;
#[cfg(feature = "tokio")]
mod task;
#[cfg(feature = "tokio")]
mod tasks;
#[cfg(test)]
mod tests;
mod threads;
mod transaction;
mod work;
mod worker;

pub use any_queue::AnyQueue;
pub use builder::WorkersBuilder;
pub use failure::Failure;
pub use job::Job;
pub use job_error::JobError;
pub use others::Others;
pub use outcome::Outcome;
pub use status::{Report, WorkerState, WorkerStatus};
#[cfg(feature = "tokio")]
pub use task::{TaskItem, TaskTransaction};
#[cfg(feature = "tokio")]
pub use tasks::Tasks;
pub use threads::Workers;
pub use transaction::AsyncTransaction;
