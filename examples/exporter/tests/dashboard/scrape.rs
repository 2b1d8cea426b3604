//! What Prometheus reads at a scrape: samples, and the kinds of their metrics.

use std::collections::{BTreeMap, BTreeSet};

pub(crate) type Labels = BTreeMap<String, String>;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) labels: Labels,
    pub(crate) value: f64,
}

#[derive(Default)]
pub(crate) struct Scrape {
    pub(crate) kinds: BTreeMap<String, Kind>,
    pub(crate) samples: Vec<Sample>,
}

impl Scrape {
    /// Reads the text format.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut scrape = Self::default();
        for line in text.lines().filter(|line| !line.is_empty()) {
            let wrong = || format!("wrong line: {line}");
            if let Some(declared) = line.strip_prefix("# TYPE ") {
                let (name, kind) = declared.split_once(' ').ok_or_else(wrong)?;
                let kind = match kind {
                    "counter" => Kind::Counter,
                    "gauge" => Kind::Gauge,
                    "histogram" => Kind::Histogram,
                    _ => return Err(wrong()),
                };
                scrape.kinds.insert(name.to_owned(), kind);
            } else if !line.starts_with('#') {
                let sample = sample(line).ok_or_else(wrong)?;
                scrape.metric_of(&sample.name).ok_or_else(wrong)?;
                scrape.samples.push(sample);
            }
        }
        Ok(scrape)
    }

    /// The metric that samples with this name belong to.
    pub(crate) fn metric_of<'n>(&self, name: &'n str) -> Option<(&'n str, Kind)> {
        if let Some(&kind) = self.kinds.get(name) {
            return (kind != Kind::Histogram).then_some((name, kind));
        }
        let parts = ["_bucket", "_sum", "_count"];
        let metric = parts.into_iter().find_map(|part| name.strip_suffix(part))?;
        let is_histogram = self.kinds.get(metric) == Some(&Kind::Histogram);
        is_histogram.then_some((metric, Kind::Histogram))
    }

    pub(crate) fn samples_of<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s Sample> {
        self.samples
            .iter()
            .filter(move |sample| sample.name == name)
    }

    /// The values of a label, of all metrics.
    pub(crate) fn values_of(&self, label: &str) -> BTreeSet<&str> {
        let values = self
            .samples
            .iter()
            .filter_map(|sample| sample.labels.get(label));
        values.map(String::as_str).collect()
    }
}

/// `name value`, or `name{label="text",..} value`. No label has quotes or commas in its text.
fn sample(line: &str) -> Option<Sample> {
    let (series, value) = line.rsplit_once(' ')?;
    let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
    let labels = labels.strip_suffix('}')?.split(',');
    let labels = labels.filter(|label| !label.is_empty()).map(|label| {
        let (name, text) = label.split_once('=')?;
        let text = text.strip_prefix('"')?.strip_suffix('"')?;
        Some((name.to_owned(), text.to_owned()))
    });
    Some(Sample {
        name: name.to_owned(),
        labels: labels.collect::<Option<_>>()?,
        value: value.parse().ok()?,
    })
}
