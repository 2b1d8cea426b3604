//! The medians as tables of documents.

use crate::calls;
use crate::results::{Row, Table};

/// Tables for the README, the guide and `docs/performance.md`: workloads, and subjects as columns.
const CHOSEN: [(&[&str], &[&str]); 5] = [
    (
        &[
            "pairs, 1 thread",
            "stream 2P2C",
            "batches of 32, 2P2C",
            "transactions of 32, 10 % aborted, 2P2C",
            "bounded, trying, 2P2C",
            "waiting, bounded, 2P2C",
            "round trip, 2 threads",
            "round trip, 2 tasks on 2 threads",
            "push, pop, Empty after dropped handles: 1 handle",
        ],
        &[
            "requeue",
            "requeue, transaction",
            "crossbeam-channel",
            "kanal",
            "tokio mpsc",
            "moodycamel, tokens",
            "Mutex<VecDeque>, map",
        ],
    ),
    (
        &[
            "pairs, 1 thread",
            "stream 1P1C",
            "stream 2P2C",
            "stream 4P4C",
            "stream 1P3C",
            "stream 3P1C",
            "batches of 32, 1 thread",
            "batches of 32, 2P2C",
        ],
        &[
            "requeue",
            "requeue, transaction",
            "requeue, no handle",
            "SegQueue",
            "crossbeam-channel",
            "kanal",
            "moodycamel, tokens",
            "Mutex<VecDeque>",
        ],
    ),
    (
        &[
            "bounded, trying, 2P2C",
            "waiting, unbounded, 1P1C",
            "waiting, bounded, 2P2C",
            "round trip, 2 threads",
            "round trip, 2 tasks on 1 thread",
            "round trip, 2 tasks on 2 threads",
            "wake a sleeping thread",
            "wake a sleeping task",
        ],
        &[
            "requeue",
            "crossbeam-channel",
            "flume",
            "kanal",
            "async-channel",
            "std mpsc",
            "tokio mpsc",
        ],
    ),
    (
        &[
            "fair, 1,000 keys, 2P2C",
            "priority, 9,999 priorities, 2P2C",
            "orders, pairs, 1 thread",
        ],
        &[
            "requeue, fair",
            "Mutex<HashMap>",
            "requeue, priority",
            "Mutex<BinaryHeap>",
            "crossbeam-skiplist",
        ],
    ),
    (
        &[
            "stickiness, stream 2P2C",
            "stickiness, stream 4P4C",
            "stickiness, rank error, 2P2C: mean",
            "stickiness, rank error, 2P2C: max",
            "stickiness, rank error, 4P4C: mean",
            "stickiness, rank error, 4P4C: max",
            "stickiness, rank error, 2 handles of 1 thread: mean",
            "stickiness, rank error, 2 handles of 1 thread: max",
            "stickiness, rank error, 2 handles of 1 thread: displacement",
        ],
        &[
            "requeue, stickiness 1",
            "requeue, stickiness 4",
            "requeue, stickiness 16",
            "requeue, stickiness 64",
            "requeue, stickiness 256",
            "requeue, stickiness 1024",
            "requeue, unlimited",
        ],
    ),
];

/// The chosen workloads and subjects.
pub(super) fn chosen(tables: &[Table]) -> String {
    let table = |(workloads, subjects): &(&[&str], &[&str])| {
        let names = ["workload"].into_iter().chain(subjects.iter().copied());
        let head = line(names.clone().map(escaped));
        let rule = line(names.map(|_| "---".into()));
        let rows = workloads.iter().filter_map(|workload| {
            let table = tables.iter().find(|table| table.workload == *workload)?;
            let median = |subject: &&str| table.row(subject).and_then(Row::median);
            let cells = subjects
                .iter()
                .map(|subject| or_dash(median(subject).map(short)));
            Some(line([escaped(workload)].into_iter().chain(cells)))
        });
        [head, rule].into_iter().chain(rows).collect::<String>()
    };
    CHOSEN.iter().map(table).collect::<Vec<_>>().join("\n")
}

/// One line for each table: the medians with their quartiles, the best ranked peer, and the ratio of the first subject
/// to it.
pub(super) fn summary(tables: &[Table]) -> String {
    let head = "| workload | unit | requeue | transaction | no handle | best peer | ratio |\n|---|---|---|---|---|---|---|\n";
    let lines: String = tables.iter().map(summary_line).collect();
    format!("{head}{lines}{}", calls_summary(tables))
}

/// The system calls for 1,000 items, one line for each subject of a workload in which they are shown.
fn calls_summary(tables: &[Table]) -> String {
    let names = ["workload", "subject"].into_iter().chain(calls::NAMES);
    let head = line(names.clone().map(escaped));
    let rule = line(names.map(|_| "---".into()));
    let rows = tables.iter().flat_map(|table| {
        let rows = table.calls().into_iter();
        rows.map(|(subject, numbers)| {
            let cells = [escaped(&table.workload), escaped(subject)];
            line(cells.into_iter().chain(numbers.map(short)))
        })
    });
    let rows = rows.collect::<String>();
    if rows.is_empty() {
        return rows;
    }
    format!("\nFor 1,000 items:\n\n{head}{rule}{rows}")
}

fn summary_line(table: &Table) -> String {
    let spread = |row: Option<&Row>| or_dash(row.map(spread));
    let best = table.best(Row::ranked_peer);
    let first = table.rows.first();
    let ratio = first.and_then(Row::median).zip(best);
    line([
        table.workload.clone(),
        table.unit.into(),
        spread(first),
        spread(table.row("requeue, transaction")),
        spread(table.row("requeue, no handle")),
        or_dash(best.map(|(peer, _)| format!("{}: {}", escaped(peer), spread(table.row(peer))))),
        or_dash(ratio.map(|(own, (_, least))| format!("{:.2}", own / least))),
    ])
}

fn line(cells: impl IntoIterator<Item = String>) -> String {
    let cells: Vec<_> = cells.into_iter().collect();
    format!("| {} |\n", cells.join(" | "))
}

fn escaped(text: &str) -> String {
    text.replace('<', "&lt;").replace('>', "&gt;")
}

fn or_dash(cell: Option<String>) -> String {
    cell.unwrap_or_else(|| "–".into())
}

fn spread(row: &Row) -> String {
    let summary = row.summary().map(|summary| {
        let [lower, median, upper] = [summary.lower, summary.median, summary.upper].map(short);
        format!("{median} ({lower} to {upper})")
    });
    summary.unwrap_or_else(|| "lost items".into())
}

/// Three significant digits.
fn short(value: f64) -> String {
    match value {
        _ if value < 10.0 => format!("{value:.2}"),
        _ if value < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}
