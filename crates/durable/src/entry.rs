//! An item in memory.

use crate::format::{Key, UniqueRow};
use crate::queue::pages::{BESIDE, BESIDE_KEY};
use crate::queue::windows::HashOf;
use requeue::{UniqueKey, UniqueKeyOf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// An item of a queue in memory: its number, and itself unless there was no room for it.
#[derive(Clone)]
pub struct Entry<T, K> {
    pub(crate) id: u64,
    pub(crate) key: K,
    /// `None`: it is on the disk, until it is popped.
    pub(crate) item: Option<T>,
    /// In a box, so that entries without it are small.
    pub(crate) beside: Option<Box<Beside>>,
}

/// What is kept beside an item, in queues that need any of it, or whose deliveries have failed.
#[derive(Clone, Default)]
pub(crate) struct Beside {
    /// For the room that it takes of a budget, unless there is none for it.
    _charge: Option<Charge>,
    /// Its key, if keys are unique.
    unique: Option<UniqueKey>,
    weight: usize,
    /// The hash of its key, if that is known on the disk.
    hash: u128,
    /// The last error with which a delivery of it has failed.
    error: Option<Arc<str>>,
}

impl<T, K> Entry<T, K> {
    pub(crate) fn on_disk(id: u64, key: K, beside: Option<Box<Beside>>) -> Self {
        Self {
            id,
            key,
            item: None,
            beside,
        }
    }

    /// Its key, in a queue where keys are unique, with the number of the item.
    pub(crate) fn unique_key(&self) -> UniqueKey {
        let unique = self.beside.as_ref().and_then(|it| it.unique.clone());
        let mut unique = unique.expect("an item has its key from its push on");
        unique.number = self.id;
        unique
    }

    /// The hash of its key, in a queue that has such hashes on the disk.
    pub(crate) fn hash(&self) -> Option<u128> {
        Some(self.beside.as_ref()?.hash)
    }

    /// The row of its unique key, in a queue that has such rows.
    pub(crate) fn key_row(&self, queue: u32) -> Option<UniqueRow> {
        let (hash, id) = (self.hash()?, self.id);
        let item = Key { queue, id };
        Some(UniqueRow { item, hash })
    }

    pub(crate) fn error(&self) -> Option<Arc<str>> {
        self.beside.as_ref()?.error.clone()
    }

    /// A delivery of it has failed with this error.
    pub(crate) fn set_error(&mut self, error: &str) {
        self.beside.get_or_insert_with(Box::default).error = Some(error.into());
    }

    /// Its weight; 1 where items have none.
    pub(crate) fn weight(&self) -> usize {
        self.beside.as_ref().map_or(1, |it| it.weight)
    }
}

requeue::debug_struct!([T, K] Entry<T, K>, |it| id: it.id);

/// Says the weight of an item.
pub(crate) type Weigh<T> = Arc<dyn Fn(&T) -> usize + Send + Sync>;

/// Says what is kept beside an item.
pub(crate) struct Besides<T> {
    pub(crate) budget: Option<Arc<Budget>>,
    /// Functions of the user.
    pub(crate) unique: Option<UniqueKeyOf<T>>,
    pub(crate) weigh: Option<Weigh<T>>,
    /// Says the hash of the key, if that is known on the disk: it stays taken for a time, or the item is in pages.
    pub(crate) hash: Option<HashOf<T>>,
    /// Whether rows say which items have unique keys.
    pub(crate) has_keys: bool,
    /// Whether an item is delivered only while no other one of its key is held.
    pub(crate) is_serial: bool,
}

impl<T> Besides<T> {
    /// What is kept beside an item that takes `bytes` bytes, if anything, and whether there is room for the item.
    #[inline]
    pub(crate) fn of(&self, item: &T, bytes: usize) -> (Option<Box<Beside>>, bool) {
        let Self {
            budget,
            unique,
            weigh,
            hash,
            ..
        } = self;
        let charge = budget.as_ref().and_then(|budget| budget.charge(bytes));
        let has_room = budget.is_none() || charge.is_some();
        if charge.is_none() && unique.is_none() && weigh.is_none() {
            return (None, has_room);
        }
        let beside = Beside {
            _charge: charge,
            unique: unique.as_ref().map(|key_of| key_of(item)),
            weight: weigh.as_ref().map_or(1, |weigh| weigh(item)),
            hash: hash.as_ref().map_or(0, |hash_of| hash_of(item)),
            error: None,
        };
        (Some(Box::new(beside)), has_room)
    }

    /// What an item of a page takes in memory besides its bytes.
    pub(crate) fn bytes(&self) -> usize {
        BESIDE + self.unique.as_ref().map_or(0, |_| BESIDE_KEY)
    }

    /// What is kept beside an item that is on the disk only.
    pub(crate) fn on_disk(&self, item: &T) -> Option<Box<Beside>> {
        let key_of = self.unique.as_ref()?;
        let beside = Beside {
            unique: Some(key_of(item)),
            weight: 1,
            hash: self.hash.as_ref().map_or(0, |hash_of| hash_of(item)),
            ..Beside::default()
        };
        Some(Box::new(beside))
    }

    /// When the queue is opened, which may have pages for other reasons, and whose keys stay taken for this time: takes the budget of
    /// the store if it has none. Returns whether it has pages then.
    pub(crate) fn settle(
        &mut self,
        may_have_pages: bool,
        of_store: Option<&Arc<Budget>>,
        unique_for: Duration,
    ) -> bool {
        let may_have_pages = may_have_pages && self.weigh.is_none();
        let of_store = of_store.filter(|_| may_have_pages);
        self.budget = self.budget.take().or_else(|| of_store.cloned());
        let has_pages = may_have_pages && self.budget.is_some();
        self.has_keys = has_pages && self.unique.is_some();
        if unique_for.is_zero() && !self.has_keys {
            self.hash = None;
        }
        has_pages
    }
}

impl<T: 'static> Besides<T> {
    /// Has a queue in memory look at what is beside its entries.
    pub(crate) fn set<K: 'static, O: requeue::Order<Entry<T, K>>>(
        &self,
        mut ram: requeue::Builder<Entry<T, K>, O>,
    ) -> requeue::Builder<Entry<T, K>, O> {
        if self.unique.is_some() {
            ram = ram.unique_by_key_of(Arc::new(Entry::unique_key));
        }
        if self.weigh.is_some() {
            ram = ram.weigh(Entry::weight);
        }
        ram
    }
}

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

    pub(crate) fn most(&self) -> usize {
        self.most
    }

    pub(crate) fn free(&self) -> usize {
        // Relaxed: a count, which publishes nothing.
        self.most.saturating_sub(self.used.load(Ordering::Relaxed))
    }

    /// Whether there is room for this many bytes.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        // Relaxed: a count, which publishes nothing.
        self.used.load(Ordering::Relaxed).saturating_add(bytes) <= self.most
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
