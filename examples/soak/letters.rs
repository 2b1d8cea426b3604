//! The dead letters: some are pushed again, others are drained and pushed as new items.

use std::thread;
use std::time::Duration;

use super::lanes::{each_lane, Lane, Put};
use super::rng::Rng;
use super::whole::Soak;

const PACE: Duration = Duration::from_millis(2);

/// Looks after the dead letters of all queues until the round ends.
pub(crate) fn run(soak: &Soak, mut rng: Rng) {
    while !soak.is_stopped() {
        each_lane!(soak.lanes, lane => {
            // A late worker of a leased queue may not have recorded its attempt.
            if rng.one_in(2) && !lane.rules.leased {
                requeue(soak, lane);
            } else {
                renew(soak, lane, &mut rng);
            }
        });
        thread::sleep(PACE); // lets some letters arrive
    }
}

/// Pushes the present letters again by their ids.
fn requeue<O: Put>(soak: &Soak, lane: &Lane<O>) {
    let letters = lane.queue.dead_letters();
    let mut ids = Vec::new();
    letters.visit(|letter| {
        soak.ledger
            .died(&letter.item, letter.attempts, lane.rules.leased);
        soak.ledger.will_be_requeued(&letter.item);
        ids.push(letter.id());
    });
    let pushed = ids.into_iter().filter(|id| letters.requeue(*id)).count();
    soak.counts.requeued.add(pushed);
    lane.rules.pushed.add(pushed);
}

/// Drains the letters and pushes as many new items.
fn renew<O: Put>(soak: &Soak, lane: &Lane<O>, rng: &mut Rng) {
    let stream = soak.ledger.stream();
    for _ in 0..drain(soak, lane) {
        let Some(job) = lane.job(&soak.ledger, stream, rng) else {
            return;
        };
        if lane.queue.push(job).is_ok() {
            lane.accept(&soak.ledger, &soak.counts, &job);
        }
    }
}

/// Takes the present letters out, and returns their number.
pub(crate) fn drain<O: Put>(soak: &Soak, lane: &Lane<O>) -> usize {
    let mut count = 0;
    for letter in lane.queue.dead_letters().drain() {
        soak.ledger.consumed(&letter.item);
        soak.ledger
            .died(&letter.item, letter.attempts, lane.rules.leased);
        count += 1;
    }
    soak.counts.letters.add(count);
    count
}

/// Pushes all letters again, when nothing else uses the queue.
pub(crate) fn requeue_all<O: Put>(soak: &Soak, lane: &Lane<O>) {
    let letters = lane.queue.dead_letters();
    letters.visit(|letter| soak.ledger.will_be_requeued(&letter.item));
    let pushed = letters.requeue_all();
    soak.counts.requeued.add(pushed);
    lane.rules.pushed.add(pushed);
}
