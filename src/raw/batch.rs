//! A batch: items that a transaction holds by one call, each given out once.

use super::access::{Access, Loan};
use super::grip::Grip;
use super::hold::Spot;
use super::tag::{Entry, Tag};
use std::marker::PhantomData;

/// Collects items in a transaction's hold. The seat is lent to it, since user code may run meanwhile, and
/// what others do with the hold would spoil the places that it remembers.
pub(crate) struct Batch<'t, T> {
    loan: Loan<'t, T>,
    spot: Spot,
    /// The first item that was not looked at.
    seen: Spot,
    /// How many items were held before.
    before: usize,
    len: usize,
}

impl<'t, T> Batch<'t, T> {
    pub(super) fn new(loan: Loan<'t, T>) -> Self {
        let (spot, before) = loan.with(|state, _| (state.hold.end(), state.hold.len()));
        Self {
            loan,
            spot,
            seen: spot,
            before,
            len: 0,
        }
    }

    /// Holds up to `most` items more, and says how many.
    pub(crate) fn hold(&mut self, most: usize) -> usize {
        if most == 0 {
            return 0;
        }
        let count = self.loan.with(|state, lanes| {
            state.desk().count_taken(1);
            let count = state.consumer.take_all(lanes, &mut state.hold, most);
            match count {
                0 => state.desk().uncount_taken(1),
                _ => state.desk().count_taken(count - 1),
            }
            count
        });
        self.len += count;
        count
    }

    /// Holds what `next` gives, which must not come back here: true if that is an item.
    pub(crate) fn hold_next(&mut self, next: impl FnOnce() -> Option<Entry<T>>) -> bool {
        let held = self.loan.with(|state, lanes| state.hold_next(lanes, next));
        self.len += usize::from(held);
        held
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The next item that was not looked at yet, and its tag.
    pub(crate) fn look(&mut self) -> Option<(&T, Tag)> {
        let Self { loan, seen, .. } = self;
        loan.with(|state, _| {
            let held = state.hold.step(seen)?;
            // SAFETY: held by the batch, which gives nothing out before it ends.
            Some(unsafe { (&*held.item(), held.tag()) })
        })
    }

    /// The use of the seat meanwhile.
    pub(crate) fn access(&self) -> &Access<'t, T> {
        &self.loan
    }

    /// The items. Ends the loan.
    pub(crate) fn into_items(self) -> HeldItems<'t, T> {
        let (before, len) = (self.before, self.len);
        assert_eq!(self.loan.held() - before, len, "one call at a time");
        HeldItems {
            access: self.loan.seat(),
            spot: self.spot,
            left: len,
            items: PhantomData,
        }
    }
}

/// Items that one call has added to a transaction's hold, each given out once.
pub(crate) struct HeldItems<'t, T> {
    access: Access<'t, T>,
    spot: Spot,
    left: usize,
    items: PhantomData<&'t mut T>,
}

impl<'t, T> HeldItems<'t, T> {
    /// The next item.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Grip<'t, T>> {
        if self.left == 0 {
            return None;
        }
        let (item, attempts) = self.access.with(|state, _| {
            let held = state.hold.step(&mut self.spot).expect("the batch holds it");
            // SAFETY: held by the batch.
            (held.item(), unsafe { held.tag() }.attempts)
        });
        self.left -= 1;
        // SAFETY: filled by the batch, at an address that does not move; each spot is given out once,
        // here: the batch has checked that all items from its spot on are its own. While `'t` lasts
        // the seat is borrowed, and only methods on `&mut self` take items out.
        Some(unsafe { Grip::new(item, attempts) })
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.left
    }
}
