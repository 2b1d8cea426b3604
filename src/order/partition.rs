//! A sequence, and what it takes items in by.

use super::Sequence;
use crate::raw::{Entry, Intake, Stored};
use crate::time::NEVER;
use crate::wait::DueTimer;
use std::sync::Arc;

/// Room that is kept for items that come back.
const KEPT: usize = 256;

/// A sequence, and what it is filled by.
pub(super) struct Partition<T, M, S> {
    pub(super) sequence: S,
    intake: Intake<Stored<T, M>>,
    /// Items that come back, empty between two uses.
    returned: Vec<Entry<Stored<T, M>>>,
    due_timer: Arc<DueTimer>,
    /// For when its next item was last planned.
    planned: u64,
}

impl<T, M, S: Sequence<T, M>> Partition<T, M, S> {
    pub(super) fn new(sequence: S, intake: Intake<Stored<T, M>>, due_timer: Arc<DueTimer>) -> Self {
        Self {
            sequence,
            intake,
            returned: Vec::new(),
            due_timer,
            planned: NEVER,
        }
    }

    /// Takes in what is visible in the shards: true, if something of that may be due before what was known.
    #[inline]
    pub(super) fn take_in(&mut self) -> bool {
        self.take_in_by(S::arrive)
    }

    #[inline]
    fn take_in_by(&mut self, arrive: impl Fn(&mut S, Entry<Stored<T, M>>)) -> bool {
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
            returned.shrink_to(KEPT);
        }
        intake.take_arrived(|entry| arrive(sequence, entry));
        self.plan_if_earlier()
    }

    /// Plans what is due next, if that is earlier than what was known: true if so.
    #[inline]
    pub(super) fn plan_if_earlier(&mut self) -> bool {
        let earlier = self.sequence.next_due() < self.planned;
        if earlier {
            self.plan();
        }
        earlier
    }

    /// Takes in what is visible in the shards, makes ready what is due, and says how many items are ready by
    /// that.
    pub(super) fn arrange(&mut self, now: u64) -> usize {
        self.take_in_by(S::arrive_timed);
        self.sequence.advance(now)
    }

    /// As [`Partition::arrange`]; then plans what is due next.
    pub(super) fn advance(&mut self, now: u64) -> usize {
        let count = self.arrange(now);
        self.plan();
        count
    }

    fn plan(&mut self) {
        self.planned = self.sequence.next_due();
        self.due_timer.plan(self.planned);
    }

    /// Leaves the shards, so that their memory can go back.
    pub(super) fn leave_shards(&mut self) {
        self.intake.leave();
    }
}
