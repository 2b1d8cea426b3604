//! The items of a priority queue in their order.
//!
//! The next item is the one with the least priority number; among equals, the one that has been ready longest.
//! An item is numbered when it becomes ready; a returned item is numbered before all others. Items that are not due yet
//! are elsewhere.
//!
//! # Ageing
//!
//! With ageing by a step `d`, an item of priority `p` that has been ready since `s` has at time `t` the effective
//! priority `p - (t - s) / d`. Of two items the one with the lesser `p·d + s` has the lesser effective
//! priority, at any time: so only this sum, the rank, is needed, and it never changes.
//!
//! # Lists and ranks
//!
//! Items that become ready in their order are in a list of their priority; see [`Levels`]. All others are in a map by their
//! ranks. With ageing the lists are not used, as the order is not by priority.

use super::levels::Levels;
use super::meta::PriorityMeta;
use super::times::DueTimes;
use super::PriorityEntry;
use crate::order::chunks::SLACK;
use crate::order::lists::Position;
use crate::order::{Dequeued, Due, Sequence, Shown, Ticket, PART, SCAN_STEP};
use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;
use std::time::Duration;

/// The items of a priority queue.
pub(crate) struct PriorityHeap<T> {
    times: Arc<DueTimes>,
    ageing: Option<AgeStep>,
    /// Ready items in the order of their numbers.
    levels: Levels<T>,
    /// The other ready items.
    ranked: Ranks<T>,
    /// The arrival numbers: increasing for items that become ready, decreasing for returned ones.
    last: i64,
    first: i64,
    /// The places of the items with tickets; built on the first lookup.
    places: Option<HashMap<Ticket, Place>>,
    /// The ranked items by their times, and some that are gone; made at the first [`Sequence::take_old`].
    ages: Option<BinaryHeap<Reverse<(u64, Rank)>>>,
    /// The number of visits in progress. Meanwhile listed items stay in their places.
    visits: usize,
}

/// A rank and an arrival number: the position of an item in the order.
type Rank = (u64, i64);
/// Items by rank, in boxes, as a map moves its values.
type Ranks<T> = BTreeMap<Rank, Box<Ranked<T>>>;

struct Ranked<T> {
    entry: PriorityEntry<T>,
    /// The number that was last when it got this rank.
    placed: i64,
}

/// Where an item is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    Listed(Position),
    Ranked(Rank),
}

impl Place {
    fn number(self) -> i64 {
        match self {
            Self::Listed(Position { number, .. }) | Self::Ranked((_, number)) => number,
        }
    }
}

/// The progress of a visit: the next rank, the places that are left of those that there were when it began, and the numbers of
/// the items that were there. An item that moves meanwhile gets another number, so that it is not visited twice.
#[derive(Debug)]
pub(crate) struct Visit {
    rank: Rank,
    places: Range<u32>,
    numbers: RangeInclusive<i64>,
}

/// The waiting time in nanoseconds after which the priority improves by one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AgeStep(u64);

