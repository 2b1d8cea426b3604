//! Segments: the slots of consecutive positions of one shard.
//!
//! A segment is [`SHORT`](Segment::SHORT) where few items are ready, and up to [`LONG`](Segment::LONG) where many are: each
//! segment costs an allocation, an entry in the directory and a pin, whatever its length.
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

/// The most positions in a segment.
pub(in crate::raw) const MAX_ITEMS: usize = if SMALL { 2 } else { 256 };
/// The most bytes of several items in a short segment, and of many items in a long one.
const SHORT_BYTES: usize = 2048;
const LONG_BYTES: usize = 32 * 1024;
/// The items in a short segment if they fit into twice its bytes, and in a long one whatever their size.
const SHORT_ITEMS: usize = 4;
const LONG_ITEMS: usize = 8;
/// A segment has room for one of so many ready items at most, so that this is the share of memory that is not used.
const SHARE: u64 = if SMALL { 1 } else { 4 };

/// The first stamp of a segment. A stamp times the positions of a segment must not overflow.
pub(in crate::raw) const FIRST_STAMP: u64 = start_before(1 << (u64::BITS - MAX_ITEMS.ilog2()));

/// The slots of consecutive positions.
///
/// A segment is alive while one of its positions is not finished: unclaimed, or claimed and not yet
/// moved out. Whoever finishes the last one has exclusive access.
pub(in crate::raw) struct Segment<T> {
    row: NonNull<Row<Header, Slot<T>>>,
    /// Where the slot of position 0 would be, so that the address of a slot is a sum of two values. Not necessarily in memory.
    origin: *mut Slot<T>,
    /// Its first position.
    first: u64,
}

/// The header of a segment, aligned so that no item of 16 bytes crosses a cache line.
#[repr(align(16))]
struct Header {
    /// The number of finished positions.
    finished: AtomicU64,
    /// The notes: first the times of all items, then the numbers of their deliveries, as far as they are kept.
    notes: Box<[AtomicU64]>,
}

impl<T> Clone for Segment<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Segment<T> {}

impl<T> Segment<T> {
    /// Positions in a segment of a shard with few items, a power of two.
    pub(in crate::raw) const SHORT: usize = match size_of::<T>() {
        size if SMALL => 2 - (size > 2 * size_of::<u64>()) as usize,
        size if size * MAX_ITEMS <= SHORT_BYTES => MAX_ITEMS,
        size if size * SHORT_ITEMS <= SHORT_BYTES => 1 << (SHORT_BYTES / size).ilog2(),
        size if size * SHORT_ITEMS <= 2 * SHORT_BYTES => SHORT_ITEMS,
        size if size <= SHORT_BYTES => 2,
        _ => 1,
    };

    /// Positions in the first segment of a shard, a power of two: many shards are used for a few items.
    pub(in crate::raw) const FIRST: usize = match Self::SHORT / SHORT_ITEMS {
        len if SMALL || len == 0 => Self::SHORT,
        len => len,
    };

    /// Positions in a segment of a shard with many items, a power of two.
    pub(in crate::raw) const LONG: usize = match size_of::<T>() {
        _ if SMALL => MAX_ITEMS,
        size if size * MAX_ITEMS <= LONG_BYTES => MAX_ITEMS,
        size if size * LONG_ITEMS <= LONG_BYTES => 1 << (LONG_BYTES / size).ilog2(),
        _ => LONG_ITEMS,
    };

    /// The positions that the next segment of a shard should have in which so many items are ready or staged.
    #[allow(clippy::cast_possible_truncation)] // at most LONG
    pub(in crate::raw) fn len_for(backlog: u64) -> usize {
        let len = (backlog / SHARE).clamp(Self::SHORT as u64, Self::LONG as u64);
        1 << len.ilog2()
    }

    /// Allocates a segment of `len` positions from `first` on, with these notes.
    pub(in crate::raw) fn new(first: u64, len: usize, notes: Notes) -> Self {
        let known = notes as usize * len;
        let header = Header {
            finished: AtomicU64::new(0),
            notes: (0..known).map(|_| AtomicU64::new(0)).collect(),
        };
        Self::at(Row::new(header, len, Slot::vacant), first)
    }

    #[allow(clippy::cast_possible_truncation)] // 64-bit only
    fn at(row: NonNull<Row<Header, Slot<T>>>, first: u64) -> Self {
        let origin = Row::start(row).wrapping_sub(first as usize);
        Self { row, origin, first }
    }

    pub(in crate::raw) fn into_raw(self) -> *mut () {
        self.row.as_ptr().cast()
    }

    /// The segment at this address, for positions from `first` on.
    pub(in crate::raw) fn from_raw(raw: *mut (), first: u64) -> Option<Self> {
        NonNull::new(raw.cast()).map(|row| Self::at(row, first))
    }

    /// Its first position.
    pub(in crate::raw) fn first(self) -> u64 {
        self.first
    }

    /// The number of its positions.
    ///
    /// # Safety
    ///
    /// The segment is alive.
    pub(in crate::raw) unsafe fn len(self) -> usize {
        // SAFETY: by contract.
        unsafe { Row::len(self.row) }
    }

    /// The address of the slot of `position`, which is in the segment.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // 64-bit only
    fn address(self, position: u64) -> *mut Slot<T> {
        self.origin.wrapping_add(position as usize)
    }

    /// The slot of `position`, which is in the segment.
    ///
    /// # Safety
    ///
    /// The segment is alive while `'a` lasts.
    #[inline]
    pub(in crate::raw) unsafe fn slot<'a>(self, position: u64) -> &'a Slot<T> {
        // SAFETY: alive by contract; the position is within the row, whose slots are initialised.
        unsafe { &*self.address(position) }
    }

