//! Batches of items, each pushed and popped by one call where a queue has one for that.

use super::alone::batch_pairs;
use super::Sizes;
use crate::measure::{Subject, Workload};
use crate::peers::{Peer, Plan, Receiver, Sender};
use crate::tally::Payload;
use crate::threads::{flow, Load};

pub(super) fn workloads(sizes: Sizes) -> Vec<Workload> {
    let of = |size: u16| {
        let (one, two, load) = (sizes.plan(1, 1), sizes.plan(2, 2), sizes.load());
        let short = sizes.alone();
        let alone = Workload::new(format!("batches of {size}, 1 thread"), move || {
            each!(u64: batch_pairs(one, short, size) for Plain, Transactional, Bulk, Direct, SegQueue, Crossbeam, Locked;
                cpp Moodycamel)
        });
        let stream = Workload::new(format!("batches of {size}, 2P2C"), move || {
            each!(u64: batches(two, load, size) for Plain, Transactional, Bulk, Direct, SegQueue, Crossbeam, Locked;
                cpp Moodycamel)
        });
        [alone, stream]
    };
    [8, 32, 256].into_iter().flat_map(of).collect()
}

/// Producers push as fast as they can, while consumers pop.
fn batches<P: Peer<T>, T: Payload>(plan: Plan, load: Load, size: u16) -> Subject {
    let (mut senders, mut receivers) = P::open(plan);
    Subject::of::<P, T>(move || {
        flow(
            load,
            &mut senders,
            |sender, part| {
                for first in part.clone().step_by(size.into()) {
                    let last = part.end.min(first + u64::from(size));
                    sender.push_batch((first..last).map(T::of));
                }
            },
            &mut receivers,
            |receiver, mut share| {
                while share.left() > 0 {
                    let max = share.at_most(size.into());
                    if receiver.pop_batch(max, |item| share.receive(&item)) == 0 {
                        share.idle();
                    }
                }
                share.received()
            },
        )
    })
}
