//! A list of waiters, and the word that shows publishers whether there are any.
//!
//! # Armed
//!
//! A heavy barrier takes microseconds and interrupts every processor that runs the process, too much for each wait. So the
//! first waiter *arms* the wait queue: it sets `ARMED`, and then passes the heavy barrier. A publisher that sees `ARMED` passes
//! a full fence and reads the word again, so later waiters need no more than a full fence either. A publisher that did not see
//! it has read the word before the heavy barrier ended, so what it published before is visible behind the barrier.

use super::record::{Record, WaiterKey};
use super::waiter_list::WaiterList;
use super::wake::{call, Wakers};
use super::word::WaitWord;
use crate::sync::{barrier, lock, swallow_panic, try_lock, weak, AtomicUsize, Mutex, Ordering};
use std::mem;
use std::task::Waker;

/// After this number of notifications without a waiter, a publisher disarms the wait queue.
const IDLE: usize = 128;

/// The queue in which threads and tasks wait for what others publish.
///
/// The word is beside the lock, since whoever has that writes it, and behind the list, so that it shares its cache line with
/// nothing else that is written while there are no waiters.
#[repr(C)]
pub(crate) struct WaitQueue {
    list: Mutex<WaiterList>,
    /// Notifications of the armed wait queue since the last waiter, approximately.
    idle: AtomicUsize,
    word: AtomicUsize,
}

/// Methods for publishers.
impl WaitQueue {
    /// `flags`: those of the owner. `may_gather`: whether waiters may come that keep what they have obtained so far.
    pub(crate) fn new(flags: WaitWord, may_gather: bool) -> Self {
        barrier::prepare();
        let armed = if barrier::is_asymmetric() {
            0
        } else {
            WaitWord::ARMED
        };
        Self {
            list: Mutex::new(WaiterList::new(may_gather)),
            idle: AtomicUsize::new(0),
            word: AtomicUsize::new(flags.0 | armed),
        }
    }

    #[inline]
    pub(crate) fn word(&self) -> WaitWord {
        // ORDERING: Relaxed; a hint, or a load behind a barrier.
        WaitWord(self.word.load(Ordering::Relaxed))
    }

    /// The word, loaded after what this thread stored before. Pairs with the barriers of [`WaitQueue::enter`],
    /// [`WaitQueue::wait_again`] and [`WaitQueue::announce`].
    ///
    /// If the wait queue is not armed, the other side's barrier is heavy and comes later.
    #[inline]
    pub(crate) fn fenced_word(&self) -> WaitWord {
        barrier::compiler();
        let word = self.word();
        if !word.is_armed() {
            return word;
        }
        barrier::full("waitqueue.fence");
        self.word()
    }

    /// Whether what was published just now requires no notification.
    #[inline]
    pub(crate) fn needs_no_notify(&self) -> bool {
        barrier::compiler();
        self.word().needs_no_notify()
    }

    /// Wakes waiters for `count` published things.
    #[inline]
    pub(crate) fn notify(&self, count: usize) {
        if count > 0 && !self.needs_no_notify() {
            self.notify_published(count);
        }
    }

    #[inline(never)]
    fn notify_published(&self, count: usize) {
        self.notify_slowly(count);
    }

    /// Wakes waiters for `count` published things, and returns the word as it is then.
    ///
    /// Where there is a waiter, the lock serves as the fence: a waiter that enters later acquires the lock after this thread,
    /// and so finds what it published; one that entered before is in the list. The same holds for a close, which sets its flag
    /// under the lock.
    #[inline(always)] // the push to a waiting task
    pub(crate) fn notify_slowly(&self, count: usize) -> WaitWord {
        if count == 0 || self.word().waiting() == 0 {
            let word = self.fenced_word();
            if word.is_idle() {
                self.count_idle();
            }
            if count == 0 || word.waiting() == 0 {
                return word;
            }
        }
        self.wake(count);
        self.word()
    }

    /// Disarms the wait queue when it has been idle for long.
    ///
    /// Not if the lock is held, since a publisher that wakes nobody must not block: the next one
    /// counts again, and an armed wait queue only costs publishers a fence.
    #[cold]
    fn count_idle(&self) {
        // ORDERING: Relaxed, both; an approximate count suffices.
        let idle = self.idle.load(Ordering::Relaxed) + 1;
        self.idle.store(idle, Ordering::Relaxed);
        if idle >= IDLE && barrier::is_asymmetric() {
            if let Some(list) = try_lock(&self.list) {
                if self.word().is_idle() {
                    self.write(&list, self.word().flags() & !WaitWord::ARMED);
                }
            }
        }
    }

