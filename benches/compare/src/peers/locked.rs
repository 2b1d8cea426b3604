//! Queues behind a lock, as one writes them by hand.

use super::orders::{key, priority};
use super::{Bounded, Peer, Plan, Receiver, Sender};
use crate::tally::Payload;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A shared collection.
pub(crate) struct Shared<C> {
    collection: Arc<Mutex<C>>,
    bound: usize,
}

impl<C> Clone for Shared<C> {
    fn clone(&self) -> Self {
        Self {
            collection: self.collection.clone(),
            bound: self.bound,
        }
    }
}

impl<C: Default> Shared<C> {
    fn open(plan: Plan) -> (Vec<Self>, Vec<Self>) {
        let (collection, bound) = (Arc::default(), plan.bound.unwrap_or(usize::MAX));
        let end = Self { collection, bound };
        plan.clone_ends((end.clone(), end))
    }

    fn lock(&self) -> MutexGuard<'_, C> {
        lock(&self.collection)
    }
}

pub(super) fn lock<C>(mutex: &Mutex<C>) -> MutexGuard<'_, C> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One lock for each push, pop or batch.
pub(crate) struct Locked;

impl<T: Payload> Peer<T> for Locked {
    const NAME: &'static str = "Mutex<VecDeque>";
    type Sender = Shared<VecDeque<T>>;
    type Receiver = Shared<VecDeque<T>>;

    fn open(plan: Plan) -> (Vec<Self::Sender>, Vec<Self::Receiver>) {
        Shared::open(plan)
    }
}

impl Bounded for Locked {}

impl<T: Payload> Sender<T> for Shared<VecDeque<T>> {
    fn push(&mut self, item: T) -> Result<(), T> {
        let mut items = self.lock();
        if items.len() == self.bound {
            return Err(item);
        }
        items.push_back(item);
        Ok(())
    }

    fn push_batch(&mut self, items: impl Iterator<Item = T>) {
        self.lock().extend(items);
    }
}

impl<T: Payload> Receiver<T> for Shared<VecDeque<T>> {
    fn pop(&mut self) -> Option<T> {
        self.lock().pop_front()
    }

    fn pop_batch(&mut self, max: usize, each: impl FnMut(T)) -> usize {
        let mut items = self.lock();
        let popped = max.min(items.len());
        items.drain(..popped).for_each(each);
        popped
    }
}

/// A queue for each key, and the keys in turn.
pub(crate) struct LockedKeys;

#[derive(Default)]
pub(crate) struct Keys {
    items: HashMap<u64, VecDeque<u64>>,
    turns: VecDeque<u64>,
}

impl Peer<u64> for LockedKeys {
    const NAME: &'static str = "Mutex<HashMap>";
    type Sender = Shared<Keys>;
    type Receiver = Shared<Keys>;

    fn open(plan: Plan) -> (Vec<Self::Sender>, Vec<Self::Receiver>) {
        Shared::open(plan)
    }
}

impl Sender<u64> for Shared<Keys> {
    fn push(&mut self, item: u64) -> Result<(), u64> {
        let key = key(item);
        let mut keys = self.lock();
        let Keys { items, turns } = &mut *keys;
        let queue = items.entry(key).or_default();
        if queue.is_empty() {
            turns.push_back(key);
        }
        queue.push_back(item);
        Ok(())
    }
}

impl Receiver<u64> for Shared<Keys> {
    fn pop(&mut self) -> Option<u64> {
        let mut keys = self.lock();
        let Keys { items, turns } = &mut *keys;
        let key = turns.pop_front()?;
        let queue = items.get_mut(&key)?;
        let item = queue.pop_front();
        if queue.is_empty() {
            items.remove(&key);
        } else {
            turns.push_back(key);
        }
        item
    }
}

/// By priority and number, the lowest first.
pub(crate) struct LockedHeap;

type Heap = BinaryHeap<Reverse<(u16, u64)>>;

impl Peer<u64> for LockedHeap {
    const NAME: &'static str = "Mutex<BinaryHeap>";
    type Sender = Shared<Heap>;
    type Receiver = Shared<Heap>;

    fn open(plan: Plan) -> (Vec<Self::Sender>, Vec<Self::Receiver>) {
        Shared::open(plan)
    }
}

impl Sender<u64> for Shared<Heap> {
    fn push(&mut self, item: u64) -> Result<(), u64> {
        self.lock().push(Reverse((priority(item), item)));
        Ok(())
    }
}

impl Receiver<u64> for Shared<Heap> {
    fn pop(&mut self) -> Option<u64> {
        self.lock().pop().map(|Reverse((_, item))| item)
    }
}
