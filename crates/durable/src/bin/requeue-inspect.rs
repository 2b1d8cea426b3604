//! Shows the queues of a store and their dead letters, and requeues these.

use requeue_durable::{Cause, Inspector, LetterInfo, QueueInfo, Store};
use std::env;
use std::error::Error;
use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

const USAGE: &str = "\
Shows the queues of a store of requeue-durable, which no other process may have open.

    requeue-inspect STORE                     the queues with their counts
    requeue-inspect STORE letters QUEUE       the dead letters of a queue
    requeue-inspect STORE requeue QUEUE ID    makes a dead letter an item again
    requeue-inspect STORE requeue QUEUE all   makes all of them items again

    --json    prints JSON
";

fn main() -> ExitCode {
    let mut arguments: Vec<_> = env::args().skip(1).collect();
    let json = arguments.iter().any(|argument| argument == "--json");
    arguments.retain(|argument| argument != "--json");
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    if arguments.is_empty() || arguments.contains(&"--help") {
        print!("{USAGE}");
        return ExitCode::from(if arguments.is_empty() { 2 } else { 0 });
    }
    match run(&arguments, json) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("requeue-inspect: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[&str], json: bool) -> Result<String, Box<dyn Error>> {
    let inspector = open(arguments[0])?;
    Ok(match (&arguments[1..], json) {
        ([], true) => list(&inspector.queues()?, queue_json),
        ([], false) => queues_text(&inspector.queues()?),
        (["letters", queue], true) => list(&inspector.dead_letters(queue)?, letter_json),
        (["letters", queue], false) => letters_text(&inspector.dead_letters(queue)?),
        (["requeue", queue, which], _) => {
            let count = requeue(&inspector, queue, which)?;
            if json {
                format!("{{\"requeued\":{count}}}\n")
            } else {
                format!("{count} requeued\n")
            }
        }
        _ => return Err(format!("unknown arguments\n\n{USAGE}").into()),
    })
}

/// Opens a store that is there.
fn open(path: &str) -> Result<Inspector, Box<dyn Error>> {
    if !Path::new(path).join("version").is_file() {
        return Err(format!("there is no store in {path:?}").into());
    }
    Ok(Store::open(path)?.inspector())
}

fn requeue(inspector: &Inspector, queue: &str, which: &str) -> Result<usize, Box<dyn Error>> {
    if which == "all" {
        return Ok(inspector.requeue_all(queue)?);
    }
    let id = which
        .parse()
        .map_err(|_| format!("{which:?} is neither a number nor \"all\""))?;
    if inspector.requeue(queue, id)? {
        Ok(1)
    } else {
        Err(format!("the queue {queue:?} has no dead letter {id}").into())
    }
}

fn queues_text(queues: &[QueueInfo]) -> String {
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

fn letters_text(letters: &[LetterInfo]) -> String {
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
            reason(letter),
            error.escape_debug()
        );
    }
    text
}

/// In seconds.
fn age(letter: &LetterInfo) -> u64 {
    let age = SystemTime::now().duration_since(letter.died_at);
    age.map_or(0, |age| age.as_secs())
}

fn reason(letter: &LetterInfo) -> String {
    match letter.reason {
        Cause::Failed(reason) => format!("{reason:?}").to_lowercase(),
        Cause::Undecodable => "undecodable".into(),
        _ => "crashed".into(),
    }
}

fn list<R>(rows: &[R], row: fn(&R) -> String) -> String {
    let rows: Vec<_> = rows.iter().map(row).collect();
    format!("[{}]\n", rows.join(",\n "))
}

fn queue_json(queue: &QueueInfo) -> String {
    format!(
        "{{\"name\":{},\"items\":{},\"dead_letters\":{},\"closed\":{},\"order\":{}}}",
        string(&queue.name),
        queue.items,
        queue.dead_letters,
        queue.closed,
        string(queue.order)
    )
}

fn letter_json(letter: &LetterInfo) -> String {
    let error = letter.error.as_deref().map_or("null".into(), string);
    format!(
        "{{\"id\":{},\"attempts\":{},\"age_seconds\":{},\"bytes\":{},\"reason\":{},\"error\":{error}}}",
        letter.id,
        letter.attempts,
        age(letter),
        letter.bytes.len(),
        string(&reason(letter))
    )
}

/// A string of JSON.
fn string(text: &str) -> String {
    let mut json = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => json.extend(['\\', letter]),
            '\u{0}'..='\u{1f}' => {
                let _ = write!(json, "\\u{:04x}", u32::from(letter));
            }
            _ => json.push(letter),
        }
    }
    json + "\""
}
