//! All samples, for other tools.

use crate::calls;
use crate::goals::outcomes;
use crate::options::Options;
use crate::results::{Row, Table};
use serde_json::{json, Value};
use std::collections::BTreeMap;

pub(super) fn results(machine: &str, options: &Options, tables: &[Table]) -> Value {
    json!({
        "machine": machine,
        "rounds": options.rounds,
        "items": options.sizes.items,
        "tables": tables.iter().map(table).collect::<Vec<_>>(),
        "goals": outcomes(tables)
            .iter()
            .map(|outcome| json!({ "goal": outcome.text, "verdict": outcome.verdict() }))
            .collect::<Vec<_>>(),
    })
}

fn table(table: &Table) -> Value {
    json!({
        "workload": table.workload,
        "unit": table.unit,
        "subjects": table.rows.iter().map(row).collect::<Vec<_>>(),
    })
}

fn row(row: &Row) -> Value {
    let summary = row.summary();
    json!({
        "name": row.subject,
        "ranked": row.own() || row.ranked_peer(),
        "median": summary.map(|summary| summary.median),
        "quartiles": summary.map(|summary| [summary.lower, summary.upper]),
        "samples": row.samples,
        "lost": row.loss,
        "calls": row.calls().map(|numbers| calls::NAMES.into_iter().zip(numbers).collect::<BTreeMap<_, _>>()),
    })
}
