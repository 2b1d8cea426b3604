//! A rack: an order, and what it takes items in by.

use super::Order;
use crate::agenda::Agenda;
use crate::raw::{Entry, Intake};
use crate::time::NEVER;
use std::sync::Arc;

/// Room that is kept for items that come back.
const KEPT: usize = 256;

/// An order, and what it is filled by.
pub(super) struct Rack<T, O> {
    pub(super) order: O,
    intake: Intake<T>,
    /// Items that come back, empty between two uses.
    returned: Vec<Entry<T>>,
    agenda: Arc<Agenda>,
    /// For when its next item was last planned.
    planned: u64,
}

impl<T, O: Order<T>> Rack<T, O> {
    pub(super) fn new(order: O, intake: Intake<T>, agenda: Arc<Agenda>) -> Self {
        Self {
            order,
            intake,
            returned: Vec::new(),
            agenda,
            planned: NEVER,
        }
    }

    /// Takes in what is visible in the lanes: true, if something of that may be due before what was known.
    #[inline]
    pub(super) fn take_in(&mut self) -> bool {
        let Self {
            order,
            intake,
            returned,
            ..
        } = self;
        if intake.has_returned() {
            intake.take_returned(returned);
            while let Some(entry) = returned.pop() {
                order.come_back(entry);
            }
            returned.shrink_to(KEPT);
        }
        intake.take_arrived(|entry| order.arrive(entry));
        let earlier = self.order.next_due() < self.planned;
        if earlier {
            self.plan();
        }
        earlier
    }

    /// Makes ready what is due, plans the next, and says how many items are ready by that.
    pub(super) fn advance(&mut self, now: u64) -> usize {
        let count = self.order.advance(now);
        self.plan();
        count
    }

    fn plan(&mut self) {
        self.planned = self.order.next_due();
        self.agenda.plan(self.planned);
    }

    /// Leaves the lanes, so that their memory can go back.
    pub(super) fn leave_lanes(&mut self) {
        self.intake.leave();
    }
}
