//! The items of a priority queue in their order.
//!
//! The next item is the ready one with the least priority number; among equals, the one that has been ready longest.
//! An item is numbered when it becomes ready; a returned item is numbered before all others. Items that are
//! not due yet wait in a separate heap.
//!
//! # Ageing
//!
//! With ageing by a step `d`, an item of priority `p` that has been ready since `s` has at time `t` the effective
//! priority `p - (t - s) / d`. Of two items the one with the lesser `p·d + s` has the lesser effective
//! priority, at any time: so only this sum, the rank, is needed, and it never changes.
//!
//! # Lists and heaps
//!
//! Items that become ready in their order need no heap; see [`Levels`]. All others have an entry in one; see
//! [`RankHeap`]. With ageing the lists are not used, as the order is not by priority.

use super::levels::Levels;
use super::meta::{Priority, PriorityMeta};
use super::rank_heap::{RankEntry, RankHeap};
use super::slab::{ItemSlab, ItemState, Link, SlabItem, NOWHERE};
use super::ticket::Ticket;
use super::times::DueTimes;
use crate::order::{Dequeued, Sequence, Shown, PART, SCAN_STEP};
use crate::raw::{Entry, Stored};
use crate::time::NEVER;
use std::collections::HashMap;
use std::mem;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

/// The number of stale rank entries that is always tolerated.
const SLACK: usize = 256;

/// The items of a priority queue.
pub(crate) struct PriorityHeap<T> {
    times: Arc<DueTimes>,
    ageing: Option<AgeStep>,
    slab: ItemSlab<T>,
    /// Where the last item was put that did not arrive in a list.
    unlisted: u32,
    levels: Levels,
    /// Ready items that are not in the lists.
    ready: RankHeap,
    waiting: RankHeap,
    /// Pushed items that will become ready with the next [`Sequence::advance`].
    fresh: Vec<Entry<Stored<T, PriorityMeta>>>,
    /// The arrival numbers: increasing for items that become ready, decreasing for returned ones.
    last: i64,
    first: i64,
    /// The places of the items with tickets; built on the first lookup.
    places: Option<HashMap<Ticket, u32>>,
    /// The number of items being shown, and of visits in progress. During a visit items stay in their places.
    shown: usize,
    visits: usize,
}

/// The progress of a visit: the next place and the end, and the arrival numbers of the items that were there when it began.
#[derive(Debug)]
pub(crate) struct Visit {
    place: u32,
    places: u32,
    arrivals: RangeInclusive<i64>,
}

/// The waiting time in nanoseconds after which the priority improves by one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AgeStep(u64);

impl AgeStep {
    /// Ten days, so that 9999 steps are less than half of the range of times.
    const LONGEST: u64 = 10 * 24 * 60 * 60 * 1_000_000_000;

    pub(crate) fn of(step: Duration) -> Self {
        let step = u64::try_from(step.as_nanos()).unwrap_or(Self::LONGEST);
        Self(step.min(Self::LONGEST))
    }

    fn rank(self, priority: u64, ready_since: u64) -> u64 {
        (priority * self.0).saturating_add(ready_since)
    }
}

impl<T> PriorityHeap<T> {
    pub(crate) fn new(times: Arc<DueTimes>, ageing: Option<AgeStep>) -> Self {
        Self {
            times,
            ageing,
            slab: ItemSlab::new(),
            unlisted: NOWHERE,
            levels: Levels::new(),
            ready: RankHeap::new(),
            waiting: RankHeap::new(),
            fresh: Vec::new(),
            last: 0,
            first: 0,
            places: None,
            shown: 0,
            visits: 0,
        }
    }

    /// Removes an item that is not held.
    pub(crate) fn cancel(&mut self, ticket: Ticket) -> Option<Entry<Stored<T, PriorityMeta>>> {
        let place = self.place_of(ticket)?;
        self.dequeue(place);
        let item = self.slab.take(place)?;
        Some(self.release(item))
    }

