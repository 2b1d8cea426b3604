//! Waiting until the queue is idle.

use super::Shared;
use crate::order::{Order, Source};
use crate::time::NEVER;
use crate::wait::{Alone, WaitKind, WaitQueue, Waiter, WakeTarget, Wanted};
use std::task::Poll;

impl<T, O: Order<T>> Shared<T, O> {
    /// The wait queue for the queue to be idle.
    pub(crate) fn idle_waiters(&self) -> &WaitQueue {
        &self.idle
    }

    /// Whether nothing is ready, delayed, scheduled, held or staged, at one instant of the call.
    pub(crate) fn is_idle(&self) -> bool {
        let none_in_order = || self.source.has_none();
        let none_delayed = || self.failures.delayed.count() == 0;
        self.shards.is_idle(none_in_order, none_delayed)
    }

    /// Wakes the waiters for the queue to be idle, if it is. Called after each end of a transaction or pop.
    ///
    /// Of two concurrent ends, at least one sees the other: both pass the fence of [`WaitQueue::notify_slowly`] before
    /// the check, since the wait queue is armed while it has waiters.
    pub(super) fn notify_if_idle(&self) {
        if self.idle.notify_slowly(0).waiting() > 0 && self.is_idle() {
            self.idle.wake_all();
        }
    }

    /// Wakes the waiters for the queue to be idle after a new plan: an item whose lease expires may become a dead letter,
    /// and be the last item.
    pub(crate) fn planned(&self) {
        if self.ready.fenced_word().notifies_ends() {
            self.idle.wake_all_waiting();
        }
    }

    /// Polls for the queue to be idle. Releases due items, since possibly no other thread does.
    pub(crate) fn poll_idle(&self, waiter: &mut Waiter, wake_target: &WakeTarget<'_>) -> Poll<()> {
        if !waiter.is_taken() {
            self.ready.begin_notifying_ends();
        }
        self.release_due();
        let wait_queue = &self.idle;
        let poll = Waiter::poll(
            &mut &mut Alone { waiter, wait_queue },
            Wanted::Item,
            WaitKind::One,
            wake_target.waker,
            |_, _| true,
            |_, _| false,
            |_| self.is_idle().then_some(()),
        );
        let next = self.due_timer.next();
        if poll.is_pending() && next != NEVER {
            wake_target.wake_at(&self.time, next);
        }
        poll
    }
}
