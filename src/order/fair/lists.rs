//! The items of each key, contiguous in memory: items pushed at the same time with different keys are dequeued
//! far apart.

use crate::raw::{DeliveryMeta, Entry};
use std::collections::VecDeque;
use std::mem;

/// How many empty lists are kept for reuse.
const KEPT: usize = 64;
/// Lists of up to this capacity do not shrink, and are kept for reuse.
const SMALL: usize = 16;

/// The items of one key.
pub(super) type KeyItems<T> = VecDeque<ListEntry<T>>;

/// The place of an item in a list: the contents of an [`Entry`] in fewer bytes.
pub(super) enum ListEntry<T> {
    Item {
        item: T,
        since: u64,
        attempts: u32,
    },
    /// The item with this name is being shown by a visit.
    Shown(u64),
}

impl<T> ListEntry<T> {
    #[inline]
    pub(super) fn new(Entry { item, delivery }: Entry<T>) -> Self {
        Self::Item {
            item,
            since: delivery.since,
            attempts: delivery.attempts,
        }
    }

    /// The item, unless it is being shown.
    #[inline]
    pub(super) fn into_entry(self) -> Option<Entry<T>> {
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
            Self::Shown(_) => None,
        }
    }
}

/// The lists of all keys: spare ones, and the total number of items.
pub(super) struct Lists<T> {
    spare: Vec<KeyItems<T>>,
    len: usize,
}

impl<T> Lists<T> {
    pub(super) fn new() -> Self {
        Self {
            spare: Vec::new(),
            len: 0,
        }
    }

    /// The number of items in all lists.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn push_back(&mut self, list: &mut KeyItems<T>, entry: Entry<T>) {
        self.make_room(list);
        list.push_back(ListEntry::new(entry));
    }

    #[inline]
    pub(super) fn push_front(&mut self, list: &mut KeyItems<T>, entry: Entry<T>) {
        self.make_room(list);
        list.push_front(ListEntry::new(entry));
    }

    /// Counts one more item, and allocates places if the list has none.
    #[inline]
    fn make_room(&mut self, list: &mut KeyItems<T>) {
        self.len += 1;
        if list.capacity() == 0 {
            match self.spare.pop() {
                Some(spare) => *list = spare,
                None => list.reserve_exact(1),
            }
        }
    }

    /// Removes the first item, which is not being shown.
    #[inline]
    pub(super) fn pop_front(&mut self, list: &mut KeyItems<T>) -> Option<Entry<T>> {
        let entry = list.pop_front()?.into_entry()?;
        self.len -= 1;
        if list.capacity() > SMALL && list.len() < list.capacity() / 4 {
            list.shrink_to(list.capacity() / 2);
        }
        Some(entry)
    }

    /// Takes the item out of a place to show it, and reserves the place for it.
    pub(super) fn show(&mut self, cell: &mut ListEntry<T>, name: u64) -> Option<Entry<T>> {
        if cell.is_shown() {
            return None;
        }
        self.len -= 1;
        mem::replace(cell, ListEntry::Shown(name)).into_entry()
    }

    /// Puts an item back into the place that is reserved for it.
    pub(super) fn put_back(&mut self, cell: &mut ListEntry<T>, entry: Entry<T>) {
        self.len += 1;
        *cell = ListEntry::new(entry);
    }

    /// Keeps an empty list for reuse.
    #[inline]
    pub(super) fn keep(&mut self, list: KeyItems<T>) {
        if list.capacity() <= SMALL && self.spare.len() < KEPT {
            self.spare.push(list);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{KeyItems, ListEntry, Lists, KEPT, SMALL};
    use crate::order::fair::KeyMeta;
    use crate::raw::{DeliveryMeta, Entry, Stored};
    use std::mem;

    fn entry(item: usize) -> Entry<usize> {
        let delivery = DeliveryMeta {
            attempts: 1,
            since: 0,
        };
        Entry { item, delivery }
    }

    #[test]
    fn places_are_reused() {
        let mut lists = Lists::new();
        let mut list = KeyItems::new();
        lists.push_back(&mut list, entry(1));
        let places = list.as_slices().0.as_ptr();
        assert_eq!(lists.pop_front(&mut list).map(|entry| entry.item), Some(1));
        lists.keep(list);
        let mut other = KeyItems::new();
        lists.push_front(&mut other, entry(2));
        assert_eq!((other.as_slices().0.as_ptr(), lists.len()), (places, 1));
    }

    #[test]
    fn a_list_that_was_long_releases_its_places() {
        let mut lists = Lists::new();
        let mut list = KeyItems::new();
        (0..10_000).for_each(|item| lists.push_back(&mut list, entry(item)));
        for item in 0..9_990 {
            assert_eq!(
                lists.pop_front(&mut list).map(|entry| entry.item),
                Some(item)
            );
            assert!(list.capacity() <= (4 * list.len()).max(2 * SMALL).max(20_000 - item));
        }
        assert!(list.capacity() <= 4 * SMALL);
    }

    #[test]
    fn places_are_small() {
        assert_eq!(mem::size_of::<ListEntry<Stored<u64, KeyMeta>>>(), 32);
    }

    #[test]
    fn few_lists_are_kept() {
        let mut lists = Lists::new();
        for item in 0..10 * KEPT {
            let mut list = KeyItems::new();
            list.push_back(ListEntry::new(entry(item)));
            list.clear();
            lists.keep(list);
        }
        lists.keep(KeyItems::with_capacity(SMALL + 1));
        assert_eq!(lists.spare.len(), KEPT);
    }
}
