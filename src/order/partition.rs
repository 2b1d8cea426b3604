//! A sequence, and the intake that fills it from the shards.

use super::{Due, Sequence};
use crate::raw::{Entry, Intake, Receive, Shards, Stored};
use crate::sync::Mutex;
use crossbeam_utils::CachePadded;
use std::sync::Arc;

/// The capacity that is kept for returned items.
const KEPT_CAPACITY: usize = 256;

/// A sequence, and the intake that fills it from the shards.
pub(super) struct Partition<T, M, S> {
    pub(super) sequence: S,
    /// How many of its items are being shown. They are in the queue, though not ready.
    pub(super) shown: usize,
    /// How many items were taken.
    pub(super) taken: u64,
    intake: Intake<Stored<T, M>>,
    /// Returned items; empty between two uses.
    returned: Vec<Entry<Stored<T, M>>>,
}

/// Adds the items of an intake to a sequence.
struct Arrivals<'s, S>(&'s mut S);

impl<T, M, S: Sequence<T, M>> Receive<Stored<T, M>> for Arrivals<'_, S> {
    #[inline(always)] // for each item
    fn receive(&mut self, entry: Entry<Stored<T, M>>) {
        self.0.arrive(entry);
    }
}

impl<T, M, S: Sequence<T, M>> Partition<T, M, S> {
    /// One that takes in the items of a share of these shards, or of all.
    pub(super) fn locked(
        sequence: S,
        shards: &Arc<Shards<Stored<T, M>>>,
        share: Option<usize>,
    ) -> CachePadded<Mutex<Self>> {
        CachePadded::new(Mutex::new(Self {
            sequence,
            shown: 0,
            taken: 0,
            intake: Intake::new(Arc::clone(shards), share),
            returned: Vec::new(),
        }))
    }

    /// Whether it takes in what was returned.
    #[inline]
    pub(super) fn is_first(&self) -> bool {
        S::ANOTHER.is_none() || self.intake.drains_common()
    }

    /// Leaves all shards to the other partitions but the common one.
    pub(super) fn narrow(&mut self) {
        self.intake.narrow(0);
    }

    /// Takes in the visible items of the shards.
    #[inline(always)] // the pop of an order
    pub(super) fn take_in(&mut self) {
        self.take_returned();
        self.intake.take_arrived(&mut Arrivals(&mut self.sequence));
    }

    /// As [`Partition::take_in`], for other calls.
    #[inline(never)]
    pub(super) fn take_in_slowly(&mut self) {
        self.take_in();
    }

    #[inline(always)] // the pop of an order
    fn take_returned(&mut self) {
        if self.intake.has_returned() && self.is_first() {
            self.intake.take_returned(&mut self.returned);
            while let Some(entry) = self.returned.pop() {
                self.sequence.come_back(entry);
            }
            self.returned.shrink_to(KEPT_CAPACITY);
        }
    }

    /// Takes in the visible items of the shards, and adds others that have become due, each at its time among them.
    pub(super) fn merge(&mut self, due: Vec<Due<Entry<Stored<T, M>>>>) {
        self.take_returned();
        let mut fresh = Vec::new();
        self.intake.take_arrived(&mut fresh);
        self.sequence.merge(fresh, due);
    }

    /// Leaves the shards, so that their memory can be reclaimed.
    pub(super) fn leave_shards(&mut self) {
        self.intake.leave();
    }
}
