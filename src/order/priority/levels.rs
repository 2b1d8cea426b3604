//! Ready items in lists, one for each priority.
//!
//! Most items become ready in the order in which they are dequeued: behind all others of their priority, or before them if
//! they are returned. They are in [`Lists`]; the first nonempty list is found by bitmaps.
//!
//! The lists are in pages, which are made when they are first used: a queue with few priorities has few of them.

use super::meta::PriorityMeta;
use super::PriorityEntry;
use crate::order::lists::{List, Lists};
use std::ops::Range;

const BITS: usize = u64::BITS as usize;

/// No page.
const NO_PAGE: u16 = u16::MAX;

/// What comes after all pages.
const NONE_USED: (usize, usize) = (usize::MAX, usize::MAX);

pub(super) struct Levels<T> {
    pub(super) items: Lists<T, PriorityMeta>,
    lists: Pages,
}

/// The lists of all levels.
struct Pages {
    made: Vec<Page>,
    /// The place of each page, from the first to the last that was made; [`NO_PAGE`] if it was not made.
    places: Vec<u16>,
    /// The number of the first of these.
    begin: usize,
    /// A bit for each number of a page, up to the last that was made: whether one of its lists has items or gaps.
    used: Vec<u64>,
    /// The number and the place of the first of these: most pops find their page without a search.
    first: (usize, usize),
}

/// The lists of as many levels as a word has bits.
struct Page {
    lists: [List; BITS],
    /// A bit for each list: whether it has items or gaps.
    filled: u64,
}

impl Page {
    /// The first nonempty list, and its index. There is one.
    #[inline]
    fn first(&mut self) -> (&mut List, usize) {
        let index = self.filled.trailing_zeros() as usize % BITS;
        (&mut self.lists[index], index)
    }
}

impl Pages {
    /// The place of the page with this number, past all others if it was not made.
    #[inline]
    fn place(&self, number: usize) -> usize {
        let place = self.places.get(number.wrapping_sub(self.begin));
        usize::from(place.copied().unwrap_or(NO_PAGE))
    }

    /// The first page with items or gaps, and its number.
    #[inline]
    fn first(&mut self) -> Option<(&mut Page, usize)> {
        let (number, place) = self.first;
        Some((self.made.get_mut(place)?, number))
    }

    /// The list of a level, which gets an item. Makes its page if there is none.
    #[inline(always)] // the arrival
    fn fill(&mut self, level: usize) -> &mut List {
        let (number, index) = (level / BITS, level % BITS);
        let place = self.place(number);
        if place >= self.made.len() {
            self.make(number);
            return self.fill(level);
        }
        let page = &mut self.made[place];
        let list = &mut page.lists[index];
        if list.is_empty() {
            page.filled |= 1 << index;
            self.used[number / BITS] |= 1 << (number % BITS);
            if number < self.first.0 {
                self.first = (number, place);
            }
        }
        list
    }

    /// Makes the page with this number.
    #[cold]
    #[inline(never)]
    fn make(&mut self, number: usize) {
        let place = self.made.len();
        // Without the room for several that a vector begins with.
        if place == self.made.capacity() {
            self.made.reserve_exact(place.max(1));
        }
        self.made.push(Page {
            lists: [List::EMPTY; BITS],
            filled: 0,
        });
        let (places, before) = (&mut self.places, number..self.begin);
        drop(places.splice(..0, before.map(|_| NO_PAGE)));
        let begin = self.begin.min(number);
        self.begin = if place > 0 { begin } else { number };
        places.resize(places.len().max(number - self.begin + 1), NO_PAGE);
        places[number - self.begin] = u16::try_from(place).expect("fewer pages than levels");
        self.used.resize(self.used.len().max(number / BITS + 1), 0);
    }

    /// Marks a page as one without items and gaps, and finds the first of the others.
    #[inline(never)]
    fn leave(&mut self, number: usize) {
        self.used[number / BITS] &= !(1 << (number % BITS));
        let group = self.used.iter().position(|&used| used != 0);
        self.first = group.map_or(NONE_USED, |group| {
            let number = group * BITS + self.used[group].trailing_zeros() as usize;
            (number, self.place(number))
        });
    }
}

impl<T> Levels<T> {
    pub(super) fn new() -> Self {
        Self {
            items: Lists::new(),
            lists: Pages {
                made: Vec::new(),
                places: Vec::new(),
                begin: 0,
                used: Vec::new(),
                first: NONE_USED,
            },
        }
    }

