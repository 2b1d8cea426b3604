//! Draws one frame.

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

/// The height of a table's border and header.
const FRAME: u16 = 3;

/// The key bindings, the most important first.
const KEYS: [(&str, &str); 6] = [
    ("q", "quit"),
    ("tab", "queue"),
    ("↑↓", "worker"),
    ("p", "pause, resume"),
    ("r", "requeue dead letters"),
    ("+-", "load"),
];
/// The separators of keys and of columns.
const KEY_SPACING: u16 = 3;
const COLUMN_SPACING: u16 = 1;

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

/// The number of ready items, sample by sample.
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
    let widths = KEYS.map(|(key, what)| length(key.chars().count() + 1 + what.len()));
    let shown = fitting(widths, KEY_SPACING, area.width.saturating_sub(1));
    let mut spans = vec![Span::raw(" ")];
    for (key, what) in KEYS.into_iter().take(shown) {
        spans.push(key.bold());
        spans.push(format!(" {what}   ").fg(FAINT));
    }
    frame.render_widget(Line::from(spans), area);
}

/// The number of leading parts that fit next to each other; at least one.
fn fitting(parts: impl IntoIterator<Item = u16>, spacing: u16, width: u16) -> usize {
    let mut end = 0;
    let ends = parts.into_iter().map(|part| {
        end += part + spacing;
        end - spacing
    });
    ends.take_while(|end| *end <= width).count().max(1)
}

fn block(title: impl Into<String>) -> Block<'static> {
    Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(FAINT)
        .title(format!(" {} ", title.into()).bold().fg(Color::Reset))
}

/// The cells of a row, and its style.
type Cells<const N: usize> = ([Cell<'static>; N], Style);

/// Draws a table whose columns have a name and a width each; the first is text, the others are numbers. Columns that
/// do not fit are omitted.
fn draw_table<const N: usize>(
    frame: &mut Frame,
    area: Rect,
    block: Block<'static>,
    columns: [(&'static str, u16); N],
    rows: Vec<Cells<N>>,
) {
    let widths = columns.map(|(_, width)| width);
    let shown = fitting(widths, COLUMN_SPACING, block.inner(area).width);
    let names = columns.into_iter().enumerate().map(|(index, (name, _))| {
        let name = Line::from(name);
        Cell::from(if index == 0 {
            name
        } else {
            name.right_aligned()
        })
    });
    let rows = rows.into_iter().map(|(cells, style)| {
        let cells = cells.into_iter().take(shown);
        Row::new(cells).style(style)
    });
    let table = Table::new(rows, widths.into_iter().take(shown))
        .header(Row::new(names.take(shown)).fg(FAINT))
        .column_spacing(COLUMN_SPACING);
    frame.render_widget(table.block(block), area);
}

/// The style of a row, selected or not.
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

#[cfg(test)]
mod tests {
    use ratatui::backend::TestBackend;
    use ratatui::Terminal;

    use super::*;

    #[test]
    fn as_many_fit_as_have_room_with_what_is_between_them() {
        for (width, count) in [(12, 3), (11, 2), (7, 2), (6, 1), (0, 1)] {
            assert_eq!(fitting([3, 3, 4], 1, width), count, "{width}");
        }
    }

    fn lines(app: &App, width: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, 32)).unwrap();
        let frame = terminal.draw(|frame| draw(frame, app)).unwrap();
        let text = super::super::text(frame.buffer);
        text.lines().map(str::to_owned).collect()
    }

    /// The words of the first line that is not empty.
    fn words(lines: &[String], first: &str) -> Vec<String> {
        let words = |line: &String| -> Vec<_> {
            let words = line.split([' ', '│']).filter(|word| !word.is_empty());
            words.map(str::to_owned).collect()
        };
        let mut lines = lines.iter().map(words);
        lines
            .find(|words| words.iter().any(|word| word == first))
            .unwrap()
    }

    #[test]
    fn the_view_is_whole_at_all_widths() {
        let app = App::start();
        let wide = lines(&app, 200);
        for (width, queues, workers) in [(80, 9, 8), (100, 10, 9), (120, 11, 9)] {
            let narrow = lines(&app, width);
            assert_eq!(words(&narrow, "load").len(), queues);
            assert_eq!(words(&narrow, "panicked").len(), workers);
        }
        for width in 60..=130 {
            let narrow = lines(&app, width);
            for first in ["load", "state", "quit"] {
                let (all, shown) = (words(&wide, first), words(&narrow, first));
                assert!(all.starts_with(&shown), "{width}: {shown:?} of {all:?}");
            }
        }
    }
}
