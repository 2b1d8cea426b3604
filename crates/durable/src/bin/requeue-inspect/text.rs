//! What people and scripts read.

use requeue_durable::{Cause, ItemInfo, LetterInfo, QueueInfo, Reason};
use std::fmt::Write;
use std::time::SystemTime;

/// The causes that dead letters have.
pub(crate) const CAUSES: [Cause; 9] = [
    Cause::Failed(Reason::Aborted),
    Cause::Failed(Reason::Panicked),
    Cause::Failed(Reason::Retried),
    Cause::Failed(Reason::Forgotten),
    Cause::Failed(Reason::Failed),
    Cause::Failed(Reason::Expired),
    Cause::Failed(Reason::TimedOut),
    Cause::Undecodable,
    Cause::Crashed,
];

/// How many characters of an item are shown in a table.
const SHOWN: usize = 60;

pub(crate) fn queues_text(queues: &[QueueInfo]) -> String {
    let width = queues.iter().map(|queue| queue.name.chars().count());
    let width = width.fold("queue".len(), usize::max);
    let mut text = format!(
        "{:width$} {:>10} {:>12}  order\n",
        "queue", "items", "dead letters"
    );
    for queue in queues {
        let closed = if queue.closed { ", closed" } else { "" };
        let QueueInfo {
            name,
            items,
            dead_letters,
            order,
            ..
        } = queue;
        let _ = writeln!(
            text,
            "{name:width$} {items:>10} {dead_letters:>12}  {order}{closed}"
        );
    }
    text
}

pub(crate) fn letters_text(letters: &[LetterInfo]) -> String {
    let mut text = format!(
        "{:>8} {:>8} {:>8} {:>8}  {:<9} error\n",
        "id", "attempts", "age", "bytes", "reason"
    );
    for letter in letters {
        let error = letter.error.as_deref().unwrap_or("");
        let _ = writeln!(
            text,
            "{:>8} {:>8} {:>7}s {:>8}  {:<9} {}",
            letter.id,
            letter.attempts,
            age(letter),
            letter.bytes.len(),
            reason(letter.reason),
            error.escape_debug()
        );
    }
    text
}

pub(crate) const ITEMS_HEAD: &str =
    "      id attempts priority  waits    bytes  content, and the last error\n";

pub(crate) fn item_text(item: &ItemInfo) -> String {
    let priority = item.priority.map_or(String::new(), |it| it.to_string());
    let waits = item.due.max(item.delayed);
    let waits = waits.and_then(|until| until.duration_since(SystemTime::now()).ok());
    let waits = waits.map_or(String::new(), |left| format!("{}s", left.as_secs()));
    let content = item.bytes.escape_ascii().take(SHOWN).map(char::from);
    let mut text = format!(
        "{:>8} {:>8} {priority:>8} {waits:>6} {:>8}  {}",
        item.id,
        item.attempts,
        item.bytes.len(),
        content.collect::<String>(),
    );
    if let Some(error) = &item.error {
        let _ = write!(text, ": {}", error.escape_debug());
    }
    text + "\n"
}

/// In seconds.
fn age(letter: &LetterInfo) -> u64 {
    let age = SystemTime::now().duration_since(letter.died_at);
    age.map_or(0, |age| age.as_secs())
}

pub(crate) fn reason(cause: Cause) -> String {
    match cause {
        Cause::Failed(reason) => format!("{reason:?}").to_lowercase(),
        Cause::Undecodable => "undecodable".into(),
        _ => "crashed".into(),
    }
}

pub(crate) fn list<R>(rows: &[R], row: fn(&R) -> String) -> String {
    let rows: Vec<_> = rows.iter().map(row).collect();
    format!("[{}]\n", rows.join(",\n "))
}

pub(crate) fn queue_json(queue: &QueueInfo) -> String {
    format!(
        "{{\"name\":{},\"items\":{},\"dead_letters\":{},\"closed\":{},\"order\":{}}}",
        string(&queue.name),
        queue.items,
        queue.dead_letters,
        queue.closed,
        string(queue.order)
    )
}

pub(crate) fn letter_json(letter: &LetterInfo) -> String {
    let error = letter.error.as_deref().map_or("null".into(), string);
    format!(
        "{{\"id\":{},\"attempts\":{},\"age_seconds\":{},\"bytes\":{},\"reason\":{},\"error\":{error}}}",
        letter.id,
        letter.attempts,
        age(letter),
        letter.bytes.len(),
        string(&reason(letter.reason))
    )
}

/// A string of JSON.
fn string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
