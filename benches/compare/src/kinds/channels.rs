//! Channels. They have no transactions.

use super::{Bounded, Kind, Receiver, Sender, TaskReceiver};
use std::sync::mpsc;
use tokio::sync::mpsc as tasks;

const OPEN: &str = "both ends are alive";

/// A channel whose bounded and unbounded ends have the same types, and how its threads wait.
macro_rules! channel {
    ($kind:ident, $crate_name:ident, $name:literal, $send:ident, $receive:ident) => {
        pub(crate) struct $kind;

        impl Kind for $kind {
            const NAME: &'static str = $name;
            type Sender = $crate_name::Sender<u64>;
            type Receiver = $crate_name::Receiver<u64>;

            fn unbounded() -> (Self::Sender, Self::Receiver) {
                $crate_name::unbounded()
            }
        }

        impl Bounded for $kind {
            fn bounded(capacity: usize) -> (Self::Sender, Self::Receiver) {
                $crate_name::bounded(capacity)
            }
        }

        impl Sender for $crate_name::Sender<u64> {
            fn push(&mut self, item: u64) {
                self.$send(item).expect(OPEN);
            }
        }

        impl Receiver for $crate_name::Receiver<u64> {
            fn pop(&mut self) -> u64 {
                self.$receive().expect(OPEN)
            }
        }
    };
}

channel!(
    AsyncChannel,
    async_channel,
    "async-channel",
    send_blocking,
    recv_blocking
);
channel!(Crossbeam, crossbeam_channel, "crossbeam", send, recv);
channel!(Flume, flume, "flume", send, recv);
channel!(Kanal, kanal, "kanal", send, recv);

impl TaskReceiver for async_channel::Receiver<u64> {
    async fn pop_async(&mut self) -> u64 {
        self.recv().await.expect(OPEN)
    }
}

impl TaskReceiver for flume::Receiver<u64> {
    async fn pop_async(&mut self) -> u64 {
        self.recv_async().await.expect(OPEN)
    }
}

impl TaskReceiver for kanal::Receiver<u64> {
    async fn pop_async(&mut self) -> u64 {
        self.as_async().recv().await.expect(OPEN)
    }
}

/// The single consumer is a thread.
pub(crate) struct Std;

impl Kind for Std {
    const NAME: &'static str = "std mpsc";
    type Sender = mpsc::Sender<u64>;
    type Receiver = mpsc::Receiver<u64>;

    fn unbounded() -> (Self::Sender, Self::Receiver) {
        mpsc::channel()
    }
}

impl Sender for mpsc::Sender<u64> {
    fn push(&mut self, item: u64) {
        self.send(item).expect(OPEN);
    }
}

impl Receiver for mpsc::Receiver<u64> {
    fn pop(&mut self) -> u64 {
        self.recv().expect(OPEN)
    }
}

/// The single consumer is a task.
pub(crate) struct Tokio;

impl Kind for Tokio {
    const NAME: &'static str = "tokio mpsc";
    type Sender = tasks::UnboundedSender<u64>;
    type Receiver = tasks::UnboundedReceiver<u64>;

    fn unbounded() -> (Self::Sender, Self::Receiver) {
        tasks::unbounded_channel()
    }
}

impl Sender for tasks::UnboundedSender<u64> {
    fn push(&mut self, item: u64) {
        self.send(item).expect(OPEN);
    }
}

impl TaskReceiver for tasks::UnboundedReceiver<u64> {
    async fn pop_async(&mut self) -> u64 {
        self.recv().await.expect(OPEN)
    }
}
