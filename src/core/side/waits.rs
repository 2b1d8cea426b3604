//! Waiting for an item, or for room.

use super::Side;
use crate::order::Order;
use crate::sync::{barrier, defer, step, thread};
use crate::time::{Time, NEVER};
use crate::wait::{block, spin, Deadline, Kind, Line, Waiter};
use std::mem;
use std::task::Poll;
use std::time::Duration;

/// How often a pop that waits for nobody lets a waiter go first that was woken in vain before.
const COURTESY: usize = 32;

impl<T, O: Order<T>> Side<T, O> {
    /// Lets a waiter go first that is being served, for a moment.
    #[inline]
    pub(crate) fn give_way(&self) {
        if self.word().is_serving() {
            self.wait_a_moment();
        }
    }

    #[cold]
    fn wait_a_moment(&self) {
        for _ in 0..COURTESY {
            if !self.word().is_serving() {
                return;
            }
            thread::yield_now();
        }
    }

    /// Polls for an item by way of `attempt`.
    pub(crate) fn poll_item<R>(
        &self,
        waiter: &Waiter<'_>,
        attempt: impl FnMut() -> Option<R>,
    ) -> Poll<R> {
        let shared = &self.shared;
        if waiter.is_task() {
            shared.agenda.expect_tasks();
        }
        // Also if user code panics: a clock.
        let handing_over = self
            .gives_up_time()
            .then(|| defer(|| step!("waits.keeps-time", self.hand_time_over())));
        if handing_over.is_some() {
            // What is due wakes those who wait for it, in their order.
            shared.release_due();
        }
        let spare =
            |served: usize| shared.word().is_closed() || shared.ready_items() > served as u64;
        let line = shared.ready();
        let poll = self
            .item_place
            .poll(line, Kind::One, waiter.waker, spare, attempt);
        if poll.is_pending() {
            mem::forget(handing_over);
            self.keep_time(waiter);
        }
        poll
    }

    /// Sleeps no longer than until something is due, unless another waiter does. The reserve looks after the one
    /// that does.
    fn keep_time(&self, waiter: &Waiter<'_>) {
        let agenda = &self.shared.agenda;
        let next = agenda.next();
        if next < agenda.alarm() {
            agenda.set_alarm(next);
            self.keeps_time.set(1);
            waiter.wake_at(&self.shared.time, next);
        }
        agenda.call_reserve();
    }

    /// Whether this waiter kept the time; not any more.
    #[inline]
    fn gives_up_time(&self) -> bool {
        let kept = self.keeps_time.get() != 0;
        if kept {
            self.keeps_time.set(0);
            self.shared.agenda.set_alarm(NEVER);
        }
        kept
    }

    /// Leaves the line of those who wait for an item. If this waiter kept the time another one must.
    #[inline]
    pub(super) fn leave_item_line(&self) {
        let kept = self.gives_up_time();
        self.item_place.leave(&self.ready);
        if kept {
            step!("waits.keeps-time", self.hand_time_over());
        }
    }

    /// Wakes another waiter to keep the time, after this one has given that up.
    fn hand_time_over(&self) {
        barrier::full("waits.hand-over");
        let agenda = &self.shared.agenda;
        agenda.call_reserve();
        let planned = agenda.next() != NEVER;
        self.ready.published(usize::from(planned));
    }

    /// Polls for room by way of `attempt`.
    pub(crate) fn poll_room<R>(
        &self,
        kind: Kind,
        waiter: &Waiter<'_>,
        mut attempt: impl FnMut() -> Option<R>,
    ) -> Poll<R> {
        let Some(room) = self.shared.room() else {
            return attempt().map_or(Poll::Pending, Poll::Ready);
        };
        let spare = |served| {
            let yields = !room.is_selective && !self.word().is_closed();
            !yields || room.capacity.free() > served
        };
        self.room_place
            .poll(&room.line, kind, waiter.waker, spare, attempt)
    }

    /// Waits for an item. `None`: the time is over.
    pub(crate) fn wait_for_item<R>(
        &self,
        timeout: Option<Duration>,
        attempt: impl FnMut() -> Option<R>,
    ) -> Option<R> {
        // Also if user code panics: a clock, or the copying of an item.
        let _leave = defer(|| self.leave_item_line());
        let line = &*self.ready;
        let time = &self.shared.time;
        wait(time, line, timeout, attempt, |waiter, attempt| {
            self.poll_item(waiter, attempt)
        })
    }

    /// Waits for room. `None`: the time is over.
    pub(crate) fn wait_for_room<R>(
        &self,
        kind: Kind,
        timeout: Option<Duration>,
        mut attempt: impl FnMut() -> Option<R>,
    ) -> Option<R> {
        let Some(room) = self.shared.room() else {
            return attempt();
        };
        let time = &self.shared.time;
        let _leave = defer(|| self.room_place.leave(&room.line));
        // If user code panics: a clock, or what finds the key of an item.
        let gathered = defer(|| self.give_back(self.gathered.take()));
        let result = wait(time, &room.line, timeout, attempt, |waiter, attempt| {
            self.poll_room(kind, waiter, attempt)
        });
        gathered.cancel();
        result
    }
}

/// Waits in a line; without a timeout for ever. What arrives wins over the deadline.
fn wait<R, A: FnMut() -> Option<R>>(
    time: &Time,
    line: &Line,
    timeout: Option<Duration>,
    mut attempt: A,
    poll: impl Fn(&Waiter<'_>, &mut A) -> Poll<R>,
) -> Option<R> {
    if timeout.is_some_and(|timeout| timeout.is_zero()) {
        return attempt();
    }
    let deadline = Deadline::after(time, timeout);
    spin(|| !line.word().is_serving(), &mut attempt)
        .or_else(|| block(deadline, |waiter| poll(waiter, &mut attempt)))
        .or_else(attempt)
}
