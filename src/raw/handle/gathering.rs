//! A borrow of a cell that accumulates held items before it delivers them.

use crate::raw::handle::cell::{Borrow, Fresh, Session};
use crate::raw::handle::items::HeldItems;
use crate::raw::hold::HeldPosition;

/// A borrow of a cell that adds items to the hold, in as many steps as necessary, and then delivers them.
pub(crate) struct Gathering<'c, L: Session> {
    borrow: Borrow<'c, L>,
    /// Items from this position on were not delivered yet.
    start: HeldPosition,
    /// Items from this position on were not examined yet.
    fresh: Fresh,
}

impl<'c, L: Session> Borrow<'c, L> {
    /// Turns this borrow, the only one, into one that accumulates items.
    pub(crate) fn gather(mut self) -> Gathering<'c, L> {
        let start = self.endpoint().end_of_hold();
        Gathering {
            borrow: self,
            start,
            fresh: Fresh(start),
        }
    }
}

impl<'c, L: Session> Gathering<'c, L> {
    /// The contents of the cell, and the position from which on items were not examined yet.
    pub(crate) fn parts(&mut self) -> (&mut L, &mut Fresh) {
        (&mut self.borrow, &mut self.fresh)
    }

    /// Delivers the accumulated items, and ends the borrow.
    #[inline(always)] // the batch of a transaction
    pub(crate) fn into_items(mut self) -> HeldItems<'c, L::Stored> {
        // SAFETY: filled since, and delivered only here or in `give_out`: `parts` and `DerefMut` give the contents only, which
        // cannot create other references.
        unsafe { HeldItems::after(self.borrow.endpoint(), self.start) }
    }

    /// Delivers the accumulated items.
    pub(crate) fn give_out(&mut self) -> HeldItems<'c, L::Stored> {
        let endpoint = self.borrow.endpoint();
        // SAFETY: as in `into_items`; what is added or examined from now on starts behind these items.
        let items = unsafe { HeldItems::after(endpoint, self.start) };
        self.start = endpoint.end_of_hold();
        self.fresh = Fresh(self.start);
        items
    }
}

deref!([L: Session] Gathering<'_, L> => L, |gathering| &gathering.borrow, &mut gathering.borrow);
