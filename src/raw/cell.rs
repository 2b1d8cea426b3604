//! A cell that lends what a handle owns to one user at a time.
//!
//! A user is a call on a transaction, a future, or a look. User code that runs within such a use cannot come back:
//! the cell refuses it.

use super::endpoint::Endpoint;
use super::hold::HeldPosition;
use super::item_ref::ItemRef;
use super::items::HeldItems;
use crate::sync::{step, weak, AtomicBool, Ordering, UnsafeCell};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// What transactions begin and end on: it owns one endpoint, the same one all the time.
pub(crate) trait Session {
    /// What lies in the slots of the queue.
    type Stored;
    fn endpoint(&mut self) -> &mut Endpoint<Self::Stored>;
    /// Ends the waiting of a future that was forgotten.
    fn end_waiting(&mut self);
    /// Ends what a forgotten transaction left.
    fn settle(&mut self, unborrowed: &Unborrowed<'_>);
    /// Undoes the transaction.
    fn abort(&mut self, unborrowed: &Unborrowed<'_>);
}

/// What a handle owns, in a cell.
pub(crate) struct LocalCell<L: Session> {
    local: UnsafeCell<L>,
    /// Whether a [`Borrow`] or a future of the handle lives, or was forgotten.
    lent: AtomicBool,
}

// SAFETY: the cell owns what is in it.
unsafe impl<L: Session + Send> Send for LocalCell<L> {}

/// Shows that nobody uses a held item by reference: it comes from an exclusive reference to the cell, and
/// references to items borrow the cell.
pub(crate) struct Unborrowed<'c>(PhantomData<&'c mut ()>);

impl Unborrowed<'_> {
    /// For those who have the endpoint itself, and no cell.
    pub(super) const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<L: Session> LocalCell<L> {
    pub(crate) fn new(local: L) -> Self {
        Self {
            local: UnsafeCell::new(local),
            lent: AtomicBool::new(false),
        }
    }

    /// What is in the cell.
    #[inline]
    pub(crate) fn get_mut(&mut self) -> &mut L {
        self.whole().0
    }

    /// As [`LocalCell::get_mut`], and shows that no held item is borrowed.
    #[inline]
    pub(crate) fn whole(&mut self) -> (&mut L, Unborrowed<'_>) {
        let local = self.local.with_mut(|local| local);
        // SAFETY: `&mut self`.
        (unsafe { &mut *local }, Unborrowed::new())
    }

    /// What is in the cell, after the end of what a forgotten transaction or future left.
    #[inline]
    pub(crate) fn settled(&mut self) -> &mut L {
        if self.is_unsettled() {
            self.settle();
        }
        self.get_mut()
    }

    /// Whether a forgotten transaction or future left something.
    #[inline]
    pub(crate) fn is_unsettled(&mut self) -> bool {
        self.is_borrowed() | self.get_mut().endpoint().is_unsettled()
    }

    #[cold]
    fn settle(&mut self) {
        self.end_waiting();
        let (local, unborrowed) = self.whole();
        local.settle(&unborrowed);
    }

    /// Undoes the transaction.
    pub(crate) fn abort(&mut self) {
        self.end_forgotten();
        let (local, unborrowed) = self.whole();
        local.abort(&unborrowed);
    }

    /// What is in the cell, and all that is held.
    pub(crate) fn with_held(&mut self) -> (&mut L, HeldItems<'_, L::Stored>) {
        self.end_forgotten();
        let (local, unborrowed) = self.whole();
        let items = HeldItems::all(local.endpoint(), unborrowed);
        (local, items)
    }

    /// Lends it to a future of the handle, which has it alone anyway.
    pub(crate) fn begin_waiting(&mut self) {
        self.settled();
        // ORDERING: Relaxed; the cell is ours alone.
        self.lent.store(true, Ordering::Relaxed);
    }

    /// Ends a loan that was forgotten, or is a future's of the handle.
    #[inline(never)]
    pub(crate) fn end_waiting(&mut self) {
        // ORDERING: Relaxed; the cell is ours alone.
        self.lent.store(false, Ordering::Relaxed);
        self.get_mut().end_waiting();
    }

    /// Ends a loan that was forgotten.
    #[inline]
    pub(crate) fn end_forgotten(&mut self) {
        if self.is_borrowed() {
            self.end_waiting();
        }
    }

    #[inline]
    pub(crate) fn is_borrowed(&self) -> bool {
        // ORDERING: Acquire; pairs with `borrow.end`.
        self.lent.load(weak!("cell.is-lent", Acquire))
    }

    /// Lends it until what is returned is dropped.
    ///
    /// # Panics
    ///
    /// If it is lent.
    #[inline(always)]
    #[allow(clippy::inline_always)] // the push and pop of a transaction
    #[track_caller]
    pub(crate) fn borrow(&self) -> Borrow<'_, L> {
        assert!(
            !self.is_borrowed(),
            "transaction is borrowed by a `pop_async`/`push_async` future or a `Peek` that is still \
             alive, or by a call that has not returned yet",
        );
        // ORDERING: Relaxed; only the thread that has the transaction reads it before the borrow ends.
        self.lent.store(true, Ordering::Relaxed);
        Borrow { cell: self }
    }
}

