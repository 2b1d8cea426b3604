//! Those who wait until the queue is idle.

use super::Shared;
use crate::order::{Order, Source};
use crate::time::NEVER;
use crate::wait::{Kind, Line, Place, Waiter, Wanted};
use std::task::Poll;

impl<T, O: Order<T>> Shared<T, O> {
    /// Where those wait who wait for the queue to be idle.
    pub(crate) fn idle_line(&self) -> &Line {
        &self.idle
    }

    /// Whether nothing is ready, delayed, scheduled, held or staged, at one instant of the call.
    pub(crate) fn is_idle(&self) -> bool {
        let none_in_order = || self.source.has_none();
        let none_delayed = || self.failures.delayed.count() == 0;
        self.shards.is_idle(none_in_order, none_delayed)
    }

    /// Tells those who wait for the queue to be idle that an item was taken for good.
    #[inline]
    pub(crate) fn popped(&self) {
        if self.ready.is_awaited() {
            self.tell_if_idle();
        }
    }

    /// Wakes those who wait for the queue to be idle, if it is. Who ends something calls it afterwards.
    ///
    /// Of two who end something at the same time one at least sees the end of the other: both pass the fence of
    /// [`Line::tell`] before they look, since the line is armed while somebody waits.
    #[cold]
    #[inline(never)]
    pub(crate) fn tell_if_idle(&self) {
        if self.idle.tell(0).waiting() > 0 && self.is_idle() {
            self.idle.wake_all();
        }
    }

    /// Has those who wait for the queue to be idle look at what is planned: an item whose lease is over may die,
    /// and be the last one.
    pub(crate) fn planned(&self) {
        if self.ready.is_awaited() {
            self.idle.wake_all_waiting();
        }
    }

    /// Polls for the queue to be idle. Makes ready what is due: nobody else may come by.
    pub(crate) fn poll_idle(&self, mut place: &mut Place, waiter: &Waiter<'_>) -> Poll<()> {
        if !place.is_taken() {
            self.ready.await_ends();
        }
        self.release_due();
        let attempt = |_: &mut _| self.is_idle().then_some(());
        let (line, waker, wanted) = (&self.idle, waiter.waker, Wanted::Item);
        let poll = Place::poll(
            &mut place,
            wanted,
            line,
            Kind::One,
            waker,
            |_| true,
            attempt,
        );
        let next = self.agenda.next();
        if poll.is_pending() && next != NEVER {
            waiter.wake_at(&self.time, next);
        }
        poll
    }
}
