//! A waiter: an entry of a wait queue.

use super::record::{Record, State};
use super::wait_queue::WaitQueue;
use super::word::WaitWord;
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
/// Owned by the handle and not by the future, so that no wake-up is lost for good with a forgotten future. It keeps its
/// record from its first wait until it is [released](Waiter::release).
#[derive(Default)]
pub(crate) struct Waiter {
    record: Option<Record>,
    waits: bool,
    /// Whether its next wait should begin without a look: its last one slept, so this one probably sleeps too.
    pub(crate) enters_at_once: bool,
}

/// What a waiter waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wanted {
    Item,
    Room,
}

/// A user with a waiter for each of the wait queues.
pub(crate) trait Waits {
    /// The waiter, and its wait queue.
    fn waiter(&mut self, wanted: Wanted) -> (&mut Waiter, &WaitQueue);
}

/// A user that waits for one thing only.
pub(crate) struct Alone<'w> {
    pub(crate) waiter: &'w mut Waiter,
    pub(crate) wait_queue: &'w WaitQueue,
}

impl Waits for Alone<'_> {
    fn waiter(&mut self, _: Wanted) -> (&mut Waiter, &WaitQueue) {
        (self.waiter, self.wait_queue)
    }
}

/// The arguments of [`Waiter::poll`].
struct Attempt<'l, S, E> {
    wanted: Wanted,
    kind: WaitKind,
    waker: &'l Waker,
    /// Whether a newcomer may attempt although this number of older waiters are being served.
    spare: S,
    /// Whether not to attempt: see [`Waiter::poll`].
    is_vain: E,
}

impl Waiter {
    #[inline]
    fn has(&self, test: impl FnOnce(&Record) -> bool) -> bool {
        self.record.as_ref().is_some_and(test)
    }

    /// Whether it is in the wait queue.
    #[inline]
    pub(crate) fn is_taken(&self) -> bool {
        self.waits
    }

    /// Whether it may attempt before [`Waiter::poll`] is called: it is not in the wait queue, or was woken there.
    #[inline]
    pub(crate) fn may_attempt(&self) -> bool {
        self.may_attempt_unless(false)
    }

    /// The same, but not if it is in the wait queue and `must_wait`.
    #[inline]
    pub(crate) fn may_attempt_unless(&self, must_wait: bool) -> bool {
        !self.waits || !must_wait && !self.has(|own| own.state.is(State::WAITING))
    }

    /// Attempts, and waits in the wait queue while `attempt` returns `None`.
    ///
    /// `spare`: whether a newcomer may attempt although this number of older waiters are being served. `is_vain`: whether
    /// not to attempt: that of a newcomer, since it should enter first, or one behind a barrier, given the word from before
    /// the barrier, since it would certainly find nothing that was published before.
    #[inline(always)] // the wait of a task
    pub(crate) fn poll<C: DerefMut<Target = impl Waits>, R>(
        user: &mut C,
        wanted: Wanted,
        kind: WaitKind,
        waker: &Waker,
        spare: impl Fn(&C, usize) -> bool,
        is_vain: impl Fn(&C, Option<WaitWord>) -> bool,
        mut attempt: impl FnMut(&mut C) -> Option<R>,
    ) -> Poll<R> {
        let poll = Attempt {
            wanted,
            kind,
            waker,
            spare,
            is_vain,
        };
        let (waiter, wait_queue) = user.waiter(wanted);
        if !waiter.waits {
            poll.enter(user, &mut attempt)
        } else if waiter.is_woken(wait_queue, waker) {
            poll.use_wake_up(user, &mut attempt)
        } else {
            Poll::Pending
        }
    }

    /// Whether it was woken; if not, makes `waker` the one that will be called.
    fn is_woken(&self, wait_queue: &WaitQueue, waker: &Waker) -> bool {
        self.may_attempt() || self.has(|own| wait_queue.is_woken(own.key, waker))
    }

    /// Enters the wait queue, and returns its word, and how many waiters are being served: if none is, it must attempt
    /// again before it sleeps.
    #[inline(always)] // the wait of a task
    fn enter(&mut self, wait_queue: &WaitQueue, waker: Waker, gathers: bool) -> (WaitWord, usize) {
        let own = self.record.get_or_insert_with(|| wait_queue.new_record());
        let entered = wait_queue.enter(own.key, waker, gathers);
        self.waits = true;
        entered
    }

    /// Whether this is the first waiter of the wait queue.
    pub(crate) fn is_first(&self, wait_queue: &WaitQueue) -> bool {
        self.waits && self.has(|own| wait_queue.is_first(own.key))
    }

