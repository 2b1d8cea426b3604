//! Shows the queues of a store with their items and dead letters, and changes them.

mod lines;
mod text;

use requeue_durable::{Inspector, Kind, Store, StoreError};
use std::env;
use std::error::Error;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::ExitCode;
use text::{item_text, letter_json, letters_text, list, queue_json, queues_text, ITEMS_HEAD};

const USAGE: &str = "\
Shows and changes the queues of a store of requeue-durable, which no other process may have open.

    requeue-inspect STORE                       the queues with their counts
    requeue-inspect STORE items QUEUE [NUMBERS] the items of a queue
    requeue-inspect STORE letters QUEUE         its dead letters
    requeue-inspect STORE show QUEUE NUMBER     an item or a dead letter, as a line of JSON
    requeue-inspect STORE export [QUEUE...]     all queues, or these, as lines of JSON
    requeue-inspect STORE import FILE           adds what was exported, to a new store too; - is the standard input
    requeue-inspect STORE requeue QUEUE NUMBER  makes a dead letter an item again
    requeue-inspect STORE requeue QUEUE all     makes all of them items again
    requeue-inspect STORE skip QUEUE NUMBERS    removes items
    requeue-inspect STORE bury QUEUE NUMBERS    makes items dead letters
    requeue-inspect STORE move QUEUE NUMBERS TO moves items to the end of another queue
    requeue-inspect STORE snapshot PATH         copies the store to a new directory, and checks the copy
    requeue-inspect STORE upgrade               makes the store one of the newest version of the format

NUMBERS are those of items in the store: one of them, 3-9, or all.

    --json       prints JSON; items are lines of it
    --letters    skips or moves dead letters instead of items
    --yes        skips, buries or moves; without it, these commands say only what they would do
";

