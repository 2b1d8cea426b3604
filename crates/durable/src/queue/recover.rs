//! Opening a queue: what is on the disk is checked, and comes into memory.

use super::shared::Shared;
use crate::error::{Damage, StoreError};
use crate::format::{decode_row, row_digest, Digest, Key, LetterRow, Mark, QueueRow, Schedule};
use crate::order::{Engine, EntryOf, Place, RamQueue, RamTx, Wait};
use crate::queue::letters::Cause;
use fjall::{Keyspace, UserKey, UserValue};
use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

/// The rows of a queue, as they were found.
pub(super) struct Found {
    pub(super) letters: BTreeMap<u64, LetterRow>,
    marks: HashMap<u64, Mark>,
    unreadable: u64,
    letters_digest: Digest,
    marks_digest: Digest,
}

/// Visits the rows of a queue. What the storage engine cannot read is skipped if `accept_damage`; returns how often.
fn visit(
    rows: &Keyspace,
    queue: u32,
    accept_damage: bool,
    mut row: impl FnMut(Key, UserKey, UserValue) -> Result<(), StoreError>,
) -> Result<u64, StoreError> {
    let (mut first, mut skipped, mut step) = (0_u64, 0, 1_u64);
    'again: loop {
        let range: RangeInclusive<[u8; 12]> = Key { queue, id: first }.to_bytes()..=Key {
            queue,
            id: u64::MAX,
        }
        .to_bytes();
        for guard in rows.range(range) {
            match guard.into_inner() {
                Ok((key, value)) => {
                    let at = Key::from_bytes(&key)
                        .ok_or_else(|| StoreError::damaged("a key of another length"))?;
                    (first, step) = (at.id.saturating_add(1), 1);
                    row(at, key, value)?;
                }
                Err(error) if !accept_damage => return Err(error.into()),
                Err(_) => {
                    skipped += 1;
                    let Some(next) = first.checked_add(step) else {
                        return Ok(skipped);
                    };
                    (first, step) = (next, step.saturating_mul(2));
                    continue 'again;
                }
            }
        }
        return Ok(skipped);
    }
}

impl Found {
    /// Reads what there is of a queue besides its items.
    pub(super) fn read(store: &crate::store::StoreInner, queue: u32) -> Result<Self, StoreError> {
        let accept = store.accept_damage;
        let disk = store.log.disk();
        let mut found = Self {
            letters: BTreeMap::new(),
            marks: HashMap::new(),
            unreadable: 0,
            letters_digest: Digest::default(),
            marks_digest: Digest::default(),
        };
        let mut digests = Vec::new();
        let Self {
            letters,
            marks,
            unreadable,
            letters_digest,
            marks_digest,
        } = &mut found;
        let skipped = visit(&disk.letters, queue, accept, |at, key, value| {
            match decode_row(&key, &value) {
                Ok(letter) => {
                    letters_digest.add(at.digest());
                    letters.insert(at.id, letter);
                }
                Err(error) if !accept => return Err(error),
                Err(_) => *unreadable += 1,
            }
            Ok(())
        })?;
        *unreadable += skipped;
        let skipped = visit(&disk.marks, queue, accept, |at, key, value| {
            match decode_row(&key, &value) {
                Ok(mark) => {
                    let digest = row_digest(at, &value);
                    marks_digest.add(digest);
                    digests.push((at, (mark, digest)));
                    marks.insert(at.id, mark);
                }
                Err(error) if !accept => return Err(error),
                Err(_) => *unreadable += 1,
            }
            Ok(())
        })?;
        *unreadable += skipped;
        disk.books().marks.extend(digests);
        Ok(found)
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
    let (items, digest, unreadable) = read_items(shared, found)?;
    check(shared, found, digest, unreadable)?;
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
    let closed = shared
        .log()
        .disk()
        .books()
        .queues
        .get(&shared.id)
        .is_some_and(|row| row.closed);
    if closed {
        ram.close();
    }
    Ok(ram)
}

type Items<T, O> = (Vec<Recovered<T, O>>, Digest, u64);

fn read_items<T: Send + 'static, O: Engine<T>>(
    shared: &Shared<T, O>,
    found: &Found,
) -> Result<Items<T, O>, StoreError> {
    let (mut items, mut digest, mut unreadable) = (Vec::new(), Digest::default(), found.unreadable);
    let accept = shared.store.accept_damage;
    unreadable += visit(
        &shared.log().disk().items,
        shared.id,
        accept,
        |at, key, value| {
            match shared.decode(at.id, &key, &value) {
                Ok((schedule, item)) => {
                    digest.add(at.digest());
                    let entry = shared.entry(at.id, item, value.len());
                    let mark = found.marks.get(&at.id).copied().unwrap_or_default();
                    items.push(Recovered {
                        entry,
                        schedule: mark.schedule.or(schedule),
                        mark,
                    });
                }
                // The bytes are right, and the codec refuses them: nothing is dropped.
                Err(error @ StoreError::Codec(_)) => return Err(error),
                Err(error) if !accept => return Err(error),
                Err(_) => unreadable += 1,
            }
            Ok(())
        },
    )?;
    Ok((items, digest, unreadable))
}

/// Compares what was found with what the store says that there is.
fn check<T: Send + 'static, O: Engine<T>>(
    shared: &Shared<T, O>,
    found: &Found,
    items: Digest,
    unreadable: u64,
) -> Result<(), StoreError> {
    let mut books = shared.log().disk().books();
    let Some(row) = books.queues.get_mut(&shared.id) else {
        return Ok(());
    };
    let actual = QueueRow {
        items,
        letters: found.letters_digest,
        marks: found.marks_digest,
        ..row.clone()
    };
    if *row == actual && unreadable == 0 {
        return Ok(());
    }
    if shared.store.accept_damage {
        *row = actual;
        return Ok(());
    }
    let counted = |row: &QueueRow| row.items.count.wrapping_add(row.letters.count);
    let (expected, there) = (counted(row), counted(&actual));
    Err(StoreError::Damaged(Damage {
        queue: Some(Arc::clone(&shared.name)),
        missing: expected.saturating_sub(there),
        extra: there.saturating_sub(expected),
        unreadable,
        details: "its rows are not those that were committed".into(),
        ..Damage::default()
    }))
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
        let mut item_bytes = Vec::new();
        let item = match entry.item {
            Some(item) => item,
            None => shared.read(entry.id)?,
        };
        shared.codec.encode(&item, &mut item_bytes)?;
        let letter = LetterRow {
            item: entry.id,
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

/// Items that were delivered before. A transaction takes each of them as often as it was delivered, and then aborts, so
/// that they are at the head, in their order, or delayed, and the queue in memory knows their deliveries.
fn deliver_again<T: Send + 'static, O: Engine<T>>(
    shared: &Shared<T, O>,
    ram: &RamQueue<T, O>,
    marked: Vec<Recovered<T, O>>,
) -> RamTx<T, O> {
    let (now, tx) = (shared.store.wall_time(), ram.begin_owned());
    let mut pushing = ram.begin_owned();
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
        if let (Ok(item), Some(due)) = (tx.pop(), mark.delayed.filter(|due| *due > now)) {
            let _ = tx.retry_after(item, Duration::from_millis(due - now));
        }
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
        let (id, place) = (
            item.entry.id,
            item.schedule.map(|schedule| shared.place(schedule)),
        );
        let place: Option<Place> = place;
        let ticket = O::stage(&tx, item.entry, place, Wait::Never);
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
