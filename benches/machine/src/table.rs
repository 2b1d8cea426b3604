//! The results as tables in Markdown.

use crate::costs::NANO;
use crate::flow::Outcome;

/// The outcomes of a subject, by the number of cores.
pub(crate) struct Row {
    pub(crate) subject: &'static str,
    pub(crate) outcomes: Vec<Runs>,
}

/// The outcomes of all seeds.
pub(crate) struct Runs(pub(crate) Vec<Outcome>);

impl Runs {
    /// The median of a value; of an even number of runs the higher one.
    fn median(&self, value: Value) -> f64 {
        let mut values: Vec<_> = self.0.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    }

    pub(crate) fn throughput(&self) -> f64 {
        self.median(Outcome::throughput)
    }

    pub(crate) fn events(&self) -> u64 {
        self.0.iter().map(|outcome| outcome.counts.events).sum()
    }
}

#[allow(clippy::cast_precision_loss)]
impl Outcome {
    /// Items in a microsecond.
    fn throughput(&self) -> f64 {
        self.items as f64 / micros(self.ticks)
    }

    fn transfers_per_item(&self) -> f64 {
        self.counts.transfers as f64 / self.items as f64
    }

    fn hottest_percent(&self) -> f64 {
        100.0 * self.counts.hottest
    }

    fn worst_micros(&self) -> f64 {
        micros(self.worst)
    }
}

#[allow(clippy::cast_precision_loss)]
fn micros(ticks: u64) -> f64 {
    ticks as f64 / NANO as f64 / 1e3
}

type Value = fn(&Outcome) -> f64;

/// The kinds of values, each with its unit.
const VALUES: [(&str, Value); 4] = [
    ("items per µs", Outcome::throughput),
    ("transfers per item", Outcome::transfers_per_item),
    ("waits for one line, %", Outcome::hottest_percent),
    ("worst wait, µs", Outcome::worst_micros),
];

/// A table of one workload.
pub(crate) fn markdown(workload: &str, cores: &[usize], rows: &[Row]) -> String {
    let head = line(workload, "cores", cores.iter().map(usize::to_string));
    let mut lines = vec![head, "|---".repeat(cores.len() + 2) + "|"];
    for row in rows {
        for (at, (unit, value)) in VALUES.iter().enumerate() {
            let subject = if at == 0 { row.subject } else { "" };
            let values = row.outcomes.iter().map(|runs| rounded(runs.median(*value)));
            lines.push(line(subject, unit, values));
        }
    }
    lines.join("\n") + "\n"
}

fn line(first: &str, second: &str, others: impl Iterator<Item = String>) -> String {
    let others: Vec<_> = others.collect();
    format!("| {first} | {second} | {} |", others.join(" | "))
}

/// With about three digits.
fn rounded(value: f64) -> String {
    let digits = match value {
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$}")
}
