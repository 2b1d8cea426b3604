//! The queue of this repository.

use super::{Bounded, Kind, Receiver, Sender, TaskReceiver};
use requeue::{Handle, Queue};

pub(crate) struct Requeue;

/// Either end: a handle, and the queue that makes more of them.
pub(crate) struct Endpoint {
    queue: Queue<u64>,
    handle: Handle<u64>,
}

impl Endpoint {
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

impl Clone for Endpoint {
    fn clone(&self) -> Self {
        Self::new(self.queue.clone())
    }
}

impl Kind for Requeue {
    const NAME: &'static str = "requeue";
    type Sender = Endpoint;
    type Receiver = Endpoint;

    fn unbounded() -> (Endpoint, Endpoint) {
        ends(&Queue::unbounded())
    }
}

impl Bounded for Requeue {
    fn bounded(capacity: usize) -> (Endpoint, Endpoint) {
        ends(&Queue::bounded(capacity))
    }
}

fn ends(queue: &Queue<u64>) -> (Endpoint, Endpoint) {
    (Endpoint::new(queue.clone()), Endpoint::new(queue.clone()))
}

impl Sender for Endpoint {
    fn push(&mut self, item: u64) {
        self.handle.push_blocking(item).expect("nobody closes");
    }
}

impl Receiver for Endpoint {
    fn pop(&mut self) -> u64 {
        self.handle.pop_blocking().expect("nobody closes")
    }
}

impl TaskReceiver for Endpoint {
    async fn pop_async(&mut self) -> u64 {
        self.handle.pop_async().await.expect("nobody closes")
    }
}