    /// Changes the priority of an item that is not held; `false` if there is none with this ticket.
    pub(crate) fn reprioritize(&mut self, ticket: Ticket, priority: Priority) -> bool {
        let Some(place) = self.place_of(ticket) else {
            return false;
        };
        let SlabItem { link, state, .. } = self.slab[place];
        let meta = link.meta;
        if state == ItemState::Waits {
            self.slab[place].link.meta = meta.with(priority);
        } else if meta.priority() != priority.get() {
            self.dequeue(place);
            let item = &mut self.slab[place];
            item.link.meta = meta.with(priority);
            item.state = ItemState::Listed;
            self.make_ready_at(place);
            self.tidy();
        }
        true
    }

    /// Changes the due time of an item that is not held; `false` if there is none with this ticket. The item
    /// waits, even if it is due, until the next [`Sequence::advance`].
    pub(crate) fn reschedule(&mut self, ticket: Ticket, due: u64) -> bool {
        let Some(place) = self.place_of(ticket) else {
            return false;
        };
        self.dequeue(place);
        self.times.note(ticket, due);
        self.last += 1;
        let link = &mut self.slab[place].link;
        link.meta = link.meta.with_time();
        // This makes its old rank entry stale.
        link.arrival = self.last;
        self.wait(place);
        self.tidy();
        true
    }

    /// The rank of a ready item, the first criterion of the order.
    fn rank_of(&self, SlabItem { link, since, .. }: &SlabItem<T>) -> u64 {
        let meta = link.meta;
        let priority = u64::from(meta.priority());
        match self.ageing {
            None => priority,
            Some(step) => {
                let ready_since = (*since).max(self.times.due(meta).saturating_add(1));
                step.rank(priority, ready_since)
            }
        }
    }

    /// Puts an item next to the last one that was put there.
    #[inline(never)]
    fn insert(&mut self, entry: Entry<Stored<T, PriorityMeta>>, arrival: i64) -> u32 {
        if !self.slab.is_in_use(self.unlisted) {
            self.unlisted = NOWHERE;
        }
        let item = SlabItem::new(entry, arrival);
        self.unlisted = self.slab.put(item, self.unlisted);
        self.note_place(self.unlisted);
        self.unlisted
    }

    #[inline]
    fn note_place(&mut self, place: u32) {
        if self.places.is_some() {
            self.record_place(place);
        }
    }

    /// Inserts a ready item at its position in the order.
    fn make_ready_at(&mut self, place: u32) {
        let link = *self.slab.link(place);
        if self.ageing.is_some() || !self.levels.add(&mut self.slab, place, link) {
            self.add_ranked(place);
        }
    }

    #[inline(never)]
    fn add_ranked(&mut self, place: u32) {
        self.slab[place].state = ItemState::Ranked;
        let item = &self.slab[place];
        self.ready.add(RankEntry {
            rank: self.rank_of(item),
            arrival: item.link.arrival,
            place,
            priority: Some(item.link.meta.priority()),
        });
    }

    /// Adds an item to those that are not due.
    fn wait(&mut self, place: u32) {
        let item = &mut self.slab[place];
        item.state = ItemState::Waits;
        self.waiting.add(RankEntry {
            rank: self.times.due(item.link.meta),
            arrival: item.link.arrival,
            place,
            priority: None,
        });
    }

    /// Removes an item from its position in the order. The caller then takes it out of the slab, or inserts it again.
    fn dequeue(&mut self, place: u32) {
        match self.slab[place].state {
            ItemState::Listed => self.levels.remove(&mut self.slab, place),
            ItemState::Ranked => self.ready.mark_stale(),
            ItemState::Waits => self.waiting.mark_stale(),
        }
    }

    /// Takes the next item out of the slab.
    #[inline]
    fn take_next(&mut self) -> Option<SlabItem<T>> {
        if self.shown > 0 {
            self.levels.skip_shown(&mut self.slab);
        }
        if self.ready.current() > 0 && self.is_ranked_next() {
            let entry = self.ready.pop()?;
            self.slab.take(entry.place)
        } else {
            self.levels.pop(&mut self.slab)
        }
    }

