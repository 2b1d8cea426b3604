//! What a handle takes where the order sorts, and where it does not.

use super::Side;
use crate::core::shared::Shared;
use crate::order::{EntryOf, Next, Order, StoredOf};
use crate::raw::{Access, Batch, Grip, Peeked, Seat, Stored};
use crate::sync::defer_with;

impl<T, O: Order<T>> Side<T, O> {
    /// Makes attempts with what gives the next item of the order, until it is known what is due: the
    /// clock is asked between them, since it is user code.
    fn insist<R>(
        &self,
        mut attempt: impl FnMut(&mut dyn FnMut() -> Option<EntryOf<T, O>>) -> Option<R>,
    ) -> Option<R> {
        loop {
            let mut due = false;
            let done = attempt(&mut || match self.shared.try_next() {
                Next::Item(entry) => Some(entry),
                Next::Nothing => None,
                Next::Due => {
                    due = true;
                    None
                }
            });
            if done.is_some() || !due {
                return done;
            }
            self.shared.release_due();
        }
    }

    /// Takes one item with the leave to do so, committed at once.
    #[inline]
    pub(super) fn take_item_by_leave(&self, seat: &mut Seat<StoredOf<T, O>>) -> Option<T> {
        if self.shared.gate.is_open() {
            return self.take_item(seat);
        }
        let pass = self.shared.pass(false)?;
        let item = self.take_item(seat)?;
        pass.spent();
        Some(item)
    }

    /// Takes one item, committed at once.
    #[inline]
    pub(super) fn take_item(&self, seat: &mut Seat<StoredOf<T, O>>) -> Option<T> {
        if !Shared::<T, O>::SORTS {
            return seat.pop().map(Stored::into_item);
        }
        let item = self.shared.pop_next()?;
        seat.count_popped();
        Some(item)
    }

    /// Takes up to `max` items, committed at once, and gives their permits back before anything else is asked
    /// for: a pace or a clock may panic.
    pub(super) fn take_batch(
        &self,
        seat: &mut Seat<StoredOf<T, O>>,
        max: usize,
        items: &mut Vec<T>,
    ) -> usize {
        if !Shared::<T, O>::SORTS {
            let count = seat.pop_batch(max, items);
            self.give_back(count);
            return count;
        }
        let before = items.len();
        while items.len() - before < max {
            items.reserve(1);
            let Some(item) = self.take_item(seat) else {
                break;
            };
            items.push(item);
            self.give_back(1);
        }
        items.len() - before
    }

    /// Holds one item more.
    pub(super) fn take_hold<'t>(
        &self,
        access: &Access<'t, StoredOf<T, O>>,
    ) -> Option<Grip<'t, StoredOf<T, O>>> {
        if Shared::<T, O>::SORTS {
            self.insist(|next| access.hold_next(next))
        } else {
            access.hold()
        }
    }

    /// Holds up to `max` items more.
    pub(super) fn take_hold_of_batch(
        &self,
        batch: &mut Batch<'_, StoredOf<T, O>>,
        max: usize,
    ) -> usize {
        if !Shared::<T, O>::SORTS {
            return batch.hold(max);
        }
        let before = batch.len();
        while batch.len() - before < max {
            let held = self.insist(|next| batch.hold_next(next).then_some(()));
            if held.is_none() {
                break;
            }
        }
        batch.len() - before
    }

    /// Looks at the next item.
    pub(super) fn look<'t>(
        &self,
        seat: &'t Seat<StoredOf<T, O>>,
    ) -> Option<Peeked<'t, StoredOf<T, O>>> {
        if Shared::<T, O>::SORTS {
            self.insist(|next| seat.peek_next(next))
        } else {
            seat.peek()
        }
    }

    /// Takes note that what a transaction holds is gone for good.
    pub(crate) fn leave_held(&self, seat: &mut Seat<StoredOf<T, O>>) {
        if Shared::<T, O>::SORTS {
            seat.visit(|stored, _| self.shared.leave(stored.meta));
        }
    }

    /// Drops what a transaction has staged.
    pub(crate) fn drop_staged(&self, seat: &mut Seat<StoredOf<T, O>>) {
        if !Shared::<T, O>::SORTS {
            return seat.drop_staged();
        }
        // The destructor of an item may panic.
        let mut seat = defer_with(seat, |seat| {
            if seat.staged() > 0 {
                self.drop_staged(seat);
            }
        });
        while let Some(entry) = seat.unstage() {
            self.shared.unregister(entry.item.meta);
            drop(entry);
        }
    }
}
