//! The rank error: how many items that should have come before an item were popped after it.

use super::Sizes;
use crate::measure::{Round, Subject, Workload};
use crate::peers::{priority, Peer, Plan, Receiver, Sender};
use crate::tally::{Payload, Tally};
use crate::threads::{flow, Load, Share};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

const COLUMNS: &[&str] = &["mean", "max"];

pub(super) fn workloads(sizes: Sizes) -> Vec<Workload> {
    let load = sizes.load();
    let concurrently = [2, 4].map(|threads| {
        let plan = sizes.plan(threads, threads);
        Workload::new(format!("rank error, {threads}P{threads}C"), move || {
            each!(u64: concurrent(plan, load) for Plain, Direct, SegQueue, Locked; cpp Moodycamel)
        })
    });
    let (two_senders, two_receivers) = (sizes.plan(2, 1), sizes.plan(1, 2));
    let in_turn = Workload::new(
        "rank error, 2 handles of 1 thread",
        move || each!(u64: in_turn(two_senders, load) for Plain, Direct, SegQueue; cpp Moodycamel),
    );
    let priorities = Workload::new(
        "rank error, priorities",
        move || each!(u64: priorities(two_receivers, load) for Priority, LockedHeap, SkipList),
    );
    let all = concurrently.into_iter().chain([in_turn, priorities]);
    all.map(|workload| workload.columns(COLUMNS).unit("items"))
        .collect()
}

/// The order of the pushes, while several threads push and pop. The result of a queue in strict order is the error of the
/// stamps, which are taken right before a push and right after a pop.
pub(super) fn concurrent<P: Peer<T>, T: Payload>(plan: Plan, load: Load) -> Subject {
    let (mut senders, mut receivers) = P::open(plan);
    Subject::of::<P, T>(move || {
        let (pushed, popped) = (AtomicU64::new(0), Popped::default());
        let round = flow(
            load,
            &mut senders,
            |sender, part| part.for_each(|_| sender.push_retrying(T::of(stamp(&pushed)))),
            &mut receivers,
            |receiver, share| popped.by(receiver, share),
        );
        Round {
            values: popped.errors(|number| number),
            ..round
        }
    })
}

/// The same when one thread pushes through all ends in turn, and then pops.
pub(super) fn in_turn<P: Peer<T>, T: Payload>(plan: Plan, load: Load) -> Subject {
    let (mut senders, mut receivers) = P::open(plan);
    Subject::of::<P, T>(move || {
        let ends = 0..senders.len();
        for (number, end) in (0..load.items).zip(ends.cycle()) {
            senders[end].push_retrying(T::of(number));
        }
        drained(load, &mut receivers, |number| number)
    })
}

/// The order of the priorities, while several threads pop.
fn priorities<P: Peer<T>, T: Payload>(plan: Plan, load: Load) -> Subject {
    let (mut senders, mut receivers) = P::open(plan);
    Subject::of::<P, T>(move || {
        (0..load.items).for_each(|number| senders[0].push_retrying(T::of(number)));
        drained(load, &mut receivers, |number| priority(number).into())
    })
}

fn drained<T: Payload>(
    load: Load,
    receivers: &mut [impl Receiver<T>],
    key: impl Fn(u64) -> u64,
) -> Round {
    let (nobody, popped): (&mut [()], _) = (&mut [], Popped::default());
    let round = flow(
        load,
        nobody,
        |(), _| {},
        receivers,
        |receiver, share| popped.by(receiver, share),
    );
    Round {
        values: popped.errors(key),
        ..round
    }
}

fn stamp(next: &AtomicU64) -> u64 {
    next.fetch_add(1, Ordering::SeqCst)
}

/// The numbers of the popped items, with their stamps.
#[derive(Default)]
struct Popped {
    next: AtomicU64,
    numbers: Mutex<Vec<(u64, u64)>>,
}

impl Popped {
    fn by<T: Payload>(&self, receiver: &mut impl Receiver<T>, share: Share<'_>) -> Tally {
        let mut own = Vec::new();
        let received = share.complete(|| {
            let item = receiver.pop()?;
            own.push((stamp(&self.next), item.number()));
            Some(item)
        });
        let mut all = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend(own);
        received
    }

    /// The mean and the maximum error, where the item of the lowest key should have come first; and by how many places
    /// an item was displaced at most, if the keys are the places.
    #[allow(clippy::cast_precision_loss)]
    fn errors(self, key: impl Fn(u64) -> u64) -> Vec<f64> {
        let numbers = self.numbers.into_inner();
        let mut numbers = numbers.unwrap_or_else(PoisonError::into_inner);
        numbers.sort_unstable();
        let keys: Vec<_> = numbers.into_iter().map(|(_, number)| key(number)).collect();
        let places = (0..).zip(&keys);
        let displaced = places.map(|(place, key)| key.abs_diff(place)).max();
        let mut later = Counts::up_to(keys.iter().copied().max().unwrap_or(0));
        let (mut sum, mut max) = (0, 0);
        for &key in keys.iter().rev() {
            let error = later.below(key);
            (sum, max) = (sum + error, max.max(error));
            later.add(key);
        }
        let mean = sum as f64 / keys.len().max(1) as f64;
        vec![mean, max as f64, displaced.unwrap_or(0) as f64]
    }
}

/// Counts the added keys below a given one: a Fenwick tree.
struct Counts(Vec<u64>);

impl Counts {
    fn up_to(max: u64) -> Self {
        Self(vec![0; at(max) + 2])
    }

    fn add(&mut self, key: u64) {
        let mut at = at(key) + 1;
        while let Some(count) = self.0.get_mut(at) {
            *count += 1;
            at += at & at.wrapping_neg();
        }
    }

    fn below(&self, key: u64) -> u64 {
        let (mut at, mut sum) = (at(key), 0);
        while at > 0 {
            sum += self.0[at];
            at &= at - 1;
        }
        sum
    }
}

fn at(key: u64) -> usize {
    usize::try_from(key).expect("64 bits")
}