    /// Whether the first ranked item comes before all listed ones.
    fn is_ranked_next(&self) -> bool {
        let (Some(entry), Some(place)) = (self.ready.first(), self.levels.first()) else {
            return true;
        };
        let Link { meta, arrival, .. } = self.slab[place].link;
        (entry.rank, entry.arrival) < (u64::from(meta.priority()), arrival)
    }

    /// The due time of the first waiting item.
    fn first_due(&self) -> Option<u64> {
        self.waiting.first().map(|first| first.rank)
    }

    /// Makes the items ready that are due at `until`.
    fn make_ready(&mut self, until: u64) {
        while self.first_due().is_some_and(|due| due <= until) {
            if let Some(RankEntry { place, .. }) = self.waiting.pop() {
                self.last += 1;
                let item = &mut self.slab[place];
                item.link.arrival = self.last;
                item.state = ItemState::Listed;
                self.make_ready_at(place);
            }
            self.waiting.drop_stale(&self.slab);
        }
    }

    fn is_to_be_visited(&self, place: u32, visit: &Visit) -> bool {
        self.slab.get(place).is_some_and(|item| {
            visit.arrivals.contains(&item.link.arrival) && item.state != ItemState::Waits
        })
    }

    /// Takes an item out of its place. In a list it leaves a gap; its entry in a heap becomes stale.
    fn take_out_to_show(&mut self, place: u32) -> Option<Shown<T, PriorityMeta, u32>> {
        let item = self.slab.show(place)?;
        if item.state == ItemState::Ranked {
            self.ready.mark_stale();
            self.ready.drop_stale(&self.slab);
        }
        self.shown += 1;
        Some(Shown {
            entry: item.into_entry(),
            position: place,
        })
    }

    /// Releases an item that was taken out of the slab.
    #[inline]
    fn release(&mut self, item: SlabItem<T>) -> Entry<Stored<T, PriorityMeta>> {
        if self.places.is_some() {
            self.remove_place(item.link.meta);
        }
        self.tidy();
        item.into_entry()
    }

    #[inline(never)]
    fn record_place(&mut self, place: u32) {
        if let (Some(places), Some(ticket)) =
            (&mut self.places, self.slab[place].link.meta.ticket())
        {
            places.insert(ticket, place);
        }
    }

    #[inline(never)]
    fn remove_place(&mut self, meta: PriorityMeta) {
        if let (Some(places), Some(ticket)) = (&mut self.places, meta.ticket()) {
            places.remove(&ticket);
        }
    }

    fn place_of(&mut self, ticket: Ticket) -> Option<u32> {
        let slab = &self.slab;
        let places = self.places.get_or_insert_with(|| {
            let ticketed = slab
                .iter()
                .filter_map(|(place, item)| Some((item.link.meta.ticket()?, place)));
            ticketed.collect()
        });
        let place = places.get(&ticket).copied();
        place.filter(|&place| slab.get(place).is_some())
    }

    /// Drops the stale rank entries at the front; all of them if there are too many, or too many vacant places.
    #[inline]
    fn tidy(&mut self) {
        let items = self.slab.len();
        let stale = self.ready.stale() + self.waiting.stale();
        let many = stale > items + SLACK || self.slab.is_wasteful();
        if many && self.visits == 0 {
            self.sweep();
        } else if stale > 0 {
            self.ready.drop_stale(&self.slab);
            self.waiting.drop_stale(&self.slab);
        }
    }

    /// Drops all stale rank entries and vacant places, and releases their memory.
    #[cold]
    fn sweep(&mut self) {
        let mut slab = ItemSlab::new();
        self.levels.move_items(&mut self.slab, &mut slab);
        self.ready.move_items(&mut self.slab, &mut slab);
        self.waiting.move_items(&mut self.slab, &mut slab);
        self.slab = slab;
        self.places = None;
    }
}

impl<T> Sequence<T, PriorityMeta> for PriorityHeap<T> {
    type Visit = Visit;
    /// In the slab.
    type Position = u32;

