//! Rounds, medians, ratios and targets.

use std::time::{Duration, Instant};

/// One kind of queue in one scenario.
pub(crate) struct Contender {
    name: &'static str,
    /// Runs once and returns the elapsed time, in the scenario's unit.
    round: Box<dyn FnMut() -> f64>,
}

impl Contender {
    pub(crate) fn new(name: &'static str, round: impl FnMut() -> f64 + 'static) -> Self {
        Self {
            name,
            round: Box::new(round),
        }
    }

    /// Handles `items` in one thread, and returns the time per item.
    pub(crate) fn alone(name: &'static str, items: u32, mut round: impl FnMut() + 'static) -> Self {
        Self::new(name, move || {
            let start = Instant::now();
            round();
            nanoseconds(start.elapsed()) / f64::from(items)
        })
    }
}

/// A target of the first contender, which is requeue.
pub(crate) enum Target {
    /// No slower than the fastest of the other kinds.
    Best,
    /// At most this multiple of the time of the named contender.
    Times(f64, &'static str),
    /// At most this value, in the scenario's unit.
    Units(f64),
}

/// A scenario and its contenders.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    /// Long enough for a single round without a warm-up.
    pub(crate) long: bool,
    pub(crate) contenders: Vec<Contender>,
    pub(crate) targets: Vec<Target>,
}

impl Scenario {
    /// A scenario of many rounds, in nanoseconds.
    pub(crate) fn new(
        name: &'static str,
        contenders: Vec<Contender>,
        targets: Vec<Target>,
    ) -> Self {
        Self {
            name,
            unit: "ns",
            long: false,
            contenders,
            targets,
        }
    }
}

pub(crate) struct Report {
    outcomes: Vec<bool>,
}

impl Report {
    pub(crate) fn new() -> Self {
        println!(
            "{:<30}{:<22}{:>12}{:>16}",
            "scenario", "contender", "median", "to the first"
        );
        let outcomes = Vec::new();
        Self { outcomes }
    }

    /// Runs a scenario, prints it and checks its targets.
    pub(crate) fn add(&mut self, scenario: &mut Scenario, rounds: usize) {
        let rows = measure(scenario, rounds);
        for row in &rows {
            println!(
                "{:<30}{:<22}{:>12.1} {:<6}{:>9.2}",
                scenario.name,
                row.name,
                row.time(),
                scenario.unit,
                row.ratio(&rows[0])
            );
        }
        for target in &scenario.targets {
            self.outcomes.push(judge(target, scenario.unit, &rows));
        }
    }

    pub(crate) fn conclude(&self) {
        let reached = self.outcomes.iter().filter(|&&reached| reached).count();
        println!("\n{reached} of {} targets reached", self.outcomes.len());
    }
}

/// The time of one contender in each round.
struct Row {
    name: &'static str,
    rounds: Vec<f64>,
}

impl Row {
    fn time(&self) -> f64 {
        median(self.rounds.clone())
    }

    /// The time as a multiple of another contender's in the same round.
    fn ratio(&self, other: &Row) -> f64 {
        let pairs = self.rounds.iter().zip(&other.rounds);
        median(pairs.map(|(own, other)| own / other).collect())
    }
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

pub(crate) fn nanoseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9
}

pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// One warm-up round, then the measured rounds.
fn measure(scenario: &mut Scenario, rounds: usize) -> Vec<Row> {
    let (warm_up, rounds) = if scenario.long { (0, 1) } else { (1, rounds) };
    let mut times = vec![Vec::new(); scenario.contenders.len()];
    for round in 0..warm_up + rounds {
        for (contender, times) in scenario.contenders.iter_mut().zip(&mut times) {
            let time = (contender.round)();
            if round >= warm_up {
                times.push(time);
            }
        }
    }
    let rows = scenario.contenders.iter().zip(times);
    rows.map(|(&Contender { name, .. }, rounds)| Row { name, rounds })
        .collect()
}

/// Prints a target, and whether it is met.
fn judge(target: &Target, unit: &str, rows: &[Row]) -> bool {
    let own = &rows[0];
    let against = |at_most, other: &Row| {
        let text = format!("{} at most {at_most} x {}", own.name, other.name);
        (text, own.ratio(other), at_most)
    };
    let (text, value, at_most) = match *target {
        Target::Best => against(1.0, best_other(rows)),
        Target::Times(at_most, name) => against(at_most, find(rows, name)),
        Target::Units(at_most) => (
            format!("{} at most {at_most} {unit}", own.name),
            own.time(),
            at_most,
        ),
    };
    let reached = value <= at_most;
    let outcome = if reached { "reached" } else { "MISSED" };
    println!("  target: {text}: {value:.2}, {outcome}");
    reached
}

fn find<'r>(rows: &'r [Row], name: &str) -> &'r Row {
    let row = rows.iter().find(|row| row.name == name);
    row.unwrap_or_else(|| panic!("no contender is {name}"))
}

/// The fastest contender that is not requeue.
fn best_other(rows: &[Row]) -> &Row {
    let others = rows.iter().filter(|row| !row.name.starts_with("requeue"));
    let best = others.min_by(|a, b| a.time().total_cmp(&b.time()));
    best.expect("a scenario compares kinds")
}
