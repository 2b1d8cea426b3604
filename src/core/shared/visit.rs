//! Items that a visit removes for good, and visits to the delayed items, which need no handle.

use super::Shared;
use crate::core::visit::{examine, Examined};
use crate::order::{EntryOf, Order, StoredOf, PART};
use crate::policy::delay::Shown;
use crate::raw::{Choice, Entry};
use crate::sync::{defer, defer_with, step};

impl<T, O: Order<T>> Shared<T, O> {
    /// Releases the room of items that are counted as committed, and neither ready nor delayed any more; then drops them.
    /// Those that wait for the queue to be idle or drained are told by the caller.
    pub(crate) fn drop_removed(&self, removed: Vec<EntryOf<T, O>>) {
        if !removed.is_empty() {
            let permits = removed
                .iter()
                .map(|entry| self.forget(entry.delivery.since));
            self.give_back(permits.sum());
        }
        drop(removed); // user code
    }

    /// Visits the items that are delayed or scheduled, and removes those that are not to be kept.
    pub(crate) fn visit_delayed(&self, mut keep: impl FnMut(&T, Examined) -> bool) {
        let delayed = &self.failures.delayed;
        if delayed.count() == 0 {
            return;
        }
        let mut visit = delayed.begin_visit();
        // Runs also if the visitor panics, as does the guard that puts the items back.
        let _end = defer(|| delayed.end_visit());
        let mut more = true;
        while more {
            let part = (Vec::with_capacity(PART), Choice::default());
            let mut part = defer_with(part, |(shown, gone)| self.put_back_delayed(shown, *gone));
            let (shown, gone) = &mut *part;
            more = delayed.show(&mut visit, shown);
            *gone = examine(
                self,
                shown.iter().map(|shown| {
                    let Entry { item, delivery } = shown.entry();
                    let so_far = if shown.is_failed() {
                        *delivery
                    } else {
                        delivery.before()
                    };
                    (&item.item, (so_far, Some(shown.due())))
                }),
                &mut keep,
            );
        }
    }

    /// Puts delayed items back that were shown, except for those that are `gone`, which are removed.
    fn put_back_delayed(&self, shown: &mut Vec<Shown<StoredOf<T, O>>>, gone: Choice) {
        let delayed = &self.failures.delayed;
        let mut is_planned = false;
        let removed = delayed.put_back(shown, gone, |due| {
            step!("visit.plans-nothing", is_planned = self.due_timer.plan(due));
        });
        self.notify_scheduled(is_planned);
        self.shards.count_popped(removed.len());
        delayed.count_released(removed.len());
        let removed = removed.into_iter().map(|(entry, was_held)| {
            let meta = entry.item.meta;
            if was_held {
                self.retire(meta);
            } else {
                self.unregister(meta);
            }
            entry
        });
        let removed: Vec<_> = removed.collect();
        step!("visit.removes-unsaid", self.notify_end(0));
        self.drop_removed(removed);
    }
}
