//! The queue whose waiting is compared.

use super::{Bounded, Kind, Receiver, Sender, TaskReceiver};
use requeue::{Handle, Queue};

pub(crate) struct Requeue;

/// Either end: a handle, and the queue to make another.
pub(crate) struct Port {
    queue: Queue<u64>,
    handle: Handle<u64>,
}

impl Port {
    pub(crate) fn new(queue: Queue<u64>) -> Self {
        let handle = queue.handle();
        Self { queue, handle }
    }

    /// Pushes an item if there is room.
    pub(crate) fn try_push(&mut self, item: u64) -> bool {
        self.handle.push(item).is_ok()
    }

    /// Pops an item if there is one.
    pub(crate) fn try_pop(&mut self) -> Option<u64> {
        self.handle.pop().ok()
    }
}

impl Clone for Port {
    fn clone(&self) -> Self {
        Self::new(self.queue.clone())
    }
}

impl Kind for Requeue {
    const NAME: &'static str = "requeue";
    type Sender = Port;
    type Receiver = Port;

    fn unbounded() -> (Port, Port) {
        ends(&Queue::unbounded())
    }
}

impl Bounded for Requeue {
    fn bounded(capacity: usize) -> (Port, Port) {
        ends(&Queue::bounded(capacity))
    }
}

fn ends(queue: &Queue<u64>) -> (Port, Port) {
    (Port::new(queue.clone()), Port::new(queue.clone()))
}

impl Sender for Port {
    fn push(&mut self, item: u64) {
        self.handle.push_blocking(item).expect("nobody closes");
    }
}

impl Receiver for Port {
    fn pop(&mut self) -> u64 {
        self.handle.pop_blocking().expect("nobody closes")
    }
}

impl TaskReceiver for Port {
    async fn pop_async(&mut self) -> u64 {
        self.handle.pop_async().await.expect("nobody closes")
    }
}
