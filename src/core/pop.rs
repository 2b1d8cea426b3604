//! Pops of single items and batches, with and without waiting.

use super::access::Access;
use super::local::{CellOf, Local};
use super::mode::{AWAITS_ENDS, BOUNDED, HAS_WORK_AFTER_POP, SLOW_POPS};
use super::shared::Shared;
use super::take::{IntoHold, IntoPeek, Target};
use crate::order::{Order, Source, StoredOf};
use crate::raw::{Borrow, Endpoint, ItemRef, Peeked};
use crate::time::Wait;
use crate::wait::{WaitWord, WakeTarget};
use crate::PopError;
use std::task::Poll;

/// Pops that are committed at once.
impl<T, O: Order<T>> CellOf<T, O> {
    #[inline(always)] // the pop
    pub(crate) fn pop(&mut self) -> Result<T, PopError> {
        if Shared::<T, O>::SORTS {
            return self.pop_sorted();
        }
        if self.is_unsettled() || self.get_mut().word().slows_pop() {
            return self.pop_slowly();
        }
        let local = self.get_mut();
        match local.endpoint.pop() {
            Some(stored) => Ok(local.deliver(stored)),
            None => Err(PopError::Empty),
        }
    }

    /// As [`CellOf::pop`], by an order: the last item of this handle, if that comes first, or the next one.
    #[inline(always)] // the pop of an order
    fn pop_sorted(&mut self) -> Result<T, PopError> {
        if self.is_unsettled() || self.get_mut().word().slows_sorted_pop() {
            return self.pop_slowly();
        }
        let local = self.get_mut();
        let last = local.shared.source.yields_to_owner();
        match last.then(|| local.endpoint.pop_last()).flatten() {
            Some(stored) => Ok(local.deliver(stored)),
            None => local.pop_next().ok_or(PopError::Empty),
        }
    }

    #[inline(never)]
    pub(crate) fn pop_slowly(&mut self) -> Result<T, PopError> {
        let local = self.settled();
        local.yield_to_served();
        let mut item = None;
        local.take(&mut item, 1);
        item.ok_or_else(|| local.shared.why_empty())
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
        let has_work = self.ready.word_after_pop().has(HAS_WORK_AFTER_POP);
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

    /// Pops the next item of an order.
    #[inline(never)]
    fn pop_next(&mut self) -> Option<T> {
        let item = self.shared.pop_next(&self.endpoint)?;
        self.endpoint.counters().count_popped(1);
        self.end_pop();
        Some(item)
    }

    /// The item of a pop that is committed at once.
    #[inline(always)] // the pop
    fn deliver(&mut self, stored: StoredOf<T, O>) -> T {
        self.end_pop();
        stored.into_item()
    }

    #[inline(always)] // the pop
    fn end_pop(&mut self) {
        let word = self.ready.word_after_pop();
        if word.has(HAS_WORK_AFTER_POP) {
            self.note_popped(word);
        }
    }

    /// Releases the permit of an item that was popped, and notifies those that wait for the queue to be idle or drained.
    #[inline(never)]
    fn note_popped(&mut self, word: WaitWord) {
        let seen = self.permits.put_back(1);
        if !seen || word.has(AWAITS_ENDS) {
            self.permits.notify_freed(1);
            self.shared.popped();
        }
    }

    /// Attempts to take one item into the target; `None`: waiting may help. It does not if the queue was closed before the
    /// attempt, and this transaction has work, or one that waits together with it is `busy`: each would wait for the other's
    /// end.
    pub(super) fn attempt<G: Target<T, O>>(
        &mut self,
        target: &mut G,
        busy: bool,
    ) -> Option<Result<(), PopError>> {
        let closed = self.word().is_closed();
        if self.take(target, 1) > 0 {
            return Some(Ok(()));
        }
        match self.shared.why_empty() {
            PopError::Empty if !(closed && (busy || self.has_work())) => None,
            error => Some(Err(error)),
        }
    }

    /// Pops an item; `None` if waiting may help.
    #[inline(never)]
    pub(crate) fn pop_unless_empty(&mut self) -> Option<Result<T, PopError>> {
        let mut item = None;
        let taken = self.attempt(&mut item, false)?;
        Some(taken.and(item.ok_or(PopError::Closed)))
    }

    pub(crate) fn pop_batch(&mut self, max: usize, items: &mut Vec<T>) -> usize {
        self.yield_to_served();
        self.take(items, max)
    }

    /// Pops an item, waiting until one is ready or the timeout has passed; without a timeout, indefinitely.
    #[inline]
    pub(crate) fn pop_waiting(&mut self, wait: Wait) -> Result<T, PopError> {
        match self.claim_at_once() {
            Some(stored) => self.deliver_at_once(stored, Ok),
            None => self
                .wait_for_item(wait, Self::pop_unless_empty)
                .unwrap_or(Err(PopError::Empty)),
        }
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
        &mut self,
        wake_target: &WakeTarget<'_>,
    ) -> Poll<Result<T, PopError>> {
        self.poll_item_slowly(wake_target, Self::pop_unless_empty)
    }

    /// Attempts to take an item if one is visible; otherwise another handle waits.
    pub(crate) fn take_visible<R>(
        &mut self,
        attempt: impl FnOnce(&mut Self) -> Option<R>,
    ) -> Option<R> {
        let seems_empty = self.looks_empty(self.word());
        let taken = (!seems_empty).then(|| attempt(self)).flatten();
        if taken.is_none() {
            self.endpoint.rest();
        }
        taken
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
        self.borrow_after_attempt().pop()
    }

    /// Borrows the transaction after an attempt to [hold](Self::hold_at_once) an item has found none.
    #[inline]
    #[track_caller]
    pub(crate) fn borrow_after_attempt(&self) -> Borrow<'_, Local<T, O>> {
        let local = self.borrow();
        local.attempted();
        local
    }
}

