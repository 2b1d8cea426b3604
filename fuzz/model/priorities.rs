//! The items of a queue by priority.

use super::disciplines::Urgency;
use super::item::Mark;
use super::settings::Ticks;
use super::stock::Card;

/// The items, in no order.
#[derive(Debug)]
pub(crate) struct Priorities {
    rules: Urgency,
    places: Vec<Place>,
    /// Numbers of arrivals go up, those of items that come back go down.
    last: i64,
    first: i64,
}

#[derive(Debug)]
struct Place {
    card: Card,
    arrival: i64,
    waits: bool,
}

/// What goes first: the least.
type Rank = (u64, Ticks);

impl Priorities {
    pub(super) fn new(rules: Urgency) -> Self {
        Self {
            rules,
            places: Vec::new(),
            last: 0,
            first: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) fn ready(&self) -> Vec<Mark> {
        let ready = self.places.iter().filter(|place| !place.waits);
        ready.map(|place| place.card.mark).collect()
    }

    /// When the first of those is due that wait for their time.
    pub(crate) fn next_due(&self) -> Option<Ticks> {
        let waiting = self.places.iter().filter(|place| place.waits);
        waiting.filter_map(|place| place.card.due).min()
    }

    pub(super) fn arrive(&mut self, card: Card) {
        self.last += 1;
        self.places.push(Place {
            card,
            arrival: self.last,
            waits: card.due.is_some(),
        });
    }

    /// What was taken before goes before its equals.
    pub(super) fn come_back(&mut self, card: Card) {
        self.first -= 1;
        self.places.push(Place {
            card,
            arrival: self.first,
            waits: false,
        });
    }

    pub(super) fn advance(&mut self, now: Ticks) {
        for place in &mut self.places {
            place.waits &= place.card.due > Some(now);
        }
    }

    /// With ageing, waiting makes up for priority; without it, only the time decides between equals.
    fn rank(&self, card: Card) -> Rank {
        let (priority, due) = (u64::from(card.priority), card.due.unwrap_or(0));
        match self.rules.age {
            Some(age) => (priority * age + card.since.max(due), 0),
            None => (priority, due),
        }
    }

    fn best(&self) -> Option<&Place> {
        let ready = self.places.iter().filter(|place| !place.waits);
        let due = |place: &Place| place.card.due.unwrap_or(0);
        ready.min_by_key(|place| (self.rank(place.card), due(place), place.arrival))
    }

    /// Takes the next item.
    pub(super) fn take(&mut self, mark: Mark) {
        let best = self.best().map(|place| place.card.mark);
        assert_eq!(best, Some(mark), "the next item");
        self.places.retain(|place| place.card.mark != mark);
    }

    /// Takes an item out, ready or not: false if it is not here.
    pub(crate) fn cancel(&mut self, mark: Mark) -> bool {
        let count = self.places.len();
        self.places.retain(|place| place.card.mark != mark);
        self.places.len() < count
    }

    /// Gives an item another priority: false if it is not here.
    pub(crate) fn reprioritize(&mut self, mark: Mark, priority: u16) -> bool {
        let place = self.places.iter_mut().find(|place| place.card.mark == mark);
        place.map(|place| place.card.priority = priority).is_some()
    }
}
