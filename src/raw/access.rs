//! Shared use of a seat: by its transaction, or by the one future, look or call that it is lent to.

use super::grip::Grip;
use super::lanes::Lanes;
use super::seat::Seat;
use super::state::State;
use super::tag::{Entry, Stored, Tag};
use crate::sync::weak;
use std::ops::Deref;

/// What a transaction does to its seat by shared reference.
///
/// The methods run no user code and keep no borrow of the state, so that they never meet each other.
pub(crate) struct Access<'t, T> {
    seat: &'t Seat<T>,
    /// Whether this is the access of the [`Loan`].
    lent: bool,
}

impl<'t, T> Access<'t, T> {
    #[inline]
    pub(super) fn new(seat: &'t Seat<T>) -> Self {
        Self { seat, lent: false }
    }

    /// # Panics
    ///
    /// If the seat is lent to somebody else.
    #[inline(always)]
    #[allow(clippy::inline_always)] // the push and pop of a transaction
    #[track_caller]
    pub(super) fn with<R>(&self, step: impl FnOnce(&mut State<T>, &Lanes<T>) -> R) -> R {
        if !self.lent {
            self.seat.assert_not_lent();
        }
        // SAFETY: the seat is not Sync, and whoever has it on loan is the only one to pass the line
        // above. No step runs user code or comes back here.
        unsafe { self.seat.with_shared(step) }
    }

    /// Says that a transaction stages something, and stages the item if `admit` agrees then.
    #[inline(always)]
    #[allow(clippy::inline_always)] // the push and pop of a transaction
    #[track_caller]
    pub(crate) fn stage_if(&self, item: T, admit: impl FnOnce() -> bool) -> Result<(), T> {
        self.with(|state, lanes| {
            // Room first, so that nothing fails once it is said.
            state.make_room_for_one(lanes);
            if !state.begin_staging_if(admit) {
                return Err(item);
            }
            state.producer.stage(item);
            Ok(())
        })
    }

    /// Stages an item with its time, as [`Access::stage_if`] does.
    pub(crate) fn stage_since_if(
        &self,
        item: T,
        since: u64,
        admit: impl FnOnce() -> bool,
    ) -> Result<(), T> {
        self.with(|state, lanes| state.note_time(lanes, since));
        self.stage_if(item, admit)
    }

    /// Staged items.
    #[inline]
    #[track_caller]
    pub(crate) fn staged(&self) -> usize {
        self.with(|state, _| state.producer.staged())
    }

    /// Held items.
    #[inline]
    #[track_caller]
    pub(crate) fn held(&self) -> usize {
        self.with(|state, _| state.hold.len())
    }

    /// Goes to where items were put back without a handle, if there are any, since they come first.
    pub(crate) fn go_to_head(&self) {
        self.with(|state, lanes| state.consumer.go_to_head(lanes));
    }

    /// Holds one item more.
    #[inline(always)]
    #[allow(clippy::inline_always)] // the pop of a transaction
    #[track_caller]
    pub(crate) fn hold(&self) -> Option<Grip<'t, T>> {
        let (item, attempts) = self.with(|state, lanes| {
            state.desk().count_taken(1);
            if state.consumer.take(lanes, &mut state.hold, 1) == 0 {
                state.desk().uncount_taken(1);
                return None;
            }
            Some(state.newest())
        })?;
        // SAFETY: the item was held just now, and only this call gives it out. While the seat is
        // borrowed it does not move: only `remove`, which takes the grip, and methods on `&mut self`
        // take items out.
        Some(unsafe { Grip::new(item, attempts) })
    }

    /// Holds what `next` gives, which must not come back here, if anything.
    pub(crate) fn hold_next(&self, next: impl FnOnce() -> Option<Entry<T>>) -> Option<Grip<'t, T>> {
        let (item, attempts) =
            self.with(|state, lanes| state.hold_next(lanes, next).then(|| state.newest()))?;
        // SAFETY: as in `hold`.
        Some(unsafe { Grip::new(item, attempts) })
    }

    /// What is known of the item at an address, if this transaction holds it.
    #[track_caller]
    pub(crate) fn tag_of(&self, address: usize) -> Option<Tag> {
        self.with(|state, _| state.hold.tag_of(address))
    }

    /// Counts removed items that are somewhere else by now.
    pub(crate) fn count_aborted(&self, items: usize) {
        self.with(|state, _| state.desk().count_aborted(items));
    }
}

impl<T, M> Access<'_, Stored<T, M>> {
    /// Takes a held item out of the transaction, which must say later how that ended, by
    /// [`Access::count_aborted`].
    ///
    /// # Panics
    ///
    /// If another transaction holds the item.
    #[allow(clippy::needless_pass_by_value)] // whoever has it has it no more
    pub(crate) fn remove(&self, item: Grip<'_, T>) -> Entry<Stored<T, M>> {
        let address = item.address();
        // SAFETY: the grip, which ends here, was the only way to use the item, and a grip is of the
        // present transaction: it borrows the seat.
        self.with(|state, _| unsafe { state.hold.remove(address) })
    }
}

/// A seat that is lent: to a future or a look, which may be on another thread than the transaction, or to a
/// call that runs user code.
///
/// Until the loan ends nobody else can use the seat by shared reference, and by exclusive reference
/// nobody can while it is borrowed.
pub(crate) struct Loan<'t, T>(Access<'t, T>);

// SAFETY: the loan is the only use of the seat while it lasts, and the seat may be used on any thread.
// Its beginning is ordered before the loan is sent, its end by the Release in `drop`.
unsafe impl<T: Send> Send for Loan<'_, T> {}

impl<'t, T> Loan<'t, T> {
    pub(super) fn new(seat: &'t Seat<T>) -> Self {
        Self(Access { seat, lent: true })
    }

    /// The access to the seat once the loan is over.
    pub(super) fn seat(&self) -> Access<'t, T> {
        self.0.seat.access()
    }
}

impl<'t, T> Deref for Loan<'t, T> {
    type Target = Access<'t, T>;

    fn deref(&self) -> &Access<'t, T> {
        &self.0
    }
}

impl<T> Drop for Loan<'_, T> {
    fn drop(&mut self) {
        // ORDERING: Release; pairs with `seat.is-lent`.
        let release = weak!("loan.end", Release);
        self.0.seat.lent.store(false, release);
    }
}
