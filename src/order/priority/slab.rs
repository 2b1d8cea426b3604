//! A slab of items, whose places are reused.
//!
//! The places are contiguous, and the items are moved to a new slab when most places are vacant, since only the heap
//! knows their numbers. In a fair queue items contain the numbers of their keys, so it uses pages instead, which are
//! released one by one.

use super::meta::PriorityMeta;
use crate::raw::{DeliveryMeta, Entry, Stored};
use std::mem;
use std::ops::{Index, IndexMut};

const VACANT: &str = "linked places are not vacant";

/// The items of a heap.
pub(super) struct ItemSlab<T> {
    places: Vec<SlabEntry<T>>,
    /// The first vacant place; the number of places if none is vacant.
    vacant: u32,
    items: usize,
}

enum SlabEntry<T> {
    Taken(SlabItem<T>),
    /// The item is being shown by a visit. While it is linked, its place is part of a list.
    Shown {
        link: Link,
        linked: bool,
    },
    /// The next vacant place.
    Vacant(u32),
}

/// An item in its place: the contents of an [`Entry`], and its position in the order. Compact, because cache misses
/// dominate the cost of a long queue.
pub(super) struct SlabItem<T> {
    item: T,
    pub(super) since: u64,
    pub(super) link: Link,
    attempts: u32,
    pub(super) state: ItemState,
}

/// The position of an item in the order.
#[derive(Clone, Copy)]
pub(super) struct Link {
    pub(super) meta: PriorityMeta,
    pub(super) arrival: i64,
    /// The places of its neighbours, if it is listed and has any.
    pub(super) before: u32,
    pub(super) after: u32,
}

/// The structure that determines when an item is next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ItemState {
    /// The item is ready, and in the list of its priority.
    Listed,
    /// The item is ready, and has a rank entry.
    Ranked,
    /// The item is not due; it has a rank entry among those that wait.
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

    /// The number of items.
    pub(super) fn len(&self) -> usize {
        self.items
    }

    /// The number of places.
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
                _ => unreachable!("the free list contains a place that is not vacant"),
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

    /// Takes the item out of its place to show it, and reserves the place for it.
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

    /// Puts an item back into the place that is reserved for it; returns whether it is linked there.
    pub(super) fn put_back(&mut self, place: u32, entry: Entry<Stored<T, PriorityMeta>>) -> bool {
        let at = &mut self.places[place as usize];
        let SlabEntry::Shown { link, linked } = *at else {
            unreachable!("no place is reserved for the item");
        };
        let mut item = SlabItem::new(entry, link.arrival);
        item.link = link;
        *at = SlabEntry::Taken(item);
        self.items += 1;
        linked
    }

    /// Marks the item of a place as not linked; `false` if it is not being shown.
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
