//! One thread's use of one queue: a random step at a time.

use std::collections::VecDeque;

use requeue::{Handle, OwnedTransaction};

use super::held::Held;
use super::lanes::{Lane, Put};
use super::ledger::Job;
use super::observer::Observer;
use super::planned;
use super::rng::Rng;
use super::whole::Soak;

/// The name of handles whose items the chaos takes back.
pub(crate) const SLOW: &str = "slow";
/// Deliveries that a worker keeps open.
const MOST_KEPT: usize = 3;

pub(crate) struct Worker<'s, O: Put> {
    pub(crate) soak: &'s Soak,
    pub(crate) lane: &'s Lane<O>,
    pub(crate) handle: Handle<Job, O>,
    /// The stream of the handle.
    pub(crate) stream: u32,
    /// The stream of the pushes of this thread without a handle.
    pub(crate) own_stream: u32,
    pub(crate) observer: Observer,
    kept: VecDeque<Kept<'s, O>>,
}

/// A delivery that is acknowledged later.
struct Kept<'s, O: Put> {
    /// Dropped before the transaction.
    held: Held<'s>,
    tx: OwnedTransaction<Job, O>,
}

impl<'s, O: Put> Worker<'s, O> {
    pub(crate) fn new(soak: &'s Soak, lane: &'s Lane<O>) -> Self {
        soak.counts.handles.one();
        Self {
            soak,
            lane,
            handle: lane.queue.handle(),
            stream: soak.ledger.stream(),
            own_stream: soak.ledger.stream(),
            observer: Observer::default(),
            kept: VecDeque::new(),
        }
    }

    /// Does something. A panic on purpose ends the step, and whatever it had begun is undone.
    pub(crate) fn step(&mut self, rng: &mut Rng, pushes: u16) {
        let survived = planned::survives(|| match rng.below(100) {
            0..=1 => self.renew_handle(rng),
            2..=5 => self.keep(rng),
            6..=12 => self.settle(rng),
            13 if self.lane.rules.may_peek() => self.peek(),
            14.. if rng.below(100) < pushes => self.produce(rng),
            _ => self.consume(rng),
        });
        if !survived {
            self.soak.counts.panicked.one();
        }
    }

    /// Drops the handle with the items that it has pushed, and makes another one.
    pub(crate) fn renew_handle(&mut self, rng: &mut Rng) {
        let queue = &self.lane.queue;
        self.handle = match rng.below(3) {
            0 => queue.named_handle(SLOW),
            1 => self.handle.clone(),
            _ => queue.handle(),
        };
        self.stream = self.soak.ledger.stream();
        self.soak.counts.handles.one();
    }

    /// Takes an item in a transaction that stays open.
    fn keep(&mut self, rng: &mut Rng) {
        if self.kept.len() == MOST_KEPT {
            return self.settle(rng);
        }
        let (lane, ledger) = (self.lane, &self.soak.ledger);
        let tx = if rng.one_in(2) {
            lane.queue.begin_owned()
        } else {
            lane.queue.named_handle(SLOW).begin_owned()
        };
        let mut held = Held::new(&lane.rules);
        match tx.pop() {
            Ok(item) => {
                held.add(ledger, &item);
                self.observer.delivered(ledger, &lane.rules, &item);
            }
            Err(_) => return,
        }
        self.kept.push_back(Kept { held, tx });
    }

    /// Ends the oldest delivery, or renews it.
    fn settle(&mut self, rng: &mut Rng) {
        let Some(mut kept) = self.kept.pop_front() else {
            return;
        };
        let counts = &self.soak.counts;
        match rng.below(8) {
            0..=1 if kept.tx.renew().is_ok() => {
                counts.renewed.one();
                self.kept.push_back(kept);
            }
            2 => {
                drop(kept.held);
                kept.tx.rollback();
                counts.aborted.one();
            }
            3 => {
                counts.aborted.one();
                drop(kept);
            }
            _ => self.commit(kept),
        }
    }

    fn commit(&self, kept: Kept<'s, O>) {
        let Kept { held, tx } = kept;
        drop(held);
        self.soak.ended(self.lane, tx.try_commit(), 1, &[]);
    }

    /// Commits the deliveries that are still open.
    pub(crate) fn finish(&mut self) {
        while let Some(kept) = self.kept.pop_front() {
            self.commit(kept);
        }
    }

    /// Looks at items, which stay.
    fn peek(&mut self) {
        let lane = self.lane.rules.id;
        let peeked = self.handle.peek_with(|job| job.lane);
        if peeked.is_ok_and(|peeked| peeked != lane) {
            self.soak.ledger.fault("an item of another queue was seen");
        }
        self.soak.counts.peeked.one();
    }
}