    /// Waits again at its old position, after it was woken in vain. Returns the word.
    fn wait_again(&self, wait_queue: &WaitQueue, waker: Waker) -> WaitWord {
        match &self.record {
            Some(own) => wait_queue.wait_again(own.key, waker),
            None => wait_queue.word(),
        }
    }

    /// Leaves the wait queue after it has used its wake-up, if it was there.
    #[inline]
    pub(crate) fn leave_served(&mut self, wait_queue: &WaitQueue) {
        if !self.leave_freely() {
            self.leave_woken(wait_queue);
        }
    }

    /// As [`Waiter::leave_served`], if that depends on nobody else; returns whether it has left.
    #[inline]
    pub(crate) fn leave_freely(&mut self) -> bool {
        if !self.waits {
            return true;
        }
        let leaves = self.has(|own| own.state.leave_freely());
        self.waits = !leaves;
        leaves
    }

    #[inline(never)]
    fn leave_woken(&mut self, wait_queue: &WaitQueue) {
        if self.has(|own| own.state.leave()) {
            self.waits = false;
        } else {
            self.give_up(wait_queue, true);
        }
    }

    /// Leaves the wait queue, and passes an unused wake-up on.
    #[inline]
    pub(crate) fn leave(&mut self, wait_queue: &WaitQueue) {
        if self.waits {
            self.give_up(wait_queue, false);
        }
    }

    #[cold]
    #[inline(never)]
    fn give_up(&mut self, wait_queue: &WaitQueue, spent: bool) {
        self.waits = false;
        if let Some(own) = &self.record {
            wait_queue.leave(own.key, spent);
        }
    }

    /// As [`Waiter::leave`], for good: it will not wait again.
    pub(crate) fn release(&mut self, wait_queue: &WaitQueue) {
        self.leave(wait_queue);
        if let Some(own) = self.record.take() {
            wait_queue.release(&own);
        }
    }
}

impl<S, E> Attempt<'_, S, E> {
    #[inline(always)] // the wait of a task
    fn enter<C: DerefMut<Target = impl Waits>, R>(
        &self,
        user: &mut C,
        attempt: &mut impl FnMut(&mut C) -> Option<R>,
    ) -> Poll<R>
    where
        S: Fn(&C, usize) -> bool,
        E: Fn(&C, Option<WaitWord>) -> bool,
    {
        if !(self.is_vain)(user, None) && !user.waiter(self.wanted).1.word().is_serving() {
            if let Some(result) = attempt(user) {
                return Poll::Ready(result);
            }
        }
        let (waker, gathers) = (self.waker.clone(), self.kind == WaitKind::Several);
        let (waiter, wait_queue) = user.waiter(self.wanted);
        let (word, serving) = waiter.enter(wait_queue, waker, gathers);
        if word.is_serving() && !(self.spare)(user, serving) {
            user.waiter(self.wanted).1.enter_behind();
            return Poll::Pending;
        }
        self.attempt_again(user, word, attempt)
    }

    #[inline(never)]
    fn use_wake_up<C: DerefMut<Target = impl Waits>, R>(
        &self,
        user: &mut C,
        attempt: &mut impl FnMut(&mut C) -> Option<R>,
    ) -> Poll<R>
    where
        E: Fn(&C, Option<WaitWord>) -> bool,
    {
        if let Some(result) = attempt(user) {
            let (waiter, wait_queue) = user.waiter(self.wanted);
            waiter.leave_served(wait_queue);
            return Poll::Ready(result);
        }
        let waker = self.waker.clone();
        let (waiter, wait_queue) = user.waiter(self.wanted);
        let word = waiter.wait_again(wait_queue, waker);
        planted!("waiter.looks-once", return Poll::Pending);
        self.attempt_again(user, word, attempt)
    }

    /// Attempts behind the barrier of the wait queue, before which the word was `word`, and leaves it if that succeeds.
    #[inline]
    fn attempt_again<C: DerefMut<Target = impl Waits>, R>(
        &self,
        user: &mut C,
        word: WaitWord,
        attempt: &mut impl FnMut(&mut C) -> Option<R>,
    ) -> Poll<R>
    where
        E: Fn(&C, Option<WaitWord>) -> bool,
    {
        if (self.is_vain)(user, Some(word)) {
            return Poll::Pending;
        }
        self.attempt_and_leave(user, attempt)
    }

    #[inline(never)]
    fn attempt_and_leave<C: DerefMut<Target = impl Waits>, R>(
        &self,
        user: &mut C,
        attempt: &mut impl FnMut(&mut C) -> Option<R>,
    ) -> Poll<R> {
        let Some(result) = attempt(user) else {
            return Poll::Pending;
        };
        let (waiter, wait_queue) = user.waiter(self.wanted);
        waiter.leave(wait_queue);
        Poll::Ready(result)
    }
}
