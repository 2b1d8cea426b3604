//! Waiting until the queue is idle.
//!
//! The wait queue is made for the first waiter. To an end that finds none it is as if it had read the word of one that is not
//! armed: whoever makes it passes the barrier of the first waiter before it looks whether the queue is idle.

use super::Shared;
use crate::core::mode::NOTIFY_ENDS;
use crate::order::{Order, Source};
use crate::time::NEVER;
use crate::wait::{WaitQueue, WaitWord, Waiter, Waits, WakeTarget};
use std::task::Poll;

impl<T, O: Order<T>> Shared<T, O> {
    /// The wait queue for the queue to be idle.
    pub(crate) fn idle_waiters(&self) -> &WaitQueue {
        let idle = || WaitQueue::new(WaitWord::default(), false);
        self.idle.get_or_add(idle)
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
        let Some(idle) = self.idle.get() else {
            return;
        };
        if idle.notify_slowly(0).waiting() > 0 && self.is_idle() {
            idle.wake_all();
        }
    }

    /// Wakes the waiters for the queue to be idle after a new plan: a reclaimed item may become a dead letter, and be the
    /// last item.
    pub(crate) fn planned(&self) {
        if self.ready.fenced_word().has(NOTIFY_ENDS) {
            if let Some(idle) = self.idle.get() {
                idle.wake_all_waiting();
            }
        }
    }

    /// Polls for the queue to be idle. Releases due items, since possibly no other thread does.
    pub(crate) fn poll_idle(&self, waiter: &mut Waiter, wake_target: &WakeTarget<'_>) -> Poll<()> {
        if !waiter.is_taken() {
            self.ready.begin_notifying_ends();
        }
        self.release_due();
        let poll = ForIdle(self, waiter).poll(wake_target.waker);
        let next = self.due_timer.next();
        if poll.is_pending() && next != NEVER {
            wake_target.wake_at(&self.time, next);
        }
        poll
    }
}

/// A wait for the queue to be idle.
struct ForIdle<'w, T, O: Order<T>>(&'w Shared<T, O>, &'w mut Waiter);

impl<T, O: Order<T>> Waits for ForIdle<'_, T, O> {
    type Found = ();

    fn waiter(&mut self) -> (&mut Waiter, &WaitQueue) {
        (self.1, self.0.idle_waiters())
    }

    fn attempt(&mut self) -> Option<()> {
        self.0.is_idle().then_some(())
    }

    fn has_spare(&self, _: usize) -> bool {
        true
    }
}
