//! A cell whose contents, the state of a handle, can be borrowed by one user at a time.
//!
//! | user | how it gets the contents | flag |
//! |---|---|---|
//! | a call on the handle | `&mut` to the cell | not set |
//! | a call on the transaction | a *borrow*, by shared reference, until it returns | set meanwhile |
//! | a push or a pop of the transaction that only uses the next slot | the same, but runs no other code meanwhile | found clear, and left so |
//! | a future of the transaction, a peek | a borrow that it keeps; it may be sent to another thread | set until it ends |
//! | a future of the handle | `&mut` to the cell | set until it ends, so that a forgotten one is found |
//! | a commit or an abort | `&mut` to the cell, which also proves that no held item is borrowed | cleared: this ends a forgotten borrow |
//!
//! Reentrant use panics and changes nothing: clocks, limiters and functions that find keys are user code, which can reach the
//! transaction by a leaked reference in the middle of a call.

use crate::raw::handle::endpoint::Endpoint;
use crate::raw::handle::items::{HeldItems, Unborrowed};
use crate::raw::hold::{HeldPosition, ItemRef};
use crate::sync::{step, weak, AtomicU8, Ordering, UnsafeCell};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// The state on which transactions begin and end. It always owns the same endpoint.
pub(crate) trait Session {
    /// The contents of the slots of the queue.
    type Stored;
    fn endpoint(&mut self) -> &mut Endpoint<Self::Stored>;
    /// Cancels the wait of a forgotten future.
    fn end_waiting(&mut self);
    /// Ends a forgotten transaction.
    fn settle(&mut self, unborrowed: &Unborrowed<'_>);
    /// Aborts the transaction.
    fn abort(&mut self, unborrowed: &Unborrowed<'_>);
}

/// The cell with the state of a handle.
pub(crate) struct LocalCell<L: Session> {
    local: UnsafeCell<L>,
    /// [`BORROWED`] and [`LENT`], or neither.
    flags: AtomicU8,
}

/// A [`Borrow`] or a future of the handle is alive, or was forgotten.
const BORROWED: u8 = 1;
/// Threads use the cell by shared reference at the same time. Then only a read-modify-write begins a borrow, and the
/// calls that would do without a borrow find a flag, and leave the cell alone. The future of an async run does so, which may move
/// between threads while it has references to the transaction. Other cells pay nothing: both flags are asked for at once.
const LENT: u8 = 2;

// SAFETY: the cell owns its contents.
unsafe impl<L: Session + Send> Send for LocalCell<L> {}

impl<L: Session> LocalCell<L> {
    pub(crate) fn new(local: L) -> Self {
        Self {
            local: UnsafeCell::new(local),
            flags: AtomicU8::new(0),
        }
    }

    /// The contents of the cell.
    #[inline]
    pub(crate) fn get_mut(&mut self) -> &mut L {
        self.whole().0
    }

    /// Like [`LocalCell::get_mut`], with the proof that no held item is borrowed.
    #[inline]
    pub(crate) fn whole(&mut self) -> (&mut L, Unborrowed<'_>) {
        let local = self.local.with_mut(|local| local);
        // SAFETY: `&mut self`.
        (unsafe { &mut *local }, Unborrowed::new())
    }

    /// The contents of the cell, after a forgotten transaction or future was ended.
    #[inline]
    pub(crate) fn settled(&mut self) -> &mut L {
        if self.is_unsettled() {
            self.settle();
        }
        self.get_mut()
    }

    /// Whether a forgotten transaction or future has to be ended.
    #[inline]
    pub(crate) fn is_unsettled(&mut self) -> bool {
        (self.flags() != 0) | self.get_mut().endpoint().is_unsettled()
    }

    /// Lends the cell to threads that use it by shared reference, or ends that.
    #[cfg(feature = "workers")]
    pub(crate) fn lend(&mut self, lent: bool) {
        self.end_forgotten();
        // ORDERING: Relaxed; `&mut self`.
        self.flags
            .store(if lent { LENT } else { 0 }, Ordering::Relaxed);
    }

    #[cold]
    fn settle(&mut self) {
        self.end_waiting();
        let (local, unborrowed) = self.whole();
        local.settle(&unborrowed);
    }

    /// Aborts the transaction.
    pub(crate) fn abort(&mut self) {
        self.end_forgotten();
        let (local, unborrowed) = self.whole();
        local.abort(&unborrowed);
    }

    /// The contents of the cell, and all held items.
    pub(crate) fn with_held(&mut self) -> (&mut L, HeldItems<'_, L::Stored>) {
        self.end_forgotten();
        let (local, unborrowed) = self.whole();
        let items = HeldItems::all(local.endpoint(), unborrowed);
        (local, items)
    }

    /// Marks the contents as borrowed by a future of the handle, which has exclusive access anyway.
    pub(crate) fn begin_waiting(&mut self) {
        self.settled();
        // ORDERING: Relaxed; `&mut self`.
        self.flags.store(BORROWED, Ordering::Relaxed);
    }

    /// Ends the borrow of a future of the handle, or one that was forgotten.
    #[inline]
    pub(crate) fn end_waiting(&mut self) {
        self.end_ready();
        self.get_mut().end_waiting();
    }

    /// Ends the borrow of a future of the handle that is ready, and so waits for nothing.
    #[inline]
    pub(crate) fn end_ready(&mut self) {
        // ORDERING: Relaxed; `&mut self`.
        self.flags.store(0, Ordering::Relaxed);
    }

    /// Ends a forgotten borrow, and that the cell is lent.
    #[inline]
    pub(crate) fn end_forgotten(&mut self) {
        if self.flags() != 0 {
            self.end_waiting();
        }
    }

    #[inline]
    fn flags(&self) -> u8 {
        // ORDERING: Acquire; pairs with `borrow.end`.
        self.flags.load(weak!("cell.is-borrowed", Acquire))
    }

    /// Takes one more item into the hold by `hold`, a step of the endpoint, if the cell is not borrowed, and the contents
    /// allow it.
    #[inline(always)] // the pop of a transaction
    pub(crate) fn hold_by(
        &self,
        allows: fn(&L) -> bool,
        hold: fn(&mut Endpoint<L::Stored>) -> bool,
    ) -> Option<ItemRef<'_, L::Stored>> {
        // SAFETY: the functions have nothing but the contents, and nothing here runs other code than the allocator's; neither
        // can reach the cell.
        let endpoint = unsafe { self.unborrowed(allows)?.as_mut() }.endpoint();
        // SAFETY: as in `Borrow::hold`.
        hold(endpoint).then(|| unsafe { newest(endpoint) })
    }

    /// Stages an item if the cell is not borrowed, the contents allow it, before and after the transaction announces that it
    /// stages, and the segment has room. The announcement stands if they do not allow it any more: then the caller stages the
    /// item otherwise, or ends the announcement.
    #[inline(always)] // the push of a transaction
    pub(crate) fn stage_next(
        &self,
        item: L::Stored,
        allows: fn(&mut L) -> bool,
        allows_still: fn(&L) -> bool,
    ) -> Result<(), L::Stored> {
        let Some(mut local) = self.unborrowed(|_| true) else {
            return Err(item);
        };
        // SAFETY: as in `hold_by`.
        let local = unsafe { local.as_mut() };
        if !allows(local) || local.endpoint().producer.is_full() {
            return Err(item);
        }
        local.endpoint().begin_staging();
        if !allows_still(local) {
            return Err(item);
        }
        local.endpoint().stage(item);
        Ok(())
    }

    /// The contents, if the cell is neither borrowed nor lent, and they allow it. They may be used until anything else
    /// uses the cell.
    #[inline(always)] // as above
    fn unborrowed(&self, allows: fn(&L) -> bool) -> Option<NonNull<L>> {
        if self.flags() != 0 {
            return None;
        }
        let local = NonNull::new(self.local.with_mut(|local| local))?;
        // SAFETY: the cell is used by one thread at a time and not borrowed, and `allows` does not use it.
        allows(unsafe { local.as_ref() }).then_some(local)
    }

    /// Borrows the contents until the returned guard is dropped.
    ///
    /// # Panics
    ///
    /// If they are already borrowed.
    #[inline(always)] // the push and pop of a transaction
    #[track_caller]
    pub(crate) fn borrow(&self) -> Borrow<'_, L> {
        let Some(borrow) = self.try_borrow() else {
            panic!(
                "transaction is borrowed by a `pop_async`/`push_async` future or a `Peek` that is \
                 still alive, or by a call that has not returned yet"
            )
        };
        borrow
    }

