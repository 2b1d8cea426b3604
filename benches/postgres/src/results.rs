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

/// The median of the rounds, and the least and the greatest: there are too few rounds for quartiles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Summary {
    pub(crate) least: f64,
    pub(crate) median: f64,
    pub(crate) greatest: f64,
}

impl Summary {
    fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (&least, &greatest) = (values.first()?, values.last()?);
        let (lower, upper) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
        let median = f64::midpoint(lower, upper);
        Some(Self {
            least,
            median,
            greatest,
        })
    }
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

    pub(crate) fn has_contestant(&self, contestant: &str) -> bool {
        self.cells
            .values()
            .any(|cell| cell.contains_key(contestant))
    }

    /// Of the jobs per second.
    pub(crate) fn summary(&self, cell: &str, contestant: &str) -> Option<Summary> {
        let samples = self.samples(cell, contestant);
        Summary::of(samples.iter().map(|it| it.jobs_per_second).collect())
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

#[cfg(test)]
mod tests {
    use super::Summary;

    #[test]
    fn a_summary_has_the_least_median_and_greatest() {
        let of = |values: &[f64]| {
            let summary = Summary::of(values.to_vec());
            summary.map(|it| (it.least, it.median, it.greatest))
        };
        assert_eq!(of(&[3.0, 1.0, 2.0]), Some((1.0, 2.0, 3.0)));
        assert_eq!(of(&[4.0, 1.0, 2.0, 8.0]), Some((1.0, 3.0, 8.0)));
        assert_eq!(of(&[5.0]), Some((5.0, 5.0, 5.0)));
        assert_eq!(of(&[]), None);
    }
}
