//! A sequence, and the intake that fills it from the shards.

use super::{Due, Sequence};
use crate::raw::{Entry, Intake, Receive, Stored};

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

/// Adds the items of an intake to a sequence; if `TIMED`, before others are merged with them.
struct Arrivals<'s, S, const TIMED: bool>(&'s mut S);

impl<T, M, S, const TIMED: bool> Receive<Stored<T, M>> for Arrivals<'_, S, TIMED>
where
    S: Sequence<T, M>,
{
    #[inline(always)] // for each item
    fn receive(&mut self, entry: Entry<Stored<T, M>>) {
        if TIMED {
            self.0.arrive_timed(entry);
        } else {
            self.0.arrive(entry);
        }
    }
}

impl<T, M, S: Sequence<T, M>> Partition<T, M, S> {
    pub(super) fn new(sequence: S, intake: Intake<Stored<T, M>>) -> Self {
        Self {
            sequence,
            shown: 0,
            taken: 0,
            intake,
            returned: Vec::new(),
        }
    }

    /// Takes in the visible items of the shards.
    #[inline(always)] // the pop of an order
    pub(super) fn take_in(&mut self) {
        self.take_in_by::<false>();
    }

    /// As [`Partition::take_in`], for other calls.
    #[inline(never)]
    pub(super) fn take_in_slowly(&mut self) {
        self.take_in();
    }

    #[inline(always)] // the pop of an order
    fn take_in_by<const TIMED: bool>(&mut self) {
        let Self {
            sequence,
            intake,
            returned,
            ..
        } = self;
        if intake.has_returned() {
            intake.take_returned(returned);
            while let Some(entry) = returned.pop() {
                sequence.come_back(entry);
            }
            returned.shrink_to(KEPT_CAPACITY);
        }
        intake.take_arrived(&mut Arrivals::<S, TIMED>(sequence));
    }

    /// Takes in the visible items of the shards, and adds others that have become due, each at its time among them.
    pub(super) fn merge(&mut self, due: Vec<Due<Entry<Stored<T, M>>>>) {
        self.take_in_by::<true>();
        self.sequence.merge(due);
    }

    /// Leaves the shards, so that their memory can be reclaimed.
    pub(super) fn leave_shards(&mut self) {
        self.intake.leave();
    }
}
