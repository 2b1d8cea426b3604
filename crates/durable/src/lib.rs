//! The queue of the crate [`requeue`] on disk.

#![allow(private_bounds)]

mod batch;
mod codec;
mod commit;
mod entry;
mod error;
mod format;
mod handle;
mod item;
mod log;
mod order;
mod peek;
mod queue;
mod select;
mod store;
mod ticket;
mod transaction;
mod workers;

pub use codec::{Codec, CodecError, Postcard};
pub use commit::{commit_all, commit_all_with, CommitAsync, Taken, Transactions};
pub use error::{Damage, PopError, PushError, StoreError};
pub use handle::Handle;
pub use item::{Item, Items};
pub use log::Durability;
pub use order::Order;
pub use peek::Peek;
pub use queue::{Builder, Cause, DeadLetter, DeadLetters, DurableQueue, Iter, PushTo, PushWith};
pub use select::{
    hold_any, hold_any_async, hold_any_timeout, pop_any, pop_any_async, pop_any_timeout,
};
pub use store::{Store, StoreOptions};
pub use ticket::Ticket;
pub use transaction::{OwnedTransaction, Transaction};
pub use workers::{Failure, Report, RunTransaction, WorkerStatus, Workers, WorkersBuilder};

pub use requeue::{ByKey, ByPriority, Fifo, Leased, Reason};
