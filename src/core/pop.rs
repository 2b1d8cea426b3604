//! Pops of single items and batches, with and without waiting.

use super::local::{address_of, CellOf, Local};
use super::take::{IntoHold, IntoPeek};
use super::wait;
use crate::order::{Order, StoredOf};
use crate::raw::{Borrow, ItemRef, Peeked};
use crate::wait::{ModeWord, WakeTarget};
use crate::PopError;
use std::task::Poll;
use std::time::Duration;

/// Pops that are committed at once.
impl<T, O: Order<T>> CellOf<T, O> {
    #[inline(always)]
    #[allow(clippy::inline_always)] // the pop
    pub(crate) fn pop(&mut self) -> Result<T, PopError> {
        if self.is_unsettled() || self.get_mut().word().slows_pop() {
            return self.pop_slowly();
        }
        let local = self.get_mut();
        let stored = local.endpoint.pop().ok_or(PopError::Empty)?;
        let word = local.ready.word_after_pop();
        if word.has_work_after_pop() {
            local.note_popped(word);
        }
        Ok(stored.into_item())
    }

    #[inline(never)]
    fn pop_slowly(&mut self) -> Result<T, PopError> {
        let local = self.settled();
        wait::yield_to_served(local);
        local.pop_one()
    }
}

impl<T, O: Order<T>> Local<T, O> {
    /// Releases the permit of an item that was popped, and notifies the waiters for an idle queue.
    #[inline(never)]
    fn note_popped(&mut self, word: ModeWord) {
        let seen = self.permits.put_back(1);
        if !seen || word.notifies_ends() {
            self.notify_popped();
        }
    }

    #[cold]
    #[inline(never)]
    fn notify_popped(&mut self) {
        self.permits.notify_freed(1);
        self.shared.popped();
    }

    fn pop_one(&mut self) -> Result<T, PopError> {
        let mut item = None;
        self.take(&mut item, 1);
        item.ok_or_else(|| self.shared.why_empty())
    }

    /// Pops an item; `None` if waiting may help.
    pub(crate) fn pop_unless_empty(&mut self) -> Option<Result<T, PopError>> {
        match self.pop_one() {
            Err(PopError::Empty) => None,
            other => Some(other),
        }
    }

    pub(crate) fn pop_batch(&mut self, max: usize, items: &mut Vec<T>) -> usize {
        wait::yield_to_served(self);
        self.take(items, max)
    }

    /// Pops an item, waiting until one is ready or the timeout has passed; without a timeout, indefinitely.
    pub(crate) fn pop_waiting(
        mut self: &mut Self,
        timeout: Option<Duration>,
    ) -> Result<T, PopError> {
        let popped = wait::for_item(&mut self, timeout, |local| local.pop_unless_empty());
        popped.unwrap_or(Err(PopError::Empty))
    }

    /// Polls for an item.
    pub(crate) fn poll_pop(
        mut self: &mut Self,
        wake_target: &WakeTarget<'_>,
    ) -> Poll<Result<T, PopError>> {
        wait::poll_item(&mut self, wake_target, |local| local.pop_unless_empty())
    }
}

/// Pops of a transaction.
impl<'t, T, O: Order<T>> Borrow<'t, Local<T, O>> {
    /// Takes one more item into the hold.
    #[inline(always)]
    #[allow(clippy::inline_always)] // the pop of a transaction
    pub(crate) fn pop(&mut self) -> Result<ItemRef<'t, StoredOf<T, O>>, PopError> {
        let word = self.word();
        if word.slows_pop() || word.is_bounded() && self.permits.has_extra() {
            return self.pop_slowly();
        }
        let held = self.hold();
        held.ok_or_else(|| self.nothing_held())
    }

    #[inline(never)]
    fn pop_slowly(&mut self) -> Result<ItemRef<'t, StoredOf<T, O>>, PopError> {
        wait::yield_to_served(self);
        self.hold_one()
    }

    /// The reason why nothing was taken. Notifies waiters: one may have observed the attempt, and wait for its end.
    #[cold]
    fn nothing_held(&self) -> PopError {
        self.shared.notify_end(0);
        self.shared.why_empty()
    }

    fn hold_one(&mut self) -> Result<ItemRef<'t, StoredOf<T, O>>, PopError> {
        if !self.word().slows_pop() {
            let held = self.hold();
            self.release();
            return held.ok_or_else(|| self.nothing_held());
        }
        let held = self.hold_one_by(|local, fresh| {
            local.take(&mut IntoHold(fresh), 1);
        });
        held.ok_or_else(|| self.shared.why_empty())
    }

    /// Takes one more item into the hold. `None`: waiting may help. It does not if the queue is closed and this
    /// transaction has work, or one that waits together with it is `busy`: each would wait for the other's end.
    fn hold_unless_waiting(
        &mut self,
        busy: bool,
    ) -> Option<Result<ItemRef<'t, StoredOf<T, O>>, PopError>> {
        let closed = self.word().is_closed();
        match self.hold_one() {
            Err(PopError::Empty) if !(closed && (busy || self.has_work())) => None,
            other => Some(other),
        }
    }

    /// Takes one more item into the hold, waiting at most for `timeout`; without one, indefinitely.
    pub(crate) fn pop_waiting(
        &mut self,
        timeout: Option<Duration>,
    ) -> Result<ItemRef<'t, StoredOf<T, O>>, PopError> {
        let held = wait::for_item(self, timeout, |local| local.hold_unless_waiting(false));
        held.unwrap_or(Err(PopError::Empty))
    }

    /// Polls for an item to hold, and waits for it if there is a `wake_target`. `busy`: another transaction that waits
    /// together with this one has work.
    pub(crate) fn poll_pop(
        &mut self,
        wake_target: Option<&WakeTarget<'_>>,
        busy: bool,
    ) -> Poll<Result<ItemRef<'t, StoredOf<T, O>>, PopError>> {
        let attempt = |local: &mut Self| local.hold_unless_waiting(busy);
        if let Some(wake_target) = wake_target {
            return wait::poll_item(self, wake_target, attempt);
        }
        wait::yield_to_served(self);
        attempt(self).map_or(Poll::Pending, Poll::Ready)
    }

    /// Peeks at the item that a pop would return, waiting at most for `timeout`; without one, indefinitely.
    pub(crate) fn peek_waiting(&mut self, timeout: Option<Duration>) -> Result<(), PopError> {
        let found = wait::for_item(self, timeout, Self::peek_unless_waiting);
        found.unwrap_or(Err(PopError::Empty))
    }

    /// Polls for an item to peek at.
    pub(crate) fn poll_peek(&mut self, wake_target: &WakeTarget<'_>) -> Poll<Result<(), PopError>> {
        wait::poll_item(self, wake_target, Self::peek_unless_waiting)
    }

    /// As [`Borrow::hold_unless_waiting`], for a peek.
    fn peek_unless_waiting(&mut self) -> Option<Result<(), PopError>> {
        let closed = self.word().is_closed();
        if self.take(&mut IntoPeek, 1) > 0 {
            return Some(Ok(()));
        }
        match self.shared.why_empty() {
            PopError::Empty if !(closed && self.has_work()) => None,
            error => Some(Err(error)),
        }
    }

    /// Takes the peeked item into the hold.
    pub(crate) fn hold_peeked(peeked: Peeked<'t, Local<T, O>>) -> ItemRef<'t, StoredOf<T, O>> {
        let (reference, mut borrow) = peeked.hold();
        borrow.move_token(address_of(&reference.item));
        borrow.release();
        borrow.record_held(&reference);
        reference
    }
}
