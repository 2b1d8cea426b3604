//! Admission of pushes: the queue is open, and there is a permit.

use super::local::Local;
use super::put::{Put, Register};
use crate::order::{Order, PushMetaOf};
use crate::sync::defer_with;
use crate::PushError;
use std::slice;

/// The reason why a push is refused for good: waiting would not help.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// The queue is closed.
    Closed,
    /// A key is at its limit, or only the end of a transaction that itself waits for this push could make room.
    Full,
}

/// The result of an admission check. `None`: there is no room now, but waiting may help.
pub(crate) type Admission<L = ()> = Option<Result<L, Refusal>>;

/// The admitted items, or the error that returns them.
#[inline]
pub(crate) fn admitted<L, I>(admission: Admission<L>, items: I) -> Result<(L, I), PushError<I>> {
    match admission {
        Some(Ok(admitted)) => Ok((admitted, items)),
        refused => Err(Unpushed::new(items, refused.and_then(Result::err)).into()),
    }
}

/// An item that was not pushed.
pub(crate) struct Unpushed<T> {
    pub(crate) item: T,
    /// The reason for a final refusal; `None`: there is no room now, but waiting may help.
    pub(crate) refusal: Option<Refusal>,
}

impl<T> Unpushed<T> {
    pub(super) fn new(item: T, refusal: impl Into<Option<Refusal>>) -> Self {
        let refusal = refusal.into();
        Self { item, refusal }
    }
}

impl<T> From<Unpushed<T>> for PushError<T> {
    fn from(Unpushed { item, refusal }: Unpushed<T>) -> Self {
        match refusal {
            Some(Refusal::Closed) => Self::Closed(item),
            Some(Refusal::Full) | None => Self::Full(item),
        }
    }
}

impl<T, O: Order<T>> Local<T, O> {
    /// Takes a permit, and registers the item. If its key is at the limit, or the registration panics, the permit is
    /// released.
    #[inline]
    pub(super) fn admit(
        &mut self,
        item: &T,
        put: Put,
        register: &impl Register<T, O>,
    ) -> Admission<PushMetaOf<T, O>> {
        if self.is_refusing(put) {
            self.permits.release_ahead();
            return Some(Err(Refusal::Closed));
        }
        if self.may_find_full {
            // Checked first, so that no permit is taken that others could use meanwhile.
            if !self.fits(slice::from_ref(item)) {
                return Some(Err(Refusal::Full));
            }
            if !self.take_permit(put) {
                return None;
            }
        }
        let local = defer_with(self, |local| local.return_permit(put));
        let Some(meta) = register(&local.shared, item) else {
            return Some(Err(Refusal::Full));
        };
        local.cancel();
        Some(Ok(meta))
    }

    /// The result of `admit`, except that on a closed queue a lack of room is final: possibly only transactions that
    /// wait like this one could make room.
    pub(super) fn unless_waiting<L>(
        &mut self,
        admit: impl FnOnce(&mut Self) -> Admission<L>,
    ) -> Admission<L> {
        let closed = self.word().is_closed();
        admit(self).or_else(|| closed.then_some(Err(Refusal::Full)))
    }

    /// Whether the queue is closed to this push. A transaction may push while it holds something, unless all its items
    /// have been reclaimed since, and the queue is already drained.
    pub(super) fn is_refusing(&self, put: Put) -> bool {
        let word = self.word();
        word.is_closed() && (put == Put::Publish || self.held() == 0 || word.is_drained())
    }

    /// Whether the keys of some items have room for them, possibly since expired leases were taken back.
    pub(super) fn fits(&self, items: &[T]) -> bool {
        self.shared.fits(items) || self.shared.reclaim() && self.shared.fits(items)
    }

    /// Takes a permit, possibly one that was freed since expired leases were taken back.
    pub(super) fn take_permit(&mut self, put: Put) -> bool {
        self.take_free_permit(put) || self.shared.reclaim() && self.take_free_permit(put)
    }

    fn take_free_permit(&mut self, put: Put) -> bool {
        let (staged, held) = (self.staged(), self.held());
        match put {
            Put::Publish => self.permits.take_gathered_or_one(),
            Put::Stage => self.permits.ensure_permit(staged, held),
        }
    }

    pub(super) fn return_permit(&mut self, put: Put) {
        match put {
            Put::Publish => self.give_back(1),
            Put::Stage => self.release(),
        }
    }

    /// Whether waiting for room may help: not if these items would not fit beside this transaction's staged ones in
    /// an otherwise empty queue, nor if their keys are at their limits now. A waiter already in the wait queue checks the keys when it is woken.
    pub(crate) fn is_worth_waiting(&self, items: &[T]) -> bool {
        let Some(room) = self.shared.room() else {
            return false;
        };
        let can_fit = self.staged() + items.len() <= room.capacity.limit();
        can_fit && (self.room_waiter.is_taken() || self.fits(items))
    }

    /// Releases permits, and wakes their waiters.
    #[inline]
    pub(super) fn give_back(&mut self, count: usize) {
        self.permits.give_back(count);
    }

    /// Releases the permits that the transaction no longer needs.
    #[inline]
    pub(super) fn release(&mut self) {
        let (staged, held) = (self.staged(), self.held());
        self.permits.release(staged, held);
    }
}
