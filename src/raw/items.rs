//! Items that one call has added to a transaction's hold, each given out once.

use super::block::Held;
use super::grip::Grip;
use super::hold::Spot;
use super::seat::Seat;
use std::marker::PhantomData;
use std::ops::Range;
use std::{ptr, vec};

/// The places of such items. Taking one out of here touches nothing else of the hold.
pub(crate) struct HeldItems<'t, T> {
    current: Range<*const Held<T>>,
    more: vec::IntoIter<Range<*const Held<T>>>,
    left: usize,
    items: PhantomData<&'t mut T>,
}

// SAFETY: these are references to items that nobody else has.
unsafe impl<T: Send> Send for HeldItems<'_, T> {}

impl<'t, T> HeldItems<'t, T> {
    /// What was put into the hold from `spot` on.
    ///
    /// # Safety
    ///
    /// The items were given out to nobody, and the transaction is borrowed for `'t`.
    pub(super) unsafe fn after(seat: &Seat<T>, spot: Spot) -> Self {
        let mut left = 0;
        let mut parts = seat.places_from(spot).map(|(first, len)| {
            left += len;
            // SAFETY: so many places follow in the block.
            first..unsafe { first.add(len) }
        });
        let current = parts.next().unwrap_or(ptr::null()..ptr::null());
        let more = parts.collect::<Vec<_>>().into_iter();
        Self {
            current,
            more,
            left,
            items: PhantomData,
        }
    }

    /// The next item.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Grip<'t, T>> {
        while self.current.is_empty() {
            self.current = self.more.next()?;
        }
        let place = self.current.start;
        self.left -= 1;
        // SAFETY: within the part, filled, and given out here alone, once: the range moves on. The item stays where
        // it is while the transaction is borrowed.
        unsafe {
            self.current.start = place.add(1);
            Some(Grip::new((*place).item(), (*place).tag().attempts))
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.left
    }
}
