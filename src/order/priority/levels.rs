//! Ready items in lists, one for each priority.
//!
//! Most items become ready in the order in which they are dequeued: behind all others of their priority, or before them if
//! they are returned. They are in [`Lists`]; the first nonempty list is found by a bitmap.

use super::meta::{Priority, PriorityMeta};
use super::PriorityEntry;
use crate::order::lists::{List, Lists};
use std::ops::Range;

const BITS: usize = u64::BITS as usize;

/// A list for each priority; that of 0 is not used.
const LEVELS: usize = Priority::LAST.get() as usize + 1;

/// The number of words of their bitmap.
const WORDS: usize = LEVELS.div_ceil(BITS);

pub(super) struct Levels<T> {
    pub(super) items: Lists<T, PriorityMeta>,
    /// Empty until there is an item.
    lists: Vec<List>,
    /// A bit for each list: whether it has items or gaps.
    filled: [u64; WORDS],
    /// A bit for each word of these: whether it is not 0.
    used: [u64; WORDS.div_ceil(BITS)],
}

impl<T> Levels<T> {
    pub(super) fn new() -> Self {
        Self {
            items: Lists::new(),
            lists: Vec::new(),
            filled: [0; WORDS],
            used: [0; WORDS.div_ceil(BITS)],
        }
    }

    /// Adds an item behind all others of its priority, and returns its place.
    #[inline(always)] // the arrival
    pub(super) fn push_back(&mut self, number: i64, entry: PriorityEntry<T>) -> u32 {
        let level = usize::from(entry.item.meta.priority());
        if self.lists.get(level).map_or(true, List::is_empty) {
            self.fill(level);
        }
        self.items.push_back(&mut self.lists[level], number, entry)
    }

    /// Adds an item before all others of its priority, and returns its place.
    pub(super) fn push_front(&mut self, number: i64, entry: PriorityEntry<T>) -> u32 {
        let level = usize::from(entry.item.meta.priority());
        self.fill(level);
        self.items.push_front(&mut self.lists[level], number, entry)
    }

    /// Removes the first item.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<PriorityEntry<T>> {
        let level = self.first_level()?;
        let list = &mut self.lists[level];
        let entry = self.items.pop_front(list);
        if list.is_empty() {
            self.clear(level);
            if let Some(level) = self.first_level() {
                self.items.prefetch(&self.lists[level]);
            }
        }
        entry
    }

    /// The priority of the first item, and its number.
    pub(super) fn first(&self) -> Option<(u64, i64)> {
        let level = self.first_level()?;
        let first = self.items.first(&self.lists[level])?;
        Some((level as u64, first.number))
    }

    /// Removes the gaps before the first item.
    #[cold]
    pub(super) fn trim(&mut self) {
        while self
            .first_level()
            .is_some_and(|level| self.trim_list(level))
        {}
    }

    /// Removes the gaps at the front of a list. Returns whether it is empty then.
    pub(super) fn trim_list(&mut self, level: usize) -> bool {
        let Some(list) = self.lists.get_mut(level) else {
            return false;
        };
        self.items.trim(list);
        let is_empty = list.is_empty();
        if is_empty {
            self.clear(level);
        }
        is_empty
    }

    /// Releases the memory of places that are not needed.
    pub(super) fn sweep(&mut self) {
        self.items.sweep(self.lists.iter_mut());
        // Lists of gaps are empty now.
        for level in 0..self.lists.len() {
            self.trim_list(level);
        }
    }

    /// All places.
    pub(super) fn places(&self) -> Range<u32> {
        0..u32::try_from(self.items.places()).unwrap_or(u32::MAX)
    }

    /// Marks a list as nonempty.
    #[inline(never)]
    fn fill(&mut self, level: usize) {
        self.lists.resize(LEVELS, List::EMPTY);
        self.filled[level / BITS] |= 1 << (level % BITS);
        self.used[level / BITS / BITS] |= 1 << (level / BITS % BITS);
    }

    /// Marks a list as empty.
    #[inline]
    fn clear(&mut self, level: usize) {
        let word = level / BITS;
        self.filled[word] &= !(1 << (level % BITS));
        if self.filled[word] == 0 {
            self.used[word / BITS] &= !(1 << (word % BITS));
        }
    }

    /// The first nonempty list.
    #[inline]
    fn first_level(&self) -> Option<usize> {
        let group = self.used.iter().position(|&used| used != 0)?;
        let word = group * BITS + self.used[group].trailing_zeros() as usize;
        Some(word * BITS + self.filled[word].trailing_zeros() as usize)
    }
}
