//! What follows from the end of a transaction or of a pop: the queue may be idle, or drained.
//!
//! A waiter of a closed queue waits for an item, or for the queue to be drained. Each end that may have drained it looks
//! *afterwards*, if there are waiters, and wakes all of them if it has. So an end wakes one waiter for each item that it
//! has published, and nobody else before the last one. It depends on no waiter that was woken before: that one may be a
//! task that is never polled. So an end that has published nothing, and finds an item ready, wakes the next waiter: the one
//! that was woken for the item may not come.
//!
//! Of two concurrent ends at least one sees the other: both pass the barrier of [`seal`](crate::core::mode::Ready::seal)
//! between their end and their look. A look that finds something leaves the rest to its end: an item is taken by a pop or a
//! transaction, a delayed one becomes ready first, and even what only seems to be open, such as an attempt to take something, ends with
//! a look. A waiter looks too, behind the barrier of its wait queue, before it sleeps.

use super::ttl::FIRST;
use super::Shared;
use crate::core::mode::{AWAITS_ENDS, DRAINED, NOTIFY_ENDS};
use crate::order::{Order, Source};
use crate::raw::Remainder;
use crate::sync::step;

impl<T, O: Order<T>> Shared<T, O> {
    /// Wakes waiters for `count` items that became ready at the end of a transaction, or of what others may have taken for
    /// one; and those that wait for the queue to be idle or drained, if it is.
    #[inline]
    pub(crate) fn notify_end(&self, count: usize) {
        if self.ready.notify_end(count) {
            self.end_seen(count);
        }
    }

    /// As [`Shared::ended`], after an end that has published `count` items.
    #[cold]
    #[inline(never)]
    pub(crate) fn end_seen(&self, count: usize) {
        if count > 0 {
            self.plan_end(FIRST);
        }
        self.ended(count > 0);
    }

    /// Records that an item was taken for good, or an attempt to take one has ended.
    #[inline]
    pub(crate) fn popped(&self) {
        if self.ready.word_after_pop().has(AWAITS_ENDS) {
            step!("take.pops-unsaid", self.ended(false));
        }
    }

    /// Wakes those that wait for the queue to be idle or drained, if it is. Called after an end, which has woken waiters for
    /// what it has `published`.
    #[cold]
    #[inline(never)]
    pub(crate) fn ended(&self, published: bool) {
        let word = self.ready.fenced_word();
        if word.is_closed() && word.waiting() > 0 {
            step!("ends.drained-unsaid", {
                if self.remainder() == Remainder::Ready && !published {
                    self.ready.wake(1);
                }
            });
        }
        if word.has(NOTIFY_ENDS) {
            self.notify_if_idle();
        }
    }

    /// What is left in a closed queue. If nothing is, all waiters are woken: by each thread that finds it so, since the first
    /// one may be stalled.
    pub(super) fn remainder(&self) -> Remainder {
        if !self.word().has(DRAINED) {
            self.ready.seal();
            let none_delayed = || self.failures.delayed.count() == 0;
            let none_in_order = || self.source.has_none();
            let left = self.shards.left_when_closed(none_in_order, none_delayed);
            if left != Remainder::Nothing {
                return left;
            }
            // Pops read it first: the item of a late push, which is about to be taken back, must not be popped after another pop
            // has returned `Closed`.
            self.ready.set(DRAINED);
        }
        self.ready.wake_all_waiting();
        Remainder::Nothing
    }
}
