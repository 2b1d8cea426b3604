//! Queues as lines of JSON: one for a queue, followed by one for each of its items and dead letters.

use crate::text::{reason, CAUSES};
use requeue_durable::{Inspector, ItemInfo, LetterInfo, QueueInfo, Record};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::error::Error;
use std::fmt::Write as _;
use std::io::{BufRead, Write};
use std::mem;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How many records are imported in one commit at most, and with how many bytes.
const RECORDS: usize = 1_000;
const BYTES: usize = 16 << 20;

/// A line. It has `queue`, `item` or `letter`. Times are in milliseconds since the Unix epoch.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Line<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    closed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    letter: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    due: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delayed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pushed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    died: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The bytes of an item that are a text of JSON, as they are.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    json: Option<&'a RawValue>,
    /// Those of any other, two digits each.
    #[serde(skip_serializing_if = "Option::is_none")]
    hex: Option<String>,
}

impl<'a> Line<'a> {
    fn queue(queue: &QueueInfo) -> Self {
        Self {
            queue: Some(queue.name.clone()),
            order: Some(queue.order.to_owned()),
            closed: Some(queue.closed),
            ..Self::default()
        }
    }

    fn item(item: &'a ItemInfo) -> Self {
        Self {
            item: Some(item.id),
            attempts: Some(item.attempts),
            priority: item.priority,
            due: item.due.map(millis),
            delayed: item.delayed.map(millis),
            pushed: item.pushed.map(millis),
            error: item.error.clone(),
            ..Self::content(&item.bytes)
        }
    }

    fn letter(letter: &'a LetterInfo) -> Self {
        Self {
            letter: Some(letter.id),
            attempts: Some(letter.attempts),
            priority: letter.priority,
            due: letter.due.map(millis),
            died: Some(millis(letter.died_at)),
            reason: Some(reason(letter.reason)),
            error: letter.error.clone(),
            ..Self::content(&letter.bytes)
        }
    }

    fn content(bytes: &'a [u8]) -> Self {
        let json = json(bytes);
        Self {
            json,
            hex: json.is_none().then(|| to_hex(bytes)),
            ..Self::default()
        }
    }

    fn bytes(&self) -> Result<Vec<u8>, Box<dyn Error>> {
        match (self.json, &self.hex) {
            (Some(json), None) => Ok(json.get().into()),
            (None, Some(hex)) => from_hex(hex).ok_or_else(|| "hex has pairs of digits".into()),
            _ => Err("a record has either json or hex".into()),
        }
    }

    /// The item or dead letter of a line.
    fn record(&self) -> Result<Record, Box<dyn Error>> {
        let (bytes, attempts) = (self.bytes()?, self.attempts.unwrap_or(0));
        if self.item.is_some() {
            let mut item = ItemInfo::new(bytes);
            item.attempts = attempts;
            item.priority = self.priority;
            item.error.clone_from(&self.error);
            (item.due, item.delayed, item.pushed) =
                (time(self.due)?, time(self.delayed)?, time(self.pushed)?);
            return Ok(Record::Item(item));
        }
        let name = self.reason.as_deref();
        let mut causes = CAUSES.into_iter();
        let cause = causes.find(|cause| name == Some(&*reason(*cause)));
        let cause = cause.ok_or("a dead letter has a reason")?;
        let died = time(self.died)?.ok_or("a dead letter has a time")?;
        let mut letter = LetterInfo::new(bytes, cause, died);
        letter.attempts = attempts;
        (letter.priority, letter.due) = (self.priority, time(self.due)?);
        letter.error.clone_from(&self.error);
        Ok(Record::DeadLetter(letter))
    }

    fn write(&self, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
        serde_json::to_writer(&mut *out, self)?;
        Ok(out.write_all(b"\n")?)
    }
}

pub(crate) fn write_item(item: &ItemInfo, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    Line::item(item).write(out)
}

