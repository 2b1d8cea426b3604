//! The queries of the dashboard, against what the exporter serves.

mod dashboard;
mod query;
mod refused;
mod scrape;
mod unit;

use dashboard::{faults, panels, queries};
use scrape::Scrape;
use serde_json::Value;
use std::process::{Command, Stdio};

/// The metrics of a run of the exporter.
fn scrape() -> Scrape {
    let exporter = Command::new(env!("CARGO_BIN_EXE_requeue-exporter"))
        .arg("--self-test")
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(exporter.status.success(), "{}", exporter.status);
    Scrape::parse(&String::from_utf8(exporter.stdout).unwrap()).unwrap()
}

fn dashboard() -> Value {
    serde_json::from_str(include_str!("../../dashboard.json")).unwrap()
}

#[test]
fn each_query_of_the_dashboard_has_a_result() {
    let (scrape, dashboard) = (scrape(), dashboard());
    let faults = faults(&dashboard, &scrape);
    assert!(faults.is_empty(), "{faults:#?}");
    let panels = || panels(&dashboard).iter();
    assert!(panels().count() > 20);
    for metric in scrape.kinds.keys() {
        let shows = |query: &str| {
            let mut words = query.split(|c: char| !c.is_alphanumeric() && c != '_');
            words.any(|word| matches!(scrape.metric_of(word), Some((of, _)) if of == metric))
        };
        let is_shown = panels().any(|panel| queries(panel).any(shows));
        assert!(is_shown, "{metric} is on no panel");
    }
}

#[test]
fn what_is_wrong_is_refused() {
    let scrape = scrape();
    for (query, unit, reason) in refused::QUERIES {
        let mut dashboard = dashboard();
        let panel = refused::panel(query, unit);
        dashboard["panels"].as_array_mut().unwrap().push(panel);
        refused::assert_refused(&dashboard, &scrape, query, reason);
    }
    for (pointer, value, reason) in refused::SETTINGS {
        let mut dashboard = dashboard();
        *dashboard.pointer_mut(pointer).expect(pointer) = serde_json::from_str(value).unwrap();
        refused::assert_refused(&dashboard, &scrape, pointer, reason);
    }
}
