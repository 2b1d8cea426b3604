//! An item in memory.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// An item of a queue in memory: its number, and itself unless there was no room for it.
#[derive(Clone)]
pub struct Entry<T, K> {
    pub(crate) id: u64,
    pub(crate) key: K,
    /// `None`: it is on the disk, until it is popped.
    pub(crate) item: Option<T>,
    /// For the room that it takes of a budget. In a box, so that entries without a budget are small.
    pub(crate) _charge: Option<Box<Charge>>,
}

impl<T, K> Entry<T, K> {
    pub(crate) fn on_disk(id: u64, key: K) -> Self {
        Self {
            id,
            key,
            item: None,
            _charge: None,
        }
    }
}

requeue::debug_struct!([T, K] Entry<T, K>, |it| id: it.id);

/// How many bytes the items of a queue may take in memory, and take.
#[derive(Debug)]
pub(crate) struct Budget {
    most: usize,
    used: AtomicUsize,
}

impl Budget {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        let used = AtomicUsize::new(0);
        Arc::new(Self { most, used })
    }

    /// Room for an item; `None` if there is none.
    pub(crate) fn charge(self: &Arc<Self>, bytes: usize) -> Option<Charge> {
        // Relaxed: a count, which publishes nothing.
        let before = self.used.fetch_add(bytes, Ordering::Relaxed);
        let charge = Charge {
            budget: Arc::clone(self),
            bytes,
        };
        (before + bytes <= self.most).then_some(charge)
    }
}

/// The room of one item.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Clone for Charge {
    fn clone(&self) -> Self {
        self.budget.used.fetch_add(self.bytes, Ordering::Relaxed);
        Self {
            budget: Arc::clone(&self.budget),
            bytes: self.bytes,
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
