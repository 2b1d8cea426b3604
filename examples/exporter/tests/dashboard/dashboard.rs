//! Checks the panels of a dashboard and their queries.

use serde_json::Value;
use std::collections::BTreeSet;

use super::query::{evaluate, Values};
use super::scrape::{Labels, Scrape};

/// The panels that show something.
const TYPES: [&str; 3] = ["heatmap", "stat", "timeseries"];
/// The columns of a dashboard.
const WIDTH: u64 = 24;

pub(crate) fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

fn array<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    let array = value.pointer(pointer).and_then(Value::as_array);
    array.map_or(&[], Vec::as_slice)
}

pub(crate) fn panels(dashboard: &Value) -> &[Value] {
    array(dashboard, "/panels")
}

pub(crate) fn queries(panel: &Value) -> impl Iterator<Item = &str> {
    array(panel, "/targets")
        .iter()
        .map(|target| text(target, "/expr"))
}

/// What is wrong with a dashboard, with the title of the panel.
pub(crate) fn faults(dashboard: &Value, scrape: &Scrape) -> Vec<String> {
    let mut faults = Vec::new();
    if dashboard["schemaVersion"].as_u64() < Some(39) {
        faults.push("the schema is old".to_owned());
    }
    let variables = array(dashboard, "/templating/list");
    let known: Vec<_> = variables
        .iter()
        .map(|variable| (text(variable, "/name"), text(variable, "/type")))
        .collect();
    let expected = [
        ("datasource", "datasource"),
        ("queue", "query"),
        ("store", "query"),
    ];
    if known != expected {
        faults.push(format!("other variables: {known:?}"));
    }
    let of_labels = variables
        .iter()
        .filter(|variable| variable["type"] == "query");
    faults.extend(of_labels.filter_map(|variable| check_variable(variable, scrape).err()));
    let (mut ids, mut titles, mut cells) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for panel in panels(dashboard) {
        let title = text(panel, "/title");
        let mut fault = |fault: String| faults.push(format!("{title}: {fault}"));
        if title.is_empty() || !titles.insert(title) {
            fault("it has no title of its own".into());
        }
        if !ids.insert(panel["id"].as_u64()) {
            fault("its id is that of another panel".into());
        }
        match place(panel) {
            Ok(place) => {
                if place
                    .into_iter()
                    .filter(|cell| !cells.insert(*cell))
                    .count()
                    > 0
                {
                    fault("it overlaps".into());
                }
            }
            Err(wrong) => fault(wrong),
        }
        if panel["type"] != "row" {
            if let Err(wrong) = check(panel, scrape) {
                fault(wrong);
            }
        }
    }
    faults
}

/// Whether a variable has values: `label_values(metric, label)`.
fn check_variable(variable: &Value, scrape: &Scrape) -> Result<(), String> {
    let query = text(variable, "/query/query");
    let args = query.strip_prefix("label_values(");
    let args = args.and_then(|args| args.strip_suffix(')')?.split_once(", "));
    let has = |(metric, label)| {
        let mut samples = scrape.samples_of(metric);
        samples.any(|sample| sample.labels.contains_key::<str>(label))
    };
    let is_known = args.is_some_and(has) && query == text(variable, "/definition");
    is_known.then_some(()).ok_or(format!("no values: {query}"))
}

/// The cells of the grid that a panel is in.
fn place(panel: &Value) -> Result<Vec<(u64, u64)>, String> {
    let grid = |name: &str| {
        panel["gridPos"][name]
            .as_u64()
            .ok_or("its place is unknown")
    };
    let (x, y, w, h) = (grid("x")?, grid("y")?, grid("w")?, grid("h")?);
    if w == 0 || h == 0 || x + w > WIDTH {
        return Err("it is outside of the grid".into());
    }
    let columns = x..x + w;
    Ok(columns
        .flat_map(|x| (y..y + h).map(move |y| (x, y)))
        .collect())
}

fn check(panel: &Value, scrape: &Scrape) -> Result<(), String> {
    if !TYPES.contains(&text(panel, "/type")) {
        return Err("its type is unknown".into());
    }
    let description = text(panel, "/description");
    if description.find('.').map(|at| at + 1) != Some(description.len()) {
        return Err("its description is not one sentence".into());
    }
    let targets = array(panel, "/targets");
    if targets.is_empty() {
        return Err("it shows nothing".into());
    }
    let (mut refs, mut legends) = (BTreeSet::new(), BTreeSet::new());
    for of in targets.iter().chain([panel]) {
        if text(of, "/datasource/type") != "prometheus"
            || text(of, "/datasource/uid") != "${datasource}"
        {
            return Err("its data source is not the variable".into());
        }
    }
    for target in targets {
        if !refs.insert(text(target, "/refId")) {
            return Err("two queries have the same refId".into());
        }
        let values = evaluate(text(target, "/expr"), scrape)?;
        check_unit(panel, &values)?;
        for (labels, _) in &values.series {
            let legend = text(target, "/legendFormat");
            if values.bounds.is_none() && !legends.insert(with_labels(legend, labels)?) {
                return Err(format!("two series have the legend {legend}"));
            }
        }
    }
    Ok(())
}

/// A legend as it is shown for a series.
fn with_labels(legend: &str, labels: &Labels) -> Result<String, String> {
    let mut shown = legend.to_owned();
    for (label, value) in labels {
        shown = shown.replace(&format!("{{{{{label}}}}}"), value);
    }
    if shown.contains("{{") {
        return Err(format!("no series has all labels of {legend}"));
    }
    Ok(shown)
}

fn check_unit(panel: &Value, values: &Values) -> Result<(), String> {
    let is_heatmap = panel["type"] == "heatmap";
    let (shown, unit) = match values.bounds {
        Some(bounds) if is_heatmap => (text(panel, "/options/yAxis/unit"), bounds),
        Some(_) => return Err("buckets are for a heatmap".into()),
        None if is_heatmap => return Err("a heatmap is for buckets".into()),
        None => (text(panel, "/fieldConfig/defaults/unit"), values.unit),
    };
    if !unit.names().contains(&shown) {
        return Err(format!("{unit} is shown as \"{shown}\""));
    }
    if shown == "percentunit" && !values.is_ratio() {
        return Err("it is no ratio, but shown as one".into());
    }
    Ok(())
}
