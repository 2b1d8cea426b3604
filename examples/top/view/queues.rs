//! The tables with a row for each queue.

use ratatui::layout::Rect;
use ratatui::style::{Color, Stylize};
use ratatui::text::Line;
use ratatui::widgets::Cell;
use ratatui::Frame;

use super::super::app::App;
use super::super::history::History;
use super::super::plant::Shop;
use super::{
    block, count, draw_table, number_cell, row_style, seconds, Cells, DEAD, DELAYED, FAINT, HELD,
    READY,
};

/// Number of samples in the small graph of a queue.
const SHOWN: u16 = 28;
/// The invariant at rest.
const LAW: &str = " pushed = ready + held + delayed + committed + dead ";
/// No full block: the graphs of two rows must not touch.
const BARS: [char; 7] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇'];

pub(super) fn draw(frame: &mut Frame, area: Rect, app: &App) {
    let columns = [
        ("queue", 9),
        ("load", 5),
        ("ready", 6),
        ("held", 5),
        ("delayed", 7),
        ("committed", 10),
        ("push/s", 7),
        ("commit/s", 8),
        ("fail/s", 7),
        ("oldest", 8),
        ("depth", SHOWN),
    ];
    draw_table(frame, area, block("queues"), columns, rows(app, row));
}

fn row(shop: &Shop, history: &History) -> [Cell<'static>; 11] {
    let stats = history.latest();
    let rate = |rate: f64, color| number_cell(format!("{rate:.1}"), color);
    let oldest = stats.oldest.map(seconds).unwrap_or_default();
    [
        Cell::from(shop.trade.name()),
        number_cell(format!("{} %", shop.load()), Color::Reset),
        count(stats.ready, READY),
        count(stats.held, HELD),
        count(stats.delayed, DELAYED),
        count(stats.committed, Color::Reset),
        rate(history.rate(|stats| stats.pushed), Color::Reset),
        rate(history.rate(|stats| stats.committed), Color::Reset),
        rate(history.rate(|stats| stats.aborted + stats.expired), DEAD),
        number_cell(oldest, Color::Reset),
        number_cell(bars(history), READY),
    ]
}

/// The last depths of a queue, one character each.
fn bars(history: &History) -> String {
    let depths: Vec<_> = history.depths(SHOWN.into()).collect();
    let most = depths.iter().max().copied().unwrap_or_default().max(8);
    let bar = |depth: u64| {
        let height = (depth * BARS.len() as u64).div_ceil(most);
        usize::try_from(height).ok()?.checked_sub(1)
    };
    let bars = depths
        .into_iter()
        .map(|depth| bar(depth).map_or(' ', |bar| BARS[bar]));
    bars.collect()
}

/// The counts of failed deliveries.
pub(super) fn draw_failures(frame: &mut Frame, area: Rect, app: &App) {
    let columns = [
        ("queue", 9),
        ("aborted", 8),
        ("expired", 8),
        ("dead now", 9),
        ("dead ever", 10),
    ];
    let block = block("failed deliveries").title_bottom(Line::from(LAW).fg(FAINT));
    draw_table(frame, area, block, columns, rows(app, failures));
}

fn failures(shop: &Shop, history: &History) -> [Cell<'static>; 5] {
    let stats = history.latest();
    [
        Cell::from(shop.trade.name()),
        count(stats.aborted, HELD),
        count(stats.expired, HELD),
        count(shop.queue.dead_letters().len(), DEAD),
        count(stats.dead, Color::Reset),
    ]
}

/// The row of each shop; the selected one is highlighted.
fn rows<const N: usize>(
    app: &App,
    row: impl Fn(&Shop, &History) -> [Cell<'static>; N],
) -> Vec<Cells<N>> {
    let shops = app.shops.iter().zip(&app.histories).enumerate();
    shops
        .map(|(index, (shop, history))| (row(shop, history), row_style(index == app.shop)))
        .collect()
}
