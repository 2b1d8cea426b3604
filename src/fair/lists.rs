//! The items of each key, side by side in memory: they are served far apart from those that were pushed at
//! the same time.

use crate::raw::Entry;
use std::collections::VecDeque;

/// How many lists that fell empty are kept for others, and of how many places at most.
const KEPT: usize = 64;
/// Lists of so many places stay as they are.
const SMALL: usize = 16;

/// The items of one key.
pub(super) type List<T> = VecDeque<Entry<T>>;

/// The lists of all keys, and how many items they have.
pub(super) struct Lists<T> {
    spare: Vec<List<T>>,
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
    pub(super) fn push_back(&mut self, list: &mut List<T>, entry: Entry<T>) {
        self.make_room(list);
        list.push_back(entry);
    }

    #[inline]
    pub(super) fn push_front(&mut self, list: &mut List<T>, entry: Entry<T>) {
        self.make_room(list);
        list.push_front(entry);
    }

    /// Counts an item more, for which a list that has no places gets some.
    #[inline]
    fn make_room(&mut self, list: &mut List<T>) {
        self.len += 1;
        if list.capacity() == 0 {
            match self.spare.pop() {
                Some(spare) => *list = spare,
                None => list.reserve_exact(1),
            }
        }
    }

    #[inline]
    pub(super) fn pop_front(&mut self, list: &mut List<T>) -> Option<Entry<T>> {
        let entry = list.pop_front()?;
        self.len -= 1;
        if list.capacity() > SMALL && list.len() < list.capacity() / 4 {
            list.shrink_to(list.capacity() / 2);
        }
        Some(entry)
    }

    /// Keeps the places of a list that fell empty.
    #[inline]
    pub(super) fn keep(&mut self, list: List<T>) {
        if list.capacity() <= SMALL && self.spare.len() < KEPT {
            self.spare.push(list);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{List, Lists, KEPT, SMALL};
    use crate::raw::{Entry, Tag};

    fn entry(item: usize) -> Entry<usize> {
        let tag = Tag {
            attempts: 1,
            since: 0,
            order: 0,
        };
        Entry { item, tag }
    }

    #[test]
    fn places_are_used_again() {
        let mut lists = Lists::new();
        let mut list = List::new();
        lists.push_back(&mut list, entry(1));
        let places = list.as_slices().0.as_ptr();
        assert_eq!(lists.pop_front(&mut list).map(|entry| entry.item), Some(1));
        lists.keep(list);
        let mut other = List::new();
        lists.push_front(&mut other, entry(2));
        assert_eq!((other.as_slices().0.as_ptr(), lists.len()), (places, 1));
    }

    #[test]
    fn a_list_that_was_long_gives_its_places_back() {
        let mut lists = Lists::new();
        let mut list = List::new();
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
    fn few_lists_are_kept() {
        let mut lists = Lists::new();
        for item in 0..10 * KEPT {
            let mut list = List::new();
            list.push_back(entry(item));
            list.clear();
            lists.keep(list);
        }
        lists.keep(List::with_capacity(SMALL + 1));
        assert_eq!(lists.spare.len(), KEPT);
    }
}
