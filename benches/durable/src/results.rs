//! What was measured, and its statistics.

use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// One run of one contestant.
pub(crate) struct Sample {
    pub(crate) commits_per_second: f64,
    /// For an item that is pushed and popped, until the calls returned.
    pub(crate) call_nanos: f64,
    /// For an item that is pushed and popped, until all is on the disk.
    pub(crate) nanos: f64,
    pub(crate) bytes_per_item: f64,
    pub(crate) latency: Histogram<u64>,
}

/// An empty one.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new(3).expect("three digits are possible")
}

impl Sample {
    pub(crate) fn of_nanos(nanos: f64) -> Self {
        Self {
            commits_per_second: 0.0,
            call_nanos: nanos,
            nanos,
            bytes_per_item: 0.0,
            latency: histogram(),
        }
    }
}

/// The samples by cell, and then by contestant.
#[derive(Default)]
pub(crate) struct Results(BTreeMap<String, BTreeMap<&'static str, Vec<Sample>>>);

/// The median, and the quartiles as the spread.
#[derive(Clone, Copy)]
pub(crate) struct Summary {
    pub(crate) lower: f64,
    pub(crate) median: f64,
    pub(crate) upper: f64,
}

impl Results {
    pub(crate) fn add(&mut self, cell: String, contestant: &'static str, sample: Sample) {
        let cell = self.0.entry(cell).or_default();
        cell.entry(contestant).or_default().push(sample);
    }

    fn samples(&self, cell: &str, contestant: &str) -> &[Sample] {
        let samples = self.0.get(cell).and_then(|cell| cell.get(contestant));
        samples.map_or(&[], Vec::as_slice)
    }

    pub(crate) fn has(&self, cell: &str) -> bool {
        self.0.contains_key(cell)
    }

    pub(crate) fn summary(
        &self,
        cell: &str,
        contestant: &str,
        value: impl Fn(&Sample) -> f64,
    ) -> Option<Summary> {
        let samples = self.samples(cell, contestant);
        let mut sorted: Vec<_> = samples.iter().map(value).collect();
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
