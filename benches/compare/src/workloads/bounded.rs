//! Queues with a capacity: full again and again, or never.

use super::alone::pairs;
use super::stream::trying;
use super::{Sizes, BOUND};
use crate::measure::{Subject, Workload};
use crate::peers::{Bounded, Peer, Plan};
use crate::tally::Payload;
use crate::threads::Load;

pub(super) fn workloads(sizes: Sizes) -> Vec<Workload> {
    let load = sizes.load();
    let ends = [(1, 1), (2, 2), (4, 4)].into_iter();
    let streams = ends.map(|(senders, receivers)| {
        let plan = sizes.bounded(senders, receivers, BOUND);
        let name = format!("bounded, trying, {senders}P{receivers}C");
        Workload::new(
            name,
            move || all_bounded!(senders, receivers; stream(plan, load)),
        )
    });
    let roomy = sizes.bounded(2, 2, sizes.room());
    let never_full = Workload::new(
        "bounded, never full, 2P2C",
        move || all_bounded!(2, 2; stream(roomy, load)),
    );
    let (plan, short) = (sizes.bounded(1, 1, BOUND), sizes.alone());
    let pairs = Workload::new(
        "bounded, pairs, 1 thread",
        move || all_bounded!(1, 1; pair(plan, short)),
    );
    streams.chain([never_full, pairs]).collect()
}

fn stream<P: Peer<T> + Bounded, T: Payload>(plan: Plan, load: Load) -> Subject {
    trying::<P, T>(plan, load)
}

fn pair<P: Peer<T> + Bounded, T: Payload>(plan: Plan, load: Load) -> Subject {
    pairs::<P, T>(plan, load)
}
