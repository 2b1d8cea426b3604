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
mod queue;
mod store;
mod ticket;
mod transaction;

pub use codec::{Codec, CodecError, Postcard};
pub use commit::{commit_all, CommitAsync, Taken, Transactions};
pub use error::{Damage, PopError, PushError, StoreError};
pub use handle::Handle;
pub use item::{Item, Items};
pub use log::Durability;
pub use order::Order;
pub use queue::{Builder, Cause, DeadLetter, DeadLetters, DurableQueue, PushTo, PushWith};
pub use queue::{Inspector, LetterInfo, QueueInfo};
pub use store::{Store, StoreOptions};
pub use ticket::Ticket;
pub use transaction::Transaction;

pub use requeue::{ByKey, ByPriority, Fifo, Leased, Reason};
