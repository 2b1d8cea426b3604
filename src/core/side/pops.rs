//! Pops, and what they say when they find nothing.

use super::passes::LOOKED;
use super::{address_of, Side};
use crate::core::shared::{Pass, Shared};
use crate::order::{Order, StoredOf};
use crate::raw::{Access, Batch, Grip, Peeked, Seat, Stored};
use crate::PopError;
use std::mem;

impl<T, O: Order<T>> Side<T, O> {
    /// Does what a pop has to do first where there is more than the lanes.
    #[cold]
    fn attend(&self, access: &Access<'_, StoredOf<T, O>>) {
        self.shared.release_due();
        if !Shared::<T, O>::SORTS {
            access.go_to_head();
        }
    }

    /// As [`Side::attend`], of who has the seat alone.
    #[cold]
    fn attend_alone(&self, seat: &mut Seat<StoredOf<T, O>>) {
        self.shared.release_due();
        if !Shared::<T, O>::SORTS {
            seat.go_to_head();
        }
    }

    /// As [`Side::attend`], if there is more than the lanes: true if so.
    #[inline]
    fn attend_if_need_be(&self, access: &Access<'_, StoredOf<T, O>>) -> bool {
        let attended = self.word().is_attended();
        if attended {
            self.attend(access);
        }
        attended
    }

    /// Pops an item, committed at once.
    #[inline]
    pub(crate) fn pop(&self, seat: &mut Seat<StoredOf<T, O>>) -> Result<T, PopError> {
        let word = self.word();
        if word.is_drained() {
            return Err(PopError::Closed);
        }
        let item = if word.is_attended() {
            self.attend_alone(seat);
            self.take_item_by_leave(seat)
        } else {
            seat.pop().map(Stored::into_item)
        };
        let Some(item) = item else {
            return Err(self.shared.why_empty());
        };
        self.give_back(1);
        Ok(item)
    }

    /// Pops up to `max` items, committed at once.
    pub(crate) fn pop_batch(
        &self,
        seat: &mut Seat<StoredOf<T, O>>,
        max: usize,
        items: &mut Vec<T>,
    ) -> usize {
        let word = self.word();
        if word.is_drained() {
            return 0;
        }
        if !word.is_attended() {
            let count = seat.pop_batch(max, items);
            self.give_back(count);
            return count;
        }
        self.attend_alone(seat);
        self.by_leave(max, false, |most, pass| {
            let count = self.take_batch(seat, most, items);
            if let Some(pass) = pass.filter(|_| count > 0) {
                pass.spent();
            }
            count
        })
    }

