//! Worker pools: threads or tasks that wait for items, run a function on each, and commit or give back.
//!
//! A pool begins with [`Workers::builder`]. Closures are items too: see [`Job`].

// | file | what |
// |---|---|
// | `worker` | one worker: what it is told, what it does, what it has done |
// | `crew` | the workers of a pool, and who waits for their end |
// | `builder` | the settings of a pool |
// | `run`, `work`, `threads` | how threads are started, what they do, and their pool |
// | `transaction` | what a pool needs of a transaction, wherever its queue is |
// | `others` | other queues that they commit to |
// | `spawn`, `task`, `tasks` | the same for tasks, with feature `tokio` |
// | `status`, `failure` | what workers say of themselves, and of runs that failed |
// | `job`, `submit` | closures and futures as items |
// | `outcome`, `job_error` | what became of them |
// | `caught` | panics of futures |
//
// A worker waits in the queue's line by a future, and asks for its orders at each poll. Whoever gives
// it an order wakes it by the same waker, and it drops the future, which passes an unused wake-up on.
// So an order disturbs no other waiter, and takes no wake-up away from one.

mod builder;
mod caught;
mod crew;
mod failure;
mod job;
mod job_error;
mod others;
mod outcome;
mod run;
#[cfg(feature = "tokio")]
mod spawn;
mod status;
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
