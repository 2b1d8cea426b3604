//! Values by number, in pages: empty pages use no memory.

use std::ops::{Index, IndexMut};

/// How many places a page has: one for each bit of a word.
pub(super) const PAGE: u32 = u64::BITS;
/// How many empty pages an empty table keeps.
const REMEMBERED: usize = 16;

/// A sparse table of values. A place without a value holds the default value.
pub(super) struct Pages<V> {
    list: Vec<SlabPage<V>>,
    /// The page that became empty last. If it is still empty, it keeps its places: for itself, or for the next
    /// page that needs some.
    spare: usize,
    len: usize,
}

struct SlabPage<V> {
    /// A bit for each place that has a value.
    used: u64,
    /// As many places as were needed so far; none in an empty page, except the spare one.
    places: Vec<V>,
}

/// The page of a number, and its index there.
#[inline]
fn place_of(number: u32) -> (usize, usize) {
    ((number / PAGE) as usize, (number % PAGE) as usize)
}

impl<V> SlabPage<V> {
    const EMPTY: Self = Self {
        used: 0,
        places: Vec::new(),
    };
}

impl<V: Default> Pages<V> {
    pub(super) fn new() -> Self {
        Self {
            list: Vec::new(),
            spare: 0,
            len: 0,
        }
    }

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
        self.get(number)?;
        Some(&mut self[number])
    }

    /// The value of a number, and whether it is new; a new one is the default value.
    #[inline]
    pub(super) fn get_or_insert(&mut self, number: u32) -> (&mut V, bool) {
        let (page, place) = place_of(number);
        if !self.has_place(page, place) {
            return self.get_or_insert_slow(number);
        }
        let page = &mut self.list[page];
        let is_new = page.used >> place & 1 == 0;
        if is_new {
            page.used |= 1 << place;
            self.len += 1;
        }
        (&mut page.places[place], is_new)
    }

    /// Same as [`Pages::get_or_insert`], for a number that has no place.
    #[cold]
    fn get_or_insert_slow(&mut self, number: u32) -> (&mut V, bool) {
        let (page, place) = place_of(number);
        self.make_place(page, place);
        self.get_or_insert(number)
    }

    #[inline]
    fn has_place(&self, page: usize, place: usize) -> bool {
        let page = self.list.get(page);
        page.is_some_and(|page| place < page.places.len())
    }

    fn make_place(&mut self, page: usize, place: usize) {
        if self.list.len() <= page {
            self.list.resize_with(page + 1, || SlabPage::EMPTY);
        }
        if self.list[page].places.is_empty() {
            let spare = self.list.get_mut(self.spare);
            let spare = spare.filter(|spare| spare.used == 0);
            let places = spare.map(|spare| std::mem::take(&mut spare.places));
            self.list[page].places = places.unwrap_or_default();
        }
        let places = &mut self.list[page].places;
        places.resize_with(places.len().max(place + 1), V::default);
    }

    /// Removes the value of a number, which must have one.
    #[inline]
    pub(super) fn take(&mut self, number: u32) -> V {
        let (at, place) = place_of(number);
        let page = &mut self.list[at];
        debug_assert!(page.used >> place & 1 == 1, "the number has a value");
        let value = std::mem::take(&mut page.places[place]);
        page.used &= !(1 << place);
        self.len -= 1;
        if page.used == 0 && (at != self.spare || self.is_wasteful()) {
            self.release_page(at);
        }
        value
    }

    /// Whether the table has no values but many pages.
    fn is_wasteful(&self) -> bool {
        self.len == 0 && self.list.len() > REMEMBERED
    }

    /// Releases memory that is no longer needed when a page becomes empty.
    #[cold]
    fn release_page(&mut self, page: usize) {
        if page != self.spare {
            let former = self.list.get_mut(self.spare);
            if let Some(former) = former.filter(|former| former.used == 0) {
                former.places = Vec::new();
            }
            self.spare = page;
        }
        if self.is_wasteful() {
            self.list.clear();
            self.list.shrink_to(REMEMBERED);
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
}

impl<V> Pages<V> {
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
pub(super) struct PagedSlab<V> {
    values: Pages<V>,
    /// The page for the next value, unless it is full. It may not exist yet.
    current: u32,
    /// The other pages that are not full, each once.
    roomy: Vec<u32>,
}

impl<V: Default> PagedSlab<V> {
    pub(super) fn new() -> Self {
        Self {
            values: Pages::new(),
            current: 0,
            roomy: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut V> {
        self.values.get_mut(number)
    }

    /// Stores a value, and returns its number.
    ///
    /// # Panics
    ///
    /// If there are four billion values. The table is not changed then.
    #[inline]
    pub(super) fn put(&mut self, value: V) -> u32 {
        let (at, place) = self.next_place();
        if !self.values.has_place(at, place as usize) {
            return self.put_slow(value);
        }
        let page = &mut self.values.list[at];
        page.places[place as usize] = value;
        page.used |= 1 << place;
        self.values.len += 1;
        self.current * PAGE + place
    }

    /// The current page, and the index of its first place without a value; [`PAGE`] if it is full.
    #[inline]
    fn next_place(&self) -> (usize, u32) {
        let at = self.current as usize;
        let page = self.values.list.get(at);
        (at, page.map_or(0, |page| page.used.trailing_ones()))
    }

    /// Same as [`PagedSlab::put`], if the next place must be found or allocated first.
    #[cold]
    fn put_slow(&mut self, value: V) -> u32 {
        if self.next_place().1 == PAGE {
            self.current = self.roomy.pop().unwrap_or_else(|| self.new_page());
        }
        let (page, place) = self.next_place();
        if !self.values.has_place(page, place as usize) {
            self.values.make_place(page, place as usize);
        }
        self.put(value)
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
        if self.values.list[page as usize].used == u64::MAX {
            return self.take_of_full_page(number);
        }
        let value = self.values.take(number);
        if self.values.list.is_empty() {
            self.current = 0;
            self.roomy.clear();
            self.roomy.shrink_to(REMEMBERED);
        }
        value
    }

    #[cold]
    fn take_of_full_page(&mut self, number: u32) -> V {
        let page = number / PAGE;
        if page != self.current {
            self.roomy.push(page);
        }
        self.values.take(number)
    }
}

impl<V> Index<u32> for PagedSlab<V> {
    type Output = V;

    #[inline]
    fn index(&self, number: u32) -> &V {
        &self.values[number]
    }
}

impl<V> IndexMut<u32> for PagedSlab<V> {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut V {
        &mut self.values[number]
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
