//! Compares the waiting of requeue with that of channels, and its other orders with hand-written queues. All
//! contenders of a scenario run in turn, round by round, in one process, so that noise affects all of them alike:
//! `cargo run --release -p requeue-compare`.
//!
//! `REQUEUE_ROUNDS` sets the number of rounds. An argument selects the scenarios whose names contain it.

mod idle;
mod kinds;
mod latency;
mod orders;
mod rank;
mod report;
mod round_trip;
mod scenarios;
mod stream;

use report::Report;
use scenarios::{scenarios, Sizes};
use std::env;

fn main() {
    let rounds = rounds();
    let only = env::args().nth(1).unwrap_or_default();
    let mut report = Report::new();
    for mut scenario in scenarios(Sizes::FULL) {
        if scenario.name.contains(&only) {
            report.add(&mut scenario, rounds);
        }
    }
    report.conclude();
    if "orders, rank error".contains(&only) {
        rank::print(9973);
    }
}

fn rounds() -> usize {
    let Ok(rounds) = env::var("REQUEUE_ROUNDS") else {
        return 31;
    };
    match rounds.parse() {
        Ok(rounds) if rounds > 0 => rounds,
        _ => panic!("REQUEUE_ROUNDS is not a number of rounds: {rounds}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_runs_and_its_targets_name_its_contenders() {
        let mut report = Report::new();
        for mut scenario in scenarios(Sizes::TINY) {
            report.add(&mut scenario, 1);
        }
        report.conclude();
        rank::print(97);
    }
}
