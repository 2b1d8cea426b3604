//! Tables and files.

use crate::cell::Cell;
use crate::contestants::{Contestant, ALL};
use crate::latency::{ROUND_TRIP, SNAPSHOT};
use crate::options::Options;
use crate::results::{Results, Summary};
use crate::Failure;
use hdrhistogram::Histogram;
use serde_json::{json, Value};
use std::fmt::Write;
use std::fs;
use std::path::Path;

const JOBS: &str =
    "Jobs per second, by the workers of each: median (least to greatest of the rounds)";
const CLAIMS: &str = "Latency of a claim in milliseconds, called by itself: median, 99 %";
const WAITS: &str = "From a push to the job in a worker that waited, in milliseconds: median, 99 %";
const OLD: &str =
    "Latency of a claim of one job around an old snapshot of another session, in milliseconds: median, 99 %";

/// All tables, in markdown.
pub(crate) fn text(results: &Results, options: &Options) -> String {
    let cells: Vec<_> = Cell::all(options.backlog).map(Cell::name).collect();
    let speed = |cell: &str, name: &str| spread(results.summary(cell, name));
    let latency = |cell: &str, name: &str| quantiles(results.latency(cell, name).as_ref());
    let round_trip = ROUND_TRIP.map(String::from);
    let snapshot = SNAPSHOT.map(String::from);
    let mut text = table(results, JOBS, &cells, speed);
    text += &table(results, CLAIMS, &cells, latency);
    text += &table(results, WAITS, &round_trip, latency);
    text += &table(results, OLD, &snapshot, latency);
    for failure in &results.failures {
        let _ = writeln!(text, "\nFailed: {failure}");
    }
    text
}

fn table(
    results: &Results,
    title: &str,
    cells: &[String],
    value: impl Fn(&str, &str) -> String,
) -> String {
    let mut cells = cells.iter().filter(|cell| results.has(cell)).peekable();
    if cells.peek().is_none() {
        return String::new();
    }
    let ran = |contestant: &&Contestant| results.has_contestant(contestant.name);
    let contestants: Vec<_> = ALL.iter().filter(ran).collect();
    let mut text = format!("\n{title}:\n\n| workers x batch |");
    for contestant in &contestants {
        let _ = write!(text, " {} |", contestant.name);
    }
    text.push_str("\n|---|");
    text.push_str(&"---|".repeat(contestants.len()));
    text.push('\n');
    for cell in cells {
        let _ = write!(text, "| {cell} |");
        for contestant in &contestants {
            let _ = write!(text, " {} |", value(cell, contestant.name));
        }
        text.push('\n');
    }
    text
}

/// Three significant digits.
fn short(value: f64) -> String {
    match value {
        _ if value < 10.0 => format!("{value:.2}"),
        _ if value < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

fn spread(summary: Option<Summary>) -> String {
    let spread = |Summary {
                      least,
                      median,
                      greatest,
                  }| {
        format!(
            "{} ({} to {})",
            short(median),
            short(least),
            short(greatest)
        )
    };
    summary.map_or_else(|| "–".into(), spread)
}

fn quantiles(latency: Option<&Histogram<u64>>) -> String {
    latency.map_or_else(
        || "–".into(),
        |latency| {
            let millis = |quantile| latency.value_at_quantile(quantile) as f64 / 1e6;
            format!("{}, {}", short(millis(0.5)), short(millis(0.99)))
        },
    )
}

/// Writes `results.json` and `summary.md`.
pub(crate) fn write(
    folder: &Path,
    machine: &str,
    text: &str,
    results: &Results,
    options: &Options,
) -> Result<(), Failure> {
    fs::create_dir_all(folder)?;
    let mut cells: Vec<_> = Cell::all(options.backlog).map(Cell::name).collect();
    cells.extend(ROUND_TRIP.map(String::from));
    cells.extend(SNAPSHOT.map(String::from));
    cells.retain(|cell| results.has(cell));
    let cells: Vec<_> = cells.iter().map(|cell| of_cell(results, cell)).collect();
    let json = json!({
        "machine": machine,
        "rounds": options.rounds,
        "milliseconds": options.length.as_secs_f64() * 1e3,
        "cells": cells,
        "failures": results.failures,
    });
    fs::write(
        folder.join("results.json"),
        serde_json::to_string_pretty(&json)?,
    )?;
    Ok(fs::write(
        folder.join("summary.md"),
        format!("{machine}\n{text}"),
    )?)
}

fn of_cell(results: &Results, cell: &str) -> Value {
    let of = |contestant: &Contestant| {
        let summary = results.summary(cell, contestant.name);
        let summary = summary
            .map(|it| json!({ "least": it.least, "median": it.median, "greatest": it.greatest }));
        let latency = results.latency(cell, contestant.name);
        let quantiles = latency.map(|latency| {
            [0.5, 0.9, 0.99, 0.999, 1.0].map(|quantile| latency.value_at_quantile(quantile))
        });
        json!({
            "contestant": contestant.name,
            "jobs per second": summary,
            "latency in nanoseconds at 50, 90, 99, 99.9, 100 %": quantiles,
        })
    };
    json!({ "cell": cell, "contestants": ALL.iter().map(of).collect::<Vec<_>>() })
}
