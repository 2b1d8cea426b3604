//! Producers push as fast as they can, while consumers pop.

use super::Sizes;
use crate::measure::{Subject, Workload};
use crate::peers::{Peer, Plan, Receiver, Sender};
use crate::tally::Payload;
use crate::threads::{flow, Load};

pub(super) fn workloads(sizes: Sizes) -> Vec<Workload> {
    let ends = [(1, 1), (2, 2), (4, 4), (8, 8), (1, 3), (3, 1)];
    let stream = |(senders, receivers)| {
        let (plan, load) = (sizes.plan(senders, receivers), sizes.load());
        Workload::new(
            format!("stream {senders}P{receivers}C"),
            move || all!(senders, receivers; trying(plan, load)),
        )
    };
    ends.map(stream).into()
}

/// All repeat an attempt in vain after a yield.
pub(crate) fn trying<P: Peer<T>, T: Payload>(plan: Plan, load: Load) -> Subject {
    let (mut senders, mut receivers) = P::open(plan);
    Subject::of::<P, T>(move || {
        flow(
            load,
            &mut senders,
            |sender, part| part.for_each(|number| sender.push_retrying(T::of(number))),
            &mut receivers,
            |receiver, share| share.complete(|| receiver.pop()),
        )
    })
}
