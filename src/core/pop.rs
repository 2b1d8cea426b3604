//! Pops of single items and batches, with and without waiting.

use super::access::Access;
use super::local::{CellOf, Local};
use super::mode::ModeWord;
use super::shared::Shared;
use super::take::{IntoHold, IntoPeek};
use super::wait;
use crate::order::{Order, StoredOf};
use crate::raw::{Borrow, Endpoint, ItemRef, Peeked};
use crate::sync::step;
use crate::time::Wait;
use crate::wait::WakeTarget;
use crate::PopError;
use std::task::Poll;

/// Pops that are committed at once.
impl<T, O: Order<T>> CellOf<T, O> {
    #[inline(always)] // the pop
    pub(crate) fn pop(&mut self) -> Result<T, PopError> {
        if Shared::<T, O>::SORTS || self.is_unsettled() || self.get_mut().word().slows_pop() {
            return self.pop_slowly();
        }
        let local = self.get_mut();
        match local.endpoint.pop() {
            Some(stored) => Ok(local.deliver(stored)),
            None => Err(PopError::Empty),
        }
    }

    #[inline(never)]
    pub(crate) fn pop_slowly(&mut self) -> Result<T, PopError> {
        let local = self.settled();
        wait::yield_to_served(local);
        local.pop_one()
    }
}

impl<T, O: Order<T>> Local<T, O> {
    /// Pops the next item of the present shard if nothing else has to be done: see [`Local::may_take_at_once`]. The caller
    /// then [delivers](Local::deliver_at_once) it.
    #[inline(always)] // the pop of a woken task
    pub(crate) fn claim_at_once(&mut self) -> Option<StoredOf<T, O>> {
        if !self.may_take_at_once() {
            return None;
        }
        self.endpoint.pop_next()
    }

    /// The result of a wait that has [claimed](Local::claim_at_once) an item. It contains no call but the last one, so that
    /// the wait saves no registers.
    #[inline(always)] // the pop of a woken task
    pub(crate) fn deliver_at_once<R>(
        &mut self,
        stored: StoredOf<T, O>,
        result: impl FnOnce(T) -> R,
    ) -> R {
        let has_work = self.ready.word_after_pop().has_work_after_pop();
        if has_work || !self.item_waiter.leave_freely() {
            return self.deliver_slowly(stored, result);
        }
        result(stored.into_item())
    }

    #[inline(never)]
    fn deliver_slowly<R>(&mut self, stored: StoredOf<T, O>, result: impl FnOnce(T) -> R) -> R {
        let item = self.deliver(stored);
        self.item_waiter.leave_served(&self.access.ready);
        result(item)
    }

    /// The item of a pop that is committed at once.
    #[inline(always)] // the pop
    fn deliver(&mut self, stored: StoredOf<T, O>) -> T {
        let word = self.ready.word_after_pop();
        if word.has_work_after_pop() {
            self.note_popped(word);
        }
        stored.into_item()
    }

    /// Releases the permit of an item that was popped, and notifies those that wait for the queue to be idle or drained.
    #[inline(never)]
    fn note_popped(&mut self, word: ModeWord) {
        let seen = self.permits.put_back(1);
        if !seen || word.awaits_ends() {
            self.permits.notify_freed(1);
            self.shared.popped();
        }
    }

    #[inline]
    fn pop_one(&mut self) -> Result<T, PopError> {
        let mut item = None;
        self.take(&mut item, 1);
        item.ok_or_else(|| self.shared.why_empty())
    }

    /// Pops an item; `None` if waiting may help.
    #[inline(never)]
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
    #[inline]
    pub(crate) fn pop_waiting(&mut self, wait: Wait) -> Result<T, PopError> {
        match self.claim_at_once() {
            Some(stored) => self.deliver_at_once(stored, Ok),
            None => self.block_to_pop(wait),
        }
    }

    /// As [`Local::pop_waiting`], where no item was found at once.
    #[inline(never)]
    fn block_to_pop(mut self: &mut Self, wait: Wait) -> Result<T, PopError> {
        let popped = wait::for_item(&mut self, wait, |local| local.pop_unless_empty());
        popped.unwrap_or(Err(PopError::Empty))
    }

    /// Polls for an item.
    pub(crate) fn poll_pop(&mut self, wake_target: &WakeTarget<'_>) -> Poll<Result<T, PopError>> {
        match self.claim_at_once() {
            Some(stored) => self.deliver_at_once(stored, |item| Poll::Ready(Ok(item))),
            None => self.wait_to_pop(wake_target),
        }
    }

    /// As [`Local::poll_pop`], where no item was found at once.
    #[inline]
    pub(crate) fn wait_to_pop(
        mut self: &mut Self,
        wake_target: &WakeTarget<'_>,
    ) -> Poll<Result<T, PopError>> {
        wait::wait_for_item(&mut self, wake_target, |local| local.pop_unless_empty())
    }

    /// Pops an item if one is visible; otherwise another handle waits.
    pub(crate) fn pop_visible(&mut self) -> Option<Result<T, PopError>> {
        let popped = if self.looks_empty(self.word()) {
            None
        } else {
            self.pop_unless_empty()
        };
        if popped.is_none() {
            self.endpoint.rest();
        }
        popped
    }
}

