//! Values by number, in pages: empty pages use no memory.

use std::mem;
use std::ops::{Index, IndexMut};

/// A bit for each place of a page. Few, since the first number of a table may be any of a page.
type Bits = u16;
/// How many places a page has.
pub(super) const PAGE: u32 = Bits::BITS;
/// How many empty pages an empty table keeps.
const MAX_IDLE_PAGES: usize = 64;

/// A sparse table of values. A place without a value holds the default value.
#[derive(Default)]
pub(super) struct Pages<V> {
    list: Vec<Page<V>>,
    /// The places of the page that became empty last, for the next page that needs some.
    spare: Vec<V>,
    len: usize,
}

#[derive(Default)]
struct Page<V> {
    /// A bit for each place that has a value.
    used: Bits,
    /// The number of the place that was needed first, in the page: it is the first in memory, and the others are where
    /// their numbers differ from it, so that a page with few values is short.
    first: u32,
    /// As many places as were needed so far; none if the page is empty.
    places: Vec<V>,
}

impl<V> Page<V> {
    /// Where a place is, by its number in the page; that number, by where it is.
    #[inline]
    fn at(&self, place: u32) -> usize {
        (place ^ self.first) as usize
    }

    #[inline]
    fn has(&self, place: u32) -> bool {
        self.used >> place & 1 == 1
    }
}

/// The page of a number, and its number there.
#[inline]
fn place_of(number: u32) -> (usize, u32) {
    ((number / PAGE) as usize, number % PAGE)
}

/// Adds values until there are `len`. The memory grows from one value on.
fn extend<V: Default>(list: &mut Vec<V>, len: usize) {
    if len > list.len() {
        list.reserve_exact(len.next_power_of_two() - list.len());
        list.resize_with(len, V::default);
    }
}

impl<V: Default> Pages<V> {
    /// The number of values.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<&V> {
        let (page, place) = place_of(number);
        let page = self.list.get(page).filter(|page| page.has(place))?;
        page.places.get(page.at(place))
    }

    /// The place of a number, which may have no value; `None` if it is not in memory.
    #[inline]
    pub(super) fn place_mut(&mut self, number: u32) -> Option<&mut V> {
        let (page, place) = place_of(number);
        let page = self.list.get_mut(page)?;
        let at = page.at(place);
        page.places.get_mut(at)
    }

    /// The value of a number, and whether it is new; a new one is the default value.
    #[inline]
    pub(super) fn get_or_insert(&mut self, number: u32) -> (&mut V, bool) {
        let (page, place) = place_of(number);
        let has = self.list.get(page).is_some_and(|page| page.has(place));
        if !has {
            return (self.add(page, place), true);
        }
        (&mut self[number], false)
    }

    /// Adds a value in a place that has none.
    #[inline(never)]
    fn add(&mut self, page: usize, place: u32) -> &mut V {
        extend(&mut self.list, page + 1);
        self.len += 1;
        let page = &mut self.list[page];
        page.used |= 1 << place;
        if page.places.is_empty() {
            page.places = mem::take(&mut self.spare);
            page.first = place;
        }
        let at = page.at(place);
        extend(&mut page.places, at + 1);
        &mut page.places[at]
    }

    /// Removes the value of a number, which must have one.
    #[inline]
    pub(super) fn take(&mut self, number: u32) -> V {
        let (list, place) = place_of(number);
        let page = &mut self.list[list];
        debug_assert!(page.has(place), "the number has a value");
        let at = page.at(place);
        let value = mem::take(&mut page.places[at]);
        page.used &= !(1 << place);
        self.len -= 1;
        if page.used == 0 {
            self.release_page(list);
        }
        value
    }

    #[inline(never)]
    fn release_page(&mut self, page: usize) {
        self.spare = mem::take(&mut self.list[page].places);
        if self.len == 0 && self.list.len() > MAX_IDLE_PAGES {
            self.list = Vec::new();
        }
    }

    /// A number that is greater than that of any value.
    pub(super) fn end(&self) -> u32 {
        u32::try_from(self.list.len()).map_or(u32::MAX, |pages| pages.saturating_mul(PAGE))
    }

    /// All values with their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &V)> {
        let pages = (0..).step_by(PAGE as usize).zip(&self.list);
        pages.flat_map(|(first, page)| {
            let used = (0..PAGE).filter(|place| page.has(*place));
            used.map(move |place| (first + place, &page.places[page.at(place)]))
        })
    }

    /// All places, also those without a value.
    pub(super) fn places_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.list.iter_mut().flat_map(|page| &mut page.places)
    }
}

/// The number must have a value.
impl<V> Index<u32> for Pages<V> {
    type Output = V;

    #[inline]
    fn index(&self, number: u32) -> &V {
        let (page, place) = place_of(number);
        let page = &self.list[page];
        &page.places[page.at(place)]
    }
}

impl<V> IndexMut<u32> for Pages<V> {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut V {
        let (page, place) = place_of(number);
        let page = &mut self.list[page];
        let at = page.at(place);
        &mut page.places[at]
    }
}

/// A table that assigns the numbers itself.
#[derive(Default)]
pub(super) struct PagedSlab<V> {
    pub(super) values: Pages<V>,
    /// The page for the next value, unless it is full. It may not exist yet.
    current: u32,
    /// The other pages that are not full, each once.
    roomy: Vec<u32>,
}

impl<V: Default> PagedSlab<V> {
    /// The bits of a page, which may not exist yet.
    #[inline]
    fn used(&self, page: u32) -> Bits {
        let page = self.values.list.get(page as usize);
        page.map_or(0, |page| page.used)
    }

    /// Stores a value, and returns its number.
    ///
    /// # Panics
    ///
    /// If there are four billion values. The table is not changed then.
    #[inline]
    pub(super) fn put(&mut self, value: V) -> u32 {
        if self.used(self.current) == Bits::MAX {
            self.current = self.roomy.pop().unwrap_or_else(|| self.new_page());
        }
        let number = self.current * PAGE + self.used(self.current).trailing_ones();
        *self.values.get_or_insert(number).0 = value;
        number
    }

    fn new_page(&self) -> u32 {
        let page = u32::try_from(self.values.list.len()).ok();
        let page = page.filter(|page| *page < u32::MAX / PAGE);
        page.expect("fewer than four billion values")
    }

    /// Same as [`Pages::take`].
    #[inline]
    pub(super) fn take(&mut self, number: u32) -> V {
        let page = number / PAGE;
        if self.used(page) == Bits::MAX && page != self.current {
            self.roomy.push(page);
        }
        let value = self.values.take(number);
        if self.values.list.is_empty() {
            (self.current, self.roomy) = (0, Vec::new());
        }
        value
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
