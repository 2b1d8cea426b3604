//! A use of a cell that goes on until it has held enough.

use super::cell::{Borrow, Fresh, Session};
use super::endpoint::Endpoint;
use super::hold::HeldPosition;
use super::items::HeldItems;
use std::ops::{Deref, DerefMut};

/// A borrow of a cell that adds items to the hold, in as many steps as it takes, and then gives them out.
pub(crate) struct Gathering<'c, L: Session> {
    borrow: Borrow<'c, L>,
    /// What was added from here on was given out to nobody.
    start: HeldPosition,
    held_before: usize,
    /// What was added from here on was looked at by nobody.
    fresh: Fresh,
}

impl<'c, L: Session> Borrow<'c, L> {
    /// Goes on with this borrow, the only one, as one that gathers.
    pub(crate) fn gather(mut self) -> Gathering<'c, L> {
        let (start, held_before) = end_of(self.endpoint());
        Gathering {
            borrow: self,
            start,
            held_before,
            fresh: Fresh(start),
        }
    }
}

impl<'c, L: Session> Gathering<'c, L> {
    /// What adds to the hold, and from where on the items are new to it.
    pub(crate) fn parts(&mut self) -> (&mut L, &mut Fresh) {
        (&mut self.borrow, &mut self.fresh)
    }

    /// Gives out what was gathered.
    pub(crate) fn give_out(&mut self) -> HeldItems<'c, L::Stored> {
        let (end, held) = end_of(self.borrow.endpoint());
        let added = held.saturating_sub(self.held_before);
        // SAFETY: filled since, and given out here alone: who gathers has no borrow to give items out by, and what
        // is gathered from now on starts behind them.
        let items = unsafe { HeldItems::after(self.borrow.endpoint(), self.start, added) };
        (self.start, self.held_before) = (end, held);
        items
    }
}

/// Where the next item will be, and how many there are.
fn end_of<T>(endpoint: &Endpoint<T>) -> (HeldPosition, usize) {
    (endpoint.end_of_hold(), endpoint.held())
}

impl<L: Session> Deref for Gathering<'_, L> {
    type Target = L;

    fn deref(&self) -> &L {
        &self.borrow
    }
}

impl<L: Session> DerefMut for Gathering<'_, L> {
    fn deref_mut(&mut self) -> &mut L {
        &mut self.borrow
    }
}
