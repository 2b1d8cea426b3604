//! A waiter: an entry of a wait queue.

use super::park::{spin, SpinStart};
use super::record::{Record, State};
use super::wait_queue::WaitQueue;
use super::waiter_list::WaiterList;
use super::word::WaitWord;
use crate::sync::planted;
use std::task::{Poll, Waker};

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
    spin_start: SpinStart,
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

    /// Whether it may attempt before [`Waits::poll`] is called: it is not in the wait queue, or was woken there and not
    /// `must_wait`.
    #[inline]
    pub(crate) fn may_attempt_unless(&self, must_wait: bool) -> bool {
        !self.waits || !must_wait && !self.has(|own| own.state.is(State::WAITING))
    }

    /// Whether it was woken; if not, makes `waker` the one that will be called.
    fn is_woken(&self, wait_queue: &WaitQueue, waker: &Waker) -> bool {
        self.may_attempt_unless(false) || self.has(|own| wait_queue.is_woken(own.key, waker))
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

/// A user of a waiter, and what it attempts: the one loop of threads and tasks that wait.
pub(crate) trait Waits {
    /// What a successful attempt returns.
    type Found;

    /// The waiter, and its wait queue.
    fn waiter(&mut self) -> (&mut Waiter, &WaitQueue);

    /// Takes what is waited for; `None`: it is to be waited for.
    fn attempt(&mut self) -> Option<Self::Found>;

    /// Whether it keeps what it has obtained so far while it is the first of the wait queue.
    fn gathers(&self) -> bool {
        false
    }

    /// Whether a newcomer may attempt although this number of older waiters are being served.
    fn has_spare(&self, served: usize) -> bool;

    /// Whether a newcomer is to enter before it attempts, since older waiters are being served.
    #[inline]
    fn gives_way(&mut self) -> bool {
        self.waiter().1.word().is_serving()
    }

    /// Whether an attempt may find something, by a look that changes nothing.
    fn sees(&self) -> bool {
        true
    }

    /// Whether not to attempt: as a newcomer, since it should enter first, or behind a barrier, given the word from before
    /// the barrier, since it would certainly find nothing that was published before.
    #[inline]
    fn is_vain(&self, _word: Option<WaitWord>) -> bool {
        false
    }

    /// Attempts for a moment whenever it sees something, unless another waiter is being served.
    fn spin(&mut self) -> Option<Self::Found> {
        let spin_start = self.waiter().0.spin_start;
        let may_try = |wait: &mut Self| !wait.waiter().1.word().is_serving();
        let attempt_if_seen = |wait: &mut Self| wait.sees().then(|| wait.attempt()).flatten();
        let (found, round) = spin(self, spin_start, may_try, attempt_if_seen);
        if let Some(round) = round {
            let more = found.is_some().then(|| self.sees());
            self.waiter().0.spin_start.learn(round, more);
        }
        found
    }

    /// Attempts, and waits in the wait queue while that finds nothing.
    #[inline(always)] // the wait of a task
    fn poll(&mut self, waker: &Waker) -> Poll<Self::Found> {
        let (waiter, wait_queue) = self.waiter();
        if !waiter.waits {
            self.enter(waker)
        } else if waiter.is_woken(wait_queue, waker) {
            self.use_wake_up(waker)
        } else {
            Poll::Pending
        }
    }

    #[inline(always)] // the wait of a task
    fn enter(&mut self, waker: &Waker) -> Poll<Self::Found> {
        if !self.is_vain(None) && !self.gives_way() {
            if let Some(found) = self.attempt() {
                return Poll::Ready(found);
            }
        }
        let (waker, gathers) = (waker.clone(), self.gathers());
        let (waiter, wait_queue) = self.waiter();
        let (word, serving) = waiter.enter(wait_queue, waker, gathers);
        if word.is_serving() && !self.has_spare(serving) {
            self.waiter().1.give_way(WaiterList::enter_behind);
            return Poll::Pending;
        }
        self.attempt_again(word)
    }

    #[inline(never)]
    fn use_wake_up(&mut self, waker: &Waker) -> Poll<Self::Found> {
        if let Some(found) = self.attempt() {
            let (waiter, wait_queue) = self.waiter();
            waiter.leave_served(wait_queue);
            return Poll::Ready(found);
        }
        let waker = waker.clone();
        let (waiter, wait_queue) = self.waiter();
        let word = waiter.wait_again(wait_queue, waker);
        planted!("waiter.looks-once", return Poll::Pending);
        self.attempt_again(word)
    }

    /// Attempts behind the barrier of the wait queue, before which the word was `word`, and leaves it if that succeeds.
    #[inline]
    fn attempt_again(&mut self, word: WaitWord) -> Poll<Self::Found> {
        if self.is_vain(Some(word)) {
            return Poll::Pending;
        }
        self.attempt_and_leave()
    }

    #[inline(never)]
    fn attempt_and_leave(&mut self) -> Poll<Self::Found> {
        let Some(found) = self.attempt() else {
            return Poll::Pending;
        };
        let (waiter, wait_queue) = self.waiter();
        waiter.leave(wait_queue);
        Poll::Ready(found)
    }
}
