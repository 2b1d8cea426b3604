//! An item in memory.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// An item of a queue in memory: its number, and itself unless there was no room for it.
#[derive(Clone)]
pub struct Entry<T, K> {
    pub(crate) id: u64,
    pub(crate) key: K,
    payload: Payload<T>,
}

/// Where an item is.
#[derive(Clone)]
enum Payload<T> {
    Memory(T),
    /// In memory, where it takes room of a budget. In a box, so that entries without a budget are small.
    Charged(Box<(T, Charge)>),
    /// On the disk, until it is popped.
    Disk,
}

impl<T, K> Entry<T, K> {
    /// An entry whose item is in memory.
    pub(crate) fn new(id: u64, key: K, item: T) -> Self {
        let payload = Payload::Memory(item);
        Self { id, key, payload }
    }

    /// An entry whose item takes `bytes` bytes of a budget. It is left on the disk if there is no room.
    pub(crate) fn within(budget: &Arc<Budget>, bytes: usize, id: u64, key: K, item: T) -> Self {
        let payload = match budget.charge(bytes) {
            Some(charge) => Payload::Charged(Box::new((item, charge))),
            None => Payload::Disk,
        };
        Self { id, key, payload }
    }

    /// An entry without its item.
    pub(crate) fn on_disk(id: u64, key: K) -> Self {
        let payload = Payload::Disk;
        Self { id, key, payload }
    }

    /// The item, if it is in memory.
    #[inline]
    pub(crate) fn item(&self) -> Option<&T> {
        match &self.payload {
            Payload::Memory(item) => Some(item),
            Payload::Charged(charged) => Some(&charged.0),
            Payload::Disk => None,
        }
    }

    #[inline]
    pub(crate) fn item_mut(&mut self) -> Option<&mut T> {
        match &mut self.payload {
            Payload::Memory(item) => Some(item),
            Payload::Charged(charged) => Some(&mut charged.0),
            Payload::Disk => None,
        }
    }

    #[inline]
    pub(crate) fn into_item(self) -> Option<T> {
        match self.payload {
            Payload::Memory(item) => Some(item),
            Payload::Charged(charged) => Some(charged.0),
            Payload::Disk => None,
        }
    }

    /// Brings an item that was on the disk into memory.
    pub(crate) fn load(&mut self, item: T) {
        self.payload = Payload::Memory(item);
    }
}

debug!([T, K] Entry<T, K>, "Entry", |it| { "id": it.id });

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