    /// The slots from that of `position` on.
    ///
    /// # Safety
    ///
    /// The segment is alive while `'a` lasts.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // at most the length
    pub(in crate::raw) unsafe fn slots_from<'a>(self, position: u64) -> &'a [Slot<T>] {
        // SAFETY: alive by contract; these are within the row.
        unsafe {
            let end = self.first + self.len() as u64;
            slice::from_raw_parts(self.address(position), (end - position) as usize)
        }
    }

    /// The time of the item at `position`, or the number of its deliveries; `None` if it is not kept.
    ///
    /// # Safety
    ///
    /// The segment is alive.
    #[allow(clippy::cast_possible_truncation)] // less than the length
    unsafe fn note<'a>(self, position: u64, kind: Notes) -> Option<&'a AtomicU64> {
        let index = (position - self.first) as usize;
        // SAFETY: alive by contract.
        let (notes, len) = unsafe { (&Row::header(self.row).notes, self.len()) };
        notes.get((kind as usize - 1) * len + index)
    }

    /// Records what is known of the item that is stored at `position`, as far as that is kept.
    ///
    /// # Safety
    ///
    /// The segment is alive.
    pub(in crate::raw) unsafe fn set_delivery(self, position: u64, delivery: DeliveryMeta) {
        let DeliveryMeta { attempts, since } = delivery;
        for (kind, value) in [(Notes::Times, since), (Notes::Deliveries, attempts.into())] {
            // SAFETY: by contract.
            if let Some(note) = unsafe { self.note(position, kind) } {
                // ORDERING: Relaxed; the publication of the item publishes it.
                note.store(value, Ordering::Relaxed);
            }
        }
    }

    /// The metadata of the next delivery of the item at `position`.
    ///
    /// # Safety
    ///
    /// The segment is alive.
    #[allow(clippy::cast_possible_truncation)] // stored as such
    pub(in crate::raw) unsafe fn delivery(self, position: u64) -> DeliveryMeta {
        // SAFETY: by contract.
        let (since, before) =
            unsafe { (self.since(position), self.note(position, Notes::Deliveries)) };
        // ORDERING: Relaxed; as in `since`.
        let attempts = before.map_or(0, |before| before.load(Ordering::Relaxed) as u32);
        DeliveryMeta::after(attempts, since).again()
    }

    /// When the item at `position` was pushed.
    ///
    /// # Safety
    ///
    /// The segment is alive.
    pub(in crate::raw) unsafe fn since(self, position: u64) -> u64 {
        // SAFETY: by contract.
        let time = unsafe { self.note(position, Notes::Times) };
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
        let slots = self.address(first);
        // SAFETY: within the row, which unfinished positions keep alive; filled before they were published.
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
                delivery: self.delivery(position),
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
        let (finished, len) = unsafe { (&Row::header(self.row).finished, self.len()) };
        // ORDERING: AcqRel. Release: this consumer's moves out of the slots happen before the last
        // finisher's reuse. Acquire: the last finisher sees those of all others, by their
        // `segment.finish`.
        finished.fetch_add(count, weak!("segment.finish", AcqRel)) + count == len as u64
    }

    /// Makes the segment ready for other positions.
    ///
    /// # Safety
    ///
    /// The caller has exclusive access: it is the last finisher.
    pub(in crate::raw) unsafe fn reset(self) {
        // SAFETY: alive by contract.
        let finished = unsafe { &Row::header(self.row).finished };
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
        unsafe { Row::free(self.row) };
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
            if Row::header(self.row).notes.is_empty() {
                self.free();
            } else {
                let bytes = Row::<Header, Slot<T>>::layout(self.len()).size();
                reclaim::pin().retire(bytes, move || self.free());
            }
        }
    }
}

/// What a segment keeps of its items beside them: as many words for each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::raw) enum Notes {
    Nothing,
    Times,
    /// The times, and how often the items were delivered.
    Deliveries,
}

impl Notes {
    /// Those of the shards of handles.
    pub(in crate::raw) fn timed(timed: bool) -> Self {
        if timed {
            Self::Times
        } else {
            Self::Nothing
        }
    }
}

/// The time, if it is known.
pub(in crate::raw) fn known(since: u64) -> Option<u64> {
    (since != 0).then_some(since)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::Segment;

    #[test]
    #[cfg_attr(miri, ignore = "tables and segments are small")]
    fn segments_are_sized_by_bytes() {
        const fn lengths<T>() -> [usize; 2] {
            [Segment::<T>::SHORT, Segment::<T>::LONG]
        }
        assert_eq!(lengths::<()>(), [256, 256]);
        assert_eq!(lengths::<u64>(), [256, 256]);
        assert_eq!(lengths::<[u64; 3]>(), [64, 256]);
        assert_eq!(lengths::<[u64; 8]>(), [32, 256]);
        assert_eq!(lengths::<[u8; 1024]>(), [4, 32]);
        assert_eq!(lengths::<[u8; 1025]>(), [2, 16]);
        assert_eq!(lengths::<[u8; 4096]>(), [1, 8]);
        assert_eq!(lengths::<[u8; 1 << 20]>(), [1, 8]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "tables and segments are small")]
    fn segments_grow_with_the_backlog() {
        type Large = Segment<[u8; 1024]>;
        let lengths = [0, 31, 32, 63, 64, 128, u64::MAX].map(Large::len_for);
        assert_eq!(lengths, [4, 4, 8, 8, 16, 32, 32]);
    }
}
