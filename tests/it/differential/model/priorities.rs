//! The items of a priority queue.

use super::disciplines::Urgency;
use super::item::Mark;
use super::settings::Ticks;
use super::stock::Card;
use std::mem;

/// The items, unordered.
#[derive(Debug)]
pub(crate) struct Priorities {
    rules: Urgency,
    /// Whether the push times of items are known.
    timed: bool,
    places: Vec<Place>,
    /// Pushed items that no consumer has taken in.
    fresh: Vec<Card>,
    /// Numbers of items that become ready go up, those of returned items go down.
    last: i64,
    first: i64,
}

#[derive(Debug)]
struct Place {
    card: Card,
    arrival: i64,
    waits: bool,
}

impl Priorities {
    pub(super) fn new(rules: Urgency, timed: bool) -> Self {
        Self {
            rules,
            timed,
            places: Vec::new(),
            fresh: Vec::new(),
            last: 0,
            first: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.places.len() + self.fresh.len()
    }

    pub(super) fn ready(&self) -> Vec<Mark> {
        let ready = self.places.iter().filter(|place| !place.waits);
        ready.map(|place| place.card.mark).collect()
    }

    /// The earliest time at which a scheduled item is due.
    pub(crate) fn next_due(&self) -> Option<Ticks> {
        let waiting = self.places.iter().filter(|place| place.waits);
        waiting.filter_map(|place| place.card.due).min()
    }

    pub(super) fn arrive(&mut self, card: Card) {
        if card.due.is_some() {
            self.add(card, true);
        } else {
            self.fresh.push(card);
        }
    }

    fn add(&mut self, card: Card, waits: bool) {
        self.last += 1;
        self.places.push(Place {
            card,
            arrival: self.last,
            waits,
        });
    }

    /// Returned items precede others of the same priority.
    pub(super) fn come_back(&mut self, card: Card) {
        self.first -= 1;
        self.places.push(Place {
            card,
            arrival: self.first,
            waits: false,
        });
    }

    /// Due items precede those that were pushed later, or at an unknown time.
    pub(super) fn advance(&mut self, now: Ticks) {
        for card in mem::take(&mut self.fresh) {
            let pushed = if self.timed { card.since } else { now };
            self.make_ready(pushed.min(now));
            self.add(card, false);
        }
        self.make_ready(now);
    }

    fn make_ready(&mut self, until: Ticks) {
        let waits = |place: &&mut Place| place.waits && place.card.due <= Some(until);
        let mut due: Vec<_> = self.places.iter_mut().filter(waits).collect();
        due.sort_by_key(|place| (place.card.due, place.arrival));
        for place in due {
            self.last += 1;
            place.arrival = self.last;
            place.waits = false;
        }
    }

    /// With ageing, waiting compensates for priority.
    fn rank(&self, card: Card) -> u64 {
        let (priority, due) = (u64::from(card.priority), card.due.unwrap_or(0));
        let age = self
            .rules
            .age
            .map(|age| priority * age + card.since.max(due));
        age.unwrap_or(priority)
    }

    fn best(&self) -> Option<&Place> {
        let ready = self.places.iter().filter(|place| !place.waits);
        ready.min_by_key(|place| (self.rank(place.card), place.arrival))
    }

    /// Takes the next item.
    pub(super) fn take(&mut self, mark: Mark) {
        let best = self.best().map(|place| place.card.mark);
        assert_eq!(best, Some(mark), "the next item");
        self.places.retain(|place| place.card.mark != mark);
    }

    /// Removes an item, ready or not: false if it is not here.
    pub(crate) fn cancel(&mut self, mark: Mark) -> bool {
        let count = self.places.len();
        self.places.retain(|place| place.card.mark != mark);
        self.places.len() < count
    }

    /// Reschedules an item: false if it is not here.
    pub(crate) fn reschedule(&mut self, mark: Mark, due: Ticks) -> bool {
        let place = self.places.iter_mut().find(|place| place.card.mark == mark);
        let Some(place) = place else {
            return false;
        };
        self.last += 1;
        place.arrival = self.last;
        place.card.due = Some(due);
        place.waits = true;
        true
    }

    /// Changes the priority of an item: false if it is not here.
    pub(crate) fn reprioritize(&mut self, mark: Mark, priority: u16) -> bool {
        let place = self.places.iter_mut().find(|place| place.card.mark == mark);
        place.map(|place| place.card.priority = priority).is_some()
    }
}
