//! One frame.

mod queues;
mod workers;

use std::time::Duration;

use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Cell, Row, Sparkline, Table};
use ratatui::Frame;

use super::app::App;

const READY: Color = Color::LightGreen;
const HELD: Color = Color::LightYellow;
const DELAYED: Color = Color::LightBlue;
const DEAD: Color = Color::LightRed;
const FAINT: Color = Color::DarkGray;

/// What the frame of a table takes: its border and its header.
const FRAME: u16 = 3;

/// What the keys do.
const KEYS: [(&str, &str); 6] = [
    ("tab", "queue"),
    ("↑↓", "worker"),
    ("p", "pause, resume"),
    ("r", "requeue dead letters"),
    ("+-", "load"),
    ("q", "quit"),
];

pub(crate) fn draw(frame: &mut Frame, app: &App) {
    let workers: usize = app.shops.iter().map(|shop| shop.trade.workers()).sum();
    let [title, queues, middle, crew, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(FRAME + length(app.shops.len())),
        Constraint::Min(0),
        Constraint::Length(FRAME + length(workers)),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let [depth, failures] =
        Layout::horizontal([Constraint::Min(0), Constraint::Length(56)]).areas(middle);

    draw_title(frame, title, app);
    queues::draw(frame, queues, app);
    draw_depth(frame, depth, app);
    queues::draw_failures(frame, failures, app);
    workers::draw(frame, crew, app);
    draw_keys(frame, keys);
}

fn draw_title(frame: &mut Frame, area: Rect, app: &App) {
    let title = Line::from(vec![
        " requeue top ".bold().reversed(),
        format!("  up {}  ", seconds(app.uptime())).into(),
        app.message.as_str().fg(HELD),
    ]);
    frame.render_widget(title, area);
}

/// How many items were ready, sample by sample.
fn draw_depth(frame: &mut Frame, area: Rect, app: &App) {
    let block = block(format!("ready in {}", app.shops[app.shop].trade.name()));
    let history = &app.histories[app.shop];
    let depths: Vec<_> = history.depths(block.inner(area).width.into()).collect();
    let most = depths.iter().max().copied().unwrap_or_default();
    let block = block.title_top(
        Line::from(format!(" most {most} "))
            .right_aligned()
            .fg(FAINT),
    );
    let graph = Sparkline::default().data(depths).max(most.max(8)).fg(READY);
    frame.render_widget(graph.block(block), area);
}

fn draw_keys(frame: &mut Frame, area: Rect) {
    let mut spans = vec![Span::raw(" ")];
    for (key, what) in KEYS {
        spans.push(key.bold());
        spans.push(format!(" {what}   ").fg(FAINT));
    }
    frame.render_widget(Line::from(spans), area);
}

fn block(title: impl Into<String>) -> Block<'static> {
    Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(FAINT)
        .title(format!(" {} ", title.into()).bold().fg(Color::Reset))
}

/// A table whose columns have a name and a width each; the first is a text, the others are numbers.
fn table<const N: usize>(
    columns: [(&'static str, u16); N],
    rows: Vec<Row<'static>>,
) -> Table<'static> {
    let widths = columns.map(|(_, width)| Constraint::Length(width));
    let names = columns.into_iter().enumerate().map(|(index, (name, _))| {
        let name = Line::from(name);
        Cell::from(if index == 0 {
            name
        } else {
            name.right_aligned()
        })
    });
    Table::new(rows, widths).header(Row::new(names).fg(FAINT))
}

/// How the row of what is selected, or is not, looks.
fn row_style(selected: bool) -> Style {
    if selected {
        Style::new()
            .bg(Color::Indexed(236))
            .add_modifier(Modifier::BOLD)
    } else {
        Style::new()
    }
}

/// A number, faint if it is zero.
fn count(number: impl TryInto<u64>, color: Color) -> Cell<'static> {
    let number = number.try_into().unwrap_or(u64::MAX);
    number_cell(number.to_string(), if number == 0 { FAINT } else { color })
}

fn number_cell(number: String, color: Color) -> Cell<'static> {
    Cell::from(Line::from(number).right_aligned()).fg(color)
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

fn length(rows: usize) -> u16 {
    u16::try_from(rows).unwrap_or(u16::MAX)
}
