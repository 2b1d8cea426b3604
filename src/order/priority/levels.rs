//! Ready items in lists, one for each priority.
//!
//! Most items come in the order in which they leave: behind all others of their priority, or before them
//! if they come back. A list takes only such items, at its ends, and so is always in the order of
//! arrivals. The links are in the [`ItemSlab`]; the first list that has items is found by bits.

use super::meta::Priority;
use super::slab::{ItemSlab, Link, SlabItem};

const BITS: usize = u64::BITS as usize;

/// A list for each priority, one for none.
const LEVELS: usize = Priority::LAST.get() as usize + 1;

/// As many words for their bits.
const WORDS: usize = words(LEVELS);

pub(super) struct Levels {
    /// None, until there is an item.
    ends: Vec<Ends>,
    /// For each list whether it has items.
    filled: [u64; WORDS],
    /// For each word of these bits whether it is not 0.
    used: [u64; words(WORDS)],
    /// The first list that has items.
    first: Option<u16>,
}

/// The places of the first and the last item of a list that has items.
///
/// Nobody looks at the links that lead out of a list.
#[derive(Clone, Copy, Default)]
struct Ends {
    first: u32,
    last: u32,
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

    /// Adds the item in a place to the list of its priority, if it belongs to an end of that.
    #[inline]
    pub(super) fn add<T>(&mut self, slab: &mut ItemSlab<T>, place: u32) -> bool {
        let Link { meta, arrival, .. } = *slab.link(place);
        let level = meta.priority();
        if !self.is_filled(level) {
            self.begin(level, place);
            return true;
        }
        let ends = &mut self.ends[usize::from(level)];
        let last = slab.link_mut(ends.last);
        if last.arrival < arrival {
            last.after = place;
            slab.link_mut(place).before = ends.last;
            ends.last = place;
            return true;
        }
        let first = slab.link_mut(ends.first);
        let fits = arrival < first.arrival;
        if fits {
            first.before = place;
            slab.link_mut(place).after = ends.first;
            ends.first = place;
        }
        fits
    }

    /// Takes the first item, out of the slab as well.
    #[inline]
    pub(super) fn pop<T>(&mut self, slab: &mut ItemSlab<T>) -> Option<SlabItem<T>> {
        let level = self.first?;
        let ends = &mut self.ends[usize::from(level)];
        let item = slab.take(ends.first)?;
        if ends.first == ends.last {
            self.clear(level);
        } else {
            ends.first = item.link.after;
        }
        Some(item)
    }

    /// Leaves behind what is shown of the first items.
    pub(super) fn pass_shown<T>(&mut self, slab: &mut ItemSlab<T>) {
        while let Some(place) = self.first().filter(|&place| slab.unlink_shown(place)) {
            self.remove(slab, place);
        }
    }

    /// Takes the item in a place out of its list.
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

    /// Moves all items over to another slab.
    pub(super) fn move_items<T>(&mut self, from: &mut ItemSlab<T>, to: &mut ItemSlab<T>) {
        for meta in 0..WORDS {
            let mut filled = self.filled[meta];
            while filled != 0 {
                self.move_list(level_of(meta, filled), from, to);
                filled &= filled - 1;
            }
        }
    }

    fn move_list<T>(&mut self, level: u16, from: &mut ItemSlab<T>, to: &mut ItemSlab<T>) {
        let Ends { mut first, last } = self.ends[usize::from(level)];
        self.clear(level);
        while let Some(item) = from.take(first) {
            let next = item.link.after;
            let place = to.put(item);
            self.add(to, place);
            if first == last {
                break;
            }
            first = next;
        }
    }

    #[inline]
    fn is_filled(&self, level: u16) -> bool {
        let level = usize::from(level);
        self.filled[level / BITS] >> (level % BITS) & 1 == 1
    }

    /// Makes a list of one item.
    #[inline]
    fn begin(&mut self, level: u16, place: u32) {
        if self.ends.is_empty() {
            self.ends = vec![Ends::default(); LEVELS];
        }
        let (first, last) = (place, place);
        self.ends[usize::from(level)] = Ends { first, last };
        let meta = usize::from(level) / BITS;
        self.filled[meta] |= 1 << (usize::from(level) % BITS);
        self.used[meta / BITS] |= 1 << (meta % BITS);
        if self.first.map_or(true, |first| level < first) {
            self.first = Some(level);
        }
    }

    /// Takes note that a list has no items any more.
    #[inline]
    fn clear(&mut self, level: u16) {
        let meta = usize::from(level) / BITS;
        self.filled[meta] &= !(1 << (usize::from(level) % BITS));
        if self.filled[meta] == 0 {
            self.used[meta / BITS] &= !(1 << (meta % BITS));
        }
        if self.first == Some(level) {
            self.first = self.find_first();
        }
    }

    #[inline]
    fn find_first(&self) -> Option<u16> {
        let group = self.used.iter().position(|&used| used != 0)?;
        let meta = group * BITS + lowest(self.used[group]);
        Some(level_of(meta, self.filled[meta]))
    }
}

/// The first list that is filled by a word.
#[inline]
#[allow(clippy::cast_possible_truncation)] // there are fewer lists
fn level_of(meta: usize, filled: u64) -> u16 {
    (meta * BITS + lowest(filled)) as u16
}

const fn words(bits: usize) -> usize {
    bits.div_ceil(BITS)
}

#[inline]
fn lowest(bits: u64) -> usize {
    bits.trailing_zeros() as usize
}
