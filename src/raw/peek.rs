//! Looking at what a pop would give.
//!
//! The item is taken into a hold of its own, and put back to where it came from, without a delivery
//! counted. So nothing else need be known of it: to others it is held for that time.

use super::cell::{Borrow, Session};
use super::endpoint::{Endpoint, Purpose};
use super::item_ref::ItemRef;
use super::sink::Sink;
use crate::sync::{planted, step};

/// An item that is looked at, and the use of the transaction meanwhile.
///
/// If it is dropped, the item is back at its place when somebody [puts it back](Endpoint::put_back): who looked, or the
/// end of the transaction.
pub(crate) struct Peeked<'t, L: Session> {
    borrow: Borrow<'t, L>,
    item: *const L::Stored,
}

// SAFETY: nobody else has a reference to the item, or the use of the transaction.
unsafe impl<L: Session + Send> Send for Peeked<'_, L> where L::Stored: Send {}

impl<'t, L: Session> Peeked<'t, L> {
    /// What the endpoint has [taken](Endpoint::peek) to look at; it has taken something.
    pub(crate) fn new(mut borrow: Borrow<'t, L>) -> Self {
        let peeked = borrow.endpoint().peeked.as_ref();
        let item = peeked.expect("an item is looked at").newest().item();
        Self { borrow, item }
    }

    /// The use of the transaction meanwhile.
    pub(crate) fn local(&self) -> &L {
        &self.borrow
    }

    pub(crate) fn item(&self) -> &L::Stored {
        // SAFETY: the item stays where it is until the borrow is given up.
        unsafe { &*self.item }
    }

    /// Holds the item.
    pub(crate) fn hold(self) -> (ItemRef<'t, L::Stored>, Borrow<'t, L>) {
        let mut borrow = self.borrow;
        let endpoint = borrow.endpoint();
        endpoint.hold_peeked();
        let (item, attempts) = endpoint.newest();
        // SAFETY: held just now, and given out once; it stays there as after `Borrow::hold`.
        (unsafe { ItemRef::new(item, attempts) }, borrow)
    }

    /// The use of the transaction again, to put the item back.
    pub(crate) fn into_borrow(self) -> Borrow<'t, L> {
        self.borrow
    }
}

impl<T> Endpoint<T> {
    /// Takes what a pop would give, to look at it: true if there is something.
    pub(crate) fn peek(&mut self) -> bool {
        self.counters().count_taken(1);
        let hold = Self::hold_of(&mut self.hold, &mut self.peeked, Purpose::Peek);
        let taken = self.consumer.take(&self.shards, hold, 1) > 0;
        if !taken {
            self.counters().uncount_taken(1);
        }
        taken
    }

    /// Puts the item back that is looked at: true if there is one.
    pub(crate) fn put_back(&mut self) -> bool {
        let counters = self.counters();
        let Some(hold) = self.peeked.as_mut().filter(|hold| hold.len() > 0) else {
            return false;
        };
        hold.uncount();
        planted!("peek.uncounts-early", counters.uncount_taken(1));
        hold.give_back(self.shards.injector());
        step!("peek.uncounts-early", counters.uncount_taken(1));
        true
    }

    /// Holds the item that is looked at.
    fn hold_peeked(&mut self) {
        let peeked = self.peeked.as_mut().expect("an item is looked at");
        let home = peeked.home();
        self.hold.reserve(1, home);
        // SAFETY: only the `Peeked` uses the item, which ends here.
        let entry = unsafe { peeked.remove_before(peeked.end()) };
        // SAFETY: room was made for it.
        unsafe { self.hold.accept(entry.item, entry.delivery) };
    }
}
