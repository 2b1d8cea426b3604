//! Lists of items, one for each key or priority, in chunks of a few places: items pushed at the same time are often
//! dequeued far apart.
//!
//! A list is a chain of [`Chunks`]. Its items have numbers, which increase from the first to the last, and of which none is
//! ever given twice. An item that is taken out of the middle leaves a gap with its number, until it is put back, or the gap is
//! removed. When most places are vacant or gaps, all lists move to new chunks.

use super::chunks::{Chunks, NO_PLACE, SLACK};
use crate::raw::{DeliveryMeta, Entry, Stored};
use std::{iter, mem};

/// A list. It has no chunk while it is empty.
pub(super) struct List {
    /// The places of its first and its last item or gap.
    first: u32,
    last: u32,
}

impl List {
    pub(super) const EMPTY: Self = Self {
        first: NO_PLACE,
        last: NO_PLACE,
    };

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.first == NO_PLACE
    }
}

/// A place: the contents of an [`Entry`]. Compact, because cache misses dominate the cost of a long queue.
#[derive(Default)]
enum Slot<T, M> {
    Item {
        item: T,
        meta: M,
        attempts: u32,
        since: u64,
        number: i64,
    },
    /// The item with this number was taken out.
    Gap {
        number: i64,
        /// Whether it is gone for good.
        gone: bool,
    },
    #[default]
    Vacant,
}

impl<T, M> Slot<T, M> {
    fn number(&self) -> Option<i64> {
        match self {
            Self::Item { number, .. } | Self::Gap { number, .. } => Some(*number),
            Self::Vacant => None,
        }
    }
}

/// The place of an item, as long as that has its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(super) place: u32,
    pub(super) number: i64,
}

impl Position {
    /// Before all items whose numbers are at least `least`.
    pub(super) fn before(least: i64) -> Self {
        Self {
            place: NO_PLACE,
            number: least - 1,
        }
    }
}

type Places<T, M> = Chunks<Slot<T, M>>;

/// The places of all lists, and how many items and gaps they have.
pub(super) struct Lists<T, M> {
    chunks: Places<T, M>,
    len: usize,
    gaps: usize,
}

impl<T, M: Copy> Lists<T, M> {
    pub(super) fn new() -> Self {
        Self {
            chunks: Chunks::new(),
            len: 0,
            gaps: 0,
        }
    }

