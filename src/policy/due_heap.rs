//! Items in the order of their due times; the scheduled ones can be found by their tickets.
//!
//! The heap has short keys, and the items stay in their places, so that its moves are short. The key of an item that was
//! removed before its time stays behind until it is the first one, or such keys are too many.

use crate::order::{Due, Ticket};
use crate::raw::Entry;
use crate::time::NEVER;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::mem;

/// How many keys or places are always tolerated.
const SLACK: usize = 64;

/// Items by their due times; of one time, by their arrival.
pub(super) struct DueHeap<T> {
    /// The first one is that of the next item.
    keys: BinaryHeap<Reverse<Key>>,
    places: Vec<Place<T>>,
    /// The first vacant place, past all others if there is none.
    vacant: usize,
    len: usize,
    arrivals: u64,
    /// The places of the items with tickets; built on the first lookup.
    index: Option<HashMap<Ticket, usize>>,
    /// The number of visits in progress. Meanwhile items stay in their places.
    visits: usize,
    /// Empty: arrivals are swapped for it.
    pub(super) spare: Vec<Scheduled<T>>,
}

/// A due time, the number of an arrival, and the place of the item.
pub(super) type Key = (u64, u64, usize);

enum Place<T> {
    Filled(Filled<T>),
    /// One variant for all others, since some items, such as boxes, have room for the tag of one only.
    Empty(Empty),
}

enum Empty {
    /// The next vacant place.
    Vacant(usize),
    /// Of an item that is being shown.
    Shown {
        arrival: u64,
        /// Whether the key is still there.
        has_key: bool,
    },
}

impl<T> Place<T> {
    fn vacant(next: usize) -> Self {
        Self::Empty(Empty::Vacant(next))
    }
}

/// An item and what is kept of it.
pub(super) struct Filled<T> {
    pub(super) entry: Entry<T>,
    /// `None`: it is not scheduled, but has failed.
    pub(super) ticket: Option<Ticket>,
    arrival: u64,
}

/// An item that is scheduled.
pub(crate) struct Scheduled<T> {
    pub(crate) due: u64,
    pub(crate) ticket: Ticket,
    /// Counted for the delivery to come.
    pub(crate) entry: Entry<T>,
}

derive_default!([T] DueHeap<T> { keys, places, vacant, len, arrivals, index, visits, spare });

impl<T> DueHeap<T> {
    pub(super) fn insert(&mut self, due: u64, ticket: Option<Ticket>, entry: Entry<T>) {
        self.arrivals += 1;
        let (arrival, place) = (self.arrivals, self.vacant);
        let filled = Place::Filled(Filled {
            entry,
            ticket,
            arrival,
        });
        if let Some(found) = self.places.get_mut(place) {
            if let Place::Empty(Empty::Vacant(next)) = mem::replace(found, filled) {
                self.vacant = next;
            }
        } else {
            // By a quarter: a double would be the largest part of what an item costs.
            if place == self.places.capacity() {
                self.places.reserve_exact(place / 4 + 1);
            }
            self.places.push(filled);
            self.vacant += 1;
        }
        if self.keys.len() == self.keys.capacity() {
            self.keys.reserve_exact(self.keys.len() / 4 + 1);
        }
        self.keys.push(Reverse((due, arrival, place)));
        self.len += 1;
        if let Some((index, ticket)) = self.index.as_mut().zip(ticket) {
            index.insert(ticket, place);
        }
    }

    /// The due time of the next item; [`NEVER`] if there is none.
    pub(super) fn next(&self) -> u64 {
        self.keys.peek().map_or(NEVER, |key| key.0 .0)
    }

    /// The due time of the next scheduled item. Looks at all items if a failed one comes before it.
    pub(super) fn next_scheduled(&self) -> Option<u64> {
        let is_scheduled = |key: &&Reverse<Key>| match &self.places[key.0 .2] {
            Place::Filled(filled) => filled.arrival == key.0 .1 && filled.ticket.is_some(),
            Place::Empty(_) => false,
        };
        let any = || self.keys.iter().filter(is_scheduled).max();
        let first = self.keys.peek().filter(is_scheduled);
        first.or_else(any).map(|key| key.0 .0)
    }

    /// Takes out the next item, if it is due at `now`, and returns whether it is a scheduled one.
    pub(super) fn pop_due(&mut self, now: u64) -> Option<(Due<Entry<T>>, bool)> {
        if self.next() > now {
            return None;
        }
        let Reverse((due, _, place)) = self.keys.pop()?;
        let Filled { entry, ticket, .. } = self.vacate(place)?;
        self.tidy();
        Some((Due { due, entry }, ticket.is_some()))
    }

    /// Removes the item with a ticket.
    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<Entry<T>> {
        let place = *self.index().get(&ticket)?;
        let filled = self.vacate(place);
        self.tidy();
        filled.map(|filled| filled.entry)
    }

