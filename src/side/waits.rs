//! Waiting for an item, or for room.

use super::Side;
use crate::sync::thread;
use crate::wait::{block, spin, Deadline, Kind, Line};
use std::task::{Poll, Waker};
use std::time::Duration;

/// How often a pop that waits for nobody lets a waiter go first that was woken in vain before.
const COURTESY: usize = 32;

impl<T> Side<T> {
    /// Lets a waiter go first that is being served, for a moment.
    #[inline]
    pub(crate) fn give_way(&self) {
        if self.shared.word().is_serving() {
            self.wait_a_moment();
        }
    }

    #[cold]
    fn wait_a_moment(&self) {
        for _ in 0..COURTESY {
            if !self.shared.word().is_serving() {
                return;
            }
            thread::yield_now();
        }
    }

    /// Polls for an item by way of `attempt`.
    pub(crate) fn poll_item<R>(
        &self,
        waker: &Waker,
        attempt: impl FnMut() -> Option<R>,
    ) -> Poll<R> {
        let shared = &self.shared;
        let spare =
            |served: usize| shared.word().is_closed() || shared.lanes().ready() > served as u64;
        self.item_place
            .poll(shared.ready(), Kind::One, waker, spare, attempt)
    }

    /// Polls for room by way of `attempt`.
    pub(crate) fn poll_room<R>(
        &self,
        kind: Kind,
        waker: &Waker,
        mut attempt: impl FnMut() -> Option<R>,
    ) -> Poll<R> {
        let Some(room) = self.shared.room() else {
            return attempt().map_or(Poll::Pending, Poll::Ready);
        };
        let spare = |served| self.shared.word().is_closed() || room.capacity.free() > served;
        self.room_place
            .poll(&room.line, kind, waker, spare, attempt)
    }

    /// Waits for an item. `None`: the time is over.
    pub(crate) fn wait_for_item<R>(
        &self,
        timeout: Option<Duration>,
        attempt: impl FnMut() -> Option<R>,
    ) -> Option<R> {
        let line = self.shared.ready();
        let result = wait(line, timeout, attempt, |waker, attempt| {
            self.poll_item(waker, attempt)
        });
        self.item_place.leave(line);
        result
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
        let result = wait(&room.line, timeout, attempt, |waker, attempt| {
            self.poll_room(kind, waker, attempt)
        });
        self.room_place.leave(&room.line);
        result
    }
}

/// Waits in a line; without a timeout for ever. What arrives wins over the deadline.
fn wait<R, A: FnMut() -> Option<R>>(
    line: &Line,
    timeout: Option<Duration>,
    mut attempt: A,
    poll: impl Fn(&Waker, &mut A) -> Poll<R>,
) -> Option<R> {
    if timeout.is_some_and(|timeout| timeout.is_zero()) {
        return attempt();
    }
    let deadline = timeout.map_or(Deadline::NEVER, Deadline::after);
    spin(|| !line.word().is_serving(), &mut attempt)
        .or_else(|| block(deadline, |waker| poll(waker, &mut attempt)))
        .or_else(attempt)
}