/// The options, and the other arguments.
struct Command<'a> {
    json: bool,
    kind: Kind,
    yes: bool,
    arguments: Vec<&'a str>,
}

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let has = |option| arguments.iter().any(|argument| argument == option);
    let is_option = |argument: &&str| argument.starts_with("--");
    let command = Command {
        json: has("--json"),
        kind: if has("--letters") {
            Kind::DeadLetters
        } else {
            Kind::Items
        },
        yes: has("--yes"),
        arguments: arguments
            .iter()
            .map(|it| &**it)
            .filter(|it| !is_option(it))
            .collect(),
    };
    let known = ["--json", "--letters", "--yes", "--help"];
    let unknown = arguments
        .iter()
        .find(|it| is_option(&&***it) && !known.contains(&&***it));
    if command.arguments.is_empty() || has("--help") {
        print!("{USAGE}");
        return ExitCode::from(if has("--help") { 0 } else { 2 });
    }
    let mut out = BufWriter::new(io::stdout().lock());
    let done = match unknown {
        Some(option) => Err(format!("unknown option {option}\n\n{USAGE}").into()),
        None => command.run(&mut out),
    };
    match done.and_then(|()| Ok(out.flush()?)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("requeue-inspect: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Opens a store that is there.
fn open(path: &str) -> Result<Store, Box<dyn Error>> {
    if !Path::new(path).join("version").is_file() {
        return Err(format!("there is no store in {path:?}").into());
    }
    Ok(Store::open(path)?)
}

impl Command<'_> {
    fn run(&self, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
        let path = self.arguments[0];
        if let ["import", file] = self.arguments[1..] {
            return import(path, file).and_then(|count| self.count("imported", count, out));
        }
        let store = open(path)?;
        let inspector = store.inspector();
        match self.arguments[1..] {
            [] => {
                let queues = inspector.queues()?;
                let text = if self.json {
                    list(&queues, queue_json)
                } else {
                    queues_text(&queues)
                };
                out.write_all(text.as_bytes())?;
            }
            ["items", queue] => self.items(&inspector, queue, "all", out)?,
            ["items", queue, ids] => self.items(&inspector, queue, ids, out)?,
            ["letters", queue] => {
                let letters = inspector.dead_letters(queue)?;
                let text = if self.json {
                    list(&letters, letter_json)
                } else {
                    letters_text(&letters)
                };
                out.write_all(text.as_bytes())?;
            }
            ["show", queue, id] => show(&inspector, queue, id, out)?,
            ["export", ref queues @ ..] => lines::export(&inspector, queues, out)?,
            ["requeue", queue, which] => {
                self.count("requeued", requeue(&inspector, queue, which)?, out)?;
            }
            ["skip" | "bury" | "move", ..] => self.change(&inspector, out)?,
            ["snapshot", to] => {
                store.snapshot_to(to)?;
                writeln!(out, "copied to {to:?}")?;
            }
            ["upgrade"] => writeln!(out, "version {}", store.upgrade()?)?,
            _ => return Err(format!("unknown arguments\n\n{USAGE}").into()),
        }
        Ok(())
    }

    /// Says how many there were.
    fn count(&self, done: &str, count: usize, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
        if self.json {
            let done = done.replace(' ', "_");
            Ok(writeln!(out, "{{\"{done}\":{count}}}")?)
        } else {
            Ok(writeln!(out, "{count} {done}")?)
        }
    }

    fn items(
        &self,
        inspector: &Inspector,
        queue: &str,
        ids: &str,
        out: &mut impl Write,
    ) -> Result<(), Box<dyn Error>> {
        let items = inspector.items(queue, numbers(ids)?)?;
        if !self.json {
            out.write_all(ITEMS_HEAD.as_bytes())?;
        }
        for item in items {
            let item = item?;
            if self.json {
                lines::write_item(&item, out)?;
            } else {
                out.write_all(item_text(&item).as_bytes())?;
            }
        }
        Ok(())
    }

    /// Skips, buries or moves, or says how many that would be.
    fn change(&self, inspector: &Inspector, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
        let (verb, queue, ids, to) = match self.arguments[1..] {
            [verb @ ("skip" | "bury"), queue, ids] => (verb, queue, ids, queue),
            ["move", queue, ids, to] if queue != to => ("move", queue, ids, to),
            _ => return Err(format!("unknown arguments\n\n{USAGE}").into()),
        };
        if (verb, self.kind) == ("bury", Kind::DeadLetters) {
            return Err("dead letters are buried already".into());
        }
        let ids = numbers(ids)?;
        let done = match verb {
            "skip" => "removed",
            "bury" => "buried",
            _ => "moved",
        };
        if !self.yes {
            if inspector.queues()?.iter().all(|queue| queue.name != to) {
                return Err(StoreError::NoQueue(to.into()).into());
            }
            let count = match self.kind {
                Kind::Items => inspector.items(queue, ids)?.count(),
                Kind::DeadLetters => {
                    let letters = inspector.dead_letters(queue)?;
                    letters
                        .iter()
                        .filter(|letter| ids.contains(&letter.id))
                        .count()
                }
            };
            return self.count(&format!("would be {done} with --yes"), count, out);
        }
        let count = match verb {
            "skip" => inspector.remove(queue, self.kind, ids)?,
            "bury" => inspector.bury(queue, ids, "buried by requeue-inspect")?,
            _ => inspector.move_to(queue, self.kind, ids, to)?,
        };
        self.count(done, count, out)
    }
}

/// A number, several in a row, or all.
fn numbers(text: &str) -> Result<RangeInclusive<u64>, Box<dyn Error>> {
    let (first, last) = match text.split_once('-') {
        _ if text == "all" => return Ok(0..=u64::MAX),
        Some((first, last)) => (first.parse(), last.parse()),
        None => (text.parse(), text.parse()),
    };
    match (first, last) {
        (Ok(first), Ok(last)) if first <= last => Ok(first..=last),
        _ => Err(format!("{text:?} is neither a number, nor two like 3-9, nor \"all\"").into()),
    }
}

fn show(
    inspector: &Inspector,
    queue: &str,
    id: &str,
    out: &mut impl Write,
) -> Result<(), Box<dyn Error>> {
    let id: u64 = id.parse().map_err(|_| format!("{id:?} is no number"))?;
    if let Some(item) = inspector.items(queue, id..=id)?.next() {
        return lines::write_item(&item?, out);
    }
    let letters = inspector.dead_letters(queue)?;
    let letter = letters.iter().find(|letter| letter.id == id);
    let letter = letter.ok_or_else(|| format!("the queue {queue:?} has no number {id}"))?;
    lines::write_letter(letter, out)
}

fn import(path: &str, file: &str) -> Result<usize, Box<dyn Error>> {
    if file == "-" {
        return lines::import(&Store::open(path)?.inspector(), io::stdin().lock());
    }
    let opened = File::open(file).map_err(|error| format!("{file:?}: {error}"))?;
    lines::import(&Store::open(path)?.inspector(), BufReader::new(opened))
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
