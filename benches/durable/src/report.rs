//! Tables, goals and files.

use crate::backlog;
use crate::cell::Cell;
use crate::contestants::{Contestant, ALL, DURABLE, FJALL, MEMORY, REDB, SQLITE};
use crate::options::Options;
use crate::recovery;
use crate::results::{Results, Sample, Summary};
use crate::single;
use crate::Failure;
use serde_json::{json, Value};
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// All tables and goals, in markdown.
pub(crate) fn text(results: &Results, options: &Options) -> String {
    let mut text = String::new();
    let commits = |sample: &Sample| sample.commits_per_second;
    let title =
        "Commits per second (a push of a batch, and a pop of one, are two): medians and quartiles";
    text += &table(results, title, |_| true, commits);
    text += &table(
        results,
        "Nanoseconds per item pushed and popped, buffered, until the calls returned",
        |cell| !cell.synced,
        |sample| sample.call_nanos,
    );
    text += &table(
        results,
        "Nanoseconds per item pushed and popped, buffered, until all is on the disk",
        |cell| !cell.synced,
        |sample| sample.nanos,
    );
    text += &table(
        results,
        "Bytes written to the disk per item pushed and popped (sectors of the block device)",
        |_| true,
        |sample| sample.bytes_per_item,
    );
    text += &latencies(results);
    text += &singles(results);
    text += &backlogs(results, options);
    text += &recoveries(results, options);
    text + &goals(results, options)
}

fn table(
    results: &Results,
    title: &str,
    cells: impl Fn(&Cell) -> bool,
    value: impl Fn(&Sample) -> f64 + Copy,
) -> String {
    let cells: Vec<_> = Cell::all()
        .filter(|cell| cells(cell) && results.has(&cell.name()))
        .collect();
    if cells.is_empty() {
        return String::new();
    }
    let mut text = head(title, "threads x items", &ALL);
    for cell in cells {
        let name = cell.name();
        let _ = write!(text, "| {name} |");
        for contestant in &ALL {
            let summary = results.summary(&name, contestant.name, value);
            let _ = write!(text, " {} |", spread(summary));
        }
        text.push('\n');
    }
    text
}

fn head(title: &str, first: &str, contestants: &[Contestant]) -> String {
    let mut text = format!("\n{title}:\n\n| {first} |");
    for contestant in contestants {
        let _ = write!(text, " {} |", contestant.name);
    }
    text.push_str("\n|---|");
    text.push_str(&"---|".repeat(contestants.len()));
    text.push('\n');
    text
}

fn latencies(results: &Results) -> String {
    let names: Vec<_> = [1, 4, 16]
        .map(|threads| format!("synced {threads}x1"))
        .into();
    let names: Vec<_> = names.into_iter().filter(|name| results.has(name)).collect();
    if names.is_empty() {
        return String::new();
    }
    let title = "Latency of a synced commit in microseconds: median, 99 %, 99.9 %, longest";
    let mut text = head(title, "threads x items", &ALL[..4]);
    for name in names {
        let _ = write!(text, "| {name} |");
        for contestant in &ALL[..4] {
            let Some(latency) = results.latency(&name, contestant.name) else {
                text.push_str(" – |");
                continue;
            };
            let micros = |quantile| latency.value_at_quantile(quantile) / 1_000;
            let _ = write!(
                text,
                " {}, {}, {}, {} |",
                micros(0.5),
                micros(0.99),
                micros(0.999),
                latency.max() / 1_000
            );
        }
        text.push('\n');
    }
    text
}

/// One thread with synced commits.
fn singles(results: &Results) -> String {
    let mut text = String::new();
    let cells = single::BATCHES.map(|batch| (batch, single::name(batch)));
    for (batch, cell) in cells.iter().filter(|(_, cell)| results.has(cell)) {
        let bytes = |sample: &Sample| sample.bytes_per_item;
        let bytes = results.summary(cell, single::BARE, bytes);
        let _ = write!(
            text,
            "\nA synced commit of {batch} items of 8 bytes, {} bytes of the journal, in microseconds, turn by turn:\n\n\
             | | 25 % | median | 75 % | 99 % |\n|---|---|---|---|---|\n",
            spread(bytes)
        );
        for name in single::NAMES {
            let _ = write!(text, "| {name} |");
            let latency = results.latency(cell, name);
            for quantile in [0.25, 0.5, 0.75, 0.99] {
                let nanos = latency.as_ref().map(|all| all.value_at_quantile(quantile));
                let _ = write!(text, " {} |", short(nanos.unwrap_or(0) as f64 / 1e3));
            }
            text.push('\n');
        }
    }
    text
}

fn backlogs(results: &Results, options: &Options) -> String {
    let mut text = String::new();
    for cell in backlog::cells().filter(|cell| results.has(cell)) {
        let _ = write!(
            text,
            "\n{cell}: {} items of 24 bytes, buffered:\n\n\
             | | million items/s, until the calls returned | until all is on the disk | bytes written per item |\n|---|---|---|---|\n",
            options.items
        );
        for (name, _) in backlog::CONTESTANTS {
            let spread = |value: fn(&Sample) -> f64| spread(results.summary(&cell, name, value));
            let _ = writeln!(
                text,
                "| {name} | {} | {} | {} |",
                spread(|sample| 1e3 / sample.call_nanos),
                spread(|sample| 1e3 / sample.nanos),
                spread(|sample| sample.bytes_per_item)
            );
        }
    }
    text
}

