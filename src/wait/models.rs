//! Loom models of waiting.
//!
//! Loom reports a deadlock where a wake-up is lost. The barriers are fences here; that a heavy barrier
//! may stand for a full one on the other side is argued in `sync/barrier.rs`, not modelled.

use super::DueTimer;
use super::{block, WaitQueue, WaitWord, Waiter, Waits, WakeTarget};
use crate::core::mode::Ready;
use crate::sync::model::model;
use crate::sync::{AtomicBool, AtomicUsize, Ordering};
use crate::time::{Time, Wait};
use loom::thread;
use std::sync::Arc;
use std::task::{Poll, Wake, Waker};

/// Waits on this thread, without a deadline.
fn block_forever<R>(poll: impl FnMut(&WakeTarget<'_>) -> Poll<R>) -> Option<R> {
    block(Wait::Forever, &Time::new(None), poll)
}

/// A wait by `attempt`, in whose stead nobody may attempt.
pub(super) struct Alone<'w, A> {
    pub(super) waiter: &'w mut Waiter,
    pub(super) wait_queue: &'w WaitQueue,
    pub(super) gathers: bool,
    pub(super) attempt: A,
}

impl<A: FnMut(&Waiter) -> Option<()>> Waits for Alone<'_, A> {
    type Found = ();

    fn waiter(&mut self) -> (&mut Waiter, &WaitQueue) {
        (self.waiter, self.wait_queue)
    }

    fn attempt(&mut self) -> Option<()> {
        (self.attempt)(self.waiter)
    }

    fn gathers(&self) -> bool {
        self.gathers
    }

    fn has_spare(&self, _: usize) -> bool {
        false
    }
}

/// A number of things, and the wait queue for them.
struct Things {
    wait_queue: WaitQueue,
    count: AtomicUsize,
}

impl Things {
    fn new(count: usize) -> Arc<Self> {
        Self::with(count, false)
    }

    /// `may_gather`: whether [`Things::wait_gathering`] is called.
    fn with(count: usize, may_gather: bool) -> Arc<Self> {
        Arc::new(Self {
            wait_queue: WaitQueue::new(WaitWord::default(), may_gather),
            count: AtomicUsize::new(count),
        })
    }

    fn publish(&self, count: usize) {
        // ORDERING: Relaxed, as all in this file; the barriers of the wait queue must suffice.
        self.count.fetch_add(count, Ordering::Relaxed);
        self.wait_queue.notify(count);
    }

    fn take(&self) -> Option<()> {
        let mut count = self.count.load(Ordering::Relaxed);
        while count > 0 {
            let (now, less) = (count, count - 1);
            match self
                .count
                .compare_exchange(now, less, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return Some(()),
                Err(now) => count = now,
            }
        }
        None
    }

    /// Waits for one thing on this thread.
    fn wait(&self) {
        self.wait_as(&mut Waiter::default());
    }

    fn wait_as(&self, waiter: &mut Waiter) {
        let poll = |wake_target: &WakeTarget<'_>| self.poll(waiter, wake_target.waker);
        assert!(block_forever(poll).is_some());
        assert!(!waiter.is_taken());
    }

    /// Waits for one thing on this thread as a waiter that takes nothing unless it is the first.
    fn wait_gathering(&self) {
        let wait_queue = &self.wait_queue;
        let mut wait = Alone {
            waiter: &mut Waiter::default(),
            wait_queue,
            gathers: true,
            attempt: |waiter: &Waiter| waiter.is_first(wait_queue).then(|| self.take()).flatten(),
        };
        let poll = |wake_target: &WakeTarget<'_>| wait.poll(wake_target.waker);
        assert!(block_forever(poll).is_some());
    }

    fn poll(&self, waiter: &mut Waiter, waker: &Waker) -> Poll<()> {
        poll(waiter, &self.wait_queue, waker, || self.take())
    }
}

