//! What may have become of each item.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::plan::{Call, Plan};
use crate::probes::Probe;

/// Whether an item is in the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// It was never accepted, and must not be delivered.
    Refused,
    /// Its push has not returned: it may be delivered.
    Doubtful,
    /// It was accepted, and must be delivered.
    Accepted,
}

#[derive(Clone, Copy)]
struct Entry {
    fate: Fate,
    deliveries: u32,
}

/// The fates of all items of a plan. The number of an item is its index.
pub(crate) struct Ledger {
    plan: Arc<Plan>,
    entries: Mutex<Vec<Entry>>,
    /// How many items were committed, and lost by a panic on their way to the caller.
    excused: AtomicUsize,
}

impl Ledger {
    pub(crate) fn new(plan: &Arc<Plan>) -> Arc<Self> {
        Arc::new(Self {
            plan: Arc::clone(plan),
            entries: Mutex::default(),
            excused: AtomicUsize::new(0),
        })
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new item, which is refused until something else is said of it.
    pub(crate) fn item(&self) -> Probe {
        let mut entries = self.entries();
        let (fate, deliveries) = (Fate::Refused, 0);
        entries.push(Entry { fate, deliveries });
        Probe::new(entries.len() - 1, &self.plan)
    }

    pub(crate) fn set(&self, ids: impl IntoIterator<Item = usize>, fate: Fate) {
        let mut entries = self.entries();
        ids.into_iter().for_each(|id| entries[id].fate = fate);
    }

    /// The items were delivered for good. They are dropped after all of them were counted.
    pub(crate) fn deliver(&self, items: impl IntoIterator<Item = Probe>) {
        let items: Vec<_> = items.into_iter().collect();
        let mut entries = self.entries();
        for item in &items {
            entries[item.id].deliveries += 1;
        }
        drop(entries);
        drop(items);
    }

    /// The items were removed by the queue, if that was `certain`; otherwise they may still be delivered.
    pub(crate) fn remove(&self, ids: impl IntoIterator<Item = usize>, certain: bool) {
        let mut entries = self.entries();
        for id in ids {
            entries[id].deliveries += u32::from(certain);
            if !certain {
                entries[id].fate = Fate::Doubtful;
            }
        }
    }

    /// Allows this number of further items to be lost.
    pub(crate) fn excuse(&self, items: usize) {
        self.excused.fetch_add(items, Ordering::SeqCst);
    }

    /// Pushes an item. Returns whether it was accepted.
    pub(crate) fn push<E>(&self, push: impl FnOnce(Probe) -> Result<(), E>) -> bool {
        let item = self.item();
        let id = [item.id];
        self.set(id, Fate::Doubtful);
        let result = push(item);
        self.set(id, fate_after(&result));
        result.is_ok()
    }

    /// Pushes a batch of `count` items, whose iterator says that there are `hint` of them.
    pub(crate) fn push_batch<E>(
        &self,
        (count, hint): (usize, usize),
        push: impl FnOnce(Batch<'_>) -> Result<usize, E>,
    ) {
        let first = self.entries().len();
        let result = push(Batch {
            ledger: self,
            left: count,
            hint,
        });
        let last = self.entries().len();
        self.set(first..last, fate_after(&result));
    }

    /// Checks that nothing was lost, except what is excused, and that nothing was delivered twice.
    pub(crate) fn assert_conserved(&self, what: &str) {
        let mut lost = Vec::new();
        for (id, entry) in self.entries().iter().enumerate() {
            let Entry { fate, deliveries } = *entry;
            let most = u32::from(fate != Fate::Refused);
            assert!(
                deliveries <= most,
                "{what}: item {id}, {fate:?}, is delivered {deliveries} times"
            );
            lost.extend((fate == Fate::Accepted && deliveries == 0).then_some(id));
        }
        let excused = self.excused.load(Ordering::SeqCst);
        assert!(lost.len() <= excused, "{what}: {lost:?} are lost");
    }
}

fn fate_after<R, E>(result: &Result<R, E>) -> Fate {
    match result {
        Ok(_) => Fate::Accepted,
        Err(_) => Fate::Refused,
    }
}

/// The items of a batch. If their push panics, none of them may be delivered.
pub(crate) struct Batch<'l> {
    ledger: &'l Ledger,
    left: usize,
    hint: usize,
}

impl Iterator for Batch<'_> {
    type Item = Probe;

    fn next(&mut self) -> Option<Probe> {
        self.ledger.plan.reach(Call::Next);
        self.left = self.left.checked_sub(1)?;
        Some(self.ledger.item())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.hint, Some(self.hint))
    }
}
