//! A waiter: an entry of a wait queue.

use super::wait_queue::WaitQueue;
use super::waiter_list::WaiterKey;
use crate::sync::planted;
use std::ops::DerefMut;
use std::task::{Poll, Waker};

/// How many things a waiter waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WaitKind {
    One,
    /// Several: the first waiter of the wait queue keeps what it has obtained so far.
    Several,
}

/// The entry of a handle in a wait queue; a handle waits for one thing at a time.
///
/// Owned by the handle and not by the future, so that no wake-up is lost for good with a forgotten future.
#[derive(Default)]
pub(crate) struct Waiter {
    key: Option<WaiterKey>,
}

/// What a waiter waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wanted {
    Item,
    Room,
}

/// The owner of a waiter for each of the wait queues.
pub(crate) trait Waits {
    fn waiter(&mut self, wanted: Wanted) -> &mut Waiter;
}

/// A waiter by itself, of a user that waits for one thing only.
impl Waits for Waiter {
    fn waiter(&mut self, _: Wanted) -> &mut Waiter {
        self
    }
}

/// The arguments of [`Waiter::poll`].
struct Attempt<'l, S> {
    wanted: Wanted,
    wait_queue: &'l WaitQueue,
    kind: WaitKind,
    waker: &'l Waker,
    /// Whether a newcomer may attempt although this number of older waiters are being served.
    spare: S,
}

impl Waiter {
    #[inline]
    pub(crate) fn is_taken(&self) -> bool {
        self.key.is_some()
    }

    /// Attempts, and waits in the wait queue while `attempt` returns `None`.
    ///
    /// `spare`: whether a newcomer may attempt although this number of older waiters are being served.
    pub(crate) fn poll<C: DerefMut<Target = impl Waits>, R>(
        user: &mut C,
        wanted: Wanted,
        wait_queue: &WaitQueue,
        kind: WaitKind,
        waker: &Waker,
        spare: impl Fn(usize) -> bool,
        mut attempt: impl FnMut(&mut C) -> Option<R>,
    ) -> Poll<R> {
        let poll = Attempt {
            wanted,
            wait_queue,
            kind,
            waker,
            spare,
        };
        let result = match user.waiter(wanted).key {
            None => poll.enter(user, &mut attempt),
            Some(key) if !wait_queue.is_woken(key, waker) => None,
            Some(key) => poll.use_wake_up(user, key, &mut attempt),
        };
        result.map_or(Poll::Pending, Poll::Ready)
    }

    /// Whether this is the first waiter of the wait queue.
    pub(crate) fn is_first(&self, wait_queue: &WaitQueue) -> bool {
        self.key.is_some_and(|key| wait_queue.is_first(key))
    }

    /// Leaves the wait queue, and passes an unused wake-up on.
    #[inline]
    pub(crate) fn leave(&mut self, wait_queue: &WaitQueue) {
        if self.is_taken() {
            self.give_up(wait_queue, false);
        }
    }

    fn give_up(&mut self, wait_queue: &WaitQueue, spent: bool) {
        if let Some(key) = self.key.take() {
            wait_queue.leave(key, spent);
        }
    }
}

impl<S: Fn(usize) -> bool> Attempt<'_, S> {
    fn enter<C: DerefMut<Target = impl Waits>, R>(
        &self,
        user: &mut C,
        attempt: &mut impl FnMut(&mut C) -> Option<R>,
    ) -> Option<R> {
        let Self {
            wait_queue, waker, ..
        } = *self;
        if !wait_queue.word().is_serving() {
            if let Some(result) = attempt(user) {
                return Some(result);
            }
        }
        let (key, serving) = wait_queue.enter(waker.clone(), self.kind == WaitKind::Several);
        user.waiter(self.wanted).key = Some(key);
        if serving > 0 && !(self.spare)(serving) {
            return None;
        }
        let result = attempt(user)?;
        user.waiter(self.wanted).give_up(wait_queue, false);
        Some(result)
    }

    fn use_wake_up<C: DerefMut<Target = impl Waits>, R>(
        &self,
        user: &mut C,
        key: WaiterKey,
        attempt: &mut impl FnMut(&mut C) -> Option<R>,
    ) -> Option<R> {
        let first = attempt(user);
        let spent = first.is_some();
        if !spent {
            self.wait_queue.wait_again(key, self.waker.clone());
            planted!("waiter.looks-once", return None);
        }
        let result = first.or_else(|| attempt(user))?;
        user.waiter(self.wanted).give_up(self.wait_queue, spent);
        Some(result)
    }
}
