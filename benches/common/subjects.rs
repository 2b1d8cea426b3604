//! The compared queues, and the ways to use them.

use crossbeam_queue::SegQueue;
use requeue::{Handle, Queue};
use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::{Arc, Mutex};

/// A queue, and one way to use it.
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

    fn push_batch(&mut self, n: usize) {
        (0..n as u64).for_each(|item| self.push(item));
    }

    /// Pops up to `max` items and returns their number.
    fn pop_batch(&mut self, max: usize) -> usize {
        (0..max).map_while(|_| self.pop().map(black_box)).count()
    }
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

#[derive(Default)]
pub(crate) struct Seg(Arc<SegQueue<u64>>);

impl Subject for Seg {
    const NAME: &'static str = "SegQueue";
    type Endpoint = Arc<SegQueue<u64>>;

    fn endpoint(&self) -> Self::Endpoint {
        self.0.clone()
    }
}

impl Endpoint for Arc<SegQueue<u64>> {
    fn push(&mut self, item: u64) {
        SegQueue::push(self, item);
    }

    fn pop(&mut self) -> Option<u64> {
        SegQueue::pop(self)
    }
}

/// One lock for each push, pop or batch.
#[derive(Default)]
pub(crate) struct Locked(LockedEndpoint);

type LockedEndpoint = Arc<Mutex<VecDeque<u64>>>;

impl Subject for Locked {
    const NAME: &'static str = "Mutex<VecDeque>";
    type Endpoint = LockedEndpoint;

    fn endpoint(&self) -> LockedEndpoint {
        self.0.clone()
    }
}

impl Endpoint for LockedEndpoint {
    fn push(&mut self, item: u64) {
        self.lock().unwrap().push_back(item);
    }

    fn pop(&mut self) -> Option<u64> {
        self.lock().unwrap().pop_front()
    }

    fn push_batch(&mut self, n: usize) {
        self.lock().unwrap().extend(0..n as u64);
    }

    fn pop_batch(&mut self, max: usize) -> usize {
        let mut items = self.lock().unwrap();
        let n = max.min(items.len());
        items.drain(..n).for_each(|item| {
            black_box(item);
        });
        n
    }
}
