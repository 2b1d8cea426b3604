//! A round: everything at once, then the drain and the audit.

use std::sync::Arc;
use std::thread;

use tokio::runtime::Runtime;

use super::rng::Rng;
use super::whole::Soak;
use super::worker::Worker;
use super::{chaos, drain, joint, letters, pool, probe, tasks};

/// Steps between changes of the share of pushes.
const MOOD: u32 = 256;

pub(crate) struct Plan {
    pub(crate) threads: usize,
    /// Whether the queues are closed in this round.
    pub(crate) closing: bool,
}

pub(crate) fn run(soak: &Arc<Soak>, runtime: &Runtime, plan: &Plan, rng: &mut Rng) {
    soak.set_stopped(false);
    let tasks = runtime.spawn(tasks::run(Arc::clone(soak), plan.threads, rng.fork()));
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for _ in 0..plan.threads {
            let rng = rng.fork();
            threads.push(scope.spawn(|| work(soak, rng)));
        }
        let forks = [(); 4].map(|()| rng.fork());
        let [for_joint, for_letters, for_pool, for_chaos] = forks;
        threads.push(scope.spawn(|| joint::run(soak, for_joint)));
        threads.push(scope.spawn(|| letters::run(soak, for_letters)));
        threads.push(scope.spawn(|| pool::run(soak, for_pool)));
        threads.push(scope.spawn(|| chaos::run(soak, for_chaos, plan.closing)));
        for thread in threads {
            if thread.join().is_err() {
                soak.ledger.fault("a thread panicked");
            }
        }
    });
    if runtime.block_on(tasks).is_err() {
        soak.ledger.fault("the task of the tasks panicked");
    }
    drain::run(soak, plan.closing);
    if !plan.closing {
        probe::run(soak, rng);
    }
    soak.ledger.audit();
}

/// One thread, which uses all queues in turn.
fn work(soak: &Soak, mut rng: Rng) {
    let lanes = &soak.lanes;
    let mut plain = Worker::new(soak, &lanes.plain);
    let mut bounded = Worker::new(soak, &lanes.bounded);
    let mut leased = Worker::new(soak, &lanes.leased);
    let mut leased_by_key = Worker::new(soak, &lanes.leased_by_key);
    let mut serial = Worker::new(soak, &lanes.serial);
    let mut fair = Worker::new(soak, &lanes.fair);
    let mut priority = Worker::new(soak, &lanes.priority);
    while !soak.is_stopped() {
        let pushes = 10 + rng.below(80); // percent
        for _ in 0..MOOD {
            match rng.below(7) {
                0 => plain.step(&mut rng, pushes),
                1 => bounded.step(&mut rng, pushes),
                2 => leased.step(&mut rng, pushes),
                3 => leased_by_key.step(&mut rng, pushes),
                4 => serial.step(&mut rng, pushes),
                5 => fair.step(&mut rng, pushes),
                _ => priority.step(&mut rng, pushes),
            }
        }
    }
    plain.finish();
    bounded.finish();
    leased.finish();
    leased_by_key.finish();
    serial.finish();
    fair.finish();
    priority.finish();
}
