//! Visits to the delayed items, a part at a time, in the order of their times.
//!
//! A visit first copies the keys of all items, three words each, so that nobody waits while it sorts them, and it finds no item
//! twice. Then it takes a few items out at a time. These stay counted, so that nobody takes the queue for drained, but they are
//! neither due nor found by their tickets until they are put back, in their places: a time that comes meanwhile is planned
//! again then.

use super::Delayed;
use crate::policy::due_heap::{DueHeap, Filled, Key};
use crate::raw::{Choice, Entry};
use crate::sync::lock;
use crate::time::NEVER;

/// The progress of a visit: the keys that are left, the next one last.
pub(crate) struct Visit(Vec<Key>);

/// An item that is being shown.
pub(crate) struct Shown<T> {
    filled: Filled<T>,
    key: Key,
}

impl<T> Shown<T> {
    pub(crate) fn entry(&self) -> &Entry<T> {
        &self.filled.entry
    }

    /// Whether its delivery has failed; otherwise it is scheduled, and counted for the delivery to come.
    pub(crate) fn is_failed(&self) -> bool {
        self.filled.ticket.is_none()
    }

    /// When it is due.
    pub(crate) fn due(&self) -> u64 {
        self.key.0
    }
}

impl<T> Delayed<T> {
    /// Calls `f` with all items, except for those that come meanwhile.
    fn with_all<R>(&self, f: impl FnOnce(&mut DueHeap<T>) -> R) -> R {
        let mut heap = lock(&self.heap);
        f(self.take_in_all(&mut heap))
    }

    /// Begins a visit to the items that are there.
    pub(crate) fn begin_visit(&self) -> Visit {
        let mut keys: Vec<_> = self.with_all(|heap| heap.begin_visit().collect());
        keys.sort_unstable_by(|a, b| b.cmp(a));
        Visit(keys)
    }

    /// Continues a visit: takes out some items to be shown, and returns whether there may be more.
    pub(crate) fn show(&self, visit: &mut Visit, into: &mut Vec<Shown<T>>) -> bool {
        let keys = &mut visit.0;
        let part = keys.drain(keys.len().saturating_sub(Choice::MOST)..).rev();
        self.with_all(|heap| {
            into.extend(part.filter_map(|key| {
                let filled = heap.show(key)?;
                Some(Shown { filled, key })
            }));
            heap.tidy();
        });
        !keys.is_empty()
    }

    /// Puts items back that were shown together, except for those that are `gone`, which it returns, with whether they had
    /// failed: they stay counted. `plan` is called with the first time of those put back, before anybody takes them out.
    pub(crate) fn put_back(
        &self,
        shown: &mut Vec<Shown<T>>,
        gone: Choice,
        plan: impl FnOnce(u64),
    ) -> Vec<(Entry<T>, bool)> {
        let (mut removed, mut first) = (Vec::new(), NEVER);
        self.with_all(|heap| {
            for (index, shown) in shown.drain(..).enumerate() {
                if gone.has(index) {
                    let is_failed = shown.is_failed();
                    removed.push((heap.forget(shown.key, shown.filled), is_failed));
                } else {
                    first = first.min(shown.due());
                    heap.put_back(shown.key, shown.filled);
                }
            }
            heap.tidy();
            plan(first);
        });
        removed
    }

    /// Ends a visit.
    pub(crate) fn end_visit(&self) {
        self.with_all(DueHeap::end_visit);
    }
}
