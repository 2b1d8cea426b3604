//! The table of workers.

use std::time::Instant;

use ratatui::layout::Rect;
use ratatui::style::{Color, Stylize};
use ratatui::text::Line;
use ratatui::widgets::Cell;
use ratatui::Frame;
use requeue::{Held, WorkerState, WorkerStatus};

use super::super::app::App;
use super::super::plant::Shop;
use super::{
    block, count, draw_table, number_cell, row_style, seconds, Cells, DEAD, FAINT, HELD, READY,
};

const COLUMNS: usize = 9;

pub(super) fn draw(frame: &mut Frame, area: Rect, app: &App) {
    let columns = [
        ("worker", 12),
        ("state", 9),
        ("for", 8),
        ("done", 9),
        ("failed", 8),
        ("panicked", 9),
        ("holds", 7),
        ("since", 8),
        ("thread", 14),
    ];
    let mut rows = Vec::new();
    for (index, shop) in app.shops.iter().enumerate() {
        let selected = (index == app.shop).then_some(app.worker);
        add_rows(&mut rows, shop, selected);
    }
    draw_table(frame, area, block("workers"), columns, rows);
}

/// A row for each worker of a shop.
fn add_rows(rows: &mut Vec<Cells<COLUMNS>>, shop: &Shop, selected: Option<usize>) {
    let held = shop.queue.held();
    let now = shop.queue.now();
    for (index, (worker, paused)) in shop.workers().enumerate() {
        let held = held
            .iter()
            .find(|held| held.worker.as_ref() == Some(&worker.name));
        let row = row(&worker, paused, held, now);
        rows.push((row, row_style(selected == Some(index))));
    }
}

fn row(
    worker: &WorkerStatus,
    paused: bool,
    held: Option<&Held>,
    now: Instant,
) -> [Cell<'static>; COLUMNS] {
    let age = |since: Option<Instant>| {
        let age = since.map(|since| seconds(now.saturating_duration_since(since)));
        number_cell(age.unwrap_or_default(), Color::Reset)
    };
    let busy = match worker.state {
        WorkerState::Busy { since } => Some(since),
        _ => None,
    };
    let thread = held.and_then(|held| held.thread);
    [
        Cell::from(worker.name.to_string()),
        state(worker.state, paused),
        age(busy),
        count(worker.done, Color::Reset),
        count(worker.failed, HELD),
        count(worker.panicked, DEAD),
        count(held.map_or(0, |held| held.items), HELD),
        age(held.and_then(|held| held.since)),
        number_cell(
            thread.map(|id| format!("{id:?}")).unwrap_or_default(),
            FAINT,
        ),
    ]
}

fn state(state: WorkerState, paused: bool) -> Cell<'static> {
    let (state, color) = match state {
        WorkerState::Busy { .. } if paused => ("pausing", HELD),
        WorkerState::Busy { .. } => ("busy", READY),
        WorkerState::Paused => ("paused", DEAD),
        WorkerState::Stopped => ("stopped", DEAD),
        _ => ("idle", FAINT),
    };
    Cell::from(Line::from(state).right_aligned()).fg(color)
}