    /// The number of items in all lists.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn has_gaps(&self) -> bool {
        self.gaps > 0
    }

    pub(super) fn has_many_gaps(&self) -> bool {
        self.gaps > self.len + SLACK
    }

    /// Whether there are too many places for the items.
    #[inline]
    pub(super) fn is_wasteful(&self) -> bool {
        self.chunks.is_wasteful(self.len)
    }

    /// The number of places, those of no list included.
    pub(super) fn places(&self) -> usize {
        self.chunks.places().len()
    }

    /// Adds an item with a number greater than all others of the list, and returns its place.
    #[inline(always)] // the arrival
    pub(super) fn push_back(
        &mut self,
        list: &mut List,
        number: i64,
        entry: Entry<Stored<T, M>>,
    ) -> u32 {
        // Behind no place a chunk begins, too.
        let mut place = list.last.wrapping_add(1);
        if Places::<T, M>::begins_chunk(place) {
            place = self.append_chunk(list);
        }
        list.last = place;
        self.put(place, number, entry);
        place
    }

    /// Adds an item with a number less than all others of the list, and returns its place.
    pub(super) fn push_front(
        &mut self,
        list: &mut List,
        number: i64,
        entry: Entry<Stored<T, M>>,
    ) -> u32 {
        list.first = if list.is_empty() || Places::<T, M>::begins_chunk(list.first) {
            self.prepend_chunk(list)
        } else {
            list.first - 1
        };
        self.put(list.first, number, entry);
        list.first
    }

    /// Adds a chunk at the end of a list, and returns its first place.
    #[inline]
    fn append_chunk(&mut self, list: &mut List) -> u32 {
        let place = self.chunks.take();
        if list.is_empty() {
            list.first = place;
        } else {
            *self.chunks.next_mut(list.last) = place;
        }
        place
    }

    /// Adds a chunk at the beginning of a list, and returns its last place.
    fn prepend_chunk(&mut self, list: &mut List) -> u32 {
        let place = self.chunks.take() + Places::<T, M>::LEN - 1;
        if list.is_empty() {
            list.last = place;
        } else {
            *self.chunks.next_mut(place) = list.first;
        }
        place
    }

    /// Stores an item in a place.
    #[inline]
    fn put(&mut self, place: u32, number: i64, Entry { item, delivery }: Entry<Stored<T, M>>) {
        let DeliveryMeta { attempts, since } = delivery;
        let Stored { item, meta } = item;
        *self.chunks.at(place) = Slot::Item {
            item,
            meta,
            attempts,
            since,
            number,
        };
        self.len += 1;
    }

    /// What was in a place: the item, unless there was a gap.
    #[inline]
    fn entry_of(&mut self, slot: Slot<T, M>) -> Option<Entry<Stored<T, M>>> {
        let Slot::Item {
            item,
            meta,
            attempts,
            since,
            ..
        } = slot
        else {
            self.gaps -= 1;
            return None;
        };
        self.len -= 1;
        let delivery = DeliveryMeta { attempts, since };
        let item = Stored { item, meta };
        Some(Entry { item, delivery })
    }

    /// Removes the first place, and returns its item; `None` if it is a gap, or the list is empty.
    #[inline(always)] // the pop of an order
    pub(super) fn pop_front(&mut self, list: &mut List) -> Option<Entry<Stored<T, M>>> {
        let place = list.first;
        let slot = mem::take(self.chunks.get_mut(place)?);
        if Places::<T, M>::begins_chunk(place) {
            self.chunks.prefetch(self.chunks.next(place));
        }
        list.first = if place == list.last || Places::<T, M>::ends_chunk(place) {
            if place == list.last {
                list.last = NO_PLACE;
            }
            self.chunks.release(place)
        } else {
            place + 1
        };
        self.entry_of(slot)
    }

    /// Removes the gaps at the front of a list.
    pub(super) fn trim(&mut self, list: &mut List) {
        while self.begins_with_gap(list) {
            self.pop_front(list);
        }
    }

    /// Removes the gaps at the front of a list whose items are gone.
    pub(super) fn trim_gone(&mut self, list: &mut List) {
        while let Some(Slot::Gap { gone: true, .. }) = self.chunks.get(list.first) {
            self.pop_front(list);
        }
    }

    pub(super) fn begins_with_gap(&self, list: &List) -> bool {
        matches!(self.chunks.get(list.first), Some(Slot::Gap { .. }))
    }

    /// Prepares the use of the first item of a list.
    #[inline]
    pub(super) fn prefetch(&self, list: &List) {
        self.chunks.prefetch(list.first);
    }

    /// The [first item](Self::item_at) of a list; `None` if it is empty, or begins with a gap.
    pub(super) fn first_item(&self, list: &List) -> Option<(Position, M, u64)> {
        self.item_at(list.first)
    }

    /// The last item of a list, unless it is taken out.
    pub(super) fn last<'l>(&'l self, list: &List) -> Option<&'l T> {
        match self.chunks.get(list.last)? {
            Slot::Item { item, .. } => Some(item),
            _ => None,
        }
    }

    /// The items of a list that are not taken out.
    pub(super) fn each<'l>(&'l self, list: &'l List) -> impl Iterator<Item = &'l T> + 'l {
        let places = self.places_of(list, list.first);
        places.filter_map(|place| match self.chunks.get(place)? {
            Slot::Item { item, .. } => Some(item),
            _ => None,
        })
    }

    /// The position of the first item of a list, or its gap.
    #[inline]
    pub(super) fn first(&self, list: &List) -> Option<Position> {
        self.position_at(list.first)
    }

    /// Whether a position is the first one of a list.
    pub(super) fn is_first(&self, list: &List, position: Position) -> bool {
        list.first == position.place && self.position_at(position.place) == Some(position)
    }

    /// The position of the item in a place, or its gap.
    pub(super) fn position_at(&self, place: u32) -> Option<Position> {
        let number = self.chunks.get(place)?.number()?;
        Some(Position { place, number })
    }

    /// The first position of a list after one that is in it or was.
    pub(super) fn position_after(&self, list: &List, at: Position) -> Option<Position> {
        let is_there = self.position_at(at.place) == Some(at);
        let first = if is_there { at.place } else { list.first };
        let places = self.places_of(list, first);
        let mut positions = places.filter_map(|place| self.position_at(place));
        positions.find(|position| position.number > at.number)
    }

    /// The positions of the items of a list.
    pub(super) fn items_of<'l>(&'l self, list: &'l List) -> impl Iterator<Item = Position> + 'l {
        let places = self.places_of(list, list.first);
        places.filter_map(|place| Some(self.item_at(place)?.0))
    }

    /// The places of a list from this one on.
    fn places_of<'l>(&'l self, list: &'l List, first: u32) -> impl Iterator<Item = u32> + 'l {
        let next = |&place: &u32| (place != list.last).then(|| self.place_after(place));
        iter::successors((!list.is_empty()).then_some(first), next)
    }

    /// The place after one that is not the last of its list.
    fn place_after(&self, place: u32) -> u32 {
        if Places::<T, M>::ends_chunk(place) {
            self.chunks.next(place)
        } else {
            place + 1
        }
    }

    /// The item in a place: its position, its metadata, and its time.
    pub(super) fn item_at(&self, place: u32) -> Option<(Position, M, u64)> {
        match *self.chunks.get(place)? {
            Slot::Item {
                meta,
                since,
                number,
                ..
            } => Some((Position { place, number }, meta, since)),
            _ => None,
        }
    }

    /// Takes out the item at a position, which leaves a gap.
    pub(super) fn take(&mut self, at: Position) -> Option<Entry<Stored<T, M>>> {
        let _item = self.item_at(at.place).filter(|item| item.0 == at)?;
        let gap = Slot::Gap {
            number: at.number,
            gone: false,
        };
        let slot = mem::replace(self.chunks.at(at.place), gap);
        self.gaps += 1;
        self.entry_of(slot)
    }

    /// Records that an item that was taken out is gone for good.
    pub(super) fn forget(&mut self, list: &mut List, at: Position) {
        if self.position_at(at.place) == Some(at) {
            *self.chunks.at(at.place) = Slot::Gap {
                number: at.number,
                gone: true,
            };
        }
        self.trim_gone(list);
    }

    /// Puts an item back into its gap, unless that was removed.
    pub(super) fn put_back(
        &mut self,
        at: Position,
        entry: Entry<Stored<T, M>>,
    ) -> Result<(), Entry<Stored<T, M>>> {
        if self.position_at(at.place) != Some(at) {
            return Err(entry);
        }
        self.gaps -= 1;
        self.put(at.place, at.number, entry);
        Ok(())
    }

    /// Moves these lists, which are all, to new chunks, none of which is vacant. The gaps are dropped.
    pub(super) fn sweep<'l>(&mut self, lists: impl Iterator<Item = &'l mut List>) {
        let mut swept = Self::new();
        for list in lists {
            let mut moved = List::EMPTY;
            while let Some(first) = self.first(list) {
                if let Some(entry) = self.pop_front(list) {
                    swept.push_back(&mut moved, first.number, entry);
                }
            }
            *list = moved;
        }
        *self = swept;
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
