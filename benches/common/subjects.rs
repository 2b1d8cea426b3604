//! The ways to use a queue.

use requeue::{Handle, Queue};
use std::hint::black_box;

/// One way to use a queue.
pub(crate) trait Subject: Default + 'static {
    const NAME: &'static str;
    type Endpoint: Endpoint;

    /// The state that one thread needs to use the queue.
    fn endpoint(&self) -> Self::Endpoint;
}

/// One thread's access to a queue.
pub(crate) trait Endpoint: Send + 'static {
    fn push(&mut self, item: u64);
    fn pop(&mut self) -> Option<u64>;

    fn push_batch(&mut self, n: usize);
    /// Pops up to `max` items and returns their number.
    fn pop_batch(&mut self, max: usize) -> usize;
}

/// By a handle.
#[derive(Default)]
pub(crate) struct Handled(Queue<u64>);

pub(crate) struct HandledEndpoint {
    handle: Handle<u64>,
    items: Vec<u64>,
}

impl Subject for Handled {
    const NAME: &'static str = "requeue";
    type Endpoint = HandledEndpoint;

    fn endpoint(&self) -> HandledEndpoint {
        let (handle, items) = (self.0.handle(), Vec::new());
        HandledEndpoint { handle, items }
    }
}

impl Endpoint for HandledEndpoint {
    fn push(&mut self, item: u64) {
        let _ = self.handle.push(item);
    }

    fn pop(&mut self) -> Option<u64> {
        self.handle.pop().ok()
    }

    fn push_batch(&mut self, n: usize) {
        let _ = self.handle.push_batch(0..n as u64);
    }

    fn pop_batch(&mut self, max: usize) -> usize {
        self.items.clear();
        let n = self.handle.pop_batch(max, &mut self.items);
        black_box(&self.items);
        n
    }
}

/// Without a handle.
#[derive(Default)]
pub(crate) struct Direct(Queue<u64>);

impl Subject for Direct {
    const NAME: &'static str = "requeue, no handle";
    type Endpoint = Queue<u64>;

    fn endpoint(&self) -> Queue<u64> {
        self.0.clone()
    }
}

impl Endpoint for Queue<u64> {
    fn push(&mut self, item: u64) {
        let _ = Queue::push(self, item);
    }

    fn pop(&mut self) -> Option<u64> {
        Queue::pop(self).ok()
    }

    fn push_batch(&mut self, n: usize) {
        let _ = Queue::push_batch(self, 0..n as u64);
    }

    fn pop_batch(&mut self, max: usize) -> usize {
        let mut items = Vec::with_capacity(max);
        let n = Queue::pop_batch(self, max, &mut items);
        black_box(items);
        n
    }
}

/// By a handle, each push, pop or batch in its own transaction.
#[derive(Default)]
pub(crate) struct Transactional(Queue<u64>);

pub(crate) struct TransactionalEndpoint(Handle<u64>);

impl Subject for Transactional {
    const NAME: &'static str = "requeue, transaction";
    type Endpoint = TransactionalEndpoint;

    fn endpoint(&self) -> TransactionalEndpoint {
        TransactionalEndpoint(self.0.handle())
    }
}

impl Endpoint for TransactionalEndpoint {
    fn push(&mut self, item: u64) {
        let tx = self.0.begin();
        let _ = tx.push(item);
        tx.commit();
    }

    fn pop(&mut self) -> Option<u64> {
        let tx = self.0.begin();
        let item = *tx.pop().ok()?;
        tx.commit();
        Some(item)
    }

    fn push_batch(&mut self, n: usize) {
        let tx = self.0.begin();
        for item in 0..n as u64 {
            let _ = tx.push(item);
        }
        tx.commit();
    }

    fn pop_batch(&mut self, max: usize) -> usize {
        let tx = self.0.begin();
        for item in tx.pop_batch(max) {
            black_box(*item);
        }
        tx.commit().len()
    }
}
