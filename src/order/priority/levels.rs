//! Ready items in lists, one for each priority.
//!
//! Most items arrive in the order in which they are dequeued: behind all others of their priority, or before them
//! if they are returned. A list accepts only such items, at its ends, and so is always in the order of
//! arrivals. The links are in the [`ItemSlab`]; the first nonempty list is found by a bitmap.

use super::meta::Priority;
use super::slab::{ItemSlab, Link, SlabItem, NOWHERE};

const BITS: usize = u64::BITS as usize;

/// A list for each priority; that of 0 is not used.
const LEVELS: usize = Priority::LAST.get() as usize + 1;

/// The number of words of their bitmap.
const WORDS: usize = words(LEVELS);

pub(super) struct Levels {
    /// Empty until there is an item.
    ends: Vec<Ends>,
    /// A bit for each list: whether it has items.
    filled: [u64; WORDS],
    /// A bit for each word of these: whether it is not 0.
    used: [u64; words(WORDS)],
    /// The first nonempty list.
    first: Option<u16>,
}

/// The places of the first and the last item of a list.
///
/// The outward links at the ends of a list are never read.
#[derive(Clone, Copy)]
struct Ends {
    first: u32,
    last: u32,
}

impl Ends {
    /// The ends of an empty list.
    const NONE: Self = Self {
        first: NOWHERE,
        last: NOWHERE,
    };
}

impl Levels {
    pub(super) fn new() -> Self {
        Self {
            ends: Vec::new(),
            filled: [0; WORDS],
            used: [0; words(WORDS)],
            first: None,
        }
    }

    /// The place of the first item.
    pub(super) fn first(&self) -> Option<u32> {
        let level = usize::from(self.first?);
        Some(self.ends[level].first)
    }

    /// Adds an item that belongs behind all others of its priority, next to the last one there, and returns its place.
    #[inline(always)] // the arrival
    pub(super) fn append<T>(&mut self, slab: &mut ItemSlab<T>, mut item: SlabItem<T>) -> u32 {
        let level = item.link.meta.priority();
        let Some(ends) = self.ends.get_mut(usize::from(level)) else {
            return self.begin_with(slab, item);
        };
        let last = ends.last;
        if last == NOWHERE {
            return self.begin_with(slab, item);
        }
        debug_assert!(slab.link(last).arrival < item.link.arrival);
        item.link.before = last;
        let place = slab.put(item, last);
        slab.link_mut(last).after = place;
        ends.last = place;
        place
    }

    #[inline(never)]
    fn begin_with<T>(&mut self, slab: &mut ItemSlab<T>, item: SlabItem<T>) -> u32 {
        let level = item.link.meta.priority();
        let place = slab.put(item, NOWHERE);
        self.begin(level, place);
        place
    }

    /// Adds the item in a place, which has this link, to the list of its priority, if it belongs at one of its ends.
    pub(super) fn add<T>(&mut self, slab: &mut ItemSlab<T>, place: u32, link: Link) -> bool {
        let level = link.meta.priority();
        let Some(ends) = self.ends.get_mut(usize::from(level)) else {
            return self.begin(level, place);
        };
        if ends.last == NOWHERE {
            return self.begin(level, place);
        }
        let last = slab.link_mut(ends.last);
        if last.arrival < link.arrival {
            last.after = place;
            slab.link_mut(place).before = ends.last;
            ends.last = place;
            return true;
        }
        let first = slab.link_mut(ends.first);
        let fits = link.arrival < first.arrival;
        if fits {
            first.before = place;
            slab.link_mut(place).after = ends.first;
            ends.first = place;
        }
        fits
    }

    /// Removes the first item, from the slab as well.
    #[inline]
    pub(super) fn pop<T>(&mut self, slab: &mut ItemSlab<T>) -> Option<SlabItem<T>> {
        let level = self.first?;
        let ends = &mut self.ends[usize::from(level)];
        let item = slab.take(ends.first)?;
        if ends.first == ends.last {
            self.clear(level);
            if let Some(place) = self.first() {
                slab.prefetch(place);
            }
        } else {
            ends.first = item.link.after;
        }
        Some(item)
    }

    /// Removes items that are being shown from the front.
    pub(super) fn skip_shown<T>(&mut self, slab: &mut ItemSlab<T>) {
        while let Some(place) = self.first().filter(|&place| slab.unlink_shown(place)) {
            self.remove(slab, place);
        }
    }

    /// Removes the item in a place from its list.
    pub(super) fn remove<T>(&mut self, slab: &mut ItemSlab<T>, place: u32) {
        let Link {
            meta,
            before,
            after,
            ..
        } = *slab.link(place);
        let ends = &mut self.ends[usize::from(meta.priority())];
        match (ends.first == place, ends.last == place) {
            (true, true) => self.clear(meta.priority()),
            (true, false) => ends.first = after,
            (false, true) => ends.last = before,
            (false, false) => {
                slab.link_mut(before).after = after;
                slab.link_mut(after).before = before;
            }
        }
    }

    /// Moves all items to another slab.
    pub(super) fn move_items<T>(&mut self, from: &mut ItemSlab<T>, to: &mut ItemSlab<T>) {
        for word in 0..WORDS {
            let mut filled = self.filled[word];
            while filled != 0 {
                self.move_list(level_of(word, filled), from, to);
                filled &= filled - 1;
            }
        }
    }

    fn move_list<T>(&mut self, level: u16, from: &mut ItemSlab<T>, to: &mut ItemSlab<T>) {
        let Ends { mut first, last } = self.ends[usize::from(level)];
        self.clear(level);
        while let Some(item) = from.take(first) {
            let after = item.link.after;
            self.append(to, item);
            if first == last {
                break;
            }
            first = after;
        }
    }

    /// Starts a list with one item, which always belongs there.
    #[inline(never)]
    fn begin(&mut self, level: u16, place: u32) -> bool {
        if self.ends.is_empty() {
            self.ends = vec![Ends::NONE; LEVELS];
        }
        let (first, last) = (place, place);
        self.ends[usize::from(level)] = Ends { first, last };
        let word = usize::from(level) / BITS;
        self.filled[word] |= 1 << (usize::from(level) % BITS);
        self.used[word / BITS] |= 1 << (word % BITS);
        if self.first.map_or(true, |first| level < first) {
            self.first = Some(level);
        }
        true
    }

    /// Marks a list as empty.
    #[inline]
    fn clear(&mut self, level: u16) {
        self.ends[usize::from(level)] = Ends::NONE;
        let word = usize::from(level) / BITS;
        self.filled[word] &= !(1 << (usize::from(level) % BITS));
        if self.filled[word] == 0 {
            self.used[word / BITS] &= !(1 << (word % BITS));
        }
        if self.first == Some(level) {
            self.first = self.find_first();
        }
    }

    #[inline]
    fn find_first(&self) -> Option<u16> {
        let group = self.used.iter().position(|&used| used != 0)?;
        let word = group * BITS + lowest(self.used[group]);
        Some(level_of(word, self.filled[word]))
    }
}

/// The first nonempty list of a word of the bitmap.
#[inline]
#[allow(clippy::cast_possible_truncation)] // there are fewer lists
fn level_of(word: usize, filled: u64) -> u16 {
    (word * BITS + lowest(filled)) as u16
}

const fn words(bits: usize) -> usize {
    bits.div_ceil(BITS)
}

#[inline]
fn lowest(bits: u64) -> usize {
    bits.trailing_zeros() as usize
}
