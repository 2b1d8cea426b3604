//! The items of each key, side by side in memory: they are served far apart from those that were pushed at
//! the same time.

use crate::raw::{DeliveryMeta, Entry};
use std::collections::VecDeque;
use std::mem;

/// How many lists that fell empty are kept for others, and of how many places at most.
const KEPT: usize = 64;
/// Lists of so many places stay as they are.
const SMALL: usize = 16;

/// The items of one key.
pub(super) type KeyItems<T> = VecDeque<ListEntry<T>>;

/// The place of an item in a list: what an [`Entry`] has, in as few bytes.
pub(super) enum ListEntry<T> {
    Item {
        item: T,
        since: u64,
        attempts: u32,
    },
    /// The item with this name is shown to somebody.
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

    /// The item, if it is here.
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

    /// The time that is known of the item that is here.
    pub(super) fn since(&self) -> Option<u64> {
        match self {
            Self::Item { since, .. } => Some(*since).filter(|since| *since != 0),
            Self::Shown(_) => None,
        }
    }
}

/// The lists of all keys, and how many items they have.
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

    /// How many items there are.
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

    /// Counts an item more, for which a list that has no places gets some.
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

    /// Takes out the first item, which is here.
    #[inline]
    pub(super) fn pop_front(&mut self, list: &mut KeyItems<T>) -> Option<Entry<T>> {
        let entry = list.pop_front()?.into_entry()?;
        self.len -= 1;
        if list.capacity() > SMALL && list.len() < list.capacity() / 4 {
            list.shrink_to(list.capacity() / 2);
        }
        Some(entry)
    }

    /// Takes out the item in a place, if it is here, and leaves that to it.
    pub(super) fn show(&mut self, cell: &mut ListEntry<T>, name: u64) -> Option<Entry<T>> {
        if cell.is_shown() {
            return None;
        }
        self.len -= 1;
        mem::replace(cell, ListEntry::Shown(name)).into_entry()
    }

    /// Puts an item back into the place that was left to it.
    pub(super) fn put_back(&mut self, cell: &mut ListEntry<T>, entry: Entry<T>) {
        self.len += 1;
        *cell = ListEntry::new(entry);
    }

    /// Keeps the places of a list that fell empty.
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
    fn places_are_used_again() {
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
    fn a_list_that_was_long_gives_its_places_back() {
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
