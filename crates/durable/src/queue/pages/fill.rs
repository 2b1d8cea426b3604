//! Reads pages: items that are on the disk only come into memory, when nothing is ready there.

use super::due_rows::DueRows;
use super::index::Reading;
use super::keys::KeyRows;
use super::{Index, Pages, State, LEAST_ITEMS, LEAST_OF_ALL, MOST_LOST, MOST_OF_PAGE};
use crate::codec::CodecError;
use crate::entry::Entry;
use crate::error::{Damage, StoreError};
use crate::format::level::{self, Level};
use crate::format::{Digest, Front, UniqueRow};
use crate::log::chunks::{Items, Rows};
use crate::order::{Engine, EntryOf};
use std::collections::BTreeSet;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

/// Items of a page.
pub(super) struct Page<T, O: Engine<T>> {
    entries: Vec<(EntryOf<T, O>, Front)>,
    bytes: usize,
    keys: Vec<UniqueRow>,
    undecodable: Vec<(u64, CodecError)>,
}

impl<T, O: Engine<T>> Default for Page<T, O> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            bytes: 0,
            keys: Vec::new(),
            undecodable: Vec::new(),
        }
    }
}

impl<T: Send + 'static, O: Engine<T>> Pages<T, O> {
    /// Whether the memory has at least `least` ready items, and those that a pop has waited for, that are delivered before those of
    /// the level which is read next. Counts them anew.
    fn is_full(&self, index: &Index, least: usize) -> bool {
        let level = index.unread().unwrap_or(Level::MAX);
        let wanted = self.wanted();
        let most = usize::try_from(wanted.saturating_add(1)).unwrap_or(0);
        // Pops that end between the two are subtracted twice: the result is no more than the true count.
        // ORDERING: SeqCst; pairs with `took`.
        let before = self.ready.load(Ordering::SeqCst);
        let count = self
            .ram
            .ready_until(level::priority(level), most.max(least));
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        // ORDERING: SeqCst; as above.
        self.ready.fetch_add(count - before, Ordering::SeqCst);
        if self.shared.besides.is_serial {
            // Others of these keys make nothing ready; for a pop that waits for several, those that share their levels may.
            return count > wanted
                || wanted == 0
                || !self.budget.has_room(self.shared.besides.bytes());
        }
        count > wanted && count >= i64::try_from(least).unwrap_or(i64::MAX)
    }

    /// Whether these are enough for a page. Levels by key have theirs in memory at the same time, and share the room: a page that takes twice
    /// its share of the free room is, on the average, as long as its share of all the room. An eighth of the budget is left for queues
    /// without a backlog.
    pub(super) fn is_page(&self, index: &Index, page: &Page<T, O>) -> bool {
        let (items, levels) = (page.entries.len(), index.count_unread().max(1));
        let (beside, budget) = (self.shared.besides.bytes(), &self.budget);
        let left = budget.most() / 8;
        let free = budget.free().saturating_sub(left);
        let (most, bytes, least) = if Self::BY_KEY {
            let least = (LEAST_OF_ALL / levels).clamp(1, LEAST_ITEMS);
            let bytes = page.bytes + items * beside;
            let share = free.saturating_add(bytes) / (levels + 1);
            (share.saturating_mul(2), bytes, least)
        } else {
            ((budget.most() - left) / 4, page.bytes, LEAST_ITEMS)
        };
        items >= least && (bytes >= most.min(MOST_OF_PAGE) || free < beside)
    }

    /// Brings items into memory until it has at least `least` ready ones, as far as there are any: by key of as many levels, if that many
    /// are absent. Items that are due by then are read too.
    pub(super) fn fill(&self, state: &mut State<T, O>, least: usize) {
        self.fill_now(state, least);
        self.plan(&state.index);
    }

    fn fill_now(&self, state: &mut State<T, O>, least: usize) {
        let mut pages = if Self::BY_KEY { 0 } else { least };
        // ORDERING: Relaxed; it changes under the lock of the state.
        while self.is_cold.load(Ordering::Relaxed) && state.index.failed.is_none() {
            if state.index.scheduled.next().is_some() {
                state.index.ripen(self.shared.times.wall_time());
            }
            if state.index.is_over() {
                self.thaw(state);
            } else if self.lost.lock().len() >= MOST_LOST {
                break; // it goes on when they are dropped
            } else if state.index.waits() {
                self.is_full(&state.index, least); // counts what is ready
                if !state.index.reads_early() {
                    break;
                }
                self.read(state, |index, page| self.read_early(index, page));
            } else if pages < least {
                let absent = self.look_for_absent(&mut state.index);
                pages = if absent.is_empty() {
                    least
                } else {
                    pages + absent.len()
                };
                for level in absent {
                    if state.index.failed.is_none() {
                        self.read_page(state, Some(level));
                    }
                }
            } else if state.index.count() > 0 && self.is_full(&state.index, least) {
                break;
            } else {
                let level = state.index.take_turn(Self::BY_KEY);
                self.read_page(state, level);
            }
        }
    }

    /// Some levels by key without items in memory.
    fn look_for_absent(&self, index: &mut Index) -> Vec<Level> {
        loop {
            let mut absent = index.take_absent();
            let is_last = absent.is_empty();
            self.ram
                .retain_empty(|entry| level::of(entry.id), &mut absent);
            let mut looked_at = BTreeSet::new();
            absent.retain(|level| index.is_unread(*level) && looked_at.insert(*level));
            if is_last || !absent.is_empty() {
                // They are looked at again, in case that the pages have no items.
                for level in &absent {
                    index.look_for(*level);
                }
                return absent;
            }
        }
    }

    /// Reads a page of a level, or what was read is checked if there is none.
    fn read_page(&self, state: &mut State<T, O>, level: Option<Level>) {
        self.read(state, |index, page| self.read_rows(index, level, page));
    }

    fn read(
        &self,
        state: &mut State<T, O>,
        read: impl FnOnce(&mut Index, &mut Page<T, O>) -> Result<(), StoreError>,
    ) {
        let mut page = Page::default();
        let read = read(&mut state.index, &mut page);
        // At the head they are in a strict order with later pushes. Others are there only if a pop asks for more than a page. By
        // priority they come after those that are ready, in any case.
        let at_tail = !state.index.has_levels && !self.ram.is_empty();
        if let Err(error) = self.show(page, at_tail, read) {
            self.fail(state, error);
        }
    }

    /// No more can be read.
    pub(super) fn fail(&self, state: &mut State<T, O>, error: StoreError) {
        state.index.failed = Some(error);
        // Ends the waits for items that cannot be read.
        self.ram.close();
        state.keeper.rollback();
    }

    /// Brings an item into memory before its turn, if it is on the disk only.
    pub(in crate::queue) fn bring(&self, id: u64) -> Result<(), StoreError> {
        self.bring_to(&mut self.state().index, id)
    }

    pub(super) fn bring_to(&self, index: &mut Index, id: u64) -> Result<(), StoreError> {
        let due = DueRows(&self.shared).of_id(id, &[])?;
        if !index.has(id, due) {
            return Ok(());
        }
        self.settle(index)?;
        let Some(item) = self.shared.stored(id)? else {
            return Ok(()); // it was removed by an earlier process
        };
        self.shared.log().disk().know(item.chunk.as_ref());
        let mut page = Page::default();
        self.add(&mut page, id, &item.content)?;
        let runs = index.give_up(self.shared.id, &[(id, due)]);
        index.unskip(&runs);
        if due.is_some() {
            index.scheduled.bring(id);
            self.forget_gone(index)?;
        } else {
            index.mark(&runs);
        }
        self.show(page, !index.has_levels, Ok(()))
    }

    /// Brings the items of a page into memory.
    fn show(
        &self,
        page: Page<T, O>,
        at_tail: bool,
        read: Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let (mut count, moment) = (0, self.shared.times.moment());
        if !page.keys.is_empty() {
            let hashes = page.keys.iter().map(|row| row.hash);
            self.shared.windows.end(hashes);
            self.shared.log().disk().know_keys(page.keys.into_iter());
        }
        let mut restore = self.ram.restore().with_room();
        if at_tail {
            restore = restore.at_tail();
        }
        let mut timed = Vec::new();
        let mut add = |(entry, front): (EntryOf<T, O>, Front)| {
            let place = self.shared.place_of(entry.id, front, moment, &mut timed);
            count += i64::from(place.due.is_none_or(|due| due <= moment.now));
            restore.add(entry, place, 0, Duration::ZERO)
        };
        let added = catch_unwind(AssertUnwindSafe(|| page.entries.into_iter().all(&mut add)));
        drop(restore);
        match added {
            Ok(true) => {}
            Ok(false) => return Err(StoreError::NoRoom),
            Err(_) => return Err(CodecError::new("`Hash` or `Eq` of a key panicked").into()),
        }
        self.shared.note(timed.into_iter());
        // In a serial queue perhaps none is ready.
        let is_serial = self.shared.besides.is_serial;
        let count = if is_serial { 0 } else { count };
        // ORDERING: SeqCst; pairs with `took`. Items that were taken meanwhile are subtracted.
        self.ready.fetch_add(count, Ordering::SeqCst);
        // ORDERING: Release; pairs with `pages_read`.
        self.read.fetch_add(1, Ordering::Release);
        read?;
        let undecodable = page.undecodable;
        self.ram.give_room(undecodable.len());
        self.shared
            .leave_out(undecodable, self.on_undecodable, |_| 0)
    }

    /// Makes sure that the rows of commits that have ended are in the tables.
    pub(super) fn settle(&self, index: &mut Index) -> Result<(), StoreError> {
        if index.unwritten.is_some() {
            self.shared.log().settle()?;
        }
        index.unwritten = None;
        index.scheduled.unwritten = None;
        index.keys.clear();
        Ok(())
    }

    /// Reads rows of a level until the page is full: those that come late, then the next ones. The log is settled only if these rows may be
    /// there: that waits for the sync of a group.
    fn read_rows(
        &self,
        index: &mut Index,
        level: Option<Level>,
        page: &mut Page<T, O>,
    ) -> Result<(), StoreError> {
        let Some(level) = level else {
            return self.check_left(index.left());
        };
        let shared = &self.shared;
        while let Some(id) = index.next_late(level) {
            self.settle(index)?;
            let content = shared.item(id)?.content;
            index.digest.remove(shared.key(id).digest());
            self.add(page, id, &content)?;
            if self.is_page(index, page) {
                return Ok(());
            }
        }
        if index.takes_scheduled(level) {
            self.read_scheduled(index, level, page)?;
        } else {
            while self.read_next(index, level, page)? {
                if index.unwritten.is_none() {
                    index.end_level(level);
                    break;
                }
                self.settle(index)?;
            }
        }
        match index.unread() {
            Some(_) => Ok(()),
            None => self.check_left(index.left()),
        }
    }

    /// Reads rows from the next one on, except those that may be unwritten; returns whether it has read all, and the page is not
    /// full.
    fn read_next(
        &self,
        index: &mut Index,
        level: Level,
        page: &mut Page<T, O>,
    ) -> Result<bool, StoreError> {
        let (shared, disk) = (&self.shared, self.shared.log().disk());
        let kept = index.take_reading(level);
        if let Some((items, end)) = kept.and_then(|end| Some((disk.kept(shared.id)?, end))) {
            if !self.read_items(index, level, page, items, end)? {
                return Ok(false);
            }
        }
        // ORDERING: Relaxed; later items are concluded under the lock of the index.
        let begun = disk.next_id.load(Ordering::Relaxed);
        let rows = index.rows_of(level);
        let (next, row) = (rows.next, rows.row);
        let end = index.end_of(level).min(index.in_level(level, begun));
        let items = disk.items(shared.key(next), row..=index.last_of(level))?;
        self.read_items(index, level, page, items, end.max(next))
    }

    /// Reads items up to a number; returns whether it has read all, and the page is not full.
    fn read_items(
        &self,
        index: &mut Index,
        level: Level,
        page: &mut Page<T, O>,
        mut items: Items<Rows>,
        end: u64,
    ) -> Result<bool, StoreError> {
        let (disk, mut known) = (self.shared.log().disk(), None);
        while let Some(item) = items.next() {
            let item = item?;
            let at = item.at;
            if at.id >= end {
                break; // perhaps it was removed from a chunk that begins before
            }
            if !index.pass(level, at.id, item.row()) {
                continue;
            }
            if index.count() == 0 {
                return Err(other_rows(&self.shared.name, 0, 1));
            }
            let chunk = item.chunk.as_ref().filter(|chunk| known != Some(chunk.0));
            if let Some(chunk) = chunk {
                disk.know(Some(chunk)); // that locks
                known = Some(chunk.0);
            }
            index.digest.remove(at.digest());
            self.add(page, at.id, &item.content)?;
            if self.is_page(index, page) {
                index.reading = Some(Reading { level, end });
                disk.keep(items);
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// When all rows were read, they must have been those that were committed.
    pub(super) fn check_left(&self, left: Digest) -> Result<(), StoreError> {
        if left == Digest::default() {
            return Ok(());
        }
        let count = left.count.cast_signed();
        let (missing, extra) = (count.max(0), count.min(0));
        let (missing, extra) = (missing.unsigned_abs(), extra.unsigned_abs());
        Err(other_rows(&self.shared.name, missing, extra))
    }

    pub(super) fn add(
        &self,
        page: &mut Page<T, O>,
        id: u64,
        content: &[u8],
    ) -> Result<(), StoreError> {
        let (shared, bytes) = (&self.shared, content.len());
        let decode = || {
            let (front, item) = shared.decode(id, content)?;
            let row = KeyRows(shared).of(id, &item);
            Ok((shared.entry(id, item, bytes), front, row))
        };
        let unkeyed = O::unkeyed().filter(|_| !shared.besides.has_keys);
        let item = match (catch_unwind(AssertUnwindSafe(decode)), unkeyed) {
            (Ok(Err(StoreError::Codec(error))), _) => Err(error),
            (Ok(decoded), _) => Ok(decoded?),
            // Whoever pops it has that panic.
            (Err(_), Some(key)) => Ok((Entry::on_disk(id, key, None), Front::default(), None)),
            (Err(_), None) => Err(CodecError::new("the codec or the key function panicked")),
        };
        match item {
            Ok((entry, front, row)) => {
                page.bytes += bytes;
                page.entries.push((entry, front));
                page.keys.extend(row);
            }
            Err(error) => page.undecodable.push((id, error)),
        }
        Ok(())
    }
}

pub(super) fn other_rows(queue: &Arc<str>, missing: u64, extra: u64) -> StoreError {
    StoreError::Damaged(Damage {
        queue: Some(Arc::clone(queue)),
        missing,
        extra,
        details: "its rows are not those that were committed".into(),
        ..Damage::default()
    })
}
