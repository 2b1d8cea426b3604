//! Opening a queue: what is on the disk is checked, and comes into memory.

use super::shared::Shared;
use crate::batch::{Batch, Change, Run};
use crate::codec::{CodecError, OnUndecodable};
use crate::error::{Damage, StoreError};
use crate::format::{
    decode_row, row_digest, Counts, Digest, Key, LetterRow, Mark, OrderTag, Schedule, ITEMS,
    LETTERS, MARKS,
};
use crate::log::{self, Durability};
use crate::order::{Engine, EntryOf, RamBuilder, RamQueue};
use crate::queue::letters::Cause;
use fjall::{Keyspace, UserKey, UserValue};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// The rows of a queue, as they were found.
pub(super) struct Found {
    pub(super) letters: BTreeMap<u64, LetterRow>,
    marks: HashMap<u64, Mark>,
    /// Of the letters and the marks.
    counts: Counts,
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
        let (mut letters, mut counts) = (BTreeMap::new(), Counts::default());
        visit(&disk.tables[LETTERS], queue, |at, key, value| {
            counts.letters.add(at.digest());
            letters.insert(at.id, decode_row(&key, &value)?);
            Ok(())
        })?;
        let (mut marks, mut digests) = (HashMap::new(), Vec::new());
        visit(&disk.tables[MARKS], queue, |at, key, value| {
            let mark = decode_row(&key, &value)?;
            let digest = row_digest(at, &value);
            counts.marks.add(digest);
            digests.push((at, (mark, digest)));
            marks.insert(at.id, mark);
            Ok(())
        })?;
        disk.catalog().marks.extend(digests);
        Ok(Self {
            letters,
            marks,
            counts,
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
    on_undecodable: OnUndecodable,
    ram: RamBuilder<T, O>,
) -> Result<RamQueue<T, O>, StoreError> {
    let (items, undecodable, digest) = read_items(shared, found)?;
    check(shared, found, digest)?;
    leave_out(shared, found, undecodable, on_undecodable)?;
    forget_strays(shared, found, &items);
    let mut keys = HashMap::new();
    if O::TAG == OrderTag::ByKey {
        let count = |item: &Recovered<T, O>| *keys.entry(item.entry.key.clone()).or_insert(0) += 1;
        items.iter().for_each(count);
    }
    let of_one_key = keys.into_values().max().unwrap_or(0);
    let ram = ram.with_room_for(items.len(), of_one_key).build();
    let is_poison = |item: &Recovered<T, O>| {
        let most = shared.max_attempts;
        most.is_some_and(|most| item.mark.attempts >= most)
    };
    let (poison, items) = items.into_iter().partition(is_poison);
    bury(shared, poison)?;
    restore(shared, &ram, items);
    if shared.is_closed_on_disk() {
        ram.close();
    }
    Ok(ram)
}

/// Those that can be decoded, those that cannot, with the error, and the digest of all.
type Items<T, O> = (Vec<Recovered<T, O>>, Vec<(u64, CodecError)>, Digest);

fn read_items<T: Send + 'static, O: Engine<T>>(
    shared: &Shared<T, O>,
    found: &Found,
) -> Result<Items<T, O>, StoreError> {
    let (mut items, mut undecodable, mut digest) = (Vec::new(), Vec::new(), Digest::default());
    let rows = &shared.log().disk().tables[ITEMS];
    visit(rows, shared.id, |at, key, value| {
        digest.add(at.digest());
        let (schedule, item) = match shared.decode(at.id, &key, &value) {
            Err(StoreError::Codec(error)) => {
                undecodable.push((at.id, error));
                return Ok(());
            }
            decoded => decoded?,
        };
        let entry = shared.entry(at.id, item, value.len());
        let mark = found.marks.get(&at.id).copied().unwrap_or_default();
        items.push(Recovered {
            entry,
            schedule: mark.schedule.or(schedule),
            mark,
        });
        Ok(())
    })?;
    Ok((items, undecodable, digest))
}

/// Items that are not delivered, since they cannot be decoded.
fn leave_out<T: Send + 'static, O: Engine<T>>(
    shared: &Arc<Shared<T, O>>,
    found: &Found,
    undecodable: Vec<(u64, CodecError)>,
    what: OnUndecodable,
) -> Result<(), StoreError> {
    let mut rows = Vec::new();
    let mut batch = Batch::default();
    for (id, error) in undecodable {
        match what {
            OnUndecodable::Refuse => return Err(error.into()),
            OnUndecodable::Discard => Run::add_each(&mut batch.removes, shared.id, id..=id),
            OnUndecodable::Bury => {
                let mark = found.marks.get(&id).copied().unwrap_or_default();
                let schedule = shared.schedule_of(id)?;
                rows.push(shared.letter_of(
                    id,
                    mark.attempts,
                    schedule,
                    Cause::Undecodable,
                    &error,
                )?);
            }
        }
    }
    if !batch.is_empty() {
        shared.log().commit(&mut [batch], Durability::Synced)?;
    }
    if !rows.is_empty() {
        shared.add_letters(rows);
    }
    Ok(())
}

/// Compares what was found with what the store says that there is.
fn check<T: Send + 'static, O: Engine<T>>(
    shared: &Shared<T, O>,
    found: &Found,
    items: Digest,
) -> Result<(), StoreError> {
    let catalog = shared.log().disk().catalog();
    let actual = Counts {
        items,
        ..found.counts
    };
    let Some(row) = catalog.queues.get(shared.id) else {
        return Ok(());
    };
    if row.counts == actual {
        return Ok(());
    }
    let (expected, there) = (row.counts.all_items(), actual.all_items());
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
        let error = "the process died while it held the item";
        rows.push(shared.letter_of(entry.id, mark.attempts, schedule, Cause::Crashed, &error)?);
    }
    shared.add_letters(rows);
    Ok(())
}

/// Puts items before all that are pushed from now on: first those that were delivered before. They keep their deliveries and
/// delays, whatever the pace and the limits of the queue are.
fn restore<T: Send + 'static, O: Engine<T>>(
    shared: &Shared<T, O>,
    ram: &RamQueue<T, O>,
    items: Vec<Recovered<T, O>>,
) {
    let now = shared.store.wall_time();
    let mut restore = ram.restore();
    for item in items {
        let (id, mark) = (item.entry.id, item.mark);
        let place = item.schedule.map(|schedule| shared.place(schedule));
        let left = mark.delayed.map_or(0, |due| due.saturating_sub(now));
        let delay = Duration::from_millis(left);
        let place = place.unwrap_or_default().numbered(id);
        restore.add(item.entry, place, mark.attempts, delay);
    }
}

impl<T: Send + 'static, O: Engine<T>> Shared<T, O> {
    /// A new dead letter of an item that was found.
    fn letter_of(
        &self,
        id: u64,
        attempts: u32,
        schedule: Option<Schedule>,
        cause: Cause,
        error: &impl ToString,
    ) -> Result<(u64, LetterRow), StoreError> {
        let row = LetterRow {
            item: id,
            attempts,
            reason: cause.to_byte(),
            error: Some(error.to_string()),
            died: self.store.wall_time(),
            schedule,
            item_bytes: self.read_bytes(id)?,
        };
        Ok((self.new_ids(1), row))
    }
}
