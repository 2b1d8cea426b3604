//! The items of each key, in chunks of a few places: items pushed at the same time with different keys are dequeued
//! far apart.
//!
//! The list of a key is a chain of [`Chunks`]. When most places are vacant, all lists move to new ones.

use crate::order::chunks::Chunks;
use crate::raw::{DeliveryMeta, Entry};
use std::mem;

/// The list of one key. It has no chunk while it is empty.
#[derive(Default)]
pub(super) struct KeyItems {
    /// The places of its first and its last item.
    first: u32,
    last: u32,
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
}

/// The place of an item in a list: the contents of an [`Entry`] without the time.
#[derive(Default)]
enum ListEntry<T> {
    Item {
        item: T,
        attempts: u32,
    },
    /// The item with this name is being shown by a visit.
    Shown(u64),
    #[default]
    Vacant,
}

/// The place of a position, as long as that has this stamp.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mark {
    pub(super) position: i64,
    pub(super) place: u32,
    stamp: Stamp,
}

/// Different for each use of a chunk; 0 while it is vacant.
type Stamp = u64;

type Places<T> = Chunks<ListEntry<T>, Stamp>;

/// The lists of all keys, and the number of items that are not being shown.
pub(super) struct Lists<T> {
    chunks: Places<T>,
    /// The timestamps of the items; empty until an item has one.
    times: Vec<u64>,
    /// The stamp that was given last.
    stamp: Stamp,
    len: usize,
}

impl<T> Lists<T> {
    pub(super) fn new() -> Self {
        Self {
            chunks: Chunks::new(),
            times: Vec::new(),
            stamp: 0,
            len: 0,
        }
    }

    /// The number of items in all lists, except those being shown.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Whether there are too many places for the items.
    #[inline]
    pub(super) fn is_wasteful(&self) -> bool {
        self.chunks.is_wasteful(self.len)
    }

    #[inline(always)] // the arrival
    pub(super) fn push_back(&mut self, list: &mut KeyItems, entry: Entry<T>) {
        list.last = if list.is_empty() || Places::<T>::ends_chunk(list.last) {
            self.append_chunk(list)
        } else {
            list.last + 1
        };
        list.len += 1;
        self.put(list.last, entry);
    }

    pub(super) fn push_front(&mut self, list: &mut KeyItems, entry: Entry<T>) {
        list.first = if list.is_empty() || Places::<T>::begins_chunk(list.first) {
            self.prepend_chunk(list)
        } else {
            list.first - 1
        };
        list.len += 1;
        self.put(list.first, entry);
    }

    /// Adds a chunk at the end of a list, and returns its first place.
    #[inline]
    fn append_chunk(&mut self, list: &mut KeyItems) -> u32 {
        let place = self.take_chunk();
        if list.is_empty() {
            list.first = place;
        } else {
            self.chunks.chunk_of(list.last).next = place;
        }
        place
    }

    /// Adds a chunk at the beginning of a list, and returns its last place.
    fn prepend_chunk(&mut self, list: &mut KeyItems) -> u32 {
        let place = self.take_chunk() + Places::<T>::LEN - 1;
        if list.is_empty() {
            list.last = place;
        } else {
            self.chunks.chunk_of(place).next = list.first;
        }
        place
    }

    /// Stores an item in a place.
    #[inline]
    fn put(&mut self, place: u32, Entry { item, delivery }: Entry<T>) {
        let DeliveryMeta { attempts, since } = delivery;
        if since != 0 || !self.times.is_empty() {
            self.note_time(place, since);
        }
        self.chunks[place] = ListEntry::Item { item, attempts };
        self.len += 1;
    }

    #[inline(never)]
    fn note_time(&mut self, place: u32, since: u64) {
        self.times.resize(self.chunks.places().len(), 0);
        self.times[place as usize] = since;
    }

    #[inline]
    fn time(&self, place: u32) -> u64 {
        self.times.get(place as usize).copied().unwrap_or(0)
    }

