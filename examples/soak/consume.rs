//! The pops of a thread.

use std::mem;
use std::time::Duration;

use requeue::{Item, Transaction};

use super::counts::Counts;
use super::held::Held;
use super::lanes::Put;
use super::ledger::Job;
use super::planned;
use super::rng::Rng;
use super::worker::Worker;

const MOST: u16 = 12;
const WAIT: Duration = Duration::from_micros(200);

impl<O: Put> Worker<'_, O> {
    pub(crate) fn consume(&mut self, rng: &mut Rng) {
        match rng.below(10) {
            0 => self.pop_without_handle(),
            1 => self.pop(),
            2 => self.pop_patiently(),
            3 => self.pop_batch(rng),
            _ => self.deliver(rng),
        }
    }

    /// Records an item that was popped without a transaction.
    fn popped(&mut self, job: Job) {
        let (soak, lane) = (self.soak, self.lane);
        self.observer.popped(&soak.ledger, &lane.rules, &job);
        lane.consume(&soak.ledger, &soak.counts, &job);
    }

    fn pop_without_handle(&mut self) {
        if let Ok(job) = self.lane.queue.pop() {
            self.popped(job);
        }
    }

    fn pop(&mut self) {
        if let Ok(job) = self.handle.pop() {
            self.popped(job);
        }
    }

    fn pop_patiently(&mut self) {
        if let Ok(job) = self.handle.pop_timeout(WAIT) {
            self.popped(job);
        }
    }

    fn pop_batch(&mut self, rng: &mut Rng) {
        let (mut jobs, most) = (Vec::new(), 1 + rng.below(MOST));
        let popped = self.handle.pop_batch(most.into(), &mut jobs);
        if popped != jobs.len() {
            self.soak
                .ledger
                .fault("a batch has another length than it says");
        }
        for job in jobs {
            self.popped(job);
        }
    }

    /// Takes items in a transaction, gives some of them back, and ends it in one of all ways.
    fn deliver(&mut self, rng: &mut Rng) {
        let (soak, lane, stream) = (self.soak, self.lane, self.stream);
        let tx = self.handle.begin();
        let mut held = Held::new(&lane.rules);
        let mut items = take(&tx, rng);
        for item in &items {
            held.add(&soak.ledger, item);
            self.observer.delivered(&soak.ledger, &lane.rules, item);
        }
        if items.is_empty() {
            return;
        }
        let mut staged = Vec::new();
        if rng.one_in(6) {
            let job = lane.job(&soak.ledger, stream, rng).map(O::prepared);
            staged.extend(job.filter(|job| O::stage(&tx, *job)));
        }
        if rng.one_in(20) {
            planned::panic();
        }
        drop(held);
        let mut count = items.len();
        if let Some(item) = items.pop().filter(|_| rng.one_in(6)) {
            count -= usize::from(give_back(&soak.counts, &tx, item, rng));
        }
        drop(items);
        match rng.below(20) {
            0..=1 => tx.abort(),
            2 => drop(tx),
            3 => mem::forget(tx),
            _ => return soak.ended(lane, tx.try_commit(), count, &staged),
        }
        soak.counts.aborted.one();
    }
}

fn take<'t, O: Put>(tx: &'t Transaction<'_, Job, O>, rng: &mut Rng) -> Vec<Item<'t, Job>> {
    let most = 1 + usize::from(rng.below(MOST));
    match rng.below(6) {
        0 => tx.pop_batch(most).collect(),
        1 => tx.pop_batch_timeout(2, most, WAIT).collect(),
        2 => tx.pop_timeout(WAIT).into_iter().collect(),
        _ => (0..=most / 3).map_while(|_| tx.pop().ok()).collect(),
    }
}

/// Retries or fails the last item. `false` if the transaction still holds it, since there is no room for that.
fn give_back<'t, O: Put>(
    counts: &Counts,
    tx: &'t Transaction<'_, Job, O>,
    item: Item<'t, Job>,
    rng: &mut Rng,
) -> bool {
    let (counter, given) = match rng.below(4) {
        0 => (&counts.retried, tx.retry(item)),
        1 => (&counts.failed, tx.fail(item, "on purpose")),
        _ => (&counts.retried, tx.retry_after(item, WAIT)),
    };
    counter.add(given.is_ok().into());
    given.is_ok()
}