    /// Wakes the first `count` waiters that are not woken yet. If a waker panics, the next waiter is woken too.
    #[inline]
    pub(crate) fn wake(&self, count: usize) {
        if count == 1 {
            self.wake_one();
        } else {
            self.wake_many(count);
        }
    }

    #[inline(always)] // the wake-up of one waiter
    fn wake_one(&self) {
        let mut list = lock(&self.list);
        let waker = list.wake_next();
        self.update(&list);
        drop(list);
        if !waker.map_or(true, call) {
            self.wake_many(1);
        }
    }

    #[inline(never)]
    fn wake_many(&self, count: usize) {
        self.wake_by(count, WaiterList::wake_next);
    }

    /// Wakes all current waiters, each once: not again if it waits again meanwhile.
    pub(crate) fn wake_all(&self) {
        let until = lock(&self.list).arrivals;
        let mut after = 0;
        self.wake_by(usize::MAX, |list| {
            let (waker, arrival) = list.wake_between(after, until)?;
            after = arrival;
            Some(waker)
        });
    }

    /// Wakes up to `count` waiters that `next` finds, and others in place of those whose wakers panic.
    fn wake_by(&self, mut count: usize, mut next: impl FnMut(&mut WaiterList) -> Option<Waker>) {
        let mut wakers = Wakers::default();
        while count > 0 {
            let mut list = lock(&self.list);
            wakers.fill(count, || next(&mut list));
            self.update(&list);
            drop(list);
            if wakers.len == 0 {
                return;
            }
            count -= wakers.len;
            count += wakers.wake();
        }
    }

    /// Wakes all waiters, if there are any, after something that they depend on has changed.
    pub(crate) fn wake_all_waiting(&self) {
        if self.fenced_word().waiting() > 0 {
            self.wake_all();
        }
    }
}

/// The word, which is written under the lock.
impl WaitQueue {
    /// Updates the word from the list.
    #[inline]
    fn update(&self, list: &WaiterList) {
        self.write(list, self.word().flags());
    }

    /// Sets a flag of the owner, unless it is set.
    pub(crate) fn set(&self, flag: usize) {
        if !self.word().has(flag) {
            let list = lock(&self.list);
            self.write(&list, self.word().flags() | flag);
        }
    }

    /// Sets a flag of the owner, unless it is set: returns false then. What other threads did before they could see it is
    /// visible afterwards; then the flags `done` are set.
    ///
    /// Under the lock, as in `arm`, so that a thread that finds the flag set knows that the heavy barrier is done.
    pub(crate) fn announce(&self, flag: usize, done: usize, barrier: &'static str) -> bool {
        let list = lock(&self.list);
        if self.word().has(flag) {
            return false;
        }
        let flags = self.word().flags() | flag;
        // In two writes: a fence is no step of a model, so it needs another one before the barrier, where a reader sees the flag
        // and passes its own barrier first.
        self.write(&list, flags);
        self.write(&list, flags | WaitWord::ARMED);
        barrier::heavy_against_compiler(barrier);
        self.write(&list, flags | WaitWord::ARMED | done);
        true
    }

    #[inline]
    fn write(&self, list: &WaiterList, flags: usize) -> WaitWord {
        let word = list.shown.with(WaitWord(flags));
        // ORDERING: Release; pairs with the barrier of `waitqueue.seal-early`: a popper that sees `CLOSED` sees what was
        // published by those who had the lock before. Otherwise Relaxed: written under the lock, and a load without the
        // lock has a barrier that pairs with the one in `arm`.
        self.word.store(word.0, weak!("waitqueue.word", Release));
        word
    }
}

/// Methods for waiters.
impl WaitQueue {
    /// A record for a new waiter.
    #[cold]
    pub(super) fn new_record(&self) -> Record {
        lock(&self.list).new_record()
    }

    /// Adds a waiter, and returns the word, and how many are being served: if none is, it must attempt again before it
    /// sleeps.
    #[inline(always)] // the wait of a task
    pub(super) fn enter(&self, key: WaiterKey, waker: Waker, gathers: bool) -> (WaitWord, usize) {
        let mut list = lock(&self.list);
        let serving = list.enter(key, waker, gathers);
        (self.arm(&list), serving)
    }

