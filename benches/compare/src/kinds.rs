//! The kinds of queues that are compared, and the interface that the scenarios need.

mod channels;
mod requeue;

pub(crate) use self::requeue::{Endpoint, Requeue};
pub(crate) use channels::{AsyncChannel, Crossbeam, Flume, Kanal, Std, Tokio};

use std::future::Future;

pub(crate) trait Kind: 'static {
    const NAME: &'static str;
    type Sender: Sender;
    type Receiver: Send + 'static;

    fn unbounded() -> (Self::Sender, Self::Receiver);
}

/// A kind that can have a capacity.
pub(crate) trait Bounded: Kind {
    fn bounded(capacity: usize) -> (Self::Sender, Self::Receiver);
}

pub(crate) trait Sender: Clone + Send + 'static {
    /// Pushes an item. If the queue is bounded, the thread waits for room.
    fn push(&mut self, item: u64);
}

/// An end on which threads can wait.
pub(crate) trait Receiver: Send + 'static {
    fn pop(&mut self) -> u64;
}

/// An end on which tasks can wait.
pub(crate) trait TaskReceiver: Send + 'static {
    fn pop_async(&mut self) -> impl Future<Output = u64> + Send;
}
