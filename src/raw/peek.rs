//! Looking at what a pop would give.
//!
//! The item is taken into a hold of its own, and put back to where it came from, without a delivery
//! counted. So nothing else need be known of it: to others it is held for that time.

use super::access::{Access, Loan};
use super::grip::Grip;
use super::hold::{Hold, Spot};
use super::lanes::Lanes;
use super::seat::Seat;
use super::sink::Sink;
use super::state::State;
use super::tag::Entry;
use crate::sync::{planted, step};

/// An item that is looked at. It lends the seat, and puts the item back when it is dropped.
pub(crate) struct Peeked<'t, T> {
    loan: Loan<'t, T>,
    item: &'t T,
}

impl<T> Seat<T> {
    /// Looks at what a pop would give.
    ///
    /// # Panics
    ///
    /// If the seat is lent.
    #[track_caller]
    pub(crate) fn peek(&self) -> Option<Peeked<'_, T>> {
        let loan = self.lend();
        let item = loan.with(State::peek)?;
        // SAFETY: the item stays where it is until the loan ends.
        let item = unsafe { &*item };
        Some(Peeked { loan, item })
    }

    /// Looks at what `next` gives, which must not come back here.
    ///
    /// # Panics
    ///
    /// If the seat is lent.
    pub(crate) fn peek_next(
        &self,
        next: impl FnOnce() -> Option<Entry<T>>,
    ) -> Option<Peeked<'_, T>> {
        let loan = self.lend();
        let item = loan.with(|state, lanes| state.peek_next(lanes, next))?;
        // SAFETY: as in `peek`.
        let item = unsafe { &*item };
        Some(Peeked { loan, item })
    }

    /// Puts the item of a [`Peeked`] back that was forgotten: true if there is one.
    pub(crate) fn put_back(&mut self) -> bool {
        self.with(State::put_back)
    }
}

impl<'t, T> Peeked<'t, T> {
    pub(crate) fn item(&self) -> &T {
        self.item
    }

    /// The use of the seat while it is lent.
    pub(crate) fn access(&self) -> &Access<'t, T> {
        &self.loan
    }

    /// Puts the item back: true unless that was done, or the item is held. The seat is lent until the look is
    /// dropped.
    pub(crate) fn put_back(&mut self) -> bool {
        self.loan.with(State::put_back)
    }

    /// Holds the item. What is left of the look is to be dropped when the seat is not needed any more.
    pub(crate) fn hold(&mut self) -> Grip<'t, T> {
        self.loan.with(|state, _| {
            state.hold_peeked();
            let held = state.hold.newest();
            // SAFETY: held just now, and given out once; it stays there as after `Access::hold`.
            unsafe { Grip::new(held.item(), held.tag().attempts) }
        })
    }
}

impl<T> Drop for Peeked<'_, T> {
    fn drop(&mut self) {
        self.put_back();
    }
}

impl<T> State<T> {
    fn peek(&mut self, lanes: &Lanes<T>) -> Option<*const T> {
        let hold = self.peeked.get_or_insert_with(|| Box::new(Hold::new()));
        // SAFETY: desks are type-stable, and the seat keeps its queue alive.
        let desk = unsafe { self.desk.as_ref() };
        desk.count_taken(1);
        if self.consumer.take(lanes, hold.as_mut(), 1) == 0 {
            desk.uncount_taken(1);
            return None;
        }
        Some(hold.newest().item().cast_const())
    }

    fn peek_next(
        &mut self,
        lanes: &Lanes<T>,
        next: impl FnOnce() -> Option<Entry<T>>,
    ) -> Option<*const T> {
        let hold = self.peeked.get_or_insert_with(|| Box::new(Hold::new()));
        hold.reserve(1, lanes.common().front());
        lanes.common().mark_used();
        // SAFETY: as in `peek`.
        let desk = unsafe { self.desk.as_ref() };
        desk.count_taken(1);
        let Some(Entry { item, tag }) = next() else {
            desk.uncount_taken(1);
            return None;
        };
        // SAFETY: room was made for it.
        unsafe { hold.accept(item, tag) };
        Some(hold.newest().item().cast_const())
    }

    /// Puts the item back that is looked at: true if there is one.
    fn put_back(&mut self, lanes: &Lanes<T>) -> bool {
        let Some(hold) = self.peeked.as_mut().filter(|hold| hold.len() > 0) else {
            return false;
        };
        hold.uncount();
        // SAFETY: as in `peek`.
        let desk = unsafe { self.desk.as_ref() };
        planted!("peek.uncounts-early", desk.uncount_taken(1));
        hold.give_back(lanes.common());
        step!("peek.uncounts-early", desk.uncount_taken(1));
        true
    }

    /// Holds the item that is looked at.
    fn hold_peeked(&mut self) {
        let peeked = self.peeked.as_mut().expect("an item is looked at");
        let home = peeked.home();
        self.hold.reserve(1, home);
        // SAFETY: only the `Peeked` uses the item, which ends here.
        let entry = unsafe { peeked.remove_next(&mut Spot::default(), |_, _| true) };
        if let Some(entry) = entry {
            // SAFETY: room was made for it.
            unsafe { self.hold.accept(entry.item, entry.tag) };
        }
    }
}