    /// Borrows the contents if they are not borrowed.
    #[inline(always)] // as above
    pub(crate) fn try_borrow(&self) -> Option<Borrow<'_, L>> {
        if self.flags() == 0 {
            // ORDERING: Relaxed; the cell is not lent, so before the borrow ends only the thread that owns the
            // transaction loads it.
            self.flags.store(BORROWED, Ordering::Relaxed);
        } else if !self.borrow_lent() {
            return None;
        }
        Some(Borrow { cell: self })
    }

    /// Begins a borrow if the cell is lent and not borrowed. Of several threads one succeeds.
    #[cold]
    fn borrow_lent(&self) -> bool {
        // ORDERING: Acquire; pairs with `borrow.end`. Relaxed on failure: nothing is accessed.
        let acquire = weak!("cell.borrow-lent", Acquire);
        let both = BORROWED | LENT;
        self.flags
            .compare_exchange(LENT, both, acquire, Ordering::Relaxed)
            .is_ok()
    }
}

impl<L: Session> Drop for LocalCell<L> {
    fn drop(&mut self) {
        step!("cell.drops-unsettled", self.settled());
    }
}

/// The only borrow of a cell, by a shared reference to it. It may be sent to another thread than the transaction's.
pub(crate) struct Borrow<'c, L: Session> {
    cell: &'c LocalCell<L>,
}

