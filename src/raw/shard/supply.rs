//! The segments of a shard that are opened next: how long they are, and where they come from.
//!
//! A shard keeps one *spare*, a segment that consumers have finished, while it is in their caches. The last finisher puts it
//! there, by CAS from null; the producer takes it when it opens a segment, and fills it again. A consumer takes it too, to free
//! it, when it finishes a long segment while few items are left. Whoever takes it does so by CAS from its address, and has it for
//! itself: an address that has come back meanwhile is that of an emptied segment again. Both ways are one attempt, so a push
//! stays wait-free: a producer that loses against a consumer allocates. A retired shard has a mark instead of a spare.

use crate::raw::memory::Segment;
use crate::raw::shard::Shard;
use crate::sync::{planted, weak, Ordering};
use std::ptr;

impl<T> Shard<T> {
    /// The length of the next segment, by the number of items before `next`.
    pub(super) fn next_len(&self, next: u64) -> usize {
        if next == 0 {
            return Segment::<T>::FIRST;
        }
        if Segment::<T>::SHORT == Segment::<T>::LONG {
            return Segment::<T>::SHORT; // the consumers' cache line is not read
        }
        Segment::<T>::len_for(next.saturating_sub(self.front.head().position()))
    }

    /// Takes the spare for `len` positions or more from `first` on. A shorter one is freed.
    pub(super) fn spare(&self, len: usize, first: u64) -> Option<Segment<T>> {
        let spare = self.take_spare(first)?;
        // SAFETY: a spare belongs to the thread that took it, and was emptied.
        if unsafe { spare.len() } >= len {
            return Some(spare);
        }
        // SAFETY: as above.
        unsafe { spare.retire() };
        None
    }

    /// Takes the spare.
    pub(in crate::raw) fn take_spare(&self, first: u64) -> Option<Segment<T>> {
        let place = &self.supply.spare;
        // ORDERING: Relaxed; a check, which the exchange below repeats.
        let spare = place.load(Ordering::Relaxed);
        if spare.is_null() || spare == closed() {
            return None;
        }
        // ORDERING: Acquire; pairs with `shard.recycle`: the consumers have finished it. Relaxed on failure: another thread
        // has taken it.
        let acquire = weak!("shard.spare", Acquire);
        let taken = place.compare_exchange(spare, ptr::null_mut(), acquire, Ordering::Relaxed);
        planted!(
            "shard.takes-spare-anyway",
            return Segment::from_raw(spare, first)
        );
        Segment::from_raw(taken.ok()?, first)
    }

    /// Frees the spare.
    pub(super) fn free_spare(&self) {
        if let Some(spare) = self.take_spare(0) {
            // SAFETY: a spare belongs to the thread that took it, and was emptied.
            unsafe { spare.retire() };
        }
    }

    /// Keeps the segment as the spare, or frees it. A longer one than a short one is kept only while there are enough items
    /// for the producer to open such a one: the last segments that a drain finishes leave none.
    ///
    /// # Safety
    ///
    /// The caller has exclusive access to the segment, and its slots are vacant.
    #[inline(never)]
    pub(super) unsafe fn recycle(&self, segment: Segment<T>) {
        // SAFETY: by contract.
        let len = unsafe { segment.len() };
        if len > Segment::<T>::SHORT && self.backlog() < Segment::<T>::LONG as u64 {
            self.free_spare();
            // SAFETY: by contract; all its positions were claimed.
            return unsafe { segment.retire() };
        }
        // SAFETY: by contract.
        unsafe { segment.reset() };
        // ORDERING: Release; pairs with `shard.spare` and `shard.close-supply`. Relaxed on failure: there is
        // a spare, or the shard is retired.
        let kept = self.supply.spare.compare_exchange(
            ptr::null_mut(),
            segment.into_raw(),
            weak!("shard.recycle", Release),
            Ordering::Relaxed,
        );
        if kept.is_err() {
            // SAFETY: by contract; all its positions were claimed.
            unsafe { segment.retire() };
        }
    }

    /// Frees the memory of a shard in which nothing is left; false if it is not empty.
    ///
    /// # Safety
    ///
    /// The caller is the owner, whose tail is at `tail`, the end of a segment. It uses neither that
    /// segment nor its page any more.
    pub(in crate::raw) unsafe fn retire(&self, tail: u64) -> bool {
        if self.front.head().position() != tail {
            return false;
        }
        // ORDERING: Acquire; pairs with `shard.recycle`, which keeps no spare from now on.
        let acquire = weak!("shard.close-supply", Acquire);
        let spare = self.supply.spare.swap(closed(), acquire);
        if let Some(spare) = Segment::<T>::from_raw(spare, 0).filter(|_| spare != closed()) {
            // SAFETY: a spare belongs to the thread that took it, and was emptied.
            unsafe { spare.retire() };
        }
        // SAFETY: by contract, and nothing is in the shard.
        unsafe { self.directory().vacate() };
        true
    }

    /// Keeps spare segments again. The caller owns the shard.
    pub(in crate::raw) fn reopen(&self) {
        // ORDERING: Relaxed, both; nobody else writes this while the shard is retired.
        if self.supply.spare.load(Ordering::Relaxed) == closed() {
            self.supply.spare.store(ptr::null_mut(), Ordering::Relaxed);
        }
    }

    /// Whether the memory of the shard is [freed](Shard::retire), as a hint.
    pub(in crate::raw) fn is_retired(&self) -> bool {
        // ORDERING: Relaxed; a hint.
        self.supply.spare.load(Ordering::Relaxed) == closed()
    }
}

/// The marker for the spare segment of a retired shard.
fn closed() -> *mut () {
    ptr::null_mut::<u8>().wrapping_add(1).cast()
}
