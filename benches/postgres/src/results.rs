//! What was measured, and its statistics.

use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// One run of one contestant.
pub(crate) struct Sample {
    pub(crate) jobs_per_second: f64,
    /// Of the claims, or of the round trips.
    pub(crate) latency: Histogram<u64>,
}

/// The samples by cell, and then by contestant; and what failed.
#[derive(Default)]
pub(crate) struct Results {
    cells: BTreeMap<String, BTreeMap<&'static str, Vec<Sample>>>,
    /// The runs that failed.
    pub(crate) failures: Vec<String>,
}

/// The median, and the quartiles as the spread.
#[derive(Clone, Copy)]
pub(crate) struct Summary {
    pub(crate) lower: f64,
    pub(crate) median: f64,
    pub(crate) upper: f64,
}

impl Results {
    pub(crate) fn add(&mut self, cell: &str, contestant: &'static str, sample: Sample) {
        let cell = self.cells.entry(cell.into()).or_default();
        cell.entry(contestant).or_default().push(sample);
    }

    pub(crate) fn failed(&mut self, failure: String) {
        eprintln!("{failure}");
        self.failures.push(failure);
    }

    fn samples(&self, cell: &str, contestant: &str) -> &[Sample] {
        let samples = self.cells.get(cell).and_then(|cell| cell.get(contestant));
        samples.map_or(&[], Vec::as_slice)
    }

    pub(crate) fn has(&self, cell: &str) -> bool {
        self.cells.contains_key(cell)
    }

    /// Of the jobs per second.
    pub(crate) fn summary(&self, cell: &str, contestant: &str) -> Option<Summary> {
        let samples = self.samples(cell, contestant);
        let mut sorted: Vec<_> = samples.iter().map(|it| it.jobs_per_second).collect();
        sorted.sort_by(f64::total_cmp);
        let quartile = |quarters: usize| sorted[(sorted.len() - 1) * quarters / 4];
        (!sorted.is_empty()).then(|| Summary {
            lower: quartile(1),
            median: quartile(2),
            upper: quartile(3),
        })
    }

    /// The latencies of all rounds together.
    pub(crate) fn latency(&self, cell: &str, contestant: &str) -> Option<Histogram<u64>> {
        let mut samples = self.samples(cell, contestant).iter();
        let mut all = samples.next()?.latency.clone();
        for sample in samples {
            all.add(&sample.latency).ok()?;
        }
        (!all.is_empty()).then_some(all)
    }
}