impl<T, O: Order<T>> Local<T, O> {
    /// Whether a pop of a transaction has nothing to do besides taking the item.
    #[inline(always)] // the pop of a transaction
    fn allows_hold(&self) -> bool {
        let word = self.word().with(self.extra_mode);
        !word.slows_pop() && (!word.has(BOUNDED) || !self.permits.has_extra())
    }
}

/// Pops of a transaction.
impl<'t, T, O: Order<T>> Borrow<'t, Local<T, O>> {
    /// Takes one more item into the hold: from the shards, where a pop depends on them alone, which saves a worker 145 of 451
    /// instructions. After the close only if one of them shows an item: see `Local::is_over`.
    #[inline(always)] // the pop of a worker
    pub(crate) fn pop(&mut self) -> Result<ItemRef<'t, StoredOf<T, O>>, PopError> {
        self.yield_to_served();
        let word = self.word();
        if Shared::<T, O>::SORTS
            || word.has(SLOW_POPS)
            || word.is_closed() && !self.endpoint.sees_one()
        {
            return self.hold_prepared();
        }
        let held = self.hold();
        if word.has(BOUNDED) {
            self.release();
        }
        match held {
            // Another thread may have observed the attempt, and wait for its end.
            None => self.shared.notify_end(0),
            Some(_) if self.held() == 1 => self.deliveries.begin(&self.shared),
            Some(_) => {}
        }
        held.ok_or_else(|| self.shared.why_empty())
    }

    /// As [`Borrow::pop`], where a pop depends on more than the shards.
    #[inline(never)]
    fn hold_prepared(&mut self) -> Result<ItemRef<'t, StoredOf<T, O>>, PopError> {
        let held = self.hold_one_by(|local, fresh| {
            local.take(&mut IntoHold(fresh), 1);
        });
        held.ok_or_else(|| self.shared.why_empty())
    }

    /// Takes one more item into the hold, waiting at most for `timeout`; without one, indefinitely.
    pub(crate) fn pop_waiting(
        &mut self,
        wait: Wait,
    ) -> Result<ItemRef<'t, StoredOf<T, O>>, PopError> {
        let mut taken = None;
        let held = self.hold_one_by(|local, fresh| {
            taken = local.wait_for_item(wait, |local| local.attempt(&mut IntoHold(fresh), false));
        });
        taken.unwrap_or(Err(PopError::Empty))?;
        held.ok_or(PopError::Empty)
    }

    /// Polls for an item to hold, and waits for it if there is a `wake_target`. `busy`: another transaction that waits
    /// together with this one has work.
    pub(crate) fn poll_pop(
        &mut self,
        wake_target: Option<&WakeTarget<'_>>,
        busy: bool,
    ) -> Poll<Result<ItemRef<'t, StoredOf<T, O>>, PopError>> {
        let mut poll = Poll::Pending;
        let held = self.hold_one_by(|local, fresh| {
            let mut attempt = |local: &mut Local<T, O>| local.attempt(&mut IntoHold(fresh), busy);
            poll = if let Some(wake_target) = wake_target {
                local.poll_item(wake_target, attempt)
            } else {
                local.yield_to_served();
                attempt(local).map_or(Poll::Pending, Poll::Ready)
            };
        });
        poll.map(|taken| taken.and(held.ok_or(PopError::Empty)))
    }

    /// Peeks at the item that a pop would return, waiting at most for `timeout`; without one, indefinitely.
    pub(crate) fn peek_waiting(&mut self, wait: Wait) -> Result<(), PopError> {
        let found = self.wait_for_item(wait, |local| local.attempt(&mut IntoPeek, false));
        found.unwrap_or(Err(PopError::Empty))
    }

    /// Polls for an item to peek at.
    pub(crate) fn poll_peek(&mut self, wake_target: &WakeTarget<'_>) -> Poll<Result<(), PopError>> {
        self.poll_item(wake_target, |local| local.attempt(&mut IntoPeek, false))
    }

    /// Takes the peeked item into the hold.
    pub(crate) fn hold_peeked(peeked: Peeked<'t, Local<T, O>>) -> ItemRef<'t, StoredOf<T, O>> {
        let (reference, mut borrow) = peeked.hold();
        let position = borrow.endpoint.end_of_hold();
        let since = borrow.endpoint.delivery_before(position).since;
        borrow.hold_load(since);
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
