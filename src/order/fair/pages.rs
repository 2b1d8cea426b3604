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
    /// As many places as were needed so far; none if the page is empty.
    places: Vec<V>,
}

/// The page of a number, and its index there.
#[inline]
fn place_of(number: u32) -> (usize, usize) {
    ((number / PAGE) as usize, (number % PAGE) as usize)
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
        let page = self.list.get(page)?;
        page.places
            .get(place)
            .filter(|_| page.used >> place & 1 == 1)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut V> {
        let (page, place) = place_of(number);
        let page = self.list.get_mut(page)?;
        page.places
            .get_mut(place)
            .filter(|_| page.used >> place & 1 == 1)
    }

    /// The value of a number, and whether it is new; a new one is the default value.
    #[inline]
    pub(super) fn get_or_insert(&mut self, number: u32) -> (&mut V, bool) {
        let (at, place) = place_of(number);
        let used = self.list.get(at).map_or(0, |page| page.used);
        if used >> place & 1 == 0 {
            return (self.add(at, place), true);
        }
        (&mut self.list[at].places[place], false)
    }

    /// Adds a value in a place that has none.
    #[inline(never)]
    fn add(&mut self, page: usize, place: usize) -> &mut V {
        if self.list.len() <= page {
            self.list.resize_with(page + 1, Page::default);
        }
        self.len += 1;
        let Page { used, places } = &mut self.list[page];
        *used |= 1 << place;
        if places.is_empty() {
            *places = mem::take(&mut self.spare);
        }
        places.resize_with(places.len().max(place + 1), V::default);
        &mut places[place]
    }

    /// Removes the value of a number, which must have one.
    #[inline]
    pub(super) fn take(&mut self, number: u32) -> V {
        let (at, place) = place_of(number);
        let page = &mut self.list[at];
        debug_assert!(page.used >> place & 1 == 1, "the number has a value");
        let value = mem::take(&mut page.places[place]);
        page.used &= !(1 << place);
        self.len -= 1;
        if page.used == 0 {
            self.release_page(at);
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
            let places = (0..).zip(&page.places);
            let used = places.filter(|(place, _)| page.used >> place & 1 == 1);
            used.map(move |(place, value)| (first + place, value))
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
        &self.list[page].places[place]
    }
}

impl<V> IndexMut<u32> for Pages<V> {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut V {
        let (page, place) = place_of(number);
        &mut self.list[page].places[place]
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
