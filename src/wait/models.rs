//! Loom models of waiting.
//!
//! Loom says "deadlock" where a wake-up is lost. The barriers are fences here; that a heavy barrier
//! may stand for a full one on the other side is argued in `sync/barrier.rs`, not modelled.

use super::{block, Deadline, Kind, Line, Place, Waiter, Wanted, Word};
use crate::sync::model::model;
use crate::sync::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;
use std::sync::Arc;
use std::task::{Poll, Wake, Waker};

/// A number of things, and those who wait for one.
struct Things {
    line: Line,
    count: AtomicUsize,
}

impl Things {
    fn new(count: usize) -> Arc<Self> {
        Arc::new(Self {
            line: Line::new(Word::standing(false, false)),
            count: AtomicUsize::new(count),
        })
    }

    fn publish(&self, count: usize) {
        // ORDERING: Relaxed, as all in this file; the barriers of the line must do.
        self.count.fetch_add(count, Ordering::Relaxed);
        self.line.published(count);
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

    /// Waits for one on this thread.
    fn wait(&self) {
        let mut place = Place::default();
        let poll = |waiter: &Waiter<'_>| self.poll(&mut place, waiter.waker);
        assert!(block(Deadline::NEVER, poll).is_some());
        assert!(!place.is_taken());
    }

    fn poll(&self, mut place: &mut Place, waker: &Waker) -> Poll<()> {
        let attempt = |_: &mut _| self.take();
        Place::poll(
            &mut place,
            Wanted::Item,
            &self.line,
            Kind::One,
            waker,
            |_| false,
            attempt,
        )
    }
}

/// A waker that only remembers.
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
fn who_gives_up_passes_the_wake_up_on() {
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
        let mut place = Place::default();
        if things.poll(&mut place, &flag()).is_ready() {
            things.publish(1);
        }
        place.leave(&things.line);
        publisher.join().unwrap();
        other.join().unwrap();
    });
}

#[test]
fn who_was_woken_in_vain_waits_again() {
    model(|| {
        let things = Things::new(0);
        let thief = thread::spawn({
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
        thief.join().unwrap();
    });
}

#[test]
fn a_newcomer_behind_a_served_waiter_is_not_forgotten() {
    model(|| {
        let things = Things::new(0);
        let (mut first, waker) = (Place::default(), flag());
        // Woken in vain once: the next time it is served.
        assert!(things.poll(&mut first, &waker).is_pending());
        things.publish(1);
        assert!(things.take().is_some());
        assert!(things.poll(&mut first, &waker).is_pending());
        things.publish(2);
        assert!(things.line.word().is_serving());
        let newcomer = thread::spawn({
            let things = Arc::clone(&things);
            move || things.wait()
        });
        assert!(things.poll(&mut first, &waker).is_ready());
        newcomer.join().unwrap();
    });
}

#[test]
fn a_push_that_is_not_refused_is_seen_after_the_close() {
    model(|| {
        let line = Arc::new(Line::new(Word::standing(false, false)));
        let staged = Arc::new(AtomicBool::new(false));
        let pusher = thread::spawn({
            let (line, staged) = (Arc::clone(&line), Arc::clone(&staged));
            move || {
                // ORDERING: Relaxed; `look` has the barrier.
                staged.store(true, Ordering::Relaxed);
                !line.look().is_closed()
            }
        });
        let popper = thread::spawn({
            let line = Arc::clone(&line);
            move || {
                line.word().is_closed().then(|| {
                    line.seal();
                    // ORDERING: Relaxed; `seal` has the barrier.
                    staged.load(Ordering::Relaxed)
                })
            }
        });
        // On this thread, which runs first: loom explores no write that its thread has loaded the word for,
        // ahead of another thread's load that it has seen first.
        assert!(line.close());
        let (admitted, seen) = (pusher.join().unwrap(), popper.join().unwrap());
        assert!(seen != Some(false) || !admitted);
    });
}

#[test]
fn a_close_wakes() {
    model(|| {
        let line = Arc::new(Line::new(Word::standing(false, false)));
        let closer = thread::spawn({
            let line = Arc::clone(&line);
            move || line.close()
        });
        let mut place = &mut Place::default();
        let poll = |waiter: &Waiter<'_>| {
            let attempt = |_: &mut _| line.word().is_closed().then_some(());
            Place::poll(
                &mut place,
                Wanted::Item,
                &line,
                Kind::One,
                waiter.waker,
                |_| false,
                attempt,
            )
        };
        assert!(block(Deadline::NEVER, poll).is_some());
        assert!(closer.join().unwrap());
    });
}
