//! Schedules of whole queues, explored at random under `--cfg shuttle`: more threads and operations than loom can
//! explore, but only sequentially consistent executions.
//!
//! No item is lost or duplicated, no queue exceeds its capacity, and all threads end: a lost wake-up leaves a thread
//! asleep, which shuttle reports as a deadlock. The queue is closed only after all waits have ended, since the close
//! would wake forgotten waiters.
//!
//! A failure prints its schedule; set `REQUEUE_REPLAY` to it and pass the name of the test.

#![cfg(shuttle)]

mod crowd;
mod failing;
mod gates;
mod ledger;
mod market;
mod names;
mod orders;
mod pairs;
mod pushers;
mod takers;
mod waits;
mod work;

use shuttle::rand::{thread_rng, Rng};
use shuttle::scheduler::{PctScheduler, RandomScheduler, ReplayScheduler, Scheduler};
use shuttle::{Config, Runner};
use std::env;
use std::sync::Arc;

/// Maximal number of priority changes of the second scheduler, plus one.
const DEPTH: usize = 4;

/// Number of schedules per scheduler.
fn schedules() -> usize {
    let schedules = env::var("REQUEUE_SCHEDULES").ok();
    schedules.map_or(1000, |schedules| schedules.parse().expect("a number"))
}

/// Runs a scenario in many schedules, or in the one to replay.
fn explore(scenario: fn()) {
    if let Ok(schedule) = env::var("REQUEUE_REPLAY") {
        return run(ReplayScheduler::new_from_encoded(&schedule), scenario);
    }
    run(RandomScheduler::new(schedules()), scenario);
    run(PctScheduler::new(DEPTH, schedules()), scenario);
}

fn run(scheduler: impl Scheduler + 'static, scenario: fn()) {
    let mut config = Config::new();
    config.stack_size = 1 << 18;
    config.silence_warnings = true;
    Runner::new(scheduler, config).run(scenario);
}

/// A random number below `end`; it is part of the schedule.
fn below(end: usize) -> usize {
    thread_rng().gen_range(0..end)
}

/// A random element.
fn one_of<T: Copy>(choices: &[T]) -> T {
    choices[below(choices.len())]
}

/// Starts `count` threads that run the same closure.
fn start<C: Send + Sync + 'static>(
    count: usize,
    shared: &Arc<C>,
    work: impl Fn(&C) + Copy + Send + 'static,
) -> Vec<shuttle::thread::JoinHandle<()>> {
    let start = |_| {
        let shared = Arc::clone(shared);
        shuttle::thread::spawn(move || work(&shared))
    };
    (0..count).map(start).collect()
}

fn join(threads: Vec<shuttle::thread::JoinHandle<()>>) {
    for thread in threads {
        thread.join().unwrap();
    }
}