fn poll(
    waiter: &mut Waiter,
    wait_queue: &WaitQueue,
    waker: &Waker,
    attempt: impl Fn() -> Option<()>,
) -> Poll<()> {
    let mut wait = Alone {
        waiter,
        wait_queue,
        gathers: false,
        attempt: |_: &Waiter| attempt(),
    };
    wait.poll(waker)
}

/// A waker that only records its call.
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        // ORDERING: Relaxed, as above.
        self.0.store(true, Ordering::Relaxed);
    }
}

fn flag() -> Waker {
    Waker::from(Arc::new(Flag(AtomicBool::new(false))))
}

#[test]
fn a_waiter_sees_what_is_published() {
    model(|| {
        let things = Things::new(0);
        let publisher = thread::spawn({
            let things = Arc::clone(&things);
            move || things.publish(1)
        });
        things.wait();
        publisher.join().unwrap();
    });
}

#[test]
fn two_waiters_and_two_publishers() {
    model(|| {
        let things = Things::new(0);
        let others = [1, 2].map(|_| {
            let things = Arc::clone(&things);
            thread::spawn(move || things.wait())
        });
        things.publish(1);
        things.publish(1);
        for other in others {
            other.join().unwrap();
        }
    });
}

#[test]
fn a_batch_wakes_as_many_as_it_has() {
    model(|| {
        let things = Things::new(0);
        let other = thread::spawn({
            let things = Arc::clone(&things);
            move || things.wait()
        });
        let publisher = thread::spawn({
            let things = Arc::clone(&things);
            move || things.publish(2)
        });
        things.wait();
        publisher.join().unwrap();
        other.join().unwrap();
    });
}

#[test]
fn a_waiter_that_gives_up_passes_its_wake_up_on() {
    model(|| {
        let things = Things::new(0);
        let other = thread::spawn({
            let things = Arc::clone(&things);
            move || things.wait()
        });
        let publisher = thread::spawn({
            let things = Arc::clone(&things);
            move || things.publish(1)
        });
        let mut waiter = Waiter::default();
        if things.poll(&mut waiter, &flag()).is_ready() {
            things.publish(1);
        }
        waiter.leave(&things.wait_queue);
        publisher.join().unwrap();
        other.join().unwrap();
    });
}

#[test]
fn a_waiter_woken_in_vain_waits_again() {
    model(|| {
        let things = Things::new(0);
        let consumer = thread::spawn({
            let things = Arc::clone(&things);
            move || {
                if things.take().is_some() {
                    things.publish(1);
                }
            }
        });
        let publisher = thread::spawn({
            let things = Arc::clone(&things);
            move || things.publish(1)
        });
        things.wait();
        publisher.join().unwrap();
        consumer.join().unwrap();
    });
}

#[test]
fn a_newcomer_behind_a_served_waiter_is_not_forgotten() {
    model(|| {
        let things = Things::new(0);
        let (mut first, waker) = (Waiter::default(), flag());
        // Woken in vain once: the next time it is served.
        assert!(things.poll(&mut first, &waker).is_pending());
        things.publish(1);
        assert!(things.take().is_some());
        assert!(things.poll(&mut first, &waker).is_pending());
        things.publish(2);
        assert!(things.wait_queue.word().is_serving());
        let newcomer = thread::spawn({
            let things = Arc::clone(&things);
            move || things.wait()
        });
        assert!(things.poll(&mut first, &waker).is_ready());
        newcomer.join().unwrap();
    });
}

/// The served waiter never reacts.
#[test]
fn a_newcomer_behind_a_service_that_ends_is_not_forgotten() {
    model(|| {
        let things = Things::new(0);
        let (mut first, waker) = (Waiter::default(), flag());
        assert!(things.poll(&mut first, &waker).is_pending());
        things.publish(1);
        assert!(things.take().is_some());
        assert!(things.poll(&mut first, &waker).is_pending());
        things.publish(1);
        let newcomer = thread::spawn({
            let things = Arc::clone(&things);
            move || things.wait()
        });
        for _ in 0..2 {
            things.wait_queue.give_way_in_vain();
        }
        assert!(!things.wait_queue.word().is_serving());
        newcomer.join().unwrap();
    });
}

