//! Each thread works for itself: pairs of a push and a pop, or one end at a time.

use super::{of_threads, Sizes};
use crate::measure::{Round, Subject, Workload};
use crate::peers::{Peer, Plan, Receiver, Sender};
use crate::tally::Payload;
use crate::threads::{flow, Load, Share, Work};

pub(super) fn workloads(sizes: Sizes) -> Vec<Workload> {
    let load = sizes.load();
    let pairs = [1, 2, 4].map(|threads| {
        let plan = sizes.plan(threads, threads);
        let load = if threads == 1 { sizes.alone() } else { load };
        Workload::new(
            format!("pairs, {}", of_threads(threads)),
            move || all!(threads, threads; pairs(plan, load)),
        )
    });
    let ends = [1, 2].map(|threads| {
        let plan = sizes.plan(threads, threads);
        let name = format!("one end at a time, {}", of_threads(threads));
        Workload::new(
            name,
            move || all!(threads, threads; one_end_at_a_time(plan, load)),
        )
        .columns(&["produce only", "drain only"])
    });
    pairs.into_iter().chain(ends).collect()
}

/// Each thread pops an item after each push.
pub(crate) fn pairs<P: Peer<T>, T: Payload>(plan: Plan, load: Load) -> Subject {
    batch_pairs::<P, T>(plan, load, 1)
}

/// Each thread pops a batch after the push of one.
pub(crate) fn batch_pairs<P: Peer<T>, T: Payload>(plan: Plan, load: Load, size: u16) -> Subject {
    let (mut senders, mut receivers) = P::open(plan);
    Subject::of::<P, T>(move || {
        let threads = senders.len();
        let ends = senders.iter_mut().zip(&mut receivers).enumerate();
        let work = ends.map(|(at, (sender, receiver))| {
            let work: Work = Box::new(move || {
                let part = load.part(at, threads);
                let mut share = Share::alone(part.end - part.start, load.patience);
                for first in part.clone().step_by(size.into()) {
                    let batch = first..part.end.min(first + u64::from(size));
                    let left = share.left().saturating_sub(batch.end - first);
                    pair::<T>(sender, batch, receiver, &mut share, left);
                }
                share.received()
            });
            work
        });
        load.shared_round(work.collect())
    })
}

/// Pushes a batch, and pops until so much is left of the share.
fn pair<T: Payload>(
    sender: &mut impl Sender<T>,
    batch: std::ops::Range<u64>,
    receiver: &mut impl Receiver<T>,
    share: &mut Share<'_>,
    left: u64,
) {
    let size = batch.end - batch.start;
    if size == 1 {
        sender.push_retrying(T::of(batch.start));
    } else {
        sender.push_batch(batch.map(T::of));
    }
    while share.left() > left {
        let popped = if size == 1 {
            receiver.pop().map(|item| share.receive(&item)).is_some()
        } else {
            let max = usize::try_from(share.left() - left).expect("small");
            receiver.pop_batch(max, |item| share.receive(&item)) > 0
        };
        if !popped {
            share.idle();
        }
    }
}

/// All items are pushed, then all are popped; the values are the times of the two.
fn one_end_at_a_time<P: Peer<T>, T: Payload>(plan: Plan, load: Load) -> Subject {
    let (mut senders, mut receivers) = P::open(plan);
    Subject::of::<P, T>(move || {
        let send = |sender: &mut P::Sender, part: std::ops::Range<u64>| {
            part.for_each(|number| sender.push_retrying(T::of(number)));
        };
        let receive =
            |receiver: &mut P::Receiver, share: Share<'_>| share.complete(|| receiver.pop());
        let nobody: &mut [P::Receiver] = &mut [];
        let produced = flow(load, &mut senders, send, nobody, receive);
        let nobody: &mut [P::Sender] = &mut [];
        let drained = flow(load, nobody, send, &mut receivers, receive);
        Round {
            values: [produced.values, drained.values].concat(),
            ..drained
        }
    })
}
