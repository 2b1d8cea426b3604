//! Visits to all items that are ready, or delayed. A few of them are held at a time, and examined without any lock; those that
//! are not to be kept are removed then.

use super::access::Access;
use super::local::{CellOf, Local};
use super::shared::Shared;
use crate::order::{Order, Source, PART};
use crate::raw::{Choice, DeliveryMeta};
use crate::sync::defer_with;
use std::sync::Arc;

/// What is known of an item that is examined: its deliveries so far, and when it is due, unless it is ready.
pub(crate) type Examined = (DeliveryMeta, Option<u64>);

/// Calls `keep` with each of some items, and returns those that are not to be kept, or are discarded. If it panics, all are kept.
pub(super) fn examine<'i, T: 'i, O: Order<T>>(
    shared: &Shared<T, O>,
    items: impl Iterator<Item = (&'i T, Examined)>,
    mut keep: impl FnMut(&T, Examined) -> bool,
) -> Choice {
    let mut gone = Choice::default();
    for (index, (item, examined)) in items.enumerate() {
        let is_discarded = || shared.tracked(examined.0.since, |item| item.is_discarded);
        gone.add(index, !keep(item, examined) || is_discarded() == Some(true));
    }
    gone
}

/// Removes the delayed items that are not to be kept, or `all` but held ones, and returns their number.
pub(crate) fn remove_unless<T, O: Order<T>>(
    shared: &Arc<Shared<T, O>>,
    all: bool,
    mut keep: impl FnMut(&T, Examined) -> bool,
) -> usize {
    let mut removed = 0;
    let mut keep = |item: &T, examined: Examined| {
        let kept = keep(item, examined);
        removed += usize::from(!kept);
        kept
    };
    shared.visit_delayed(&mut keep);
    if all {
        Local::in_cell(Arc::clone(shared), None).visit(true, keep);
    }
    removed
}

impl<T, O: Order<T>> CellOf<T, O> {
    /// Visits the ready items, or `all` that are not delayed, also those that wait for others of their key; and removes those
    /// that are not to be kept.
    pub(crate) fn visit(&mut self, all: bool, keep: impl FnMut(&T, Examined) -> bool) {
        if !Shared::<T, O>::SORTS {
            return self.visit_shards(keep);
        }
        let begin = |source: &O::Source| source.begin_visit(all);
        self.get_mut().visit_source(begin, || true, keep);
    }

    fn visit_shards(&mut self, mut keep: impl FnMut(&T, Examined) -> bool) {
        let Access {
            endpoint, shared, ..
        } = &mut self.get_mut().access;
        let mut shard = 0;
        while let Some(shard_visit) = endpoint.visit_shard(&mut shard) {
            // Puts the items back also if the visitor panics. Even a visit that found nothing seemed to hold something.
            let mut shard_visit = defer_with(shard_visit, |ended| shared.notify_end(ended.end()));
            while let Some(back) = shard_visit.next_part() {
                if back > 0 {
                    shared.notify_end(back);
                }
                let items = shard_visit.items();
                let items = items.map(|(stored, delivery)| (&stored.item, (delivery, None)));
                let gone = examine(shared, items, &mut keep);
                if !gone.is_empty() {
                    shared.drop_removed(shard_visit.remove(gone));
                }
            }
        }
    }
}

impl<T, O: Order<T>> Local<T, O> {
    /// Visits the items of a source in parts, as long as the visit `applies`, which is evaluated under its lock, and removes
    /// those that are not to be kept. Each part is taken out of it and examined without the lock.
    pub(crate) fn visit_source(
        &self,
        begin: impl FnOnce(&O::Source) -> <O::Source as Source<T, O::Meta>>::Visit,
        applies: impl Fn() -> bool,
        mut keep: impl FnMut(&T, Examined) -> bool,
    ) {
        let Access {
            shared, endpoint, ..
        } = &self.access;
        let counters = endpoint.counters();
        // Ended also if the visitor panics, as the items are put back.
        let mut visit = defer_with(begin(&shared.source), |visit| {
            shared.source.end_visit(visit);
        });
        let mut more = true;
        while more {
            let part = (&mut *visit, Vec::with_capacity(PART), Choice::default());
            let mut part = defer_with(part, |(visit, shown, gone)| {
                let count = shown.len();
                if count > 0 {
                    let removed = shared.source.put_back(visit, shown, *gone);
                    counters.count_committed(removed.len());
                    counters.uncount_taken(count - removed.len());
                    // For the removed ones too: in their place others of their key may be ready.
                    shared.notify_end(count);
                    shared.drop_removed(removed);
                }
            });
            let (visit, shown, gone) = &mut *part;
            more = shared.source.show(visit, shown, &applies);
            counters.count_taken(shown.len());
            let items = shown.iter().map(|shown| {
                let delivery = shown.entry.delivery.before();
                (&shown.entry.item.item, (delivery, None))
            });
            *gone = examine(shared, items, &mut keep);
        }
    }
}