#[test]
fn a_gatherer_behind_a_woken_waiter_is_told_when_that_leaves() {
    model(|| {
        let things = Things::with(0, true);
        let (mut first, waker) = (Waiter::default(), flag());
        assert!(things.poll(&mut first, &waker).is_pending());
        things.publish(2);
        let gatherer = thread::spawn({
            let things = Arc::clone(&things);
            move || things.wait_gathering()
        });
        assert!(things.poll(&mut first, &waker).is_ready());
        gatherer.join().unwrap();
    });
}

#[test]
fn a_waiter_comes_back_with_its_record() {
    model(|| {
        let things = Things::new(0);
        let other = thread::spawn({
            let things = Arc::clone(&things);
            move || {
                let mut waiter = Waiter::default();
                things.wait_as(&mut waiter);
                things.wait_as(&mut waiter);
                waiter.release(&things.wait_queue);
            }
        });
        things.publish(1);
        things.publish(1);
        other.join().unwrap();
        assert_eq!(things.wait_queue.word().waiting(), 0);
    });
}

/// The wait queue of an open queue.
fn open_queue() -> Ready {
    let wait_queue = Ready::wait_queue(WaitWord::default());
    Ready::new(&DueTimer::new(Time::new(None), wait_queue, None))
}

#[test]
fn a_push_that_is_not_refused_is_seen_after_the_close() {
    model(|| {
        let ready = open_queue();
        let staged = Arc::new(AtomicBool::new(false));
        let pusher = thread::spawn({
            let (ready, staged) = (ready.clone(), Arc::clone(&staged));
            move || {
                // ORDERING: Relaxed; `fenced_word` has the barrier.
                staged.store(true, Ordering::Relaxed);
                !ready.fenced_word().is_closed()
            }
        });
        let popper = thread::spawn({
            let ready = ready.clone();
            move || {
                ready.word().is_closed().then(|| {
                    ready.seal();
                    // ORDERING: Relaxed; `seal` has the barrier.
                    staged.load(Ordering::Relaxed)
                })
            }
        });
        // On this thread, which runs first: loom does not explore a write whose thread has loaded the word before it,
        // ahead of another thread's load that came first.
        assert!(ready.close());
        let (admitted, seen) = (pusher.join().unwrap(), popper.join().unwrap());
        assert!(seen != Some(false) || !admitted);
    });
}

#[test]
fn a_push_that_wakes_and_is_not_refused_is_seen_after_the_close() {
    model(|| {
        let (ready, count) = (open_queue(), Arc::new(AtomicUsize::new(0)));
        let (mut waiter, waker) = (Waiter::default(), flag());
        let look = || (count.load(Ordering::Relaxed) > 0).then_some(());
        assert!(poll(&mut waiter, &ready, &waker, look).is_pending());
        let pusher = thread::spawn({
            let (ready, count) = (ready.clone(), Arc::clone(&count));
            move || {
                // ORDERING: Relaxed; the lock serves as the barrier.
                count.store(1, Ordering::Relaxed);
                !ready.notify_slowly(1).is_closed()
            }
        });
        let popper = thread::spawn({
            let ready = ready.clone();
            move || {
                ready.word().is_closed().then(|| {
                    ready.seal();
                    // ORDERING: Relaxed; `seal` has the barrier.
                    count.load(Ordering::Relaxed) > 0
                })
            }
        });
        assert!(ready.close());
        let (admitted, seen) = (pusher.join().unwrap(), popper.join().unwrap());
        assert!(seen != Some(false) || !admitted);
    });
}

#[test]
fn a_close_wakes() {
    model(|| {
        let ready = open_queue();
        let closer = thread::spawn({
            let ready = ready.clone();
            move || ready.close()
        });
        let mut waiter = Waiter::default();
        let poll = |wake_target: &WakeTarget<'_>| {
            let attempt = || ready.word().is_closed().then_some(());
            poll(&mut waiter, &ready, wake_target.waker, attempt)
        };
        assert!(block_forever(poll).is_some());
        assert!(closer.join().unwrap());
    });
}
