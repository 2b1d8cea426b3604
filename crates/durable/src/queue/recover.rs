//! Opening a queue: what is on the disk is checked, and comes into memory.

use super::shared::Shared;
use super::times::Moment;
use crate::batch::{Batch, Change, Run};
use crate::codec::{CodecError, OnUndecodable};
use crate::error::{Damage, StoreError};
use crate::format::level::{self, Level};
use crate::format::{
    decode_row, row_digest, Counts, Digest, Front, Key, LetterRow, Mark, OrderTag, Schedule,
    LETTERS, MARKS,
};
use crate::log::{self, Durability};
use crate::order::{Engine, EntryOf, RamBuilder, RamQueue};
use crate::queue::letters::Cause;
use crate::queue::pages::{DueRows, Index, KeyRows, Pages, Scheduled};
use fjall::{Keyspace, UserKey, UserValue};
use requeue::StorePlace;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// Of how many levels is written down what is gone, when a queue is opened.
const MOST_NOTED: usize = 16;
/// How many numbers are worth it.
const LEAST_NOTED: u64 = if cfg!(test) { 8 } else { 1 << 14 };

/// The rows of a queue, as they were found.
#[derive(Default)]
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
        row(Key::of(&key)?, key, value)
    })
}

impl Found {
    /// Reads what there is of a queue besides its items.
    pub(super) fn read(store: &crate::store::StoreInner, queue: u32) -> Result<Self, StoreError> {
        let (disk, mut found, mut marks) = (store.log.disk(), Self::default(), Vec::new());
        visit(&disk.tables[LETTERS], queue, |at, key, value| {
            found.counts.letters.add(at.digest());
            found.letters.insert(at.id, decode_row(&key, &value)?);
            Ok(())
        })?;
        visit(&disk.tables[MARKS], queue, |at, key, value| {
            let (mark, digest) = (decode_row(&key, &value)?, row_digest(at, &value));
            found.counts.marks.add(digest);
            found.marks.insert(at.id, Mark::clone(&mark));
            marks.push((at, (mark, digest)));
            Ok(())
        })?;
        disk.catalog().marks.extend(marks);
        Ok(found)
    }
}

/// Items that are removed are noted as gone from now on. What is before the first ones of levels is so already, and is written down if
/// it is much, so that it is not passed over again.
fn note_gone<T: Send + 'static, O: Engine<T>>(
    shared: &Shared<T, O>,
    firsts: &[u64],
) -> Result<(), StoreError> {
    let known = shared.log().disk().let_gone_grow(shared.id)?;
    let before = |first: &u64| level::with_serial(level::of(*first), 0)..*first;
    let gone = firsts.iter().take(MOST_NOTED).map(before);
    let gone = gone
        .filter(|ids| ids.end - ids.start >= LEAST_NOTED && !known.contains_all(ids))
        .map(|ids| Change::Gone(shared.id, ids));
    shared.note(gone);
    Ok(())
}

/// An item on its way into memory.
struct Recovered<T, O: Engine<T>> {
    entry: EntryOf<T, O>,
    front: Front,
    mark: Mark,
}

/// Those that can be decoded, those that cannot, with the error, and the others.
type Items<T, O> = (Vec<Recovered<T, O>>, Vec<(u64, CodecError)>, Index);

/// Where items go that were read.
type Sorted<'s, T, O> = (&'s mut Vec<Recovered<T, O>>, &'s mut Vec<(u64, CodecError)>);

/// A queue in memory, and its pages, if it has any.
type Opened<T, O> = (RamQueue<T, O>, Option<Arc<Pages<T, O>>>);

