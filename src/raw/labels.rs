//! Labels: what comes with each item, for queues that keep times or have a discipline.
//!
//! A row of labels stands beside the slots of a segment and beside the cells of a node. What a label
//! says only the layers above can read; a time of 0: not known. Whoever puts an item in place notes its
//! label before, so what publishes the item publishes the label.
//!
//! The row of a segment belongs to the segment: whoever has claimed a position reads the label as it
//! reads the slot, without a pin. The directory shows the row too, to those who ask for the time of a
//! head that they do not claim. For them a row that was shared is retired, not freed at once. While
//! they look, the segment may be emptied and used again: then they read the time of a later item.

use super::reclaim;
use super::row::Row;
use super::tag::Label;
use crate::sync::{AtomicU64, Ordering};
use std::ptr::{self, NonNull};

/// The allocation.
pub(super) type LabelRow = Row<(), Place>;

/// The place of a label.
pub(super) struct Place {
    since: AtomicU64,
    order: AtomicU64,
}

impl Place {
    fn vacant() -> Self {
        Self {
            since: AtomicU64::new(0),
            order: AtomicU64::new(0),
        }
    }
}

/// The labels of as many items as a segment or a node has places for, or none.
#[derive(Clone, Copy)]
pub(super) struct Labels(Option<NonNull<LabelRow>>);

impl Labels {
    /// Makes a row of `len` labels if they are `kept`.
    pub(super) fn new(kept: bool, len: usize) -> Self {
        Self(kept.then(|| Row::new((), len, Place::vacant)))
    }

    pub(super) fn from_raw(raw: *mut LabelRow) -> Self {
        Self(NonNull::new(raw))
    }

    pub(super) fn into_raw(self) -> *mut LabelRow {
        self.0.map_or(ptr::null_mut(), NonNull::as_ptr)
    }

    pub(super) fn are_kept(self) -> bool {
        self.0.is_some()
    }

    /// Notes the label of the item that comes to the place at `index`.
    ///
    /// # Safety
    ///
    /// The row is alive, and `index` is less than its length.
    pub(super) unsafe fn note(self, index: usize, label: Label) {
        if let Some(row) = self.0 {
            // SAFETY: by contract.
            let place = unsafe { Row::get(row, index) };
            // ORDERING: Relaxed, both; what publishes the item publishes them.
            place.since.store(label.since, Ordering::Relaxed);
            place.order.store(label.order, Ordering::Relaxed);
        }
    }

    /// The label of the item at `index`.
    ///
    /// # Safety
    ///
    /// As for [`Labels::note`].
    pub(super) unsafe fn get(self, index: usize) -> Label {
        self.0.map_or(Label::NONE, |row| {
            // SAFETY: by contract.
            let place = unsafe { Row::get(row, index) };
            // ORDERING: Relaxed, both; the caller has seen that the item was published.
            Label {
                since: place.since.load(Ordering::Relaxed),
                order: place.order.load(Ordering::Relaxed),
            }
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
            .map_or(0, |row| LabelRow::bytes(unsafe { Row::len(row) }))
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
