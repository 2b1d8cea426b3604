//! The items of each key, contiguous in memory: items pushed at the same time with different keys are dequeued
//! far apart.
//!
//! The list of a key is in a ring buffer, and all buffers are in one vector. A list that outgrows its buffer moves to a
//! larger one, and the old one is kept for another list. So items come and go without the allocator. When most
//! places are vacant, all lists move to a new vector.

use crate::raw::{DeliveryMeta, Entry};
use std::mem;

/// How many vacant places are always tolerated.
const SLACK: usize = 256;
/// How many places are tolerated for each item.
const WASTE: usize = 16;
/// The number of sizes of buffers: the powers of two.
const SIZES: usize = u32::BITS as usize;
/// No buffer.
const NONE: u32 = u32::MAX;

/// The list of one key: its ring buffer, which has a power of two of places, or none.
#[derive(Default)]
pub(super) struct KeyItems {
    start: u32,
    room: u32,
    /// The index of the first item in the buffer.
    first: u32,
    len: u32,
}

impl KeyItems {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The place with this index from the first item on; there is a buffer.
    #[inline]
    fn place(&self, index: u32) -> usize {
        self.start as usize + (self.first.wrapping_add(index) & (self.room - 1)) as usize
    }

    /// Moves the list from its buffer at the beginning of some places to another one, which begins at `start` and is
    /// at the beginning of others. Returns the old list, which is empty.
    fn move_to<T>(
        &mut self,
        start: u32,
        room: u32,
        from: &mut [ListEntry<T>],
        to: &mut [ListEntry<T>],
    ) -> Self {
        let (len, first) = (self.len as usize, self.first as usize);
        let (wrapped, straight) = from[..self.room as usize].split_at_mut(first);
        let (to, rest) = to[..len].split_at_mut(len.min(straight.len()));
        straight[..to.len()].swap_with_slice(to);
        wrapped[..rest.len()].swap_with_slice(rest);
        let moved = Self {
            start,
            room,
            first: 0,
            len: self.len,
        };
        mem::replace(self, moved)
    }
}

/// The place of an item in a list: the contents of an [`Entry`] in fewer bytes.
pub(super) enum ListEntry<T> {
    Item {
        item: T,
        since: u64,
        attempts: u32,
    },
    /// The item with this name is being shown by a visit.
    Shown(u64),
    /// In the first place of a vacant buffer: the next vacant buffer of its size.
    Vacant(u32),
}

impl<T> ListEntry<T> {
    const VACANT: Self = Self::Vacant(NONE);

    #[inline]
    fn new(Entry { item, delivery }: Entry<T>) -> Self {
        Self::Item {
            item,
            since: delivery.since,
            attempts: delivery.attempts,
        }
    }

    /// The item, unless it is being shown.
    #[inline]
    fn into_entry(self) -> Option<Entry<T>> {
        let Self::Item {
            item,
            since,
            attempts,
        } = self
        else {
            return None;
        };
        let delivery = DeliveryMeta { attempts, since };
        Some(Entry { item, delivery })
    }

    pub(super) fn is_shown(&self) -> bool {
        matches!(self, Self::Shown(_))
    }

    /// The timestamp of the item, if it is known and the item is not being shown.
    pub(super) fn since(&self) -> Option<u64> {
        match self {
            Self::Item { since, .. } => Some(*since).filter(|since| *since != 0),
            Self::Shown(_) | Self::Vacant(_) => None,
        }
    }
}

/// The lists of all keys, and the number of items that are not being shown.
pub(super) struct Lists<T> {
    places: Vec<ListEntry<T>>,
    /// The first vacant buffer of each size.
    vacant: [u32; SIZES],
    len: usize,
}

impl<T> Lists<T> {
    pub(super) fn new() -> Self {
        Self {
            places: Vec::new(),
            vacant: [NONE; SIZES],
            len: 0,
        }
    }

    /// The number of items in all lists, except those being shown.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Whether there are too many places for this number of items.
    #[inline]
    pub(super) fn is_wasteful_for(&self, items: usize) -> bool {
        self.places.len() > WASTE * items + SLACK
    }

    pub(super) fn get(&self, list: &KeyItems, index: usize) -> Option<&ListEntry<T>> {
        let index = u32::try_from(index).ok().filter(|&index| index < list.len);
        index.map(|index| &self.places[list.place(index)])
    }

    fn get_mut(&mut self, list: &KeyItems, index: usize) -> Option<&mut ListEntry<T>> {
        let index = u32::try_from(index).ok().filter(|&index| index < list.len);
        index.map(|index| &mut self.places[list.place(index)])
    }

