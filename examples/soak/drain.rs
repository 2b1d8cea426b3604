//! The end of a round: all queues are drained, and their own counts are checked.

use std::time::Duration;

use requeue::PopError;

use super::lanes::{each_lane, InOrder, Lane, Put};
use super::ledger::Job;
use super::letters;
use super::observer::Observer;
use super::whole::Soak;

/// Longer than what is left of most delays.
const WAIT: Duration = Duration::from_millis(1);

/// Drains all queues, when nothing else uses them. Closed ones are drained to their end.
pub(crate) fn run(soak: &Soak, closed: bool) {
    each_lane!(soak.lanes, lane => {
        if !closed {
            letters::requeue_all(soak, lane);
        }
        if closed {
            drain_closed(soak, lane);
        } else {
            drain_open(soak, lane);
        }
        letters::drain(soak, lane);
        check_counts(soak, lane);
    });
}

fn drain_open<O: Put>(soak: &Soak, lane: &Lane<O>) {
    let mut drained = Drained::new(soak, lane);
    while lane.queue.stats().delayed > 0 || !lane.queue.is_empty() {
        while let Ok(job) = lane.queue.pop_timeout(WAIT) {
            drained.add(&job);
        }
    }
}

/// Ends when nothing can become ready any more.
fn drain_closed<O: Put>(soak: &Soak, lane: &Lane<O>) {
    let mut drained = Drained::new(soak, lane);
    lane.queue.iter().for_each(|job| drained.add(&job));
    if lane.queue.pop() != Err(PopError::Closed) {
        soak.ledger
            .fault(format_args!("{}: drained, but not closed", lane.rules.name));
    }
}

/// Checks what is drained. A single consumer gets priorities in their exact order.
struct Drained<'s, O: Put> {
    soak: &'s Soak,
    lane: &'s Lane<O>,
    observer: Observer,
    sorted: bool,
    priority: u16,
}

impl<'s, O: Put> Drained<'s, O> {
    fn new(soak: &'s Soak, lane: &'s Lane<O>) -> Self {
        Self {
            soak,
            lane,
            observer: Observer::default(),
            sorted: lane.rules.in_order == InOrder::Priority && lane.queue.stats().delayed == 0,
            priority: 0,
        }
    }

    fn add(&mut self, job: &Job) {
        let (soak, lane) = (self.soak, self.lane);
        self.observer.popped(&soak.ledger, &lane.rules, job);
        lane.consume(&soak.ledger, &soak.counts, job);
        if self.sorted && job.priority < self.priority {
            let last = self.priority;
            soak.ledger
                .fault(format_args!("{job:?} came after one with priority {last}"));
        }
        self.priority = job.priority;
    }
}

/// At rest the counts of a drained queue are exact.
pub(crate) fn check_counts<O: Put>(soak: &Soak, lane: &Lane<O>) {
    let (stats, name, pushed) = (lane.queue.stats(), lane.rules.name, lane.rules.pushed.get());
    if let Err(imbalance) = stats.check() {
        soak.ledger.fault(format_args!("{name}: {imbalance}"));
    }
    if stats.pushed != pushed {
        let counted = stats.pushed;
        soak.ledger.fault(format_args!(
            "{name} counts {counted} pushes, there were {pushed}"
        ));
    }
    if (stats.ready, stats.held, stats.delayed) != (0, 0, 0) || !lane.queue.is_empty() {
        soak.ledger
            .fault(format_args!("{name} is not empty: {stats:?}"));
    }
}
