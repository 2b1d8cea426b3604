//! Values that belong to held items, found by the positions of the items.

use crate::raw::HeldPosition;
use crate::sync::count_visit;
use std::mem;

/// Values of the items that a transaction holds, in the order in which they were taken.
///
/// An item is identified by the position behind it. A removed value leaves its place behind, so that no others move;
/// when half of the places are left behind they are dropped.
pub(crate) struct HeldTable<V> {
    /// In ascending order of the positions; `None` where the value was removed.
    places: Vec<(HeldPosition, Option<V>)>,
    removed: usize,
}

impl<V> HeldTable<V> {
    pub(crate) fn new() -> Self {
        Self {
            places: Vec::new(),
            removed: 0,
        }
    }

    /// Adds the value of an item that was held after all others in the table.
    pub(crate) fn add(&mut self, position: HeldPosition, value: V) {
        debug_assert!(self.places.last().map_or(true, |last| last.0 < position));
        self.places.push((position, Some(value)));
    }

    fn find(&self, position: HeldPosition) -> Option<usize> {
        let found = self.places.binary_search_by(|place| {
            count_visit();
            place.0.cmp(&position)
        });
        found.ok()
    }

    pub(crate) fn get(&self, position: HeldPosition) -> Option<&V> {
        self.places[self.find(position)?].1.as_ref()
    }

    pub(crate) fn remove(&mut self, position: HeldPosition) -> Option<V> {
        let found = self.find(position)?;
        let value = self.places[found].1.take()?;
        self.removed += 1;
        if 2 * self.removed >= self.places.len() {
            self.removed = 0;
            self.places.retain(|place| {
                count_visit();
                place.1.is_some()
            });
        }
        Some(value)
    }

    /// The values with the positions of their items.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (HeldPosition, &V)> {
        let places = self.places.iter();
        places.filter_map(|(position, value)| Some((*position, value.as_ref()?)))
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.places.iter_mut().filter_map(|place| place.1.as_mut())
    }

    /// Empties the table, frees its memory, and returns the values.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = V> {
        let table = mem::replace(self, Self::new());
        table.places.into_iter().filter_map(|(_, value)| value)
    }
}