    #[inline]
    pub(super) fn push_back(&mut self, list: &mut KeyItems, entry: Entry<T>) {
        if list.len == list.room {
            self.grow(list);
        }
        self.places[list.place(list.len)] = ListEntry::new(entry);
        list.len += 1;
        self.len += 1;
    }

    pub(super) fn push_front(&mut self, list: &mut KeyItems, entry: Entry<T>) {
        if list.len == list.room {
            self.grow(list);
        }
        list.first = list.first.wrapping_sub(1) & (list.room - 1);
        self.places[list.place(0)] = ListEntry::new(entry);
        list.len += 1;
        self.len += 1;
    }

    /// Removes the first item, which is not being shown.
    #[inline]
    pub(super) fn pop_front(&mut self, list: &mut KeyItems) -> Option<Entry<T>> {
        let entry = self.remove_front(list)?.into_entry()?;
        self.len -= 1;
        Some(entry)
    }

    /// Removes the first place, whose item is being shown.
    pub(super) fn skip_front(&mut self, list: &mut KeyItems) {
        self.remove_front(list);
    }

    #[inline]
    fn remove_front(&mut self, list: &mut KeyItems) -> Option<ListEntry<T>> {
        if list.is_empty() {
            return None;
        }
        let place = list.place(0);
        list.first = (list.first + 1) & (list.room - 1);
        list.len -= 1;
        Some(mem::replace(&mut self.places[place], ListEntry::VACANT))
    }

    /// Takes the item out of its place to show it, and reserves the place for it.
    pub(super) fn show(&mut self, list: &KeyItems, index: usize, name: u64) -> Option<Entry<T>> {
        let place = self.get_mut(list, index)?;
        if place.is_shown() {
            return None;
        }
        let entry = mem::replace(place, ListEntry::Shown(name)).into_entry();
        self.len -= 1;
        entry
    }

    /// Puts a shown item back into the place that is reserved for it, unless that was removed.
    pub(super) fn put_back(
        &mut self,
        list: &KeyItems,
        index: usize,
        name: u64,
        entry: Entry<T>,
    ) -> Result<(), Entry<T>> {
        let is_its_own =
            |place: &&mut ListEntry<T>| matches!(place, ListEntry::Shown(its) if *its == name);
        let Some(place) = self.get_mut(list, index).filter(is_its_own) else {
            return Err(entry);
        };
        *place = ListEntry::new(entry);
        self.len += 1;
        Ok(())
    }

    /// Moves a list to a larger buffer.
    #[inline(never)]
    fn grow(&mut self, list: &mut KeyItems) {
        let room = match list.room {
            0 => 1,
            1 | 4 | 16 => 4 * list.room,
            room => room
                .checked_mul(2)
                .expect("no more than 2³¹ items of a key"),
        };
        let start = self.take_buffer(room);
        let (low, high) = (list.start.min(start), list.start.max(start));
        let (lower, upper) = self.places.split_at_mut(high as usize);
        let lower = &mut lower[low as usize..];
        let (from, to) = if low == start {
            (upper, lower)
        } else {
            (lower, upper)
        };
        let old = list.move_to(start, room, from, to);
        self.release(&old);
    }

    /// The start of a vacant buffer with this many places.
    fn take_buffer(&mut self, room: u32) -> u32 {
        let vacant = &mut self.vacant[room.trailing_zeros() as usize];
        let start = *vacant;
        if let Some(ListEntry::Vacant(next)) = self.places.get(start as usize) {
            *vacant = *next;
            return start;
        }
        let start = self.places.len();
        let end = start + room as usize;
        assert!(end < NONE as usize, "no more than 2³² places");
        self.places.resize_with(end, || ListEntry::VACANT);
        u32::try_from(start).expect("asserted above")
    }

    /// Keeps the buffer of an empty list for another list.
    #[inline]
    pub(super) fn release(&mut self, list: &KeyItems) {
        if list.room > 0 {
            let vacant = &mut self.vacant[list.room.trailing_zeros() as usize];
            let next = mem::replace(vacant, list.start);
            self.places[list.start as usize] = ListEntry::Vacant(next);
        }
    }

    /// Moves these lists, which are all, to a new vector without vacant buffers.
    pub(super) fn sweep<'l>(&mut self, lists: impl Iterator<Item = &'l mut KeyItems>) {
        let mut swept = Self::new();
        for list in lists {
            if list.is_empty() {
                *list = KeyItems::default();
                continue;
            }
            let room = list.len.next_power_of_two();
            let start = swept.take_buffer(room);
            let from = &mut self.places[list.start as usize..];
            list.move_to(start, room, from, &mut swept.places[start as usize..]);
        }
        swept.len = self.len;
        *self = swept;
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
