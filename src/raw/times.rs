//! Times: when each item was pushed, for queues that keep times.
//!
//! A row of times stands beside the slots of a segment and beside the cells of a node. Its unit only the
//! layers above know; 0: not known. Whoever puts an item in place notes its time before, so what
//! publishes the item publishes the time.
//!
//! The row of a segment belongs to the segment: whoever has claimed a position reads the time as it
//! reads the slot, without a pin. The directory shows the row too, to those who ask for the time of a
//! head that they do not claim. For them a row that was shared is retired, not freed at once. While
//! they look, the segment may be emptied and used again: then they read the time of a later item.

use super::reclaim;
use super::row::Row;
use crate::sync::{AtomicU64, Ordering};
use std::ptr::{self, NonNull};

/// The allocation.
pub(super) type TimeRow = Row<(), AtomicU64>;

/// The times of as many items as a segment or a node has places for, or none.
#[derive(Clone, Copy)]
pub(super) struct Times(Option<NonNull<TimeRow>>);

impl Times {
    /// Makes a row of `len` times if they are `kept`.
    pub(super) fn new(kept: bool, len: usize) -> Self {
        Self(kept.then(|| Row::new((), len, || AtomicU64::new(0))))
    }

    pub(super) fn from_raw(raw: *mut TimeRow) -> Self {
        Self(NonNull::new(raw))
    }

    pub(super) fn into_raw(self) -> *mut TimeRow {
        self.0.map_or(ptr::null_mut(), NonNull::as_ptr)
    }

    pub(super) fn are_kept(self) -> bool {
        self.0.is_some()
    }

    /// Notes the time of the item that comes to the place at `index`.
    ///
    /// # Safety
    ///
    /// The row is alive, and `index` is less than its length.
    pub(super) unsafe fn note(self, index: usize, since: u64) {
        if let Some(row) = self.0 {
            // SAFETY: by contract.
            let place = unsafe { Row::get(row, index) };
            // ORDERING: Relaxed; what publishes the item publishes it.
            place.store(since, Ordering::Relaxed);
        }
    }

    /// The time of the item at `index`.
    ///
    /// # Safety
    ///
    /// As for [`Times::note`].
    pub(super) unsafe fn get(self, index: usize) -> u64 {
        self.0.map_or(0, |row| {
            // SAFETY: by contract.
            let place = unsafe { Row::get(row, index) };
            // ORDERING: Relaxed; the caller has seen that the item was published.
            place.load(Ordering::Relaxed)
        })
    }

    /// How many bytes the row takes.
    ///
    /// # Safety
    ///
    /// The row is alive.
    pub(super) unsafe fn bytes(self) -> usize {
        // SAFETY: by contract.
        self.0
            .map_or(0, |row| TimeRow::bytes(unsafe { Row::len(row) }))
    }

    /// Frees the row at once.
    ///
    /// # Safety
    ///
    /// Nobody uses the row, and nobody can reach it.
    pub(super) unsafe fn free(self) {
        if let Some(row) = self.0 {
            // SAFETY: by contract.
            unsafe { Row::free(row) };
        }
    }

    /// Frees the row once nobody who is pinned now can still reach it.
    ///
    /// # Safety
    ///
    /// The row is out of reach for pins to come.
    pub(super) unsafe fn retire(self) {
        if let Some(row) = self.0 {
            // SAFETY: by contract; a row of numbers runs no user code.
            unsafe {
                reclaim::pin().retire(self.bytes(), move || Row::free(row));
            }
        }
    }
}

/// A time that is known.
pub(super) fn known(since: u64) -> Option<u64> {
    (since != 0).then_some(since)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