// SAFETY: this is the only use of the cell during the borrow, and the contents are `Send`. The beginning of the
// borrow is ordered before the guard is sent, its end by the Release in `drop`.
unsafe impl<L: Session + Send> Send for Borrow<'_, L> {}

impl<L: Session> Deref for Borrow<'_, L> {
    type Target = L;

    #[inline]
    fn deref(&self) -> &L {
        let local = self.cell.local.with(|local| local);
        // SAFETY: this is the only use of the cell: it was not borrowed before, and it cannot be used by exclusive
        // reference while this guard has a shared one.
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
        // ORDERING: Relaxed; nobody else writes it during the borrow.
        let lent = self.cell.flags.load(Ordering::Relaxed) & LENT;
        // ORDERING: Release; pairs with `cell.is-borrowed` and `cell.borrow-lent`.
        self.cell.flags.store(lent, weak!("borrow.end", Release));
    }
}

/// The position in a hold from which on the items were not delivered yet.
#[derive(Clone, Copy, Default)]
pub(crate) struct Fresh(pub(in crate::raw) HeldPosition);

impl Fresh {
    /// The position behind the item that [`Endpoint::next_fresh`] returned last.
    pub(crate) fn position(&self) -> HeldPosition {
        self.0
    }
}

/// Items delivered to the borrower of the cell.
///
/// A held item does not move. It is removed from the hold only by its [`ItemRef`], or with an [`Unborrowed`].
impl<'c, L: Session> Borrow<'c, L> {
    /// Takes one more item from the shards into the hold.
    pub(crate) fn hold(&mut self) -> Option<ItemRef<'c, L::Stored>> {
        let endpoint = self.endpoint();
        if !endpoint.hold() {
            return None;
        }
        // SAFETY: held just now, and only this reference is created. The item does not move while the cell is
        // borrowed.
        Some(unsafe { newest(endpoint) })
    }

    /// Delivers the item that `take` adds to the hold, if any: the last one.
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
        // SAFETY: held since, and only this reference is created: `take` has no borrow to create others.
        Some(unsafe { newest(endpoint) })
    }
}

/// The reference to the item that was held last.
///
/// # Safety
///
/// The item does not move during `'c`, except by means of this reference, which is the only one.
#[inline]
pub(in crate::raw) unsafe fn newest<'c, T>(endpoint: &Endpoint<T>) -> ItemRef<'c, T> {
    let held = endpoint.hold.newest();
    // SAFETY: by contract; the slot is filled.
    unsafe { ItemRef::new(held.item(), held.delivery().attempts) }
}
