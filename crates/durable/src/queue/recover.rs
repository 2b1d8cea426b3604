//! Opening a queue: what is on the disk is checked, and comes into memory.

use super::shared::Shared;
use crate::batch::Change;
use crate::error::{Damage, StoreError};
use crate::format::{decode_row, row_digest, Digest, Key, LetterRow, Mark, QueueRow, Schedule};
use crate::log;
use crate::order::{Engine, EntryOf, RamQueue, RamTx, Staging, Wait};
use crate::queue::letters::Cause;
use fjall::{Keyspace, UserKey, UserValue};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// The rows of a queue, as they were found.
pub(super) struct Found {
    pub(super) letters: BTreeMap<u64, LetterRow>,
    marks: HashMap<u64, Mark>,
    letters_digest: Digest,
    marks_digest: Digest,
}

/// Visits the rows of a queue.
pub(super) fn visit(
    rows: &Keyspace,
    queue: u32,
    mut row: impl FnMut(Key, UserKey, UserValue) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let key = |id| Key { queue, id }.to_bytes();
    log::visit(rows, key(0)..=key(u64::MAX), |key, value| {
        let at =
            Key::from_bytes(&key).ok_or_else(|| StoreError::damaged("a key of another length"))?;
        row(at, key, value)
    })
}

impl Found {
    /// Reads what there is of a queue besides its items.
    pub(super) fn read(store: &crate::store::StoreInner, queue: u32) -> Result<Self, StoreError> {
        let disk = store.log.disk();
        let (mut letters, mut letters_digest) = (BTreeMap::new(), Digest::default());
        visit(&disk.tables.letters, queue, |at, key, value| {
            letters_digest.add(at.digest());
            letters.insert(at.id, decode_row(&key, &value)?);
            Ok(())
        })?;
        let (mut marks, mut marks_digest) = (HashMap::new(), Digest::default());
        let mut digests = Vec::new();
        visit(&disk.tables.marks, queue, |at, key, value| {
            let mark = decode_row(&key, &value)?;
            let digest = row_digest(at, &value);
            marks_digest.add(digest);
            digests.push((at, (mark, digest)));
            marks.insert(at.id, mark);
            Ok(())
        })?;
        disk.books().marks.extend(digests);
        Ok(Self {
            letters,
            marks,
            letters_digest,
            marks_digest,
        })
    }
}

/// An item on its way into memory.
struct Recovered<T, O: Engine<T>> {
    entry: EntryOf<T, O>,
    schedule: Option<Schedule>,
    mark: Mark,
}

/// Brings the items of a queue into memory. The queue has none yet.
pub(super) fn recover<T: Send + 'static, O: Engine<T>>(
    shared: &Arc<Shared<T, O>>,
    found: &Found,
    ram: impl FnOnce(&O::Settings, usize) -> RamQueue<T, O>,
) -> Result<RamQueue<T, O>, StoreError> {
    let (items, digest) = read_items(shared, found)?;
    check(shared, found, digest)?;
    forget_strays(shared, found, &items);
    let keys = items.iter().map(|item| &item.entry.key);
    let ram = ram(&O::with_room(&shared.settings, keys), items.len());
    let (mut poison, mut marked, mut ready) = (Vec::new(), Vec::new(), Vec::new());
    for item in items {
        let attempts = item.mark.attempts;
        if shared.max_attempts.is_some_and(|most| attempts >= most) {
            poison.push(item);
        } else if attempts > 0 {
            marked.push(item);
        } else {
            ready.push(item);
        }
    }
    bury(shared, poison)?;
    // All go through one handle, so that they are in one order.
    let tx = deliver_again(shared, &ram, marked);
    drop(push(shared, tx, ready));
    if shared.is_closed_on_disk() {
        ram.close();
    }
    Ok(ram)
}

type Items<T, O> = (Vec<Recovered<T, O>>, Digest);

fn read_items<T: Send + 'static, O: Engine<T>>(
    shared: &Shared<T, O>,
    found: &Found,
) -> Result<Items<T, O>, StoreError> {
    let (mut items, mut digest) = (Vec::new(), Digest::default());
    let rows = &shared.log().disk().tables.items;
    visit(rows, shared.id, |at, key, value| {
        let (schedule, item) = shared.decode(at.id, &key, &value)?;
        digest.add(at.digest());
        let entry = shared.entry(at.id, item, value.len());
        let mark = found.marks.get(&at.id).copied().unwrap_or_default();
        items.push(Recovered {
            entry,
            schedule: mark.schedule.or(schedule),
            mark,
        });
        Ok(())
    })?;
    Ok((items, digest))
}

