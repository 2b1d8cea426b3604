//! A bar for each subject as long as its median, with a line from quartile to quartile.

use crate::results::{Row, Summary, Table};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::error::Error;
use std::path::Path;

const LINE: i32 = 24;
const NAMES: i32 = 210;
const BARS: i32 = 480;
const NUMBERS: i32 = 110;
const OWN: RGBColor = RGBColor(0x1f, 0x77, 0xb4);
const PEER: RGBColor = RGBColor(0xb0, 0xb0, 0xb0);

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// The plot of the guide.
const CHOSEN: [&str; 3] = [
    "stream 2P2C",
    "transactions of 32, 10 % aborted, 2P2C",
    "waiting, bounded, 2P2C",
];

/// Plots the chosen workloads, one below the other.
pub(super) fn chosen(path: &Path, tables: &[Table]) -> Result<(), Box<dyn Error>> {
    let table = |workload| tables.iter().find(|table| table.workload == workload);
    plot(
        path,
        &CHOSEN.into_iter().filter_map(table).collect::<Vec<_>>(),
    )
}

/// Plots tables, one below the other.
pub(super) fn plot(path: &Path, tables: &[&Table]) -> Result<(), Box<dyn Error>> {
    let tables: Vec<_> = tables.iter().map(|table| (table, sorted(table))).collect();
    let lines: usize = tables.iter().map(|(_, rows)| rows.len() + 2).sum();
    let width = u32::try_from(NAMES + BARS + NUMBERS)?;
    let height = u32::try_from(lines * usize::try_from(LINE)?)?;
    let mut rest = SVGBackend::new(path, (width, height)).into_drawing_area();
    rest.fill(&WHITE)?;
    for (table, rows) in tables {
        let (area, below) = rest.split_vertically((i32::try_from(rows.len())? + 2) * LINE);
        bars(&area, table, &rows)?;
        rest = below;
    }
    rest.present()?;
    Ok(())
}

/// The subjects that were measured, the best one first.
fn sorted(table: &Table) -> Vec<(&Row, Summary)> {
    let rows = table.rows.iter();
    let mut rows: Vec<_> = rows.filter_map(|row| Some((row, row.summary()?))).collect();
    rows.sort_by(|(_, a), (_, b)| a.median.total_cmp(&b.median));
    rows
}

fn bars(area: &Area<'_>, table: &Table, rows: &[(&Row, Summary)]) -> Result<(), Box<dyn Error>> {
    let longest = rows.iter().map(|(_, summary)| summary.upper);
    let scale = f64::from(BARS) / longest.fold(f64::MIN_POSITIVE, f64::max);
    let style = |size| ("sans-serif", size).into_font().color(&BLACK);
    let title = format!("{} [{}]", table.workload, table.unit);
    area.draw_text(&title, &style(15), (10, LINE / 2))?;
    for (at, (row, summary)) in rows.iter().enumerate() {
        let middle = (i32::try_from(at)? + 2) * LINE;
        bar(area, row, *summary, scale, middle)?;
        let right = style(13).pos(Pos::new(HPos::Right, VPos::Center));
        area.draw_text(row.subject, &right, (NAMES - 10, middle))?;
        let left = style(13).pos(Pos::new(HPos::Left, VPos::Center));
        let end = NAMES + pixels(summary.upper, scale) + 8;
        area.draw_text(&format!("{:.1}", summary.median), &left, (end, middle))?;
    }
    Ok(())
}

fn bar(
    area: &Area<'_>,
    row: &Row,
    summary: Summary,
    scale: f64,
    middle: i32,
) -> Result<(), Box<dyn Error>> {
    let color = if row.own() { OWN } else { PEER };
    let length = pixels(summary.median, scale);
    let corners = [(NAMES, middle - 8), (NAMES + length, middle + 8)];
    area.draw(&Rectangle::new(corners, color.filled()))?;
    let spread = [summary.lower, summary.upper].map(|value| (NAMES + pixels(value, scale), middle));
    area.draw(&PathElement::new(spread, BLACK))?;
    Ok(())
}

#[allow(clippy::cast_possible_truncation)]
fn pixels(value: f64, scale: f64) -> i32 {
    (value * scale).round() as i32
}
