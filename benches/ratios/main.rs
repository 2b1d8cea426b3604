//! Runs all contenders of a scenario in turn, round by round, so that noise affects all of them alike, and compares
//! the medians with the targets: `cargo bench --bench ratios`.
//!
//! `REQUEUE_ROUNDS` sets the number of rounds. Without `--bench`, as in a test run, it is one.

#[path = "../common/mod.rs"]
mod common;
mod rank;
mod targets;

use common::subjects::{Direct, Handled, Seg, Subject};
use common::{scenarios, Scenario, ITEMS};
use rank::RankError;
use targets::{Target, TARGETS};

fn main() {
    let rounds = rounds();
    println!(
        "{:<22}{:<24}{:>9}{:>12}",
        "scenario", "contender", "ns/item", "to SegQueue"
    );
    let mut outcomes = Vec::new();
    for scenario in scenarios() {
        let name = scenario.name;
        let results = measure(scenario, rounds);
        for row in &results {
            print_row(name, row, &results);
        }
        outcomes.extend(judge(name, &results));
    }
    assert_eq!(
        outcomes.len(),
        TARGETS.len(),
        "each target names a scenario"
    );
    let reached = outcomes.iter().filter(|&&reached| reached).count();
    println!("\n{reached} of {} targets reached", outcomes.len());
    println!("\nrank error: how many older items were still in the queue when one was popped");
    println!(
        "{:<22}{:<24}{:>9}{:>12}",
        "scenario", "contender", "mean", "max"
    );
    for (name, threads) in [("2P2C", 2), ("4P4C", 4)] {
        print_rank::<Handled>(name, threads);
        print_rank::<Direct>(name, threads);
        print_rank::<Seg>(name, threads);
    }
}

fn rounds() -> usize {
    if !std::env::args().any(|argument| argument == "--bench") {
        return 1;
    }
    let Ok(rounds) = std::env::var("REQUEUE_ROUNDS") else {
        return 31;
    };
    match rounds.parse() {
        Ok(rounds) if rounds > 0 => rounds,
        _ => panic!("REQUEUE_ROUNDS is not a number of rounds: {rounds}"),
    }
}

/// The time of one contender in each round, in nanoseconds per item.
struct Row {
    name: &'static str,
    rounds: Vec<f64>,
}

impl Row {
    fn nanoseconds(&self) -> f64 {
        median(self.rounds.clone())
    }

    /// The time per item, as a multiple of another contender's in the same round.
    fn ratio(&self, other: &Row) -> f64 {
        let pairs = self.rounds.iter().zip(&other.rounds);
        median(pairs.map(|(own, other)| own / other).collect())
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// One warm-up round, then the measured rounds.
#[allow(clippy::cast_precision_loss)]
fn measure(mut scenario: Scenario, rounds: usize) -> Vec<Row> {
    let contenders = scenario.contenders.iter_mut();
    let mut rows: Vec<_> = contenders
        .map(|contender| {
            (contender.round)();
            Row {
                name: contender.name,
                rounds: Vec::new(),
            }
        })
        .collect();
    for _ in 0..rounds {
        for (contender, row) in scenario.contenders.iter_mut().zip(&mut rows) {
            let nanoseconds = (contender.round)().as_nanos() as f64;
            row.rounds.push(nanoseconds / ITEMS as f64);
        }
    }
    rows
}

fn find<'r>(results: &'r [Row], name: &str) -> Option<&'r Row> {
    results.iter().find(|row| row.name == name)
}

fn print_row(scenario: &str, row: &Row, results: &[Row]) {
    print!("{scenario:<22}{:<24}{:>9.1}", row.name, row.nanoseconds());
    match find(results, "SegQueue") {
        Some(reference) => println!("{:>12.2}", row.ratio(reference)),
        None => println!("{:>12}", "-"),
    }
}

/// Prints the targets of a scenario, and whether they are met.
fn judge(scenario: &str, results: &[Row]) -> Vec<bool> {
    let targets = TARGETS.iter().filter(|target| target.scenario == scenario);
    let judge = |target: &Target| {
        let [own, other] = [target.contender, target.against]
            .map(|name| find(results, name).unwrap_or_else(|| panic!("no {name} in {scenario}")));
        let ratio = own.ratio(other);
        let reached = ratio <= target.at_most;
        println!(
            "  target: {} at most {} x {}: {ratio:.2}, {}",
            target.contender,
            target.at_most,
            target.against,
            if reached { "reached" } else { "MISSED" }
        );
        reached
    };
    targets.map(judge).collect()
}

fn print_rank<S: Subject>(scenario: &str, threads: usize) {
    let RankError { mean, max } = rank::measure::<S>(threads);
    println!("{scenario:<22}{:<24}{mean:>9.1}{max:>12}", S::NAME);
}
