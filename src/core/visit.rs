//! Visits to all ready items.

use super::access::Access;
use super::local::{CellOf, Local};
use super::shared::Shared;
use crate::order::{Order, Source, PART};
use crate::sync::{defer, defer_with};

impl<T, O: Order<T>> CellOf<T, O> {
    /// Visits the ready items, holding a few of them at a time, and returns their number.
    pub(crate) fn visit(&mut self, visit: impl FnMut(&T)) -> usize {
        if Shared::<T, O>::SORTS {
            let local = self.get_mut();
            local.visit_source(Source::begin_visit, || true, visit)
        } else {
            self.visit_shards(visit)
        }
    }

    fn visit_shards(&mut self, mut visit: impl FnMut(&T)) -> usize {
        let Access {
            endpoint, shared, ..
        } = &mut self.get_mut().access;
        let (mut shard, mut count) = (0, 0);
        while let Some(shard_visit) = endpoint.visit_shard(&mut shard) {
            // Puts the items back also if the visitor panics. Even a visit that found nothing seemed to hold something.
            let mut shard_visit = defer_with(shard_visit, |ended| shared.notify_end(ended.end()));
            while let Some(back) = shard_visit.next_part() {
                if back > 0 {
                    shared.notify_end(back);
                }
                count += shard_visit
                    .items()
                    .map(|stored| visit(&stored.item))
                    .count();
            }
        }
        count
    }
}

impl<T, O: Order<T>> Local<T, O> {
    /// Visits the items of a source in parts, as long as the visit `applies`, which is evaluated under its lock. Each part is
    /// taken out of it and visited without the lock.
    pub(crate) fn visit_source(
        &mut self,
        begin: impl FnOnce(&O::Source) -> <O::Source as Source<T, O::Meta>>::Visit,
        applies: impl Fn() -> bool,
        mut inspect: impl FnMut(&T),
    ) -> usize {
        let Access {
            shared, endpoint, ..
        } = &mut self.access;
        let mut visit = begin(&shared.source);
        // Runs also if the visitor panics, as does the guard that puts the items back.
        let _end = defer(|| shared.source.end_visit());
        let (mut more, mut count) = (true, 0);
        while more {
            let part = (&mut *endpoint, &mut visit, Vec::with_capacity(PART));
            let mut part = defer_with(part, |(endpoint, visit, shown)| {
                let count = shown.len();
                if count > 0 {
                    shared.source.put_back(visit, shown);
                    endpoint.counters().uncount_taken(count);
                    shared.notify_end(count);
                }
            });
            let (endpoint, visit, shown) = &mut *part;
            more = shared.source.show(visit, shown, &applies);
            endpoint.counters().count_taken(shown.len());
            for shown in &*shown {
                inspect(&shown.entry.item.item);
            }
            count += shown.len();
        }
        count
    }
}
