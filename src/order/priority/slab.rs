//! Items in places that are used again.
//!
//! They lie side by side, and move together where most places are vacant, as their numbers are known to the heap
//! alone. The numbers of a fair queue's keys are known to its items, so that it has pages instead, which go one by one.

use super::meta::PriorityMeta;
use crate::raw::{DeliveryMeta, Entry, Stored};
use std::mem;
use std::ops::{Index, IndexMut};

const VACANT: &str = "listed, current and known places are taken";

/// The items of a heap.
pub(super) struct ItemSlab<T> {
    places: Vec<SlabEntry<T>>,
    /// The first vacant place; as many as there are places, if none is.
    vacant: u32,
    items: usize,
}

enum SlabEntry<T> {
    Taken(SlabItem<T>),
    /// The item is shown to somebody. While it is linked, it has its place in a list.
    Shown {
        link: Link,
        linked: bool,
    },
    /// The next vacant place.
    Vacant(u32),
}

/// An item in its place: what an [`Entry`] has, and what says where its turn is. Of few bytes, as most of
/// the time that a long queue takes is spent on fetching them.
pub(super) struct SlabItem<T> {
    item: T,
    pub(super) since: u64,
    pub(super) link: Link,
    attempts: u32,
    pub(super) state: ItemState,
}

/// What says where the turn of an item is.
#[derive(Clone, Copy)]
pub(super) struct Link {
    pub(super) meta: PriorityMeta,
    pub(super) arrival: i64,
    /// The places of its neighbours, if it is listed and has them.
    pub(super) before: u32,
    pub(super) after: u32,
}

/// By what the turn of an item is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ItemState {
    /// It is ready, and in the list of its priority.
    Listed,
    /// It is ready, and has a mark.
    Ranked,
    /// Its time has not come; it has a mark among those that wait.
    Waits,
}

impl<T> SlabItem<T> {
    pub(super) fn new(
        Entry { item, delivery }: Entry<Stored<T, PriorityMeta>>,
        arrival: i64,
    ) -> Self {
        Self {
            item: item.item,
            since: delivery.since,
            link: Link {
                meta: item.meta,
                arrival,
                before: 0,
                after: 0,
            },
            attempts: delivery.attempts,
            state: ItemState::Listed,
        }
    }

    pub(super) fn into_entry(self) -> Entry<Stored<T, PriorityMeta>> {
        let delivery = DeliveryMeta {
            attempts: self.attempts,
            since: self.since,
        };
        let item = Stored {
            item: self.item,
            meta: self.link.meta,
        };
        Entry { item, delivery }
    }
}

impl<T> ItemSlab<T> {
    pub(super) fn with_room_for(items: usize) -> Self {
        Self {
            places: Vec::with_capacity(items),
            vacant: 0,
            items: 0,
        }
    }

    /// How many items there are.
    pub(super) fn len(&self) -> usize {
        self.items
    }

    /// How many places there are.
    pub(super) fn places(&self) -> usize {
        self.places.len()
    }

    /// Puts an item into a vacant place.
    #[inline]
    pub(super) fn put(&mut self, item: SlabItem<T>) -> u32 {
        let place = self.vacant;
        self.items += 1;
        match self.places.get_mut(place as usize) {
            None => {
                self.vacant = place.checked_add(1).expect("no more than 2³² items");
                self.places.push(SlabEntry::Taken(item));
            }
            Some(at) => match mem::replace(at, SlabEntry::Taken(item)) {
                SlabEntry::Vacant(next) => self.vacant = next,
                _ => unreachable!("a vacant place is taken"),
            },
        }
        place
    }

    /// Takes the item out of a place, if there is one.
    #[inline]
    pub(super) fn take(&mut self, place: u32) -> Option<SlabItem<T>> {
        let at = self.places.get_mut(place as usize)?;
        if !matches!(at, SlabEntry::Taken(_)) {
            return None;
        }
        let SlabEntry::Taken(item) = mem::replace(at, SlabEntry::Vacant(self.vacant)) else {
            return None;
        };
        self.vacant = place;
        self.items -= 1;
        Some(item)
    }

    #[inline]
    pub(super) fn get(&self, place: u32) -> Option<&SlabItem<T>> {
        match self.places.get(place as usize)? {
            SlabEntry::Taken(item) => Some(item),
            _ => None,
        }
    }

    /// Takes the item out of a place that is taken, and leaves that to it.
    pub(super) fn show(&mut self, place: u32) -> Option<SlabItem<T>> {
        let SlabItem { link, state, .. } = *self.get(place)?;
        let linked = state == ItemState::Listed;
        let at = &mut self.places[place as usize];
        let SlabEntry::Taken(item) = mem::replace(at, SlabEntry::Shown { link, linked }) else {
            return None;
        };
        self.items -= 1;
        Some(item)
    }

    /// Puts an item back into the place that was left to it: whether it is linked there.
    pub(super) fn put_back(&mut self, place: u32, entry: Entry<Stored<T, PriorityMeta>>) -> bool {
        let at = &mut self.places[place as usize];
        let SlabEntry::Shown { link, linked } = *at else {
            unreachable!("a place is left to the item that is shown");
        };
        let mut item = SlabItem::new(entry, link.arrival);
        item.link = link;
        *at = SlabEntry::Taken(item);
        self.items += 1;
        linked
    }

    /// Takes note that what was in a place is in no list any more: false, if it is not shown.
    pub(super) fn unlink_shown(&mut self, place: u32) -> bool {
        match &mut self.places[place as usize] {
            SlabEntry::Shown { linked, .. } => {
                *linked = false;
                true
            }
            _ => false,
        }
    }

    /// The link in a place that is not vacant.
    #[inline]
    pub(super) fn link(&self, place: u32) -> &Link {
        match &self.places[place as usize] {
            SlabEntry::Taken(SlabItem { link, .. }) | SlabEntry::Shown { link, .. } => link,
            SlabEntry::Vacant(_) => unreachable!("{VACANT}"),
        }
    }

    #[inline]
    pub(super) fn link_mut(&mut self, place: u32) -> &mut Link {
        match &mut self.places[place as usize] {
            SlabEntry::Taken(SlabItem { link, .. }) | SlabEntry::Shown { link, .. } => link,
            SlabEntry::Vacant(_) => unreachable!("{VACANT}"),
        }
    }

    /// All items with their places.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &SlabItem<T>)> {
        let places = (0..).zip(&self.places);
        places.filter_map(|(place, at)| match at {
            SlabEntry::Taken(item) => Some((place, item)),
            _ => None,
        })
    }
}

/// The item in a place that is taken.
impl<T> Index<u32> for ItemSlab<T> {
    type Output = SlabItem<T>;

    #[inline]
    fn index(&self, place: u32) -> &SlabItem<T> {
        match &self.places[place as usize] {
            SlabEntry::Taken(item) => item,
            _ => unreachable!("{VACANT}"),
        }
    }
}

impl<T> IndexMut<u32> for ItemSlab<T> {
    #[inline]
    fn index_mut(&mut self, place: u32) -> &mut SlabItem<T> {
        match &mut self.places[place as usize] {
            SlabEntry::Taken(item) => item,
            _ => unreachable!("{VACANT}"),
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn places_are_small() {
        assert_eq!(mem::size_of::<SlabEntry<u64>>(), 48);
    }
}
