//! Ready items in lists, one for each priority.
//!
//! Most items become ready in the order in which they are dequeued: behind all others of their priority, or before them if
//! they are returned. They are in [`Lists`]; the first nonempty list is found by bitmaps.
//!
//! The lists are in pages, which are made when they are first used: a queue with few priorities has few of them. There are at
//! most 64 groups of 16 pages of 64 lists.

use super::meta::PriorityMeta;
use super::PriorityEntry;
use crate::order::lists::{List, Lists};
use std::ops::Range;

const BITS: usize = u64::BITS as usize;

/// The number of pages in a group, so that a word has a bit for each group.
const GROUP: usize = u16::BITS as usize;

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
    /// The groups from the first to the last that has a page, and the number of the first.
    groups: Vec<Group>,
    begin: usize,
    /// A bit for each group: whether one of its lists has items or gaps.
    used: u64,
    /// The number and the place of the first page with items or gaps: most pops find it without a search.
    first: (usize, usize),
}

/// Pages with consecutive numbers.
struct Group {
    /// The place of each page; [`NO_PAGE`] if it was not made.
    places: [u16; GROUP],
    /// A bit for each page: whether one of its lists has items or gaps.
    used: u16,
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

impl Group {
    const EMPTY: Self = Self {
        places: [NO_PAGE; GROUP],
        used: 0,
    };
}

impl Pages {
    /// The place of the page with this number.
    #[inline]
    fn place(&self, number: usize) -> usize {
        let group = self.groups.get((number / GROUP).wrapping_sub(self.begin));
        usize::from(group.map_or(NO_PAGE, |group| group.places[number % GROUP]))
    }

    /// The page with this number, if it was made.
    #[inline]
    fn page(&mut self, number: usize) -> Option<&mut Page> {
        let place = self.place(number);
        self.made.get_mut(place)
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
        let mut place = self.place(number);
        if place >= self.made.len() {
            place = self.make(number);
        }
        let page = &mut self.made[place];
        let list = &mut page.lists[index];
        if list.is_empty() {
            page.filled |= 1 << index;
            self.groups[number / GROUP - self.begin].used |= 1 << (number % GROUP);
            self.used |= 1 << (number / GROUP);
            if number < self.first.0 {
                self.first = (number, place);
            }
        }
        list
    }

    /// Makes the page with this number, and returns its place.
    #[cold]
    #[inline(never)]
    fn make(&mut self, number: usize) -> usize {
        let place = self.made.len();
        // Without the room for several that a vector begins with.
        if place == self.made.capacity() {
            self.made.reserve_exact(place.max(1));
        }
        self.made.push(Page {
            lists: [List::EMPTY; BITS],
            filled: 0,
        });
        let group = number / GROUP;
        if self.groups.is_empty() {
            self.begin = group;
        }
        while group < self.begin {
            self.groups.insert(0, Group::EMPTY);
            self.begin -= 1;
        }
        while group - self.begin >= self.groups.len() {
            self.groups.push(Group::EMPTY);
        }
        let made = &mut self.groups[group - self.begin].places[number % GROUP];
        *made = u16::try_from(place).expect("fewer pages than levels");
        place
    }

    /// Marks a page as one without items and gaps, and finds the first of the others.
    #[inline(never)]
    fn leave(&mut self, number: usize) {
        let group = &mut self.groups[number / GROUP - self.begin];
        group.used &= !(1 << (number % GROUP));
        if group.used == 0 {
            self.used &= !(1 << (number / GROUP));
        }
        let first = self.used.trailing_zeros() as usize;
        let group = self.groups.get(first - self.begin);
        self.first = group.map_or(NONE_USED, |group| {
            let index = group.used.trailing_zeros() as usize % GROUP;
            (first * GROUP + index, usize::from(group.places[index]))
        });
    }
}

impl<T> Levels<T> {
    pub(super) fn new() -> Self {
        Self {
            items: Lists::new(),
            lists: Pages {
                made: Vec::new(),
                groups: Vec::new(),
                begin: 0,
                used: 0,
                first: NONE_USED,
            },
        }
    }

    /// Adds an item behind all others of its priority, and returns its place.
    #[inline(always)] // the arrival
    pub(super) fn push_back(&mut self, number: i64, entry: PriorityEntry<T>) -> u32 {
        let level = usize::from(entry.item.meta.priority());
        self.items.push_back(self.lists.fill(level), number, entry)
    }

    /// Adds an item before all others of its priority, and returns its place.
    pub(super) fn push_front(&mut self, number: i64, entry: PriorityEntry<T>) -> u32 {
        let level = usize::from(entry.item.meta.priority());
        self.items.push_front(self.lists.fill(level), number, entry)
    }

    /// Removes the first item.
    #[inline]
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
        let Some(page) = self.lists.page(number) else {
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

    /// Releases the memory of places that are not needed.
    pub(super) fn sweep(&mut self) {
        let pages = self.lists.made.iter_mut();
        self.items.sweep(pages.flat_map(|page| &mut page.lists));
        // Lists of gaps are empty now.
        let first = self.lists.begin * GROUP;
        for number in first..first + self.lists.groups.len() * GROUP {
            let mut filled = self.lists.page(number).map_or(0, |page| page.filled);
            while filled != 0 {
                self.trim_list(number * BITS + filled.trailing_zeros() as usize);
                filled &= filled - 1;
            }
        }
    }

    /// All places.
    pub(super) fn places(&self) -> Range<u32> {
        0..u32::try_from(self.items.places()).unwrap_or(u32::MAX)
    }
}