impl AgeStep {
    /// A day, so that 65,535 steps are less than half of the range of times.
    const LONGEST: u64 = 24 * 60 * 60 * 1_000_000_000;

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
            levels: Levels::new(),
            ranked: BTreeMap::new(),
            last: 0,
            first: 0,
            places: None,
            ages: None,
            visits: 0,
        }
    }

    /// Changes the priority of an item that is not held; `false` if there is none with this ticket.
    pub(crate) fn reprioritize(&mut self, ticket: Ticket, priority: u16) -> bool {
        let Some((place, mut entry)) = self.remove(ticket) else {
            return false;
        };
        entry.item.meta = entry.item.meta.with(priority);
        self.rank(place.number(), entry);
        true
    }

    /// Takes out the item with a ticket, and returns also where it was.
    fn remove(&mut self, ticket: Ticket) -> Option<(Place, PriorityEntry<T>)> {
        let places = self.places.get_or_insert_with(|| {
            let listed = self.levels.places().filter_map(|place| {
                let (at, meta, _) = self.levels.items.item_at(place)?;
                Some((meta, Place::Listed(at)))
            });
            let ranked = self.ranked.iter();
            let ranked = ranked.map(|(rank, item)| (item.entry.item.meta, Place::Ranked(*rank)));
            let all = listed.chain(ranked);
            all.filter_map(|(meta, place)| Some((meta.ticket()?, place)))
                .collect()
        });
        let place = *places.get(&ticket)?;
        let entry = self.take(place)?;
        self.trim(entry.item.meta);
        if self.levels.items.has_many_gaps() {
            self.sweep();
        }
        Some((place, self.release(entry)))
    }

    /// Removes the gaps before the items of a priority, one of which was taken out: they are common if items are removed in
    /// the order in which they were pushed.
    fn trim(&mut self, meta: PriorityMeta) {
        self.levels.trim_list(usize::from(meta.priority()));
    }

    #[inline]
    fn next_number(&mut self) -> i64 {
        self.last += 1;
        self.last
    }

    /// Adds a ready item with this number, which is greater than all others, or less if it is returned.
    #[inline(always)] // the arrival
    fn add(&mut self, number: i64, entry: PriorityEntry<T>) {
        if self.ageing.is_some() {
            return self.rank(number, entry);
        }
        let meta = entry.item.meta;
        let place = self.levels.push(number, entry);
        self.note_place(meta, Place::Listed(Position { place, number }));
    }

    /// Adds a ready item by its rank.
    #[inline(never)]
    fn rank(&mut self, number: i64, entry: PriorityEntry<T>) {
        let meta = entry.item.meta;
        let priority = u64::from(meta.priority());
        let rank = self.ageing.map_or(priority, |step| {
            let due = self.times.due(meta).saturating_add(1);
            step.rank(priority, entry.delivery.since.max(due))
        });
        let placed = self.next_number();
        self.note_place(meta, Place::Ranked((rank, number)));
        if let Some(ages) = &mut self.ages {
            ages.push(Reverse((entry.delivery.since, (rank, number))));
        }
        let item = Box::new(Ranked { entry, placed });
        self.ranked.insert((rank, number), item);
    }

    /// Takes out ranked items that were pushed at `until` or before, as [`Levels::take_old`] does.
    fn take_old_ranked(
        &mut self,
        until: u64,
        most: usize,
        into: &mut Vec<PriorityEntry<T>>,
    ) -> Option<u64> {
        let Self { ranked, ages, .. } = self;
        let since = |item: &Ranked<T>| item.entry.delivery.since;
        if ages
            .as_ref()
            .map_or(true, |it| it.len() > 2 * ranked.len() + SLACK)
        {
            let all = ranked.iter();
            let all = all.map(|(rank, item)| Reverse((since(item), *rank)));
            *ages = Some(all.collect());
        }
        let ages = ages.as_mut()?;
        while let Some(first) = ages.peek_mut() {
            let Reverse((time, rank)) = *first;
            if ranked.get(&rank).map(|item| since(item)) != Some(time) {
                PeekMut::pop(first);
                continue;
            }
            if time > until || into.len() >= most {
                return Some(time);
            }
            PeekMut::pop(first);
            into.extend(ranked.remove(&rank).map(|item| item.entry));
        }
        None
    }

    /// Takes out an item that is not held.
    fn take(&mut self, place: Place) -> Option<PriorityEntry<T>> {
        match place {
            Place::Listed(position) => self.levels.items.take(position),
            Place::Ranked(rank) => self.ranked.remove(&rank).map(|ranked| ranked.entry),
        }
    }

    /// Takes out the next item.
    #[inline(always)] // the pop
    fn take_next(&mut self) -> Option<PriorityEntry<T>> {
        if self.levels.items.has_gaps() {
            self.levels.trim();
        }
        if !self.ranked.is_empty() {
            let listed = self.levels.first();
            let first = self.ranked.first_entry()?;
            if listed.map_or(true, |listed| *first.key() < listed) {
                return Some(first.remove().entry);
            }
        }
        self.levels.pop()
    }

    /// Advances a visit to the next item; `None` if there is none, or none within [`SCAN_STEP`].
    fn next_place(&self, visit: &mut Visit) -> Option<Place> {
        for _ in 0..SCAN_STEP {
            if let Some((&rank, ranked)) = self.ranked.range(visit.rank..).next() {
                visit.rank = (rank.0, rank.1 + 1);
                if visit.numbers.contains(&ranked.placed) {
                    return Some(Place::Ranked(rank));
                }
            } else {
                let item = self.levels.items.item_at(visit.places.next()?);
                let item = item.filter(|(at, ..)| visit.numbers.contains(&at.number));
                if let Some((at, ..)) = item {
                    return Some(Place::Listed(at));
                }
            }
        }
        None
    }

    fn is_visit_over(&self, visit: &Visit) -> bool {
        visit.places.is_empty() && self.ranked.range(visit.rank..).next().is_none()
    }

    /// Releases an item that was taken out.
    #[inline]
    fn release(&mut self, entry: PriorityEntry<T>) -> PriorityEntry<T> {
        if let Some(places) = &mut self.places {
            remove_place(places, entry.item.meta);
        }
        self.tidy();
        entry
    }

    #[inline]
    fn note_place(&mut self, meta: PriorityMeta, place: Place) {
        if let (Some(places), Some(ticket)) = (&mut self.places, meta.ticket()) {
            places.insert(ticket, place);
        }
    }

    #[inline]
    fn tidy(&mut self) {
        if self.levels.items.is_wasteful() {
            self.sweep();
        }
    }

    /// Releases the memory of places that are not needed, unless a visit needs them.
    #[cold]
    fn sweep(&mut self) {
        if self.visits == 0 {
            self.levels.sweep();
            self.places = None;
        }
    }
}

