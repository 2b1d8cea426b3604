//! After a round, some items pass through each long-lived queue alone: their order must be exact.

use std::collections::{BTreeMap, VecDeque};

use super::lanes::{Keys, Lane, Lanes, Put, KEYS};
use super::ledger::Job;
use super::rng::Rng;
use super::whole::Soak;

const ITEMS: usize = 60;

pub(crate) fn run(soak: &Soak, rng: &mut Rng) {
    let Lanes {
        plain,
        bounded,
        leased,
        leased_by_key,
        serial,
        fair,
        priority,
    } = &soak.lanes;
    pass(soak, plain, rng, as_pushed);
    pass(soak, bounded, rng, as_pushed);
    pass(soak, leased, rng, as_pushed);
    pass(soak, leased_by_key, rng, round_robin);
    pass(soak, serial, rng, round_robin);
    pass(soak, fair, rng, round_robin);
    pass(soak, priority, rng, by_priority);
}

/// Pushes some items, pops them, and compares their order.
fn pass<O: Put>(soak: &Soak, lane: &Lane<O>, rng: &mut Rng, expected: fn(Vec<Job>) -> Vec<Job>) {
    let (mut handle, stream) = (lane.queue.handle(), soak.ledger.stream());
    let jobs: Vec<_> = (0..ITEMS)
        .map(|_| O::prepared(make(soak, lane, stream, rng)))
        .collect();
    for job in &jobs {
        if !O::push(&mut handle, *job, None) {
            soak.ledger
                .fault(format_args!("{}: an empty queue is full", lane.rules.name));
            return;
        }
        lane.accept(&soak.ledger, &soak.counts, job);
    }
    let popped: Vec<_> = (0..ITEMS).map_while(|_| lane.queue.pop().ok()).collect();
    for job in &popped {
        lane.consume(&soak.ledger, &soak.counts, job);
    }
    if popped != expected(jobs) {
        let keys: Vec<_> = popped.iter().map(|job| (job.number, job.key)).collect();
        soak.ledger
            .fault(format_args!("{}: wrong order {keys:?}", lane.rules.name));
    }
}

/// Half of the items have the same key.
fn make<O: Put>(soak: &Soak, lane: &Lane<O>, stream: u32, rng: &mut Rng) -> Job {
    let any = u8::try_from(rng.below(u16::from(KEYS))).expect("there are few keys");
    let key: Keys = if rng.one_in(2) { 0 } else { any };
    lane.numbered(&soak.ledger, soak.ledger.reserved_number(), stream, key)
}

fn as_pushed(jobs: Vec<Job>) -> Vec<Job> {
    jobs
}

fn by_priority(mut jobs: Vec<Job>) -> Vec<Job> {
    jobs.sort_by_key(|job| job.priority);
    jobs
}

/// One item of each key in turn; a new key joins at the end.
fn round_robin(jobs: Vec<Job>) -> Vec<Job> {
    let (mut by_key, mut round) = (BTreeMap::<Keys, VecDeque<Job>>::new(), VecDeque::new());
    for job in jobs {
        if !round.contains(&job.key) {
            round.push_back(job.key);
        }
        by_key.entry(job.key).or_default().push_back(job);
    }
    let mut order = Vec::new();
    while let Some(key) = round.pop_front() {
        if let Some(job) = by_key.get_mut(&key).and_then(VecDeque::pop_front) {
            order.push(job);
            round.push_back(key);
        }
    }
    order
}
