//! Segments: the slots of consecutive positions of one shard.
//!
//! In a queue that keeps times, a segment has a table of them: when each item was pushed. Only the layers
//! above know the unit; 0 means not known. A producer records the time of an item before it publishes the item, which
//! publishes the time too; a consumer that has claimed a position reads its time like its slot.
//!
//! Others read the time of a head that they do not claim: they are pinned before they read the head, and find the segment
//! in the directory. For them such a segment is retired, not freed at once. Meanwhile it may be emptied and reused: then they
//! read the time of a later item.

use crate::raw::memory::entry::{DeliveryMeta, Entry};
use crate::raw::memory::reclaim;
use crate::raw::memory::row::Row;
use crate::raw::memory::slot::Slot;
use crate::sync::{start_before, weak, AtomicU64, Ordering, SMALL};
use std::mem::size_of;
use std::ptr::NonNull;
use std::slice;

/// The most positions in a segment, and the most bytes of several items.
const MAX_ITEMS: usize = 256;
const BYTES: usize = 2048;

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
    /// The times of the items, if they are kept.
    times: Box<[AtomicU64]>,
}

impl<T> Clone for Segment<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Segment<T> {}

impl<T> Segment<T> {
    /// Positions in a segment, a power of two: about 2 KiB of items, at most [`MAX_ITEMS`] of them.
    pub(in crate::raw) const LEN: usize = match size_of::<T>() {
        _ if SMALL => 2,
        0 => MAX_ITEMS,
        size if size * MAX_ITEMS <= BYTES => MAX_ITEMS,
        size if size > BYTES => 1,
        size => 1 << (BYTES / size).ilog2(),
    };

    /// Allocates a segment, with times if its items are `timed`.
    pub(in crate::raw) fn new(timed: bool) -> Self {
        let known = if timed { Self::LEN } else { 0 };
        let header = Header {
            finished: AtomicU64::new(0),
            times: (0..known).map(|_| AtomicU64::new(0)).collect(),
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

    /// The time of the item at `position`; `None` if none are kept.
    ///
    /// # Safety
    ///
    /// The segment is alive.
    unsafe fn time<'a>(self, position: u64) -> Option<&'a AtomicU64> {
        // SAFETY: alive by contract.
        unsafe { Row::header(self.0) }
            .times
            .get(offset::<T>(position))
    }

    /// Records the time of the item that is stored at `position`.
    ///
    /// # Safety
    ///
    /// The segment is alive.
    pub(in crate::raw) unsafe fn set_since(self, position: u64, since: u64) {
        // SAFETY: by contract.
        if let Some(time) = unsafe { self.time(position) } {
            // ORDERING: Relaxed; the publication of the item publishes it.
            time.store(since, Ordering::Relaxed);
        }
    }

    /// When the item at `position` was pushed.
    ///
    /// # Safety
    ///
    /// The segment is alive.
    pub(in crate::raw) unsafe fn since(self, position: u64) -> u64 {
        // SAFETY: by contract.
        let time = unsafe { self.time(position) };
        // ORDERING: Relaxed; the caller has seen that the item was published.
        time.map_or(0, |time| time.load(Ordering::Relaxed))
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
        // SAFETY: by contract.
        unsafe {
            Entry {
                item: self.slot(position).take(),
                delivery: DeliveryMeta::first(self.since(position)),
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

    /// Frees the segment.
    ///
    /// # Safety
    ///
    /// The caller has exclusive access, the slots are vacant, and nobody can reach the times.
    pub(in crate::raw) unsafe fn free(self) {
        // SAFETY: by contract.
        unsafe { Row::free(self.0) };
    }

    /// Frees a segment that was shared; later, if others may read its times.
    ///
    /// # Safety
    ///
    /// The caller has exclusive access, and the slots are vacant. No unclaimed position is in it.
    pub(in crate::raw) unsafe fn retire(self) {
        // SAFETY: by contract. Later pins do not reach it: they find the segment of an unclaimed position. The slots are
        // vacant, so no user code runs.
        unsafe {
            if Row::header(self.0).times.is_empty() {
                self.free();
            } else {
                let bytes = Row::<Header, Slot<T>>::layout(Self::LEN).size();
                reclaim::pin().retire(bytes, move || self.free());
            }
        }
    }
}

/// The time, if it is known.
pub(in crate::raw) fn known(since: u64) -> Option<u64> {
    (since != 0).then_some(since)
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
