//! A sequence, and the intake that fills it from the shards.

use super::Sequence;
use crate::raw::{Entry, Intake, Receive, Stored};
use crate::time::NEVER;
use crate::wait::DueTimer;
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
    due_timer: Arc<DueTimer>,
    /// The due time for which the timer was last set.
    planned: u64,
}

/// Adds the items of an intake to a sequence; if `TIMED`, before it advances.
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
    pub(super) fn new(sequence: S, intake: Intake<Stored<T, M>>, due_timer: Arc<DueTimer>) -> Self {
        Self {
            sequence,
            shown: 0,
            taken: 0,
            intake,
            returned: Vec::new(),
            due_timer,
            planned: NEVER,
        }
    }

    /// Takes in the visible items of the shards: `true` if one of them may be due earlier than the planned time.
    #[inline]
    pub(super) fn take_in(&mut self) -> bool {
        self.take_in_by::<false>()
    }

    #[inline]
    fn take_in_by<const TIMED: bool>(&mut self) -> bool {
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
        self.plan_if_earlier()
    }

    /// Sets the timer if the next due time is earlier than planned; returns whether it was.
    #[inline]
    pub(super) fn plan_if_earlier(&mut self) -> bool {
        let earlier = self.sequence.next_due() < self.planned;
        if earlier {
            self.plan();
        }
        earlier
    }

    /// Takes in the visible items of the shards, makes due items ready, and returns how many became ready.
    pub(super) fn arrange(&mut self, now: u64) -> usize {
        self.take_in_by::<true>();
        self.sequence.advance(now)
    }

    /// Same as [`Partition::arrange`]; then sets the timer for the next due item.
    pub(super) fn advance(&mut self, now: u64) -> usize {
        let count = self.arrange(now);
        self.plan();
        count
    }

    fn plan(&mut self) {
        self.planned = self.sequence.next_due();
        self.due_timer.plan(self.planned);
    }

    /// Leaves the shards, so that their memory can be reclaimed.
    pub(super) fn leave_shards(&mut self) {
        self.intake.leave();
    }
}
