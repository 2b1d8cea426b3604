//! placeholder
#[cfg(not(target_pointer_width = "64"))]
compile_error!("requeue needs a 64-bit target: positions are 64-bit words and are used as sizes");

mod commit_all;
mod error;
mod handle;
mod queue;
mod raw;
mod stats;
mod sync;
mod taken;
mod transaction;

pub use commit_all::{commit_all, Transactions};
pub use error::{PopError, PushError};
pub use handle::Handle;
pub use queue::Queue;
pub use stats::Stats;
pub use taken::Taken;
pub use transaction::{Item, Items, Transaction};
