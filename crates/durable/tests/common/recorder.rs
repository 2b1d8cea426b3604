//! A recorder of metrics that keeps all values.

use metrics::{Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn};
use metrics::{Key, KeyName, Metadata, Recorder, SharedString, Unit};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// All recorded values, by the names of the metric and the values of its labels.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<BTreeMap<String, Vec<f64>>>>);

impl Log {
    fn cell(&self, key: &Key) -> Arc<Cell> {
        let labels = key.labels().map(|label| format!(" {}", label.value()));
        let name = format!("{}{}", key.name(), labels.collect::<String>());
        let log = self.clone();
        Arc::new(Cell { log, name })
    }

    /// The values of a metric with labels of these values.
    pub(crate) fn of(&self, name: &str) -> Vec<f64> {
        let values = self.0.lock().unwrap();
        values.get(name).cloned().unwrap_or_default()
    }
}

struct Cell {
    log: Log,
    name: String,
}

impl Cell {
    fn add(&self, value: f64) {
        let mut log = self.log.0.lock().unwrap();
        log.entry(self.name.clone()).or_default().push(value);
    }
}

#[allow(clippy::cast_precision_loss)] // small numbers
impl CounterFn for Cell {
    fn increment(&self, value: u64) {
        self.add(value as f64);
    }

    fn absolute(&self, value: u64) {
        self.add(value as f64);
    }
}

impl GaugeFn for Cell {
    fn increment(&self, value: f64) {
        self.add(value);
    }

    fn decrement(&self, value: f64) {
        self.add(-value);
    }

    fn set(&self, value: f64) {
        self.add(value);
    }
}

impl HistogramFn for Cell {
    fn record(&self, value: f64) {
        self.add(value);
    }
}

impl Recorder for Log {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.cell(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.cell(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.cell(key))
    }
}