impl<L: Session> Drop for LocalCell<L> {
    fn drop(&mut self) {
        step!("cell.drops-unsettled", self.settled());
    }
}

/// The one use of a cell, by shared reference to it. It may be sent to another thread than the transaction's.
pub(crate) struct Borrow<'c, L: Session> {
    cell: &'c LocalCell<L>,
}

// SAFETY: this is the only use of the cell while it lasts, and what is in the cell may be used on any thread. Its
// beginning is ordered before it is sent, its end by the Release in `drop`.
unsafe impl<L: Session + Send> Send for Borrow<'_, L> {}

impl<L: Session> Deref for Borrow<'_, L> {
    type Target = L;

    #[inline]
    fn deref(&self) -> &L {
        let local = self.cell.local.with(|local| local);
        // SAFETY: the only use of the cell: it was not lent, and is lent now; who has it by exclusive reference does
        // not have it while this borrows it.
        unsafe { &*local }
    }
}

impl<L: Session> DerefMut for Borrow<'_, L> {
    #[inline]
    fn deref_mut(&mut self) -> &mut L {
        let local = self.cell.local.with_mut(|local| local);
        // SAFETY: as in `deref`.
        unsafe { &mut *local }
    }
}

impl<L: Session> Drop for Borrow<'_, L> {
    #[inline]
    fn drop(&mut self) {
        // ORDERING: Release; pairs with `cell.is-lent`.
        self.cell.lent.store(false, weak!("borrow.end", Release));
    }
}

/// From where on the items of a hold were given out to nobody yet.
#[derive(Clone, Copy)]
pub(crate) struct Fresh(pub(super) HeldPosition);

/// Items that are given out to those who borrow the cell.
///
/// A held item does not move, and leaves the hold by its [`ItemRef`] or by those who have an [`Unborrowed`].
impl<'c, L: Session> Borrow<'c, L> {
    /// Holds one item more, of the shards.
    #[inline(always)]
    #[allow(clippy::inline_always)] // the pop of a transaction
    pub(crate) fn hold(&mut self) -> Option<ItemRef<'c, L::Stored>> {
        let endpoint = self.endpoint();
        if !endpoint.hold() {
            return None;
        }
        let (item, attempts) = endpoint.newest();
        // SAFETY: held just now, and given out here alone. It does not move while the cell is borrowed.
        Some(unsafe { ItemRef::new(item, attempts) })
    }

    /// Gives out the item that `take` adds to the hold, if any: the last one.
    pub(crate) fn hold_one_by(
        &mut self,
        take: impl FnOnce(&mut L, &mut Fresh),
    ) -> Option<ItemRef<'c, L::Stored>> {
        let (held, before) = (self.endpoint().held(), self.endpoint().end_of_hold());
        take(self, &mut Fresh(before));
        let endpoint = self.endpoint();
        if endpoint.held() <= held {
            return None;
        }
        let (item, attempts) = endpoint.newest();
        // SAFETY: held since, and given out here alone: `take` has no borrow to give items out by.
        Some(unsafe { ItemRef::new(item, attempts) })
    }
}