    /// A scheduled item waits even if it is due: only [`Sequence::advance`] knows the time.
    #[inline(always)] // by the intake, for each item
    fn arrive(&mut self, entry: Entry<Stored<T, PriorityMeta>>) {
        self.last += 1;
        if self.ageing.is_none() && !entry.item.meta.is_scheduled() {
            let item = SlabItem::new(entry, self.last);
            let place = self.levels.append(&mut self.slab, item);
            return self.note_place(place);
        }
        let scheduled = entry.item.meta.is_scheduled();
        let place = self.insert(entry, self.last);
        if scheduled {
            self.wait(place);
        } else {
            self.make_ready_at(place);
        }
    }

    /// Defers an unscheduled item, so that items due before its push, as far as that is known, go first: within a priority the
    /// order is that in which items become ready.
    fn arrive_timed(&mut self, entry: Entry<Stored<T, PriorityMeta>>) {
        if entry.item.meta.is_scheduled() {
            self.arrive(entry);
        } else {
            self.fresh.push(entry);
        }
    }

    /// It was dequeued before, so it is due.
    fn come_back(&mut self, entry: Entry<Stored<T, PriorityMeta>>) {
        self.first -= 1;
        let place = self.insert(entry, self.first);
        self.make_ready_at(place);
    }

    #[inline]
    fn next(&mut self, for_good: bool) -> Option<Dequeued<T, PriorityMeta>> {
        let item = self.take_next()?;
        Some(Dequeued {
            entry: self.release(item),
            gone: u32::from(for_good),
        })
    }

    fn advance(&mut self, now: u64) -> usize {
        let before = self.waiting.current();
        let mut fresh = mem::take(&mut self.fresh);
        for entry in fresh.drain(..) {
            let pushed = entry.delivery.since.checked_sub(1).unwrap_or(now);
            self.make_ready(pushed.min(now));
            self.arrive(entry);
        }
        fresh.shrink_to(SLACK);
        self.fresh = fresh;
        self.make_ready(now);
        before - self.waiting.current()
    }

    fn next_due(&self) -> u64 {
        self.first_due().unwrap_or(NEVER)
    }

    fn ready(&self) -> usize {
        self.slab.len() - self.waiting.current()
    }

    fn waiting(&self) -> usize {
        self.waiting.current()
    }

    /// Visits by places, and only the items already there, so that no item is visited twice.
    fn begin_visit(&mut self) -> Visit {
        self.visits += 1;
        Visit {
            place: 0,
            places: u32::try_from(self.slab.places()).unwrap_or(u32::MAX),
            arrivals: self.first..=self.last,
        }
    }

    fn show(&mut self, visit: &mut Visit, into: &mut Vec<Shown<T, PriorityMeta, u32>>) -> bool {
        for _ in 0..SCAN_STEP {
            if visit.place == visit.places || into.len() == PART {
                break;
            }
            let place = visit.place;
            visit.place += 1;
            if self.is_to_be_visited(place, visit) {
                into.extend(self.take_out_to_show(place));
            }
        }
        visit.place < visit.places
    }

    fn put_back(&mut self, _: &mut Visit, shown: Shown<T, PriorityMeta, u32>) {
        self.shown -= 1;
        let Shown {
            entry,
            position: place,
        } = shown;
        if !self.slab.put_back(place, entry) {
            self.make_ready_at(place);
        }
        self.note_place(place);
    }

    /// Shows nothing, since the items that have ranks would be ranked again.
    fn scan_times(&mut self, visit: &mut Visit, least: &mut Option<u64>) -> bool {
        for place in (visit.place..visit.places).take(SCAN_STEP) {
            if self.is_to_be_visited(place, visit) {
                let since = self.slab[place].since;
                *least = Some(least.map_or(since, |least| least.min(since)));
            }
            visit.place = place + 1;
        }
        visit.place < visit.places
    }

    fn end_visit(&mut self) {
        self.visits -= 1;
        self.tidy();
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
