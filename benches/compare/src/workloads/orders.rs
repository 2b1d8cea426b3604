//! Queues of other orders, beside the same behind a lock.

use super::alone::pairs;
use super::stream::trying;
use super::Sizes;
use crate::measure::Workload;

pub(super) fn workloads(sizes: Sizes) -> Vec<Workload> {
    let (one, short) = (sizes.plan(1, 1), sizes.alone());
    let (two, load) = (sizes.plan(2, 2), sizes.load());
    vec![
        Workload::new(
            "fair, 1,000 keys, 2P2C",
            move || each!(u64: trying(two, load) for Fair, LockedKeys),
        ),
        Workload::new(
            "priority, 9,999 priorities, 2P2C",
            move || each!(u64: trying(two, load) for Priority, LockedHeap, SkipList),
        ),
        Workload::new("orders, pairs, 1 thread", move || {
            each!(u64: pairs(one, short) for Plain, Paced, PacedWithinLimit, Fair, Priority, LockedKeys, LockedHeap,
                SkipList)
        }),
    ]
}
