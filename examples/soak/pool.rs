//! Short-lived queues, each with a pool of workers, closed and drained many times in a round.

use std::sync::Arc;
use std::time::Duration;

use requeue::{Fifo, Item, PopError, Queue, Transaction, Workers};

use super::drain;
use super::lanes::{Lane, Rules};
use super::ledger::Job;
use super::planned;
use super::rng::Rng;
use super::whole::Soak;

const JOBS: u16 = 400;
const CAPACITY: usize = 32;
const WAIT: Duration = Duration::from_micros(200);

pub(crate) fn run(soak: &Arc<Soak>, mut rng: Rng) {
    while !soak.is_stopped() {
        use_up(soak, &mut rng);
    }
}

/// One queue: workers, jobs, the close, and the checks.
fn use_up(soak: &Arc<Soak>, rng: &mut Rng) {
    let lane = Arc::new(Lane {
        queue: Queue::bounded(CAPACITY),
        rules: Rules::of_pool(),
    });
    let workers = start(soak, &lane);
    let stream = soak.ledger.stream();
    let mut handle = lane.queue.handle();
    for number in 0..rng.below(JOBS) {
        let Some(job) = lane.job(&soak.ledger, stream, rng) else {
            break;
        };
        if handle.push_blocking(job).is_err() {
            soak.ledger.fault("an open queue refused an item");
        } else {
            lane.accept(&soak.ledger, &soak.counts, &job);
        }
        match number % 128 {
            40 => workers.pause(0),
            80 => workers.resume(0),
            _ => {}
        }
    }
    workers.resume_all();
    lane.queue.close();
    soak.counts.closed.one();
    let report = workers.join();
    if report.done < lane.rules.pushed.get() || !report.stuck.is_empty() {
        soak.ledger
            .fault(format_args!("workers have left jobs: {report:?}"));
    }
    drain::check_counts(soak, &lane);
    if lane.queue.pop() != Err(PopError::Closed) {
        soak.ledger
            .fault("workers have left a job in a closed queue");
    }
}

fn start(soak: &Arc<Soak>, lane: &Arc<Lane<Fifo>>) -> Workers {
    let panics = Arc::clone(&soak.counts);
    let (soak, of_run) = (Arc::clone(soak), Arc::clone(lane));
    let next = soak.lanes.plain.queue.clone();
    Workers::builder(&lane.queue)
        .threads(2)
        .on_panic(move |_, _| panics.panicked.one())
        .run_with(&next, move |item, tx, out| {
            work(&soak, &of_run, item, tx, out)
        })
}

/// Fails some jobs in their first attempts. A job that is done pushes another one to a long-lived queue; the pool
/// commits both when this returns, which cannot fail.
fn work<'t>(
    soak: &Soak,
    lane: &Lane<Fifo>,
    item: Item<'t, Job>,
    tx: &'t Transaction<'_, Job>,
    out: &Transaction<'_, Job>,
) -> Result<(), &'static str> {
    let (job, attempt) = (*item, item.attempts());
    soak.ledger.delivered(&job, attempt, false);
    match job.number % 16 {
        0 if attempt == 1 => planned::panic(),
        1 if attempt <= 2 => return Err("on purpose"),
        2 if attempt == 1 => {
            soak.counts.retried.one();
            return tx.retry_after(item, WAIT).map_err(|_| "no room");
        }
        3 => give(soak, &soak.lanes.plain, out),
        _ => {}
    }
    lane.consume(&soak.ledger, &soak.counts, &job);
    Ok(())
}

fn give(soak: &Soak, lane: &Lane<Fifo>, out: &Transaction<'_, Job>) {
    let stream = soak.ledger.stream();
    let job = lane.job(&soak.ledger, stream, &mut Rng::new(stream.into()));
    if let Some(job) = job.filter(|job| out.push(*job).is_ok()) {
        lane.accept(&soak.ledger, &soak.counts, &job);
    }
}