    /// Arms the wait queue, and passes a barrier against publishers: what they published before they
    /// could see the waiter is visible afterwards. Returns the word.
    ///
    /// Under the lock, so that a thread that finds the wait queue armed knows that the heavy barrier is done.
    #[inline]
    fn arm(&self, list: &WaiterList) -> WaitWord {
        // ORDERING: Relaxed; an approximate count suffices.
        self.idle.store(0, Ordering::Relaxed);
        let before = self.word();
        let word = self.write(list, before.flags() | WaitWord::ARMED);
        if before.is_armed() {
            barrier::full("waitqueue.arm");
        } else {
            pass_first_barrier();
        }
        word
    }

    /// Whether a waiter was woken; if not, makes `waker` the one that will be called.
    pub(super) fn is_woken(&self, key: WaiterKey, waker: &Waker) -> bool {
        let mut list = lock(&self.list);
        match list.waker(key) {
            None => return true,
            Some(own) if own.will_wake(waker) => return false,
            Some(_) => drop(list),
        }
        let mut waker = Some(waker.clone());
        list = lock(&self.list);
        let own = list.waker(key);
        let woken = own.is_none();
        if !woken {
            mem::swap(own, &mut waker);
        }
        drop(list);
        swallow_panic(|| drop(waker));
        woken
    }

    /// Lets a waiter that was woken in vain wait again, at its old position. It must attempt once more. Returns the word.
    pub(super) fn wait_again(&self, key: WaiterKey, waker: Waker) -> WaitWord {
        let mut list = lock(&self.list);
        list.wait_again(key, waker);
        self.arm(&list)
    }

    /// Releases the record of a waiter that does not wait.
    pub(super) fn release(&self, record: &Record) {
        lock(&self.list).release(record.key);
    }

    /// Removes a waiter. `spent`: it has used its wake-up.
    pub(super) fn leave(&self, key: WaiterKey, spent: bool) {
        let mut list = lock(&self.list);
        let (waker, to_wake) = list.leave(key, spent);
        self.update(&list);
        drop(list);
        self.wake(to_wake);
        swallow_panic(|| drop(waker));
    }

    /// Records that the caller has given way to the waiters that are being served, in vain: none of them has reacted.
    pub(crate) fn give_way_in_vain(&self) {
        self.give_way(WaiterList::give_way_in_vain);
    }

    /// Records that somebody gives way to the waiters that are being served, and wakes those that they held back.
    #[cold]
    pub(super) fn give_way(&self, record: impl FnOnce(&mut WaiterList) -> usize) {
        let mut list = lock(&self.list);
        let to_wake = record(&mut list);
        self.update(&list);
        drop(list);
        self.wake(to_wake);
    }

    /// Whether a waiter is the oldest.
    pub(super) fn is_first(&self, key: WaiterKey) -> bool {
        lock(&self.list).is_first(key)
    }
}

#[cold]
#[inline(never)]
fn pass_first_barrier() {
    barrier::heavy_against_compiler("waitqueue.arm-first");
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{barrier, lock, WaitQueue, WaitWord, Waker, IDLE};
    use std::sync::Arc;
    use std::task::Wake;

    struct NoopWaker;

    impl Wake for NoopWaker {
        fn wake(self: Arc<Self>) {}
    }

    /// A wait queue that was armed by a waiter that has left.
    fn armed() -> WaitQueue {
        let wait_queue = WaitQueue::new(WaitWord::default(), false);
        let record = wait_queue.new_record();
        wait_queue.enter(record.key, Waker::from(Arc::new(NoopWaker)), false);
        wait_queue.leave(record.key, false);
        assert!(wait_queue.word().is_armed());
        wait_queue
    }

    #[test]
    fn a_waiter_that_left_without_the_lock_is_passed() {
        let wait_queue = WaitQueue::new(WaitWord::default(), false);
        let [first, second] = [(); 2].map(|()| wait_queue.new_record());
        for record in [&first, &second] {
            wait_queue.enter(record.key, Waker::from(Arc::new(NoopWaker)), false);
        }
        wait_queue.wake(1);
        assert!(wait_queue.is_first(first.key));
        assert!(first.state.leave() && !second.state.leave());
        assert!(wait_queue.is_first(second.key));
        wait_queue.leave(second.key, false);
        for record in [first, second] {
            wait_queue.release(&record);
        }
        assert_eq!(wait_queue.word().waiting(), 0);
    }

    #[test]
    fn notify_without_waiters_does_not_lock() {
        let wait_queue = armed();
        let list = lock(&wait_queue.list);
        (0..2 * IDLE).for_each(|_| wait_queue.notify(1)); // would wait for this thread
        wait_queue.wake_all_waiting();
        assert!(wait_queue.word().is_armed());
        drop(list);
        wait_queue.notify(1);
        assert_eq!(wait_queue.word().is_armed(), !barrier::is_asymmetric());
    }
}
