//! What the checks of the dashboard must refuse.

use serde_json::{json, Value};

use super::dashboard::faults;
use super::scrape::Scrape;

/// A query, the unit of its panel, and the only fault.
pub(crate) const QUERIES: [(&str, &str, &str); 23] = [
    ("sum(requeue_ready{queue=~\"$queue\"}", "short", "unclosed left parenthesis"),
    ("sum(requeue_redy{queue=~\"$queue\"})", "short", "no such metric: requeue_redy"),
    ("sum(requeue_wait_seconds{queue=~\"$queue\"})", "s", "no such metric: requeue_wait_seconds"),
    ("sum(rate(requeue_pushed_total_count{queue=~\"$queue\"}[1m]))", "cps", "no such metric"),
    ("sum(rate(requeue_ready{queue=~\"$queue\"}[1m]))", "cps", "rate of a gauge"),
    ("sum(requeue_pushed_total{queue=~\"$queue\"})", "short", "Counter without a rate"),
    ("sum(requeue_hold_seconds_count{queue=~\"$queue\"})", "short", "Histogram without a rate"),
    ("sum(requeue_ready{queue=~\"$queue\", reason=\"failed\"})", "short", "requeue_ready has no label reason"),
    ("sum(requeue_ready{queue=\"letters\"})", "short", "no sample of"),
    ("sum(requeue_ready)", "short", "requeue_ready is not selected by queue"),
    ("sum(requeue_disk_journals)", "short", "requeue_disk_journals is not selected by store"),
    ("sum(requeue_ready{queue=~\"$queues\"})", "short", "unknown variable: queues"),
    ("sum by (reason) (requeue_held{queue=~\"$queue\"})", "short", "nothing to aggregate by: reason"),
    ("sum(requeue_oldest_seconds{queue=~\"$queue\"})", "short", "is shown as \"short\""),
    ("sum(rate(requeue_pushed_total{queue=~\"$queue\"}[1m]))", "short", "is shown as \"short\""),
    ("sum(exporter_weight_bytes{queue=~\"$queue\"})", "s", "is shown as \"s\""),
    ("sum(requeue_held{queue=~\"$queue\"})", "percentunit", "no ratio"),
    ("max(requeue_held{queue=~\"$queue\"} + requeue_oldest_seconds{queue=~\"$queue\"})", "s", "s^0 B^0 + s^1 B^0"),
    (
        "histogram_quantile(0.9, sum(rate(requeue_wait_seconds_bucket{queue=~\"$queue\"}[1m])))",
        "s",
        "aggregated by something other than sum by (le)",
    ),
    (
        "histogram_quantile(9, sum by (le) (rate(requeue_wait_seconds_bucket{queue=~\"$queue\"}[1m])))",
        "s",
        "9 is no quantile",
    ),
    (
        "histogram_quantile(0.9, sum(rate(requeue_wait_seconds_sum{queue=~\"$queue\"}[1m])))",
        "s",
        "a quantile of what is no histogram",
    ),
    (
        "sum by (queue, reason) (rate(requeue_retries_total{queue=~\"$queue\"}[1m])) \
         / sum by (queue) (rate(requeue_aborted_total{queue=~\"$queue\"}[1m]))",
        "short",
        "no labels of both sides are equal",
    ),
    ("requeue_ready{queue=~\"$queue\"}", "short", "two series have the legend"),
];

/// What is changed in the dashboard, the new value, and the only fault.
pub(crate) const SETTINGS: [(&str, &str, &str); 13] = [
    ("/schemaVersion", "16", "the schema is old"),
    ("/templating/list/1/name", "\"name\"", "other variables"),
    (
        "/templating/list/1/query/query",
        "\"label_values(requeue_ready, store)\"",
        "no values",
    ),
    ("/panels/1/description", "\"\"", "not one sentence"),
    (
        "/panels/1/description",
        "\"Items. Of all queues.\"",
        "not one sentence",
    ),
    ("/panels/1/title", "\"\"", "no title of its own"),
    ("/panels/1/id", "3", "its id is that of another panel"),
    ("/panels/1/gridPos/w", "7", "it overlaps"),
    ("/panels/1/gridPos/x", "23", "outside of the grid"),
    ("/panels/1/type", "\"graph\"", "its type is unknown"),
    ("/panels/1/targets", "[]", "it shows nothing"),
    (
        "/panels/1/datasource/uid",
        "\"P1809F7CD0C75ACF3\"",
        "not the variable",
    ),
    (
        "/panels/1/targets/0/legendFormat",
        "\"{{host}}\"",
        "no series has all labels",
    ),
];

/// A panel below the others.
pub(crate) fn panel(query: &str, unit: &str) -> Value {
    let datasource = json!({ "type": "prometheus", "uid": "${datasource}" });
    json!({
        "id": 1000,
        "type": "timeseries",
        "title": "wrong",
        "description": "Wrong.",
        "datasource": datasource,
        "gridPos": { "x": 0, "y": 1000, "w": 12, "h": 8 },
        "fieldConfig": { "defaults": { "unit": unit } },
        "targets": [{ "refId": "A", "datasource": datasource, "expr": query, "legendFormat": "" }],
    })
}

pub(crate) fn assert_refused(dashboard: &Value, scrape: &Scrape, what: &str, reason: &str) {
    let faults = faults(dashboard, scrape);
    let is_known = matches!(&*faults, [fault] if fault.contains(reason));
    assert!(
        is_known,
        "{what} should be refused for \"{reason}\", not for {faults:?}"
    );
}