impl<T: Send + 'static, O: Engine<T>> Shared<T, O> {
    /// Brings the items of a queue into memory, or with pages the first of them. The queue has none yet.
    pub(super) fn recover(
        self: &Arc<Self>,
        found: &Found,
        on_undecodable: OnUndecodable,
        ram: RamBuilder<T, O>,
    ) -> Result<Opened<T, O>, StoreError> {
        let (items, undecodable, index) = if self.has_pages {
            self.read_marked(found)?
        } else {
            DueRows(self).end()?;
            self.read_items(found)?
        };
        let rows = items.iter().filter_map(|item| item.entry.key_row(self.id));
        KeyRows(self).prepare(rows)?;
        let attempts = |id| found.marks.get(&id).map_or(0, |mark| mark.attempts);
        self.leave_out(undecodable, on_undecodable, attempts)?;
        self.forget_strays(found, &items);
        let mut keys = HashMap::new();
        if O::TAG == OrderTag::ByKey {
            let keys_of = items.iter().map(|item| item.entry.key.clone());
            keys_of.for_each(|key| *keys.entry(key).or_insert(0) += 1);
        }
        let of_one_key = keys.into_values().max().unwrap_or(0);
        let weights = items.iter().map(|item| item.entry.weight());
        let weight = weights.fold(index.count(), usize::saturating_add);
        let ram = ram.with_room_for(weight, of_one_key).build();
        let items = self.bury_poison(items)?;
        let timed = self.restore(&ram, items)?;
        self.note(timed.into_iter());
        let open = || Pages::open(self, &ram, index, on_undecodable);
        let pages = self.has_pages.then(open).transpose()?;
        // Ends items whose time is over.
        let _ = ram.stats();
        if self.is_closed_on_disk() {
            ram.close();
        }
        Ok((ram, pages))
    }

    /// Items whose deliveries killed the process as often as they may be delivered become dead letters. Returns the others.
    fn bury_poison(
        self: &Arc<Self>,
        items: Vec<Recovered<T, O>>,
    ) -> Result<Vec<Recovered<T, O>>, StoreError> {
        let is_poison = |item: &Recovered<T, O>| {
            let most = self.max_attempts;
            most.is_some_and(|most| item.mark.attempts >= most)
        };
        let (poison, items): (Vec<_>, _) = items.into_iter().partition(is_poison);
        let error = "the process died while it held the item";
        let letters = poison.into_iter().map(|Recovered { entry, mark, .. }| {
            self.letter_of(entry.id, mark.attempts, Cause::Crashed, error)
        });
        self.add_letters(letters.collect::<Result<_, _>>()?);
        Ok(items)
    }

    fn read_items(&self, found: &Found) -> Result<Items<T, O>, StoreError> {
        let (mut items, mut undecodable, mut digest) = (Vec::new(), Vec::new(), Digest::default());
        let disk = self.log().disk();
        for item in disk.items(self.key(0), 0..=u64::MAX)? {
            let item = item?;
            digest.add(item.at.digest());
            disk.know(item.chunk.as_ref());
            let sorted = (&mut items, &mut undecodable);
            self.sort(found, item.at.id, &item.content, sorted)?;
        }
        self.check(found, digest)?;
        Ok((items, undecodable, Index::default()))
    }

    /// Reads the items that have marks. Their places are before those of all others, which are left to the pages.
    fn read_marked(&self, found: &Found) -> Result<Items<T, O>, StoreError> {
        let (mut items, mut undecodable) = (Vec::new(), Vec::new());
        let row = self.log().disk().catalog().queues.get(self.id).cloned();
        let mut digest = row.map(|row| row.counts.items).unwrap_or_default();
        self.check(found, digest)?;
        let mut marked: Vec<_> = found.marks.keys().copied().collect();
        marked.sort_unstable();
        let mut read = BTreeSet::new();
        let begun = self.new_ids(0);
        for id in marked {
            if let Some(item) = self.stored(id)? {
                self.log().disk().know(item.chunk.as_ref());
                digest.remove(self.key(id).digest());
                read.insert(id);
                self.sort(found, id, &item.content, (&mut items, &mut undecodable))?;
            }
        }
        let firsts = self.firsts()?;
        note_gone(self, &firsts)?;
        let levels: Vec<_> = firsts.into_iter().map(level::of).collect();
        let levels = self.has_levels().then_some(levels);
        let mut scheduled = Scheduled::default();
        if O::TAG == OrderTag::ByPriority {
            scheduled = DueRows(self).open(read.iter())?;
        } else if self.has_levels() {
            self.read_unpaged(
                found,
                &mut digest,
                &mut read,
                (&mut items, &mut undecodable),
            )?;
        }
        let index = Index::open(digest, read, levels.as_deref(), scheduled, begun);
        Ok((items, undecodable, index))
    }

    /// Reads the items without a level, which were pushed while the queue had no pages.
    fn read_unpaged(
        &self,
        found: &Found,
        digest: &mut Digest,
        read: &mut BTreeSet<u64>,
        (items, undecodable): Sorted<'_, T, O>,
    ) -> Result<(), StoreError> {
        let disk = self.log().disk();
        for item in disk.items(self.key(0), 0..=level::last(0))? {
            let item = item?;
            let id = item.at.id;
            if self.is_paged(id) {
                break;
            }
            disk.know(item.chunk.as_ref());
            if read.insert(id) {
                digest.remove(item.at.digest());
                self.sort(found, id, &item.content, (items, undecodable))?;
            }
        }
        Ok(())
    }

    /// The first items of the levels that have rows, in the order in which they were pushed.
    fn firsts(&self) -> Result<Vec<u64>, StoreError> {
        let (disk, mut firsts) = (self.log().disk(), Vec::new());
        let mut next = Some(Level::from(self.has_levels()));
        while let Some(level) = next {
            let first = level::with_serial(level, 0);
            let Some(item) = disk.items(self.key(first), first..=u64::MAX)?.next() else {
                break;
            };
            let id = item?.at.id;
            firsts.push(id);
            next = level::of(id).checked_add(1);
        }
        firsts.sort_unstable_by_key(|id| level::serial(*id));
        Ok(firsts)
    }

    /// Adds an item to those that can be decoded, or to the others.
    fn sort(
        &self,
        found: &Found,
        id: u64,
        content: &[u8],
        (items, undecodable): Sorted<'_, T, O>,
    ) -> Result<(), StoreError> {
        let (mut front, item) = match self.decode(id, content) {
            Err(StoreError::Codec(error)) => {
                undecodable.push((id, error));
                return Ok(());
            }
            decoded => decoded?,
        };
        let mut entry = self.entry(id, item, content.len());
        let mark = found.marks.get(&id).cloned().unwrap_or_default();
        if let Some(error) = mark.more.as_ref().and_then(|more| more.error.as_ref()) {
            entry.set_error(error);
        }
        front.schedule = mark.schedule.or(front.schedule);
        items.push(Recovered { entry, front, mark });
        Ok(())
    }

    /// Items that are not delivered, since they cannot be decoded.
    pub(super) fn leave_out(
        self: &Arc<Self>,
        undecodable: Vec<(u64, CodecError)>,
        what: OnUndecodable,
        attempts: impl Fn(u64) -> u32,
    ) -> Result<(), StoreError> {
        let (mut letters, mut batch) = (Vec::new(), Batch::default());
        for (id, error) in undecodable {
            match what {
                OnUndecodable::Refuse => return Err(error.into()),
                OnUndecodable::Discard => Run::add_each(&mut batch.removes, self.id, id..=id),
                OnUndecodable::Bury => {
                    let error = error.to_string();
                    letters.push(self.letter_of(id, attempts(id), Cause::Undecodable, &error)?);
                }
            }
        }
        if !batch.is_empty() {
            self.log().commit(&mut [batch], Durability::Synced)?;
        }
        self.add_letters(letters);
        Ok(())
    }

    /// Compares what was found with what the store says that there is.
    fn check(&self, found: &Found, items: Digest) -> Result<(), StoreError> {
        let catalog = self.log().disk().catalog();
        let actual = Counts {
            items,
            ..found.counts
        };
        let row = catalog.queues.get(self.id);
        let Some(row) = row.filter(|row| row.counts != actual) else {
            return Ok(());
        };
        let (expected, there) = (row.counts.all_items(), actual.all_items());
        Err(StoreError::Damaged(Damage {
            queue: Some(Arc::clone(&self.name)),
            missing: expected.saturating_sub(there),
            extra: there.saturating_sub(expected),
            details: "its rows are not those that were committed".into(),
            ..Damage::default()
        }))
    }

    /// Removes the marks of items that are not there: a mark may have been written after its item was removed. Those of windows
    /// that are not over stay.
    fn forget_strays(&self, found: &Found, items: &[Recovered<T, O>]) {
        let known: HashSet<u64> = items.iter().map(|item| item.entry.id).collect();
        let others = found.marks.iter().filter(|(id, _)| !known.contains(id));
        let strays = others.filter(|(id, mark)| !self.recover_window(**id, mark));
        self.note(strays.map(|(id, _)| Change::Unmark(self.key(*id))));
        // Keys that items have are no longer those of windows.
        let hashes = items.iter().filter_map(|it| it.entry.hash());
        self.windows.end(hashes);
    }

    /// Puts items before all that are pushed from now on: first those that were delivered before. They keep their deliveries and
    /// delays, whatever the pace and the limits of the queue are. Returns the changes that give times to those that need one and
    /// have none: each a time that is over, as their schedule. An error if a shared budget has no room for them.
    fn restore(
        &self,
        ram: &RamQueue<T, O>,
        mut items: Vec<Recovered<T, O>>,
    ) -> Result<Vec<Change>, StoreError> {
        let (now, mut timed) = (self.store.wall_time(), Vec::new());
        let (mut restore, moment) = (ram.restore(), self.times.moment());
        // In the order of the pushes.
        items.sort_by_key(|item| level::serial(item.entry.id));
        for item in items {
            let (mark, place) = (
                item.mark,
                self.place_of(item.entry.id, item.front, moment, &mut timed),
            );
            let left = mark.delayed.map_or(0, |due| due.saturating_sub(now));
            let delay = Duration::from_millis(left);
            if !restore.add(item.entry, place, mark.attempts, delay) {
                return Err(StoreError::NoRoom);
            }
        }
        Ok(timed)
    }

    /// Where an item goes that was found, by what is in front of it. One that needs a time and has none gets the present one, by
    /// a change of its schedule.
    pub(super) fn place_of(
        &self,
        id: u64,
        front: Front,
        moment: Moment,
        timed: &mut Vec<Change>,
    ) -> StorePlace {
        let Front { schedule, pushed } = front;
        let place = schedule.map(|schedule| moment.place(schedule));
        let mut place = place.unwrap_or_default();
        if self.after_ttl.is_some() && place.due.is_none() {
            let now = moment.wall_time();
            // Not after now, if the wall clock was put back.
            place.due = moment.instant(pushed.unwrap_or(now).min(now));
            if pushed.is_none() {
                let schedule = Schedule {
                    priority: place.priority,
                    due: Some(now),
                };
                timed.push(Change::Rescheduled(self.key(id), schedule));
            }
        }
        place.numbered(id)
    }

    /// A new dead letter of an item that was found.
    fn letter_of(
        &self,
        id: u64,
        attempts: u32,
        cause: Cause,
        error: &str,
    ) -> Result<(u64, LetterRow), StoreError> {
        let mut row = self.new_letter(id, attempts, cause, Some(error));
        self.complete(&mut row, None)?;
        Ok((self.new_ids(1), row))
    }
}
