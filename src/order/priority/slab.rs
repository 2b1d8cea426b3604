//! A slab of items, whose places are reused.
//!
//! An item is put next to another one, if possible: items of a priority are neighbours, in a few [`Chunks`]. A chunk is
//! vacant again when all its places are.
//!
//! The places are contiguous, and the items are moved to a new slab when most places are vacant, since only the heap
//! knows their numbers. In a fair queue items contain the numbers of their keys, so it uses pages instead, which are
//! released one by one.

use super::meta::PriorityMeta;
use crate::order::chunks::Chunks;
use crate::raw::{DeliveryMeta, Entry, Stored};
use std::mem;
use std::ops::{Index, IndexMut};

const VACANT: &str = "linked places are not vacant";

/// A place beside which no item can be put.
pub(super) const NOWHERE: u32 = u32::MAX;

/// The items of a heap.
pub(super) struct ItemSlab<T> {
    chunks: Places<T>,
    items: usize,
}

/// Each chunk is linked to the next one that was taken for its items.
type Places<T> = Chunks<SlabEntry<T>, Used>;

/// How many places of a chunk are not vacant. Without any, the chunk is vacant.
type Used = u32;

#[derive(Default)]
enum SlabEntry<T> {
    Taken(SlabItem<T>),
    /// The item is being shown by a visit. While it is linked, its place is part of a list.
    Shown {
        link: Link,
        linked: bool,
    },
    #[default]
    Vacant,
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
    pub(super) fn new() -> Self {
        Self {
            chunks: Chunks::new(),
            items: 0,
        }
    }

    /// The number of items.
    pub(super) fn len(&self) -> usize {
        self.items
    }

    /// Whether there are too many places for the items.
    #[inline]
    pub(super) fn is_wasteful(&self) -> bool {
        self.chunks.is_wasteful(self.items)
    }

    /// The number of places.
    pub(super) fn places(&self) -> usize {
        self.chunks.places().len()
    }

    /// Puts an item into the place behind `near`, if that is vacant and in the same chunk; otherwise into a vacant chunk.
    /// `near` is the place of an item, or nowhere. This decides only where the item is: the order is that of the links, so an
    /// item whose priority changes stays where it is.
    #[inline(always)] // the arrival
    pub(super) fn put(&mut self, item: SlabItem<T>, near: u32) -> u32 {
        let mut place = near.wrapping_add(1);
        if !Places::<T>::begins_chunk(place) && self.is_vacant(place) {
            self.chunks.chunk_of(place).head += 1;
        } else {
            place = self.begin_chunk(near);
        }
        self.items += 1;
        self.chunks[place] = SlabEntry::Taken(item);
        place
    }

    #[inline]
    fn is_vacant(&self, place: u32) -> bool {
        matches!(self.chunks.get(place), Some(SlabEntry::Vacant))
    }

    /// Takes a vacant chunk, links that of `near` to it, and returns its first place.
    #[inline(never)]
    fn begin_chunk(&mut self, near: u32) -> u32 {
        let place = self.chunks.take();
        self.chunks.chunk_of(place).head = 1;
        if near != NOWHERE {
            self.chunks.chunk_of(near).next = place;
        }
        place
    }

    /// Takes the item out of a place, if there is one.
    #[inline]
    pub(super) fn take(&mut self, place: u32) -> Option<SlabItem<T>> {
        let at = self.chunks.get_mut(place)?;
        if !matches!(at, SlabEntry::Taken(_)) {
            return None;
        }
        let SlabEntry::Taken(item) = mem::take(at) else {
            return None;
        };
        self.items -= 1;
        self.vacate(place);
        Some(item)
    }

    /// Counts a place as vacant. When it is the first of its chunk, the items of the next one are soon needed.
    #[inline]
    fn vacate(&mut self, place: u32) {
        let chunk = self.chunks.chunk_of(place);
        let next = chunk.next;
        chunk.head -= 1;
        if chunk.head == 0 {
            self.chunks.release(place);
        }
        if Places::<T>::begins_chunk(place) {
            self.chunks.prefetch(next);
        }
    }

    /// Whether a place is in a chunk that is not vacant.
    pub(super) fn is_in_use(&self, place: u32) -> bool {
        let chunk = self.chunks.chunk(place);
        chunk.is_some_and(|chunk| chunk.head > 0)
    }

    /// Prepares the use of a place that is probably not in a cache, and of its neighbours.
    #[inline]
    pub(super) fn prefetch(&self, place: u32) {
        self.chunks.prefetch(place);
    }

    #[inline]
    pub(super) fn get(&self, place: u32) -> Option<&SlabItem<T>> {
        match self.chunks.get(place)? {
            SlabEntry::Taken(item) => Some(item),
            _ => None,
        }
    }

    /// Takes the item out of its place to show it, and reserves the place for it.
    pub(super) fn show(&mut self, place: u32) -> Option<SlabItem<T>> {
        let SlabItem { link, state, .. } = *self.get(place)?;
        let linked = state == ItemState::Listed;
        let at = &mut self.chunks[place];
        let SlabEntry::Taken(item) = mem::replace(at, SlabEntry::Shown { link, linked }) else {
            return None;
        };
        self.items -= 1;
        Some(item)
    }

    /// Puts an item back into the place that is reserved for it; returns whether it is linked there.
    pub(super) fn put_back(&mut self, place: u32, entry: Entry<Stored<T, PriorityMeta>>) -> bool {
        let at = &mut self.chunks[place];
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
        match &mut self.chunks[place] {
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
        match &self.chunks[place] {
            SlabEntry::Taken(SlabItem { link, .. }) | SlabEntry::Shown { link, .. } => link,
            SlabEntry::Vacant => unreachable!("{VACANT}"),
        }
    }

    #[inline]
    pub(super) fn link_mut(&mut self, place: u32) -> &mut Link {
        match &mut self.chunks[place] {
            SlabEntry::Taken(SlabItem { link, .. }) | SlabEntry::Shown { link, .. } => link,
            SlabEntry::Vacant => unreachable!("{VACANT}"),
        }
    }

    /// All items with their places.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &SlabItem<T>)> {
        let places = (0..).zip(self.chunks.places());
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
        match &self.chunks[place] {
            SlabEntry::Taken(item) => item,
            _ => unreachable!("{VACANT}"),
        }
    }
}

impl<T> IndexMut<u32> for ItemSlab<T> {
    #[inline]
    fn index_mut(&mut self, place: u32) -> &mut SlabItem<T> {
        match &mut self.chunks[place] {
            SlabEntry::Taken(item) => item,
            _ => unreachable!("{VACANT}"),
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