    /// Adds an item behind all others of its priority, or before them if it was returned, and so has no positive number;
    /// returns its place.
    #[inline(always)] // the arrival
    pub(super) fn push(&mut self, number: i64, entry: PriorityEntry<T>) -> u32 {
        let list = self.lists.fill(usize::from(entry.item.meta.priority()));
        if number > 0 {
            self.items.push_back(list, number, entry)
        } else {
            self.items.push_front(list, number, entry)
        }
    }

    /// Removes the first item.
    #[inline(always)] // the pop
    pub(super) fn pop(&mut self) -> Option<PriorityEntry<T>> {
        let (page, number) = self.lists.first()?;
        let (list, index) = page.first();
        let entry = self.items.pop_front(list);
        if list.is_empty() {
            page.filled &= !(1 << index);
            if page.filled == 0 {
                self.lists.leave(number);
            }
            if let Some((page, _)) = self.lists.first() {
                self.items.prefetch(page.first().0);
            }
        }
        entry
    }

    /// The priority of the first item, and its number.
    pub(super) fn first(&mut self) -> Option<(u64, i64)> {
        let (page, number) = self.lists.first()?;
        let (list, index) = page.first();
        let first = self.items.first(list)?;
        Some(((number * BITS + index) as u64, first.number))
    }

    /// Removes the gaps before the first item.
    #[cold]
    pub(super) fn trim(&mut self) {
        while let Some((page, number)) = self.lists.first() {
            let level = number * BITS + page.first().1;
            if !self.trim_list(level) {
                break;
            }
        }
    }

    /// Removes the gaps at the front of a list. Returns whether it is empty then.
    pub(super) fn trim_list(&mut self, level: usize) -> bool {
        let (number, index) = (level / BITS, level % BITS);
        let place = self.lists.place(number);
        let Some(page) = self.lists.made.get_mut(place) else {
            return false;
        };
        self.items.trim(&mut page.lists[index]);
        let is_empty = page.lists[index].is_empty();
        if is_empty {
            page.filled &= !(1 << index);
            if page.filled == 0 {
                self.lists.leave(number);
            }
        }
        is_empty
    }

    /// The levels whose lists have items or gaps.
    fn filled(&self) -> Vec<usize> {
        let mut levels = Vec::new();
        for number in 0..self.lists.used.len() * BITS {
            let page = self.lists.made.get(self.lists.place(number));
            let mut filled = page.map_or(0, |page| page.filled);
            while filled != 0 {
                levels.push(number * BITS + filled.trailing_zeros() as usize);
                filled &= filled - 1;
            }
        }
        levels
    }

    /// The number of items up to a level, or `most` if there are more.
    pub(super) fn count_until(&self, level: usize, most: usize) -> usize {
        let levels = self.filled().into_iter().take_while(|it| *it <= level);
        let lists = levels.filter_map(|level| {
            let page = self.lists.made.get(self.lists.place(level / BITS))?;
            Some(&page.lists[level % BITS])
        });
        let items = lists.flat_map(|list| self.items.items_of(list));
        items.take(most).count()
    }

    /// See [`Sequence::take_old`](crate::order::Sequence::take_old); each level is a kind of its own.
    pub(super) fn take_old(
        &mut self,
        until: u64,
        most: usize,
        into: &mut Vec<PriorityEntry<T>>,
    ) -> Option<u64> {
        let mut least = None;
        for level in self.filled() {
            while !self.trim_list(level) {
                let page = self.lists.place(level / BITS);
                let list = &mut self.lists.made[page].lists[level % BITS];
                let first = self.items.first_item(list).map(|first| first.2);
                if first > Some(until) || into.len() >= most {
                    least = least.into_iter().chain(first).min();
                    break;
                }
                into.extend(self.items.pop_front(list));
            }
        }
        least
    }

    /// Releases the memory of places that are not needed.
    pub(super) fn sweep(&mut self) {
        let pages = self.lists.made.iter_mut();
        self.items.sweep(pages.flat_map(|page| &mut page.lists));
        // Lists of gaps are empty now.
        for level in self.filled() {
            self.trim_list(level);
        }
    }

    /// All places.
    pub(super) fn places(&self) -> Range<u32> {
        0..u32::try_from(self.items.places()).unwrap_or(u32::MAX)
    }
}