    /// The item with a ticket.
    pub(super) fn get_mut(&mut self, ticket: Ticket) -> Option<&mut Entry<T>> {
        let place = *self.index().get(&ticket)?;
        match &mut self.places[place] {
            Place::Filled(filled) => Some(&mut filled.entry),
            Place::Empty(_) => None,
        }
    }

    fn index(&mut self) -> &HashMap<Ticket, usize> {
        let places = &self.places;
        self.index.get_or_insert_with(|| {
            let tickets = places
                .iter()
                .enumerate()
                .filter_map(|(place, at)| match at {
                    Place::Filled(filled) => Some((filled.ticket?, place)),
                    Place::Empty(_) => None,
                });
            tickets.collect()
        })
    }

    fn vacate(&mut self, place: usize) -> Option<Filled<T>> {
        let filled = self.replace(place, Place::vacant(self.vacant))?;
        self.vacated(place, filled.ticket);
        Some(filled)
    }

    /// Replaces what is in a place by something else, if that is an item.
    fn replace(&mut self, place: usize, by: Place<T>) -> Option<Filled<T>> {
        let at = &mut self.places[place];
        if !matches!(at, Place::Filled(_)) {
            return None;
        }
        match mem::replace(at, by) {
            Place::Filled(filled) => Some(filled),
            Place::Empty(_) => None,
        }
    }

    /// Records that the place of an item with this ticket is the first vacant one now.
    fn vacated(&mut self, place: usize, ticket: Option<Ticket>) {
        self.vacant = place;
        self.len -= 1;
        if let Some((index, ticket)) = self.index.as_mut().zip(ticket) {
            index.remove(&ticket);
        }
    }

    fn is_live(places: &[Place<T>], (_, arrival, place): Key) -> bool {
        matches!(&places[place], Place::Filled(filled) if filled.arrival == arrival)
    }

    /// Removes the keys before that of the next item; if there are many others without an item, or many vacant places, and no
    /// visit is in progress, moves all items to new places.
    pub(super) fn tidy(&mut self) {
        while let Some(&Reverse(key)) = self.keys.peek() {
            if Self::is_live(&self.places, key) {
                break;
            }
            self.keys.pop();
            if let Place::Empty(Empty::Shown { arrival, has_key }) = &mut self.places[key.2] {
                *has_key &= *arrival != key.1;
            }
        }
        if self.visits > 0 {
            return;
        }
        let room = self.places.capacity().max(self.keys.capacity());
        if self.keys.len().max(room / 2) > 2 * self.len + SLACK {
            self.move_all();
        }
    }

    #[cold]
    fn move_all(&mut self) {
        let mut from = mem::take(self);
        let mut keys = Vec::with_capacity(from.len);
        self.places.reserve_exact(from.len);
        for Reverse((due, arrival, place)) in from.keys {
            if Self::is_live(&from.places, (due, arrival, place)) {
                keys.push(Reverse((due, arrival, self.places.len())));
                let moved = mem::replace(&mut from.places[place], Place::vacant(0));
                self.places.push(moved);
            }
        }
        self.keys = keys.into();
        (self.vacant, self.len) = (self.places.len(), from.len);
        (self.arrivals, self.spare) = (from.arrivals, from.spare);
    }
}

/// Visits, which take out a few items at a time.
impl<T> DueHeap<T> {
    /// Begins a visit to all items, and returns their keys.
    pub(super) fn begin_visit(&mut self) -> impl Iterator<Item = Key> + '_ {
        self.visits += 1;
        self.keys.iter().map(|key| key.0)
    }

    /// Takes out the item with a key to be shown, if it is there. Until it is put back it is neither due nor found by its
    /// ticket. The caller [tidies](Self::tidy) the keys afterwards.
    pub(super) fn show(&mut self, key: Key) -> Option<Filled<T>> {
        if !Self::is_live(&self.places, key) {
            return None;
        }
        let (_, arrival, place) = key;
        let has_key = true;
        self.replace(place, Place::Empty(Empty::Shown { arrival, has_key }))
    }

    /// Puts an item back that was shown.
    pub(super) fn put_back(&mut self, key: Key, filled: Filled<T>) {
        let place = key.2;
        if let Some((index, ticket)) = self.index.as_mut().zip(filled.ticket) {
            index.insert(ticket, place);
        }
        let shown = mem::replace(&mut self.places[place], Place::Filled(filled));
        if let Place::Empty(Empty::Shown { has_key: false, .. }) = shown {
            self.keys.push(Reverse(key));
        }
    }

    /// Forgets an item that was shown.
    pub(super) fn forget(&mut self, key: Key, filled: Filled<T>) -> Entry<T> {
        self.places[key.2] = Place::vacant(self.vacant);
        self.vacated(key.2, filled.ticket);
        filled.entry
    }

    pub(super) fn end_visit(&mut self) {
        self.visits -= 1;
        self.tidy();
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
