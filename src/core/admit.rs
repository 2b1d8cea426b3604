//! Admission of pushes: a permit, and a queue that is not closed.

use super::local::Local;
use super::put::{Put, Register};
use crate::order::{Order, PushMetaOf};
use crate::sync::defer_with;
use crate::PushError;
use std::slice;

/// Why a push is refused for good: to wait would not help.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// The queue is closed.
    Closed,
    /// A key is at its limit, or there would be room only if a transaction ended that cannot end before.
    Full,
}

/// Whether a push may go on. `None`: there is no room, which is worth waiting for.
pub(crate) type Admission<L = ()> = Option<Result<L, Refusal>>;

/// What is pushed, if it was admitted, or why not.
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
    /// Why it was refused for good; `None`: there is no room, which is worth waiting for.
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
    /// Takes a permit, and registers the item. If its key is at the limit, or that panics, the permit goes back.
    #[inline]
    pub(super) fn admit(
        &mut self,
        item: &T,
        put: Put,
        register: &impl Register<T, O>,
    ) -> Admission<PushMetaOf<T, O>> {
        if self.is_refusing(put) {
            return Some(Err(Refusal::Closed));
        }
        // Asked first: so nothing is taken that others miss meanwhile.
        if !self.shared.fits(slice::from_ref(item)) {
            return Some(Err(Refusal::Full));
        }
        if !self.take_permit(put) {
            return None;
        }
        let local = defer_with(self, |local| local.return_permit(put));
        let Some(known) = register(&local.shared, item) else {
            return Some(Err(Refusal::Full));
        };
        local.cancel();
        Some(Ok(known))
    }

    /// What `admit` says, but that it is not worth waiting for room after the close, when it may be that only
    /// transactions like this one would make some.
    pub(super) fn unless_waiting<L>(
        &mut self,
        admit: impl FnOnce(&mut Self) -> Admission<L>,
    ) -> Admission<L> {
        let closed = self.word().is_closed();
        admit(self).or_else(|| closed.then_some(Err(Refusal::Full)))
    }

    /// Whether the queue is closed to this push. A transaction may go on while it holds something, unless all
    /// that it held was taken away since, and the others were told the end.
    pub(super) fn is_refusing(&self, put: Put) -> bool {
        let word = self.word();
        word.is_closed() && (put == Put::Publish || self.held() == 0 || word.is_drained())
    }

    #[inline]
    pub(super) fn take_permit(&mut self, put: Put) -> bool {
        let (staged, held) = (self.staged(), self.held());
        let room = self.shared.room();
        match put {
            Put::Publish => self.permits.take_gathered_or_one(room),
            Put::Stage => self.permits.ensure_permit(room, staged, held),
        }
    }

    pub(super) fn return_permit(&mut self, put: Put) {
        match put {
            Put::Publish => self.give_back(1),
            Put::Stage => self.release(),
        }
    }

    /// Whether to wait for room may help: not if there would be none for these items if the queue had nothing but
    /// this transaction, nor if their keys have none now. Who waits already finds that out when it is woken.
    pub(crate) fn is_worth_waiting(&self, items: &[T]) -> bool {
        let Some(room) = self.shared.room() else {
            return false;
        };
        let can_fit = self.staged() + items.len() <= room.capacity.limit();
        can_fit && (self.room_waiter.is_taken() || self.shared.fits(items))
    }

    /// Gives permits back, and wakes those who wait for them.
    #[inline]
    pub(super) fn give_back(&self, count: usize) {
        self.permits.give_back(self.shared.room(), count);
    }

    /// Gives back what the transaction need not have any more.
    #[inline]
    pub(super) fn release(&mut self) {
        let (staged, held) = (self.staged(), self.held());
        self.permits.release(self.shared.room(), staged, held);
    }
}