impl<T, O: Order<T>> CellOf<T, O> {
    /// Takes one more item into the hold, if the next one is there and nothing else has to be done.
    #[inline(always)] // the pop of a transaction
    pub(crate) fn hold_at_once(&self) -> Option<ItemRef<'_, StoredOf<T, O>>> {
        self.hold_by(Local::allows_hold, Endpoint::hold_next)
    }

    /// Takes one more item into the hold, first of all one that an abort has returned to the current shard.
    #[inline(never)]
    #[track_caller]
    pub(crate) fn hold_slowly(&self) -> Result<ItemRef<'_, StoredOf<T, O>>, PopError> {
        if let Some(item) = self.hold_by(Local::allows_hold, Endpoint::hold_returned) {
            return Ok(item);
        }
        let mut local = self.borrow();
        // Those that wait for the queue to be idle or drained may have observed the attempts.
        step!("pop.attempts-unsaid", local.shared.popped());
        local.pop()
    }
}

impl<T, O: Order<T>> Local<T, O> {
    /// Whether a pop of a transaction has nothing to do besides taking the item.
    #[inline(always)] // the pop of a transaction
    fn allows_hold(&self) -> bool {
        let word = self.word().with(self.extra_mode);
        !word.slows_pop() && (!word.is_bounded() || !self.permits.has_extra())
    }
}

/// Pops of a transaction.
impl<'t, T, O: Order<T>> Borrow<'t, Local<T, O>> {
    /// Takes one more item into the hold.
    #[inline(always)] // the pop of a worker
    pub(crate) fn pop(&mut self) -> Result<ItemRef<'t, StoredOf<T, O>>, PopError> {
        wait::yield_to_served(self);
        self.hold_one()
    }

    /// Where a pop depends on the shards alone, takes an item from them. After the close only if one of them shows an
    /// item: see `Local::is_over`.
    #[inline(always)] // as above
    fn hold_one(&mut self) -> Result<ItemRef<'t, StoredOf<T, O>>, PopError> {
        let word = self.word();
        if word.slows_pops() || word.is_closed() && !self.endpoint.sees_one() {
            return self.hold_prepared();
        }
        let held = self.hold();
        if word.is_bounded() {
            self.release();
        }
        let held = held.ok_or_else(|| self.nothing_held())?;
        if self.held() == 1 {
            self.deliveries.begin(&self.shared);
        }
        Ok(held)
    }

    /// The reason why nothing was taken. Notifies waiters: one may have observed the attempt, and wait for its end.
    #[cold]
    fn nothing_held(&self) -> PopError {
        self.shared.notify_end(0);
        self.shared.why_empty()
    }

    /// As [`Borrow::hold_one`], where a pop depends on more than the shards.
    #[inline(never)]
    fn hold_prepared(&mut self) -> Result<ItemRef<'t, StoredOf<T, O>>, PopError> {
        let held = self.hold_one_by(|local, fresh| {
            local.take(&mut IntoHold(fresh), 1);
        });
        held.ok_or_else(|| self.shared.why_empty())
    }

    /// The result of an attempt; `None`: waiting may help. It does not if the queue was `closed` before the attempt, and this
    /// transaction has work, or one that waits together with it is `busy`: each would wait for the other's end.
    fn unless_waiting_helps<R>(
        &mut self,
        busy: bool,
        attempt: impl FnOnce(&mut Self) -> Result<R, PopError>,
    ) -> Option<Result<R, PopError>> {
        let closed = self.word().is_closed();
        match attempt(self) {
            Err(PopError::Empty) if !(closed && (busy || self.has_work())) => None,
            other => Some(other),
        }
    }

    /// Takes one more item into the hold, waiting at most for `timeout`; without one, indefinitely.
    pub(crate) fn pop_waiting(
        &mut self,
        wait: Wait,
    ) -> Result<ItemRef<'t, StoredOf<T, O>>, PopError> {
        let held = wait::for_item(self, wait, |local| {
            local.unless_waiting_helps(false, Self::hold_one)
        });
        held.unwrap_or(Err(PopError::Empty))
    }

    /// Polls for an item to hold, and waits for it if there is a `wake_target`. `busy`: another transaction that waits
    /// together with this one has work.
    pub(crate) fn poll_pop(
        &mut self,
        wake_target: Option<&WakeTarget<'_>>,
        busy: bool,
    ) -> Poll<Result<ItemRef<'t, StoredOf<T, O>>, PopError>> {
        let attempt = |local: &mut Self| local.unless_waiting_helps(busy, Self::hold_one);
        if let Some(wake_target) = wake_target {
            return wait::poll_item(self, wake_target, attempt);
        }
        wait::yield_to_served(self);
        attempt(self).map_or(Poll::Pending, Poll::Ready)
    }

    /// Peeks at the item that a pop would return, waiting at most for `timeout`; without one, indefinitely.
    pub(crate) fn peek_waiting(&mut self, wait: Wait) -> Result<(), PopError> {
        let found = wait::for_item(self, wait, |local| {
            local.unless_waiting_helps(false, Self::peek)
        });
        found.unwrap_or(Err(PopError::Empty))
    }

    /// Polls for an item to peek at.
    pub(crate) fn poll_peek(&mut self, wake_target: &WakeTarget<'_>) -> Poll<Result<(), PopError>> {
        wait::poll_item(self, wake_target, |local| {
            local.unless_waiting_helps(false, Self::peek)
        })
    }

    fn peek(&mut self) -> Result<(), PopError> {
        match self.take(&mut IntoPeek, 1) {
            0 => Err(self.shared.why_empty()),
            _ => Ok(()),
        }
    }

    /// Takes the peeked item into the hold.
    pub(crate) fn hold_peeked(peeked: Peeked<'t, Local<T, O>>) -> ItemRef<'t, StoredOf<T, O>> {
        let (reference, mut borrow) = peeked.hold();
        borrow.release();
        let Local {
            access, deliveries, ..
        } = &mut *borrow;
        let Access {
            shared, endpoint, ..
        } = access;
        if deliveries.taken_peeked(shared, &shared.source, endpoint, &reference) {
            shared.planned();
        }
        reference
    }
}
