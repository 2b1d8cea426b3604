//! Times: when each item was pushed, for queues that keep times.
//!
//! Each segment has a row of times beside its slots. Only the layers above know the unit;
//! 0 means not known. A producer records the time of an item before it publishes the item, which
//! publishes the time too.
//!
//! The row of a segment belongs to the segment: a consumer that has claimed a position reads its time like
//! its slot, without a pin. The directory shows the row too, for readers of the time of a head that they do
//! not claim. For them a row that was shared is retired, not freed at once. Meanwhile the segment may be
//! emptied and reused: then they read the time of a later item.

use crate::raw::memory::reclaim;
use crate::raw::memory::row::Row;
use crate::sync::{AtomicU64, Ordering};
use std::ptr::{self, NonNull};

/// The allocation.
pub(in crate::raw) type TimeRow = Row<(), AtomicU64>;

/// A time for each slot of a segment, or none.
#[derive(Clone, Copy)]
pub(in crate::raw) struct Times(Option<NonNull<TimeRow>>);

impl Times {
    /// Allocates a row of `len` times if they are `kept`.
    pub(in crate::raw) fn new(kept: bool, len: usize) -> Self {
        Self(kept.then(|| Row::new((), len, || AtomicU64::new(0))))
    }

    pub(in crate::raw) fn from_raw(raw: *mut TimeRow) -> Self {
        Self(NonNull::new(raw))
    }

    pub(in crate::raw) fn into_raw(self) -> *mut TimeRow {
        self.0.map_or(ptr::null_mut(), NonNull::as_ptr)
    }

    /// Records the time of the item for the slot at `index`.
    ///
    /// # Safety
    ///
    /// The row is alive, and `index` is less than its length.
    pub(in crate::raw) unsafe fn set(self, index: usize, since: u64) {
        if let Some(row) = self.0 {
            // SAFETY: by contract.
            let time = unsafe { Row::get(row, index) };
            // ORDERING: Relaxed; the publication of the item publishes it.
            time.store(since, Ordering::Relaxed);
        }
    }

    /// The time of the item at `index`.
    ///
    /// # Safety
    ///
    /// As for [`Times::set`].
    pub(in crate::raw) unsafe fn get(self, index: usize) -> u64 {
        self.0.map_or(0, |row| {
            // SAFETY: by contract.
            let time = unsafe { Row::get(row, index) };
            // ORDERING: Relaxed; the caller has seen that the item was published.
            time.load(Ordering::Relaxed)
        })
    }

    /// The size of the row in bytes.
    ///
    /// # Safety
    ///
    /// The row is alive.
    pub(in crate::raw) unsafe fn bytes(self) -> usize {
        // SAFETY: by contract.
        self.0.map_or(0, |row| unsafe { Row::bytes(row) })
    }

    /// Frees the row at once.
    ///
    /// # Safety
    ///
    /// The row is not used, and not reachable.
    pub(in crate::raw) unsafe fn free(self) {
        if let Some(row) = self.0 {
            // SAFETY: by contract.
            unsafe { Row::free(row) };
        }
    }

    /// Frees the row once all present pins are dropped.
    ///
    /// # Safety
    ///
    /// The row is not reachable by later pins.
    pub(in crate::raw) unsafe fn retire(self) {
        if let Some(row) = self.0 {
            // SAFETY: by contract; a row of numbers runs no user code.
            unsafe {
                reclaim::pin().retire(self.bytes(), move || Row::free(row));
            }
        }
    }
}

/// The time, if it is known.
pub(in crate::raw) fn known(since: u64) -> Option<u64> {
    (since != 0).then_some(since)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
