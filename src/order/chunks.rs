//! Places in chunks of a few consecutive ones, for items that are mostly removed one after the other.
//!
//! All chunks are in one vector. The chunk that was vacated last is used first, as it is in a cache. So items come and
//! go without the allocator, and stay in their places.

use crate::raw::prefetch;
use std::mem::{self, size_of};

/// How many chunks are added at once, at most: each addition doubles the first ones.
const ADDED: u32 = 16;
/// How many vacant places are always tolerated.
pub(super) const SLACK: usize = 256;
/// How many chunks are tolerated for each item.
pub(super) const WASTE: usize = 4;
/// The size of a cache line.
const LINE: usize = 64;
/// No place.
pub(super) const NO_PLACE: u32 = u32::MAX;

/// Places, all of which begin with the default value.
pub(super) struct Chunks<P> {
    places: Vec<P>,
    /// For each chunk the first place of the one that is linked to it: the next vacant one, if it is vacant.
    next: Vec<u32>,
    /// The first vacant chunk.
    vacant: u32,
    /// Below this number of items the vector may shrink.
    least: usize,
}

impl<P: Default> Chunks<P> {
    /// The number of places of a chunk, a power of two.
    pub(super) const LEN: u32 = match size_of::<P>() {
        0..=64 => 4,
        65..=128 => 2,
        _ => 1,
    };
    /// How many places are added at once, at most.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(super) const STEP: usize = (ADDED * Self::LEN) as usize;

    pub(super) fn new() -> Self {
        Self {
            places: Vec::new(),
            next: Vec::new(),
            vacant: NO_PLACE,
            least: 0,
        }
    }

    /// Whether there are too many places for this number of items.
    #[inline]
    pub(super) fn is_wasteful(&self, items: usize) -> bool {
        items < self.least
    }

    /// All places.
    #[inline]
    pub(super) fn places(&self) -> &[P] {
        &self.places
    }

    #[inline]
    pub(super) fn get(&self, place: u32) -> Option<&P> {
        self.places.get(place as usize)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, place: u32) -> Option<&mut P> {
        self.places.get_mut(place as usize)
    }

    /// What is in a place that exists.
    #[inline]
    pub(super) fn at(&mut self, place: u32) -> &mut P {
        &mut self.places[place as usize]
    }

    /// The first place of the chunk that is linked to that of a place that exists. A chunk is referred to by one of its places.
    #[inline]
    pub(super) fn next(&self, place: u32) -> u32 {
        self.next[(place / Self::LEN) as usize]
    }

    #[inline]
    pub(super) fn next_mut(&mut self, place: u32) -> &mut u32 {
        &mut self.next[(place / Self::LEN) as usize]
    }

    #[inline]
    pub(super) fn begins_chunk(place: u32) -> bool {
        place % Self::LEN == 0
    }

    #[inline]
    pub(super) fn ends_chunk(place: u32) -> bool {
        place % Self::LEN == Self::LEN - 1
    }

    /// Takes a vacant chunk, and returns its first place.
    #[inline]
    pub(super) fn take(&mut self) -> u32 {
        if self.vacant == NO_PLACE {
            self.add_some();
        }
        let place = self.vacant;
        self.vacant = mem::replace(self.next_mut(place), NO_PLACE);
        place
    }

    #[cold]
    fn add_some(&mut self) {
        let first = u32::try_from(self.next.len()).unwrap_or(NO_PLACE);
        let end = first.saturating_add(first.clamp(1, ADDED));
        assert!(end < NO_PLACE / Self::LEN, "no more than 2³² places");
        let places = (end * Self::LEN) as usize;
        self.places.resize_with(places, P::default);
        self.least = places
            .saturating_sub(SLACK)
            .div_ceil(WASTE * Self::LEN as usize);
        self.next
            .extend((first..end).map(|number| (number + 1) * Self::LEN));
        self.vacant = first * Self::LEN;
        *self.next_mut((end - 1) * Self::LEN) = NO_PLACE;
    }

    /// Makes a chunk vacant. Returns the first place of the chunk that was linked to it.
    #[inline]
    pub(super) fn release(&mut self, place: u32) -> u32 {
        let first = place - place % Self::LEN;
        let vacant = mem::replace(&mut self.vacant, first);
        mem::replace(self.next_mut(place), vacant)
    }

    /// Prepares the use of a chunk that is probably not in a cache. The place need not exist. The queue is often longer than a
    /// cache, and the lock is held during a miss, so a pop that enters a chunk prefetches the next one of its list.
    #[inline]
    pub(super) fn prefetch(&self, place: u32) {
        let number = (place / Self::LEN) as usize;
        if let Some(next) = self.next.get(number) {
            prefetch(next);
            let len = Self::LEN as usize;
            let places = &self.places[number * len..][..len];
            let step = (LINE / size_of::<P>().max(1)).max(1);
            places.iter().step_by(step).for_each(prefetch);
            prefetch(&places[len - 1]);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn large_places_have_small_chunks() {
        assert_eq!(Chunks::<[u64; 2]>::LEN, 4);
        assert_eq!(Chunks::<[u64; 10]>::LEN, 2);
        assert_eq!(Chunks::<[[u64; 10]; 10]>::LEN, 1);
    }

    #[test]
    fn vacant_chunks_are_used_first_and_the_latest_before_all() {
        let mut chunks = Chunks::<u64>::new();
        let taken: Vec<_> = (0..ADDED).map(|_| chunks.take()).collect();
        assert!(taken.iter().copied().eq((0..64).step_by(4)));
        assert_eq!(chunks.places().len(), Chunks::<u64>::STEP);
        chunks.release(taken[3]);
        chunks.release(taken[7] + 2);
        assert_eq!((chunks.take(), chunks.take()), (taken[7], taken[3]));
        assert_eq!(chunks.take(), 64);
    }
}