    /// Holds one item more.
    pub(crate) fn hold<'t>(
        &self,
        access: &Access<'t, StoredOf<T, O>>,
    ) -> Result<Grip<'t, StoredOf<T, O>>, PopError> {
        let attended = self.attend_if_need_be(access);
        if self.is_over() {
            return Err(self.shared.why_empty());
        }
        let pass = if attended && !self.shared.gate.is_open() {
            Some(self.leave_to_hold()?)
        } else {
            None
        };
        let grip = self.take_hold(access).ok_or_else(|| self.nothing_held())?;
        self.release(access);
        if let Some(pass) = pass {
            self.owe(pass, address_of(&grip.item));
        }
        if attended {
            self.take_note(access, &grip);
        }
        Ok(grip)
    }

    fn leave_to_hold(&self) -> Result<Pass<'_, T, O>, PopError> {
        self.shared
            .pass(true)
            .ok_or_else(|| self.shared.why_empty())
    }

    /// Looks at the item that a pop would give, and says whether something is owed for it. The caller then
    /// [takes note](Side::note_look).
    pub(crate) fn peek<'t>(
        &self,
        seat: &'t Seat<StoredOf<T, O>>,
    ) -> Result<(Peeked<'t, StoredOf<T, O>>, bool), PopError> {
        self.attend_if_need_be(&seat.access());
        if self.is_over() {
            return Err(self.shared.why_empty());
        }
        let pass = self.leave_to_hold()?;
        let peeked = self.look(seat).ok_or_else(|| self.nothing_held())?;
        let owes = self.owe(pass, LOOKED);
        Ok((peeked, owes))
    }

    /// Takes note of a look: the transaction holds something while it lasts.
    pub(crate) fn note_look(&self, peeked: &Peeked<'_, StoredOf<T, O>>) {
        if peeked.access().held() == 0 {
            self.note_begin();
        }
    }

    /// Holds an item that was looked at.
    pub(crate) fn hold_peeked<'t>(
        &self,
        peeked: &mut Peeked<'t, StoredOf<T, O>>,
    ) -> Grip<'t, StoredOf<T, O>> {
        let grip = peeked.hold();
        self.owe_for_held(address_of(&grip.item));
        let access = peeked.access();
        self.release(access);
        self.take_note(access, &grip);
        grip
    }

    /// Sees to what a transaction owes for an item that it has taken.
    pub(crate) fn take_note(
        &self,
        access: &Access<'_, StoredOf<T, O>>,
        grip: &Grip<'_, StoredOf<T, O>>,
    ) {
        let held = access.held();
        self.set_envelopes_aside(held);
        self.note(grip, held == 1, || {
            access
                .tag_of(grip.address())
                .expect("the item was just taken")
        });
    }

    /// Holds up to `max` items more in a batch.
    pub(crate) fn hold_batch(&self, batch: &mut Batch<'_, StoredOf<T, O>>, max: usize) -> usize {
        let attended = self.attend_if_need_be(batch.access());
        if self.is_over() || max == 0 {
            return 0;
        }
        let mut only = batch.access().held() == 0;
        self.by_leave(max, true, |most, pass| {
            let count = self.take_hold_of_batch(batch, most);
            if count == 0 {
                self.nothing_held();
                return 0;
            }
            self.release(batch.access());
            if attended || pass.is_some() {
                self.take_note_of_batch(batch, pass, mem::take(&mut only));
            }
            count
        })
    }

    /// As [`Side::take_note`], of what is new in a batch: one item, if there is a pass for it.
    fn take_note_of_batch(
        &self,
        batch: &mut Batch<'_, StoredOf<T, O>>,
        mut pass: Option<Pass<'_, T, O>>,
        mut only: bool,
    ) {
        self.set_envelopes_aside(batch.access().held());
        while let Some((item, tag)) = batch.look() {
            if let Some(pass) = pass.take() {
                self.owe(pass, address_of(&item.item));
            }
            self.note(item, mem::take(&mut only), || tag);
        }
    }

    /// Holds one item more. `None` if it is worth waiting: not if the queue is closed and this
    /// transaction has work, or it would wait for one that waits for it.
    pub(crate) fn hold_unless_waiting<'t>(
        &self,
        access: &Access<'t, StoredOf<T, O>>,
    ) -> Option<Result<Grip<'t, StoredOf<T, O>>, PopError>> {
        let closed = self.word().is_closed();
        match self.hold(access) {
            Err(PopError::Empty) if closed && has_work(access) => Some(Err(PopError::Empty)),
            Err(PopError::Empty) => None,
            other => Some(other),
        }
    }

    /// Whether nothing can come that a transaction may wait for, after it found nothing.
    pub(crate) fn is_at_its_end(&self, access: &Access<'_, StoredOf<T, O>>) -> bool {
        let closed = self.word().is_closed();
        closed && (has_work(access) || self.shared.why_empty().is_closed())
    }

    /// Whether the queue is closed and nothing is ready. A transaction that only tries seems to have
    /// work meanwhile; so it does not try then.
    fn is_over(&self) -> bool {
        let word = self.word();
        word.is_drained() || word.is_closed() && self.shared.is_empty()
    }

    /// Why nothing was held, and if somebody may have seen the attempt, and wait for its end, a wake-up.
    #[cold]
    pub(crate) fn nothing_held(&self) -> PopError {
        self.shared.ended(0);
        self.shared.why_empty()
    }
}

fn has_work<E>(access: &Access<'_, E>) -> bool {
    access.held() + access.staged() > 0
}
