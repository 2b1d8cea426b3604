//! The pushes of a thread.

use std::mem;
use std::time::Duration;

use requeue::Handle;

use super::lanes::Put;
use super::ledger::Job;
use super::planned;
use super::rng::Rng;
use super::worker::Worker;

const MOST: u16 = 12;
const WAIT: Duration = Duration::from_micros(200);

impl<O: Put> Worker<'_, O> {
    pub(crate) fn produce(&mut self, rng: &mut Rng) {
        match rng.below(10) {
            0..=2 => self.push(rng),
            3 => self.push_without_handle(rng),
            4 => self.push_patiently(rng),
            5..=6 => self.push_batch(rng),
            7 => self.push_by_new_handle(rng),
            _ => self.stage(rng),
        }
    }

    fn job(&self, rng: &mut Rng) -> Option<Job> {
        self.lane.job(&self.soak.ledger, self.stream, rng)
    }

    fn jobs(&self, rng: &mut Rng) -> Vec<Job> {
        let count = 1 + rng.below(MOST);
        (0..count).map_while(|_| self.job(rng)).collect()
    }

    /// Records whether `jobs` were pushed.
    fn record(&self, jobs: &[Job], pushed: bool) {
        if !pushed {
            return self.soak.counts.refused.one();
        }
        for job in jobs {
            self.lane.accept(&self.soak.ledger, &self.soak.counts, job);
        }
    }

    fn push(&mut self, rng: &mut Rng) {
        let Some(job) = self.job(rng).map(O::prepared) else {
            return;
        };
        let delay = rng.one_in(8).then_some(WAIT);
        let pushed = O::push(&mut self.handle, job, delay);
        self.record(&[job], pushed);
    }

    fn push_without_handle(&mut self, rng: &mut Rng) {
        let Some(job) = self.lane.job(&self.soak.ledger, self.own_stream, rng) else {
            return;
        };
        let pushed = self.lane.queue.push(job).is_ok();
        self.record(&[job], pushed);
    }

    fn push_patiently(&mut self, rng: &mut Rng) {
        let Some(job) = self.job(rng) else {
            return;
        };
        let pushed = self.handle.push_timeout(job, WAIT).is_ok();
        self.record(&[job], pushed);
    }

    fn push_batch(&mut self, rng: &mut Rng) {
        let jobs = self.jobs(rng);
        let batch = jobs.iter().copied();
        let pushed = if rng.one_in(2) {
            self.handle.push_batch(batch).is_ok()
        } else {
            self.handle.push_batch_timeout(batch, WAIT).is_ok()
        };
        self.record(&jobs, pushed);
    }

    /// The handle is dropped with the items in it.
    fn push_by_new_handle(&mut self, rng: &mut Rng) {
        let mut handle: Handle<_, O> = self.lane.queue.handle();
        let stream = self.soak.ledger.stream();
        self.soak.counts.handles.one();
        for _ in 0..=rng.below(MOST) {
            let Some(job) = self.lane.job(&self.soak.ledger, stream, rng) else {
                return;
            };
            let pushed = handle.push(job).is_ok();
            self.record(&[job], pushed);
        }
    }

    /// Pushes in a transaction, which is committed or not.
    fn stage(&mut self, rng: &mut Rng) {
        let jobs = self.jobs(rng);
        let (soak, lane) = (self.soak, self.lane);
        let tx = self.handle.begin();
        let stage = |job: Job| {
            let job = O::prepared(job);
            O::stage(&tx, job).then_some(job)
        };
        let staged: Vec<_> = jobs.into_iter().filter_map(stage).collect();
        match rng.below(12) {
            0 => tx.abort(),
            1 => drop(tx),
            2 => mem::forget(tx),
            3 => planned::panic(),
            _ => soak.ended(lane, tx.try_commit(), 0, &staged),
        }
    }
}
