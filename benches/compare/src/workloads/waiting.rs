//! Producers push as fast as they can; all wait for items and for room.

use super::{Sizes, BOUND};
use crate::measure::{Subject, Workload};
use crate::peers::{Peer, Plan, WaitingReceiver, WaitingSender};
use crate::tally::Payload;
use crate::threads::{flow, Load};

pub(super) fn workloads(sizes: Sizes) -> Vec<Workload> {
    let bounds = [("unbounded", None), ("bounded", Some(BOUND))];
    let cases = bounds.map(|bound| [(1, 1), (2, 2), (4, 4)].map(|ends| (bound, ends)));
    let workload = |((name, bound), (senders, receivers))| {
        let load = sizes.load();
        let plan = Plan {
            bound,
            ..sizes.plan(senders, receivers)
        };
        let name = format!("waiting, {name}, {senders}P{receivers}C");
        Workload::new(name, move || subjects(plan, load)).with_calls()
    };
    cases.into_iter().flatten().map(workload).collect()
}

fn subjects(plan: Plan, load: Load) -> Vec<Subject> {
    let mut subjects = each!(u64: waiting(plan, load) for Plain, Transactional, Direct, Crossbeam, Flume, Kanal,
        AsyncChannel);
    if plan.receivers == 1 {
        subjects.extend(match plan.bound {
            None => each!(u64: waiting(plan, load) for StdUnbounded),
            Some(_) => each!(u64: waiting(plan, load) for StdBounded),
        });
    }
    subjects
}

fn waiting<P, T: Payload>(plan: Plan, load: Load) -> Subject
where
    P: Peer<T>,
    P::Sender: WaitingSender<T>,
    P::Receiver: WaitingReceiver<T>,
{
    let (mut senders, mut receivers) = P::open(plan);
    Subject::of::<P, T>(move || {
        flow(
            load,
            &mut senders,
            |sender, part| part.for_each(|number| sender.push_waiting(T::of(number))),
            &mut receivers,
            |receiver, share| share.complete(|| Some(receiver.pop_waiting())),
        )
    })
}