#[inline(never)]
fn remove_place(places: &mut HashMap<Ticket, Place>, meta: PriorityMeta) {
    if let Some(ticket) = meta.ticket() {
        places.remove(&ticket);
    }
}

impl<T> Sequence<T, PriorityMeta> for PriorityHeap<T> {
    type Visit = Visit;
    type Position = Place;

    #[inline(always)] // by the intake, for each item
    fn arrive(&mut self, entry: PriorityEntry<T>) {
        let number = self.next_number();
        self.add(number, entry);
    }

    /// It was dequeued before, so it is due.
    fn come_back(&mut self, entry: PriorityEntry<T>) {
        self.first -= 1;
        self.add(self.first, entry);
    }

    #[inline(always)] // the pop
    fn next(&mut self, for_good: bool) -> Option<Dequeued<T, PriorityMeta>> {
        let entry = self.take_next()?;
        Some(Dequeued {
            entry: self.release(entry),
            gone: u32::from(for_good),
        })
    }

    /// Items due before the push of another one, as far as that is known, go first: within a priority the order is that in
    /// which items become ready.
    fn merge(&mut self, fresh: Vec<PriorityEntry<T>>, due: Vec<Due<PriorityEntry<T>>>) {
        let mut due = due.into_iter().peekable();
        for entry in fresh {
            let pushed = entry.delivery.since.wrapping_sub(1); // an unknown time is after all others
            while let Some(first) = due.next_if(|first| first.due <= pushed) {
                self.arrive(first.entry);
            }
            self.arrive(entry);
        }
        due.for_each(|left| self.arrive(left.entry));
    }

    fn cancel(&mut self, ticket: Ticket) -> Option<PriorityEntry<T>> {
        self.remove(ticket).map(|(_, entry)| entry)
    }

    fn take_old(
        &mut self,
        until: u64,
        most: usize,
        into: &mut Vec<Dequeued<T, PriorityMeta>>,
    ) -> Option<u64> {
        let mut old = Vec::new();
        let listed = self.levels.take_old(until, most, &mut old);
        let ranked = self.take_old_ranked(until, most, &mut old);
        for entry in old {
            let entry = self.release(entry);
            into.push(Dequeued { entry, gone: 1 });
        }
        listed.into_iter().chain(ranked).min()
    }

    fn ready(&self) -> usize {
        self.levels.items.len() + self.ranked.len()
    }

    /// Without ageing.
    fn ready_until(&self, priority: u16, most: usize) -> usize {
        let ranked = self.ranked.range(..=(u64::from(priority), i64::MAX));
        let count = ranked.take(most).count();
        count + self.levels.count_until(usize::from(priority), most - count)
    }

    /// Visits only the items already there.
    fn begin_visit(&mut self, _all: bool) -> Visit {
        self.visits += 1;
        Visit {
            rank: (0, i64::MIN),
            places: self.levels.places(),
            numbers: self.first..=self.last,
        }
    }

    fn show(&mut self, visit: &mut Visit, into: &mut Vec<Shown<T, PriorityMeta, Place>>) -> bool {
        for _ in 0..PART {
            let Some(position) = self.next_place(visit) else {
                break;
            };
            let entry = self.take(position);
            into.extend(entry.map(|entry| Shown { entry, position }));
        }
        !self.is_visit_over(visit)
    }

    fn put_back(&mut self, _: &mut Visit, shown: Shown<T, PriorityMeta, Place>) {
        let Shown { entry, position } = shown;
        let meta = entry.item.meta;
        let put = match position {
            Place::Listed(at) => self.levels.items.put_back(at, entry),
            Place::Ranked(_) => Err(entry),
        };
        match put {
            Ok(()) => self.note_place(meta, position),
            Err(entry) => self.rank(position.number(), entry),
        }
    }

    fn remove_shown(&mut self, meta: PriorityMeta, _: Place) -> u32 {
        self.trim(meta);
        if let Some(places) = &mut self.places {
            remove_place(places, meta);
        }
        1
    }

    /// Shows nothing, since the items that have ranks would be ranked again.
    fn scan_times(&mut self, visit: &mut Visit, least: &mut Option<u64>) -> bool {
        for _ in 0..SCAN_STEP {
            let since = match self.next_place(visit) {
                Some(Place::Listed(at)) => self.levels.items.item_at(at.place).map(|item| item.2),
                Some(Place::Ranked(rank)) => Some(self.ranked[&rank].entry.delivery.since),
                None => break,
            };
            *least = least.iter().copied().chain(since).min();
        }
        !self.is_visit_over(visit)
    }

    fn end_visit(&mut self) {
        self.visits -= 1;
        if self.levels.items.has_many_gaps() {
            self.sweep();
        }
        self.tidy();
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