pub(crate) fn write_letter(
    letter: &LetterInfo,
    out: &mut impl Write,
) -> Result<(), Box<dyn Error>> {
    Line::letter(letter).write(out)
}

/// Bytes that are one line of JSON, without space around it.
fn json(bytes: &[u8]) -> Option<&RawValue> {
    let json: &RawValue = serde_json::from_slice(bytes).ok()?;
    let is_exact = json.get().as_bytes() == bytes && !bytes.contains(&b'\n');
    is_exact.then_some(json)
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

fn from_hex(hex: &str) -> Option<Vec<u8>> {
    let digit = |digit: char| u8::try_from(digit.to_digit(16)?).ok();
    let digits: Vec<_> = hex.chars().map(digit).collect::<Option<_>>()?;
    let (pairs, []) = digits.as_chunks() else {
        return None;
    };
    Some(pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn time(millis: Option<u64>) -> Result<Option<SystemTime>, &'static str> {
    let time = |millis| UNIX_EPOCH.checked_add(Duration::from_millis(millis));
    let time = |millis| time(millis).ok_or("a time is too late");
    millis.map(time).transpose()
}

/// Writes these queues, or all.
pub(crate) fn export(
    inspector: &Inspector,
    names: &[&str],
    out: &mut impl Write,
) -> Result<(), Box<dyn Error>> {
    let mut queues = inspector.queues()?;
    if let Some(name) = names
        .iter()
        .find(|name| queues.iter().all(|it| it.name != **name))
    {
        return Err(format!("the store has no queue {name:?}").into());
    }
    queues.retain(|queue| names.is_empty() || names.contains(&&*queue.name));
    for queue in &queues {
        Line::queue(queue).write(out)?;
        for item in inspector.items(&queue.name, ..)? {
            write_item(&item?, out)?;
        }
        for letter in inspector.dead_letters(&queue.name)? {
            write_letter(&letter, out)?;
        }
    }
    Ok(())
}

/// Adds what was exported; returns how many items and dead letters that is.
pub(crate) fn import(inspector: &Inspector, lines: impl BufRead) -> Result<usize, Box<dyn Error>> {
    let mut import = Import {
        inspector,
        queue: None,
        records: Vec::new(),
        bytes: 0,
        count: 0,
    };
    for (number, line) in lines.lines().enumerate() {
        let added = line.map_err(Into::into).and_then(|line| import.line(&line));
        added.map_err(|error| {
            let (line, count) = (number + 1, import.count);
            format!("line {line}: {error}; {count} records before it were imported")
        })?;
    }
    import.flush()?;
    Ok(import.count)
}

struct Import<'i> {
    inspector: &'i Inspector,
    queue: Option<String>,
    /// Those that are not written yet, and how many bytes they have.
    records: Vec<Record>,
    bytes: usize,
    /// How many are written.
    count: usize,
}

impl Import<'_> {
    fn line(&mut self, line: &str) -> Result<(), Box<dyn Error>> {
        if line.trim().is_empty() {
            return Ok(());
        }
        let content: Line<'_> = serde_json::from_str(line)?;
        match (&content.queue, content.item.or(content.letter)) {
            (Some(queue), None) => {
                self.flush()?;
                let order = content.order.as_deref().ok_or("a queue has an order")?;
                let closed = content.closed.unwrap_or(false);
                self.inspector.create(queue, order, closed)?;
                self.queue.clone_from(&content.queue);
            }
            (None, Some(_)) if self.queue.is_some() => {
                self.records.push(content.record()?);
                self.bytes += line.len();
                if self.records.len() >= RECORDS || self.bytes >= BYTES {
                    self.flush()?;
                }
            }
            (None, Some(_)) => return Err("no line names the queue".into()),
            _ => return Err("a line has one of queue, item and letter".into()),
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Box<dyn Error>> {
        if let Some(queue) = &self.queue {
            let records = mem::take(&mut self.records);
            self.count += self.inspector.insert(queue, records)?;
            self.bytes = 0;
        }
        Ok(())
    }
}
