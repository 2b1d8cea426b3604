//! Segments: the slots of consecutive positions of one shard.

use crate::raw::memory::entry::{DeliveryMeta, Entry};
use crate::raw::memory::row::Row;
use crate::raw::memory::slot::Slot;
use crate::raw::memory::times::Times;
use crate::sync::{start_before, weak, AtomicU64, Ordering, SMALL};
use std::mem::size_of;
use std::ptr::NonNull;
use std::slice;

/// The most positions in a segment.
const MAX_ITEMS: usize = 256;

/// The first stamp of a segment. A stamp times the positions of a segment must not overflow.
pub(in crate::raw) const FIRST_STAMP: u64 = start_before(1 << (u64::BITS - MAX_ITEMS.ilog2()));

/// The slots of [`Segment::LEN`] consecutive positions.
///
/// A segment is alive while one of its positions is not finished: unclaimed, or claimed and not yet
/// moved out. Whoever finishes the last one has exclusive access.
pub(in crate::raw) struct Segment<T>(NonNull<Row<Header, Slot<T>>>);

/// The header of a segment, aligned so that no item of 16 bytes crosses a cache line.
#[repr(align(16))]
struct Header {
    /// The number of finished positions.
    finished: AtomicU64,
    times: Times,
}

impl<T> Clone for Segment<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Segment<T> {}

impl<T> Segment<T> {
    /// Positions in a segment, a power of two: about 2 KiB of items, at most [`MAX_ITEMS`] of them.
    pub(in crate::raw) const LEN: usize = if SMALL {
        2
    } else {
        Self::len_for(2048, MAX_ITEMS)
    };

    /// The largest power of two of items that fit into `bytes`, between 1 and `most`.
    const fn len_for(bytes: usize, most: usize) -> usize {
        let size = if size_of::<T>() == 0 {
            1
        } else {
            size_of::<T>()
        };
        let mut len = most;
        while len > 1 && len * size > bytes {
            len /= 2;
        }
        len
    }

    /// Allocates a segment, with a row of times if its items are `timed`.
    pub(in crate::raw) fn new(timed: bool) -> Self {
        let header = Header {
            finished: AtomicU64::new(0),
            times: Times::new(timed, Self::LEN),
        };
        Self(Row::new(header, Self::LEN, Slot::vacant))
    }

    pub(in crate::raw) fn into_raw(self) -> *mut () {
        self.0.as_ptr().cast()
    }

    pub(in crate::raw) fn from_raw(raw: *mut ()) -> Option<Self> {
        NonNull::new(raw.cast()).map(Self)
    }

    /// The slot of `position`.
    ///
    /// # Safety
    ///
    /// The segment is alive while `'a` lasts.
    #[inline]
    pub(in crate::raw) unsafe fn slot<'a>(self, position: u64) -> &'a Slot<T> {
        // SAFETY: alive by contract; the remainder is within the row.
        unsafe { Row::get(self.0, offset::<T>(position)) }
    }

    /// The slots from that of `position` on.
    ///
    /// # Safety
    ///
    /// The segment is alive while `'a` lasts.
    #[inline]
    pub(in crate::raw) unsafe fn slots_from<'a>(self, position: u64) -> &'a [Slot<T>] {
        let offset = offset::<T>(position);
        // SAFETY: alive by contract; these are within the row.
        unsafe { slice::from_raw_parts(Row::element(self.0, offset), Self::LEN - offset) }
    }

    /// The times of the items.
    ///
    /// # Safety
    ///
    /// The segment is alive.
    pub(in crate::raw) unsafe fn times(self) -> Times {
        // SAFETY: alive by contract.
        unsafe { Row::header(self.0) }.times
    }

    /// Moves out the items of `count` positions from `first` on.
    ///
    /// # Safety
    ///
    /// These positions are in the segment, published, and claimed by the caller, which takes each once
    /// and has not counted them as finished.
    #[inline]
    pub(in crate::raw) unsafe fn take(self, first: u64, count: usize) -> impl Iterator<Item = T> {
        // SAFETY: within the row, which unfinished positions keep alive.
        let slots = unsafe { Row::element(self.0, offset::<T>(first)) };
        // SAFETY: as above; filled before they were published.
        (0..count).map(move |index| unsafe { (*slots.add(index)).take() })
    }

    /// Moves out the item of one position, with its time.
    ///
    /// # Safety
    ///
    /// The position is in the segment, filled, and owned by the caller, which takes it once.
    pub(in crate::raw) unsafe fn take_one(self, position: u64) -> Entry<T> {
        // SAFETY: by contract; the times are alive as long as the segment.
        unsafe {
            let since = self.times().get(offset::<T>(position));
            Entry {
                item: self.slot(position).take(),
                delivery: DeliveryMeta::first(since),
            }
        }
    }

    /// Counts `count` more positions as finished. True for the last ones: the caller then has exclusive
    /// access to the segment, and every other access happened before.
    ///
    /// # Safety
    ///
    /// These positions were claimed by the caller, which does not use them any more and has not counted them.
    pub(in crate::raw) unsafe fn finish(self, count: u64) -> bool {
        // SAFETY: positions that are not counted yet keep the segment alive.
        let finished = unsafe { &Row::header(self.0).finished };
        // ORDERING: AcqRel. Release: this consumer's moves out of the slots happen before the last
        // finisher's reuse. Acquire: the last finisher sees those of all others, by their
        // `segment.finish`.
        finished.fetch_add(count, weak!("segment.finish", AcqRel)) + count == Self::LEN as u64
    }

    /// Makes the segment ready for other positions.
    ///
    /// # Safety
    ///
    /// The caller has exclusive access: it is the last finisher.
    pub(in crate::raw) unsafe fn reset(self) {
        // SAFETY: alive by contract.
        let finished = unsafe { &Row::header(self.0).finished };
        // ORDERING: Relaxed; the Release of the shard's spare publishes it.
        finished.store(0, Ordering::Relaxed);
    }

    /// Frees the segment and its times.
    ///
    /// # Safety
    ///
    /// The caller has exclusive access, and the slots are vacant. Nobody can reach its times.
    pub(in crate::raw) unsafe fn free(self) {
        // SAFETY: by contract.
        unsafe {
            self.times().free();
            Row::free(self.0);
        }
    }

    /// Frees a segment that was shared.
    ///
    /// # Safety
    ///
    /// The caller has exclusive access, and the slots are vacant. No unclaimed position is in it.
    pub(in crate::raw) unsafe fn retire(self) {
        // SAFETY: by contract.
        unsafe {
            self.times().retire();
            Row::free(self.0);
        }
    }
}

/// The number of the segment with `position` in its shard.
#[inline]
pub(in crate::raw) fn number<T>(position: u64) -> u64 {
    position / Segment::<T>::LEN as u64
}

/// The index of `position` in its segment.
#[inline]
#[allow(clippy::cast_possible_truncation)] // less than LEN
pub(in crate::raw) fn offset<T>(position: u64) -> usize {
    (position % Segment::<T>::LEN as u64) as usize
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::Segment;

    #[test]
    #[cfg_attr(miri, ignore = "tables and segments are small")]
    fn segments_are_sized_by_bytes() {
        assert_eq!(Segment::<()>::LEN, 256);
        assert_eq!(Segment::<u64>::LEN, 256);
        assert_eq!(Segment::<[u64; 3]>::LEN, 64);
        assert_eq!(Segment::<[u8; 4096]>::LEN, 1);
    }
}
