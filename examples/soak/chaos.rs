//! Calls from outside: pauses, recoveries, inspection, and the close at the end.

use std::thread;
use std::time::{Duration, Instant};

use requeue::{Leased, Pace, Unleased};

use super::lanes::{each_lane, Lane, Put};
use super::ledger::Job;
use super::rng::Rng;
use super::whole::Soak;
use super::worker::SLOW;

/// The longest round.
const ROUND: Duration = Duration::from_secs(2);
const PACE: Duration = Duration::from_millis(1);
/// When the last round closes the queues, and for how long work goes on.
const CLOSING: Duration = Duration::from_millis(100);

pub(crate) fn run(soak: &Soak, mut rng: Rng, closing: bool) {
    let start = Instant::now();
    let limit = if closing { CLOSING } else { ROUND };
    while !soak.is_stopped() && start.elapsed() < limit {
        each_lane!(soak.lanes, lane => disturb(soak, lane, &mut rng));
        let lanes = &soak.lanes;
        recover(soak, &lanes.leased);
        recover(soak, &lanes.leased_by_key);
        change_pace(&lanes.bounded, &mut rng);
        thread::sleep(PACE); // paces the chaos
    }
    soak.lanes.bounded.queue.set_pace(Pace::unlimited());
    if closing {
        each_lane!(soak.lanes, lane => close(soak, lane));
        thread::sleep(CLOSING); // lets the others meet the closed queues
    }
    soak.set_stopped(true);
}

fn disturb<O: Put>(soak: &Soak, lane: &Lane<O>, rng: &mut Rng) {
    lane.check_limits(&soak.ledger);
    match rng.below(12) {
        0 => pause(soak, lane),
        1 => drop(lane.queue.held()),
        2 if lane.rules.may_peek() => soak.counts.peeked.add(lane.queue.peek_each(|_| ())),
        3 => drop((lane.queue.next_due(), lane.queue.is_empty())),
        _ => {}
    }
}

/// Nobody gets an item between the two calls.
fn pause<O: Put>(soak: &Soak, lane: &Lane<O>) {
    lane.queue.pause();
    if let Ok(job) = lane.queue.pop() {
        soak.ledger.fault(format_args!(
            "{}: {job:?} came while paused",
            lane.rules.name
        ));
        lane.consume(&soak.ledger, &soak.counts, &job);
    }
    thread::sleep(PACE); // paces the chaos
    lane.queue.resume();
    soak.counts.paused.one();
}

fn recover<O: Put + Unleased>(soak: &Soak, lane: &Lane<Leased<O>>)
where
    Leased<O>: Put,
{
    let before = lane.queue.now();
    soak.counts.recovered.add(lane.queue.recover(SLOW, before));
}

fn change_pace<O: Put>(lane: &Lane<O>, rng: &mut Rng) {
    match rng.below(20) {
        0 => lane
            .queue
            .set_pace(Pace::rate(20_000, Duration::from_secs(1)).burst(16)),
        1 => lane.queue.set_pace(Pace::unlimited()),
        _ => {}
    }
}

fn close<O: Put>(soak: &Soak, lane: &Lane<O>) {
    if !lane.queue.close() {
        soak.ledger.fault("a queue was closed before");
    }
    soak.counts.closed.one();
    let job: Job = lane.numbered(&soak.ledger, u32::MAX, 0, 0);
    if !lane
        .queue
        .push(job)
        .is_err_and(|refused| refused.is_closed())
    {
        soak.ledger.fault("a closed queue took an item");
    }
}