fn recoveries(results: &Results, options: &Options) -> String {
    if !results.has(recovery::NAME) {
        return String::new();
    }
    let title = format!(
        "Seconds from the open to the first job, {} items of 8 bytes, after the process was killed",
        options.items
    );
    let mut text = head(&title, "", &ALL[..4]);
    text.push_str("| recovery |");
    for contestant in &ALL[..4] {
        let seconds = |sample: &Sample| sample.nanos / 1e9;
        let summary = results.summary(recovery::NAME, contestant.name, seconds);
        let _ = write!(text, " {} |", spread(summary));
    }
    text + "\n"
}

/// Whether the goals of the crate are met.
fn goals(results: &Results, options: &Options) -> String {
    let median = |cell: &str, name: &str, value: fn(&Sample) -> f64| {
        results
            .summary(cell, name, value)
            .map(|summary| summary.median)
    };
    let mut text = String::from("\nGoals:\n\n");
    let mut goal = |what: &str, ratio: Option<f64>, met: fn(f64) -> bool| {
        if let Some(ratio) = ratio {
            let outcome = if met(ratio) { "MET" } else { "MISSED" };
            let _ = writeln!(text, "- {outcome}: {what}: {ratio:.2}");
        }
    };
    let commits = |name| median("synced 4x1", name, |sample| sample.commits_per_second);
    let ratio = |name| Some(commits(DURABLE)? / commits(name)?);
    goal(
        "synced 4x1 at least 1.5 x fjall alone",
        ratio(FJALL),
        |ratio| ratio >= 1.5,
    );
    goal("synced 4x1 ahead of redb", ratio(REDB), |ratio| ratio > 1.0);
    goal("synced 4x1 ahead of SQLite", ratio(SQLITE), |ratio| {
        ratio > 1.0
    });
    let call = |name| median("buffered 1x32", name, |sample| sample.call_nanos);
    let all = |name| median("buffered 1x32", name, |sample| sample.nanos);
    let ratio =
        |nanos: &dyn Fn(&'static str) -> Option<f64>| Some(nanos(DURABLE)? / nanos(MEMORY)?);
    goal(
        "buffered 1x32 at most 5 x the queue in memory per item",
        ratio(&call),
        |ratio| ratio <= 5.0,
    );
    goal("the same, until all is on the disk", ratio(&all), |ratio| {
        ratio <= 5.0
    });
    for cell in single::BATCHES.map(single::name) {
        for name in [DURABLE, single::AGAIN] {
            let latency = |name| {
                let all = results.latency(&cell, name)?;
                Some(all.value_at_quantile(0.5) as f64)
            };
            let ratio = || Some(latency(name)? / latency(single::BARE)?);
            let what = format!("{cell}: {name} at most 1.1 x a bare append");
            goal(&what, ratio(), |ratio| ratio <= 1.1);
        }
    }
    for cell in backlog::cells() {
        let items = median(&cell, DURABLE, |sample| 1e3 / sample.nanos);
        let what = format!("{cell}: at least 0.5 million items/s");
        goal(&what, items, |items| items >= 0.5);
    }
    let seconds = median(recovery::NAME, DURABLE, |sample| sample.nanos / 1e9);
    let what = format!("recovery of {} items in at most 3 s", options.items);
    goal(&what, seconds, |seconds| seconds <= 3.0);
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
    let spread =
        |Summary {
             lower,
             median,
             upper,
         }| { format!("{} ({} to {})", short(median), short(lower), short(upper)) };
    summary.map_or_else(|| "–".into(), spread)
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
    let mut cells: Vec<_> = Cell::all().map(Cell::name).collect();
    cells.extend(single::BATCHES.map(single::name));
    cells.extend(backlog::cells());
    cells.push(recovery::NAME.into());
    cells.retain(|cell| results.has(cell));
    let cells: Vec<_> = cells.iter().map(|cell| of_cell(results, cell)).collect();
    let json = json!({
        "machine": machine,
        "rounds": options.rounds,
        "milliseconds": options.length.as_secs_f64() * 1e3,
        "recovered items": options.items,
        "cells": cells,
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
        let values = |value: fn(&Sample) -> f64| {
            let summary = results.summary(cell, contestant.name, value)?;
            Some(json!([summary.lower, summary.median, summary.upper]))
        };
        let latency = results.latency(cell, contestant.name);
        let quantiles = latency.map(|latency| {
            [0.5, 0.9, 0.99, 0.999, 1.0].map(|quantile| latency.value_at_quantile(quantile))
        });
        json!({
            "contestant": contestant.name,
            "commits per second": values(|sample| sample.commits_per_second),
            "nanoseconds per item, calls": values(|sample| sample.call_nanos),
            "nanoseconds per item": values(|sample| sample.nanos),
            "bytes per item": values(|sample| sample.bytes_per_item),
            "latency in nanoseconds at 50, 90, 99, 99.9, 100 %": quantiles,
        })
    };
    json!({ "cell": cell, "contestants": ALL.iter().map(of).collect::<Vec<_>>() })
}
