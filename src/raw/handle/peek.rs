//! Peeks: references to the item that a pop would return.
//!
//! The item is taken into a hold of its own, and returned to where it came from without counting a
//! delivery. So peeks need no support elsewhere: to others the item is held for that time.

use crate::raw::handle::cell::{newest, Borrow, Session};
use crate::raw::handle::endpoint::{hold_of, Endpoint, Purpose};
use crate::raw::hold::ItemRef;
use crate::raw::memory::DeliveryMeta;
use crate::raw::shard::Sink;
use crate::sync::{planted, step};

/// A peeked item, and the borrow of the transaction meanwhile.
///
/// After it is dropped, the peeking call or the end of the transaction [puts the item back](Endpoint::put_back).
pub(crate) struct Peeked<'t, L: Session> {
    borrow: Borrow<'t, L>,
    item: *const L::Stored,
    /// How often it was delivered before.
    attempts: u32,
}

// SAFETY: nobody else has a reference to the item, or borrows the transaction.
unsafe impl<L: Session + Send> Send for Peeked<'_, L> where L::Stored: Send {}

impl<'t, L: Session> Peeked<'t, L> {
    /// The item that the endpoint has [peeked](Endpoint::peek).
    ///
    /// # Panics
    ///
    /// If there is none.
    pub(crate) fn new(mut borrow: Borrow<'t, L>) -> Self {
        let peeked = borrow.endpoint().peeked.as_ref();
        let newest = peeked.expect("an item was peeked").newest();
        // SAFETY: the slot is filled.
        let delivery = unsafe { newest.delivery() };
        let (item, attempts) = (newest.item(), delivery.before().attempts);
        Self {
            borrow,
            item,
            attempts,
        }
    }

    /// How often the item was delivered before.
    pub(crate) fn attempts(&self) -> u32 {
        self.attempts
    }

    /// The borrowed state of the handle.
    pub(crate) fn local(&self) -> &L {
        &self.borrow
    }

    pub(crate) fn item(&self) -> &L::Stored {
        // SAFETY: the item stays where it is until the borrow is given up.
        unsafe { &*self.item }
    }

    /// Moves the item to the transaction's hold.
    pub(crate) fn hold(self) -> (ItemRef<'t, L::Stored>, Borrow<'t, L>) {
        let mut borrow = self.borrow;
        let endpoint = borrow.endpoint();
        let peeked = endpoint.peeked.as_mut().expect("an item was peeked");
        endpoint.hold.reserve(1, peeked.home());
        // SAFETY: only the `Peeked` uses the item, and it ends here. Room was made for it. It is held then, and delivered
        // once; it stays there as after `Borrow::hold`.
        let item = unsafe {
            let entry = peeked.remove_before(peeked.end());
            endpoint.hold.accept(entry.item, entry.delivery);
            newest(endpoint)
        };
        (item, borrow)
    }

    /// Ends the peek; the caller puts the item back.
    pub(crate) fn into_borrow(self) -> Borrow<'t, L> {
        self.borrow
    }
}

impl<T> Endpoint<T> {
    /// Takes the item that a pop would return, for a peek: true if there is one.
    pub(crate) fn peek(&mut self) -> bool {
        self.counters().count_taken(1);
        let hold = hold_of(&mut self.hold, &mut self.peeked, Purpose::Peek);
        let taken = self.consumer.hold_one(&self.shards, hold);
        if !taken {
            self.counters().uncount_taken(1);
        }
        taken
    }

    /// The delivery of the peeked item, if there is one.
    pub(crate) fn peeked(&self) -> Option<DeliveryMeta> {
        let hold = self.peeked.as_ref().filter(|hold| hold.len() > 0)?;
        // SAFETY: the hold is not empty, so the slot is filled.
        Some(unsafe { hold.newest().delivery() })
    }

    /// Puts the peeked item back: true if there is one.
    pub(crate) fn put_back(&mut self) -> bool {
        let counters = self.counters();
        let Some(hold) = self.peeked.as_mut().filter(|hold| hold.len() > 0) else {
            return false;
        };
        hold.uncount();
        planted!("peek.uncounts-early", counters.uncount_taken(1));
        hold.give_back();
        step!("peek.uncounts-early", counters.uncount_taken(1));
        true
    }
}
