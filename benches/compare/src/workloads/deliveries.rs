//! Consumers take items in transactions, and abort some of them.

use super::Sizes;
use crate::measure::{Subject, Workload};
use crate::peers::{Deliverer, Plan, Sender, Transactions};
use crate::tally::{spread, Payload};
use crate::threads::{flow, Load};
use std::hint::black_box;

pub(super) fn workloads(sizes: Sizes) -> Vec<Workload> {
    let cases = [1, 32].map(|size| [0, 10, 30].map(|aborted| (size, aborted)));
    let workload = |(size, aborted)| {
        let (plan, load) = (sizes.plan(2, 2), sizes.load());
        let name = format!("transactions of {size}, {aborted} % aborted, 2P2C");
        Workload::new(name, move || {
            each!(u64: deliveries(plan, load, size, aborted) for Transactional, Deliveries, CrossbeamWithMap,
                SegQueueWithMap, LockedWithMap)
        })
    };
    cases.into_iter().flatten().map(workload).collect()
}

/// Transactions of up to `size` items, of which this percentage is aborted.
fn deliveries<X: Transactions<T>, T: Payload>(
    plan: Plan,
    load: Load,
    size: usize,
    aborted: u64,
) -> Subject {
    let (mut senders, mut deliverers) = X::open(plan);
    Subject::new(X::NAME, move || {
        flow(
            load,
            &mut senders,
            |sender, part| part.for_each(|number| sender.push_retrying(T::of(number))),
            &mut deliverers,
            |deliverer, mut share| {
                let mut attempt = 0;
                while share.left() > 0 {
                    let max = share.at_most(size);
                    let abort = spread(attempt) % 100 < aborted;
                    let delivered = if abort {
                        deliverer.deliver(max, true, |item| {
                            black_box(item.number());
                        })
                    } else {
                        deliverer.deliver(max, false, |item| share.receive(item))
                    };
                    match delivered {
                        0 => share.idle(),
                        _ => attempt += 1,
                    }
                }
                share.received()
            },
        )
    })
}