    /// What was in a place: the item, unless it is being shown.
    #[inline]
    fn entry_of(&mut self, place: u32, entry: ListEntry<T>) -> Option<Entry<T>> {
        let ListEntry::Item { item, attempts } = entry else {
            return None;
        };
        self.len -= 1;
        let since = self.time(place);
        let delivery = DeliveryMeta { attempts, since };
        Some(Entry { item, delivery })
    }

    /// Removes the first item, which is not being shown.
    #[inline]
    pub(super) fn pop_front(&mut self, list: &mut KeyItems) -> Option<Entry<T>> {
        let place = list.first;
        let entry = self.remove_front(list)?;
        self.entry_of(place, entry)
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
        let place = list.first;
        let entry = mem::take(&mut self.chunks[place]);
        list.len -= 1;
        list.first = if list.is_empty() || Places::<T>::ends_chunk(place) {
            self.release_chunk(place)
        } else {
            place + 1
        };
        Some(entry)
    }

    /// Whether the first item is being shown.
    pub(super) fn is_first_shown(&self, list: &KeyItems) -> bool {
        let first = self.chunks.get(list.first);
        !list.is_empty() && matches!(first, Some(ListEntry::Shown(_)))
    }

    /// Takes the item out of its place to show it.
    pub(super) fn show(&mut self, place: u32, name: u64) -> Option<Entry<T>> {
        let at = &mut self.chunks[place];
        if matches!(at, ListEntry::Shown(_)) {
            return None;
        }
        let entry = mem::replace(at, ListEntry::Shown(name));
        self.entry_of(place, entry)
    }

    /// Puts a shown item back into the place that is reserved for it, unless that was removed.
    pub(super) fn put_back(
        &mut self,
        place: u32,
        name: u64,
        entry: Entry<T>,
    ) -> Result<(), Entry<T>> {
        match self.chunks.get(place) {
            Some(ListEntry::Shown(its)) if *its == name => self.put(place, entry),
            _ => return Err(entry),
        }
        Ok(())
    }

    /// The place of the item at a position of a list that begins at position `base`. `mark` becomes this place. It is
    /// the place where the search begins, if it was in the list before and is still there.
    pub(super) fn place_at(
        &self,
        list: &KeyItems,
        base: i64,
        position: i64,
        mark: &mut Mark,
    ) -> u32 {
        let is_valid = mark.stamp != 0 && self.stamp_of(mark.place) == mark.stamp;
        if !is_valid || mark.position > position {
            (mark.position, mark.place) = (base, list.first);
        }
        while mark.position < position {
            mark.position += 1;
            mark.place = self.place_after(mark.place);
        }
        mark.stamp = self.stamp_of(mark.place);
        mark.place
    }

    /// The place of the item after that in a place, which is not the last one of its list.
    fn place_after(&self, place: u32) -> u32 {
        let chunk = self.chunks.chunk(place);
        let next = chunk.filter(|_| Places::<T>::ends_chunk(place));
        next.map_or(place + 1, |chunk| chunk.next)
    }

    fn stamp_of(&self, place: u32) -> Stamp {
        self.chunks.chunk(place).map_or(0, |chunk| chunk.head)
    }

    /// The first place of a vacant chunk.
    #[inline]
    fn take_chunk(&mut self) -> u32 {
        let place = self.chunks.take();
        self.stamp += 1;
        self.chunks.chunk_of(place).head = self.stamp;
        place
    }

    /// Makes the chunk of a place vacant. Returns the first place of the chunk after it, if there is one.
    #[inline]
    fn release_chunk(&mut self, place: u32) -> u32 {
        self.chunks.chunk_of(place).head = 0;
        let next = self.chunks.release(place);
        self.chunks.prefetch(next);
        next
    }

    /// Moves these lists, which are all, to new chunks, none of which is vacant. No item is being shown.
    pub(super) fn sweep<'l>(&mut self, lists: impl Iterator<Item = &'l mut KeyItems>) {
        let mut swept = Self::new();
        swept.stamp = self.stamp;
        for list in lists {
            let mut moved = KeyItems::default();
            while let Some(entry) = self.pop_front(list) {
                swept.push_back(&mut moved, entry);
            }
            *list = moved;
        }
        *self = swept;
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