/// Compares what was found with what the store says that there is.
fn check<T: Send + 'static, O: Engine<T>>(
    shared: &Shared<T, O>,
    found: &Found,
    items: Digest,
) -> Result<(), StoreError> {
    let books = shared.log().disk().books();
    let Some(row) = books.queues.get(&shared.id) else {
        return Ok(());
    };
    let actual = QueueRow {
        items,
        letters: found.letters_digest,
        marks: found.marks_digest,
        ..row.clone()
    };
    if *row == actual {
        return Ok(());
    }
    let counted = |row: &QueueRow| row.items.count.wrapping_add(row.letters.count);
    let (expected, there) = (counted(row), counted(&actual));
    Err(StoreError::Damaged(Damage {
        queue: Some(Arc::clone(&shared.name)),
        missing: expected.saturating_sub(there),
        extra: there.saturating_sub(expected),
        details: "its rows are not those that were committed".into(),
        ..Damage::default()
    }))
}

/// Removes the marks of items that are not there: a mark may have been written after its item was removed.
fn forget_strays<T: Send + 'static, O: Engine<T>>(
    shared: &Shared<T, O>,
    found: &Found,
    items: &[Recovered<T, O>],
) {
    let marked = items
        .iter()
        .filter(|item| found.marks.contains_key(&item.entry.id));
    if marked.count() < found.marks.len() {
        let known: HashSet<u64> = items.iter().map(|item| item.entry.id).collect();
        let strays = found.marks.keys().filter(|id| !known.contains(id));
        shared.note(strays.map(|id| Change::Unmark(shared.key(*id))));
    }
}

/// Items whose deliveries killed the process as often as they may be delivered.
fn bury<T: Send + 'static, O: Engine<T>>(
    shared: &Arc<Shared<T, O>>,
    poison: Vec<Recovered<T, O>>,
) -> Result<(), StoreError> {
    let mut rows = Vec::new();
    for Recovered {
        entry,
        schedule,
        mark,
    } in poison
    {
        let id = entry.id;
        let item_bytes = shared.read_bytes(id)?;
        let letter = LetterRow {
            item: id,
            attempts: mark.attempts,
            reason: Cause::Crashed.to_byte(),
            error: Some("the process died while it held the item".into()),
            died: shared.store.wall_time(),
            schedule,
            item_bytes,
        };
        rows.push((shared.new_ids(1), letter));
    }
    shared.add_letters(rows);
    Ok(())
}

/// Items that were delivered before. A transaction takes each of them as often as it was delivered, and then gives all of
/// them back, so that they are at the head, in their order, or delayed, and the queue in memory knows their deliveries.
fn deliver_again<T: Send + 'static, O: Engine<T>>(
    shared: &Shared<T, O>,
    ram: &RamQueue<T, O>,
    marked: Vec<Recovered<T, O>>,
) -> RamTx<T, O> {
    let (now, tx) = (shared.store.wall_time(), ram.begin_owned());
    let (mut pushing, mut held) = (ram.begin_owned(), Vec::new());
    for item in marked {
        let mark = item.mark;
        pushing = push(shared, pushing, vec![item]);
        // The transaction holds all others, so it takes this one. It takes none that is scheduled for later, and none
        // beyond what may be held: their deliveries are counted anew.
        for _ in 1..mark.attempts {
            if let Ok(item) = tx.pop() {
                let _ = tx.retry_after(item, Duration::ZERO);
            }
        }
        held.extend(tx.pop().ok().map(|item| (item, mark.delayed)));
    }
    // One by one, the last one first: all to the head of one shard. An abort would put those that were not retried to
    // that of another.
    for (item, delayed) in held.into_iter().rev() {
        let _ = match delayed {
            Some(due) => tx.retry_after(item, Duration::from_millis(due.saturating_sub(now))),
            None => tx.retry(item),
        };
    }
    tx.abort();
    pushing
}

/// Pushes items; returns the next transaction of the same handle.
fn push<T: Send + 'static, O: Engine<T>>(
    shared: &Shared<T, O>,
    mut tx: RamTx<T, O>,
    items: Vec<Recovered<T, O>>,
) -> RamTx<T, O> {
    let mut tickets = Vec::new();
    for (index, item) in items.into_iter().enumerate() {
        let id = item.entry.id;
        let place = item.schedule.map(|schedule| shared.place(schedule));
        let ticket = O::Staging::stage(&tx, item.entry, place, Wait::Never);
        let ticket =
            ticket.unwrap_or_else(|_| unreachable!("the queue has room for all its items"));
        tickets.extend(ticket.map(|ticket| (id, ticket)));
        if index % 1024 == 1023 {
            tx = commit::<T, O>(tx);
        }
    }
    if let Some(known) = &shared.tickets {
        known.lock().extend(tickets);
    }
    commit::<T, O>(tx)
}

/// Commits; returns the next transaction of the same handle.
fn commit<T: Send + 'static, O: Engine<T>>(tx: RamTx<T, O>) -> RamTx<T, O> {
    match tx.try_commit() {
        Ok(taken) => taken.begin_owned(),
        Err(_) => unreachable!("it holds nothing whose lease could expire"),
    }
}
