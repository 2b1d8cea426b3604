//! What workers show of themselves, and how often they read the clock for it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::{Duration, Instant};

use crate::common::failing::{clocked, SECOND};
use crate::common::{assert_at_rest, ends};
use requeue::{Backoff, Clock, ManualClock, Queue, WorkerState, Workers};

/// A clock that counts how often it is read, and panics once when it is told to.
#[derive(Default)]
struct Watched {
    clock: ManualClock,
    readings: AtomicUsize,
    fails: AtomicBool,
}

impl Clock for Watched {
    fn now(&self) -> Instant {
        self.readings.fetch_add(1, Ordering::Relaxed);
        assert!(!self.fails.swap(false, Ordering::Relaxed), "no time");
        self.clock.now()
    }

    fn wake_at(&self, at: Instant, waker: &Waker) {
        self.clock.wake_at(at, waker);
    }
}

#[test]
fn a_worker_is_busy_since_it_took_its_item() {
    ends(|| {
        let (clock, builder) = clocked();
        let queue = builder.build();
        let (announce, begun) = channel();
        let (direct, directions) = channel();
        let directions = Mutex::new(directions);
        let workers = Workers::builder(&queue).threads(1).run(move |job, _tx| {
            announce.send(*job).unwrap();
            directions.lock().unwrap().recv().unwrap()
        });
        let state = || workers.status()[0].state;
        // It waits for the first item, and finds the second one at once.
        clock.advance(SECOND);
        queue.push(0).unwrap();
        for job in 0..2_u64 {
            let since = queue.now();
            assert_eq!(begun.recv(), Ok(job));
            clock.advance(SECOND);
            assert_eq!(state(), WorkerState::Busy { since });
            assert_eq!(queue.held()[0].since, Some(since));
            assert_eq!(workers.status()[0].done, job);
            queue.push(job + 1).unwrap();
            direct.send(Ok::<(), ()>(())).unwrap();
        }
        assert_eq!(begun.recv(), Ok(2));
        direct.send(Err(())).unwrap();
        while !matches!(state(), WorkerState::Idle) {}
        let status = &workers.status()[0];
        assert_eq!((status.done, status.failed), (2, 1));
    });
}

#[test]
fn a_worker_reads_the_clock_once_for_each_item() {
    let clock = Arc::new(Watched::default());
    let queue = Queue::builder().clock(Arc::clone(&clock)).build();
    queue.push_batch(0..100).unwrap();
    queue.close();
    let readings = || clock.readings.load(Ordering::Relaxed);
    let before = readings();
    let workers = Workers::builder(&queue).threads(1);
    let workers = workers.run(|_, _| Ok::<(), ()>(()));
    assert_eq!(ends(|| workers.join()).done, 100);
    assert_eq!(readings() - before, 100);
}

/// The clock panics after the item was taken: the item is given back, as after any panic of a run.
#[test]
fn a_worker_survives_a_clock_that_panics() {
    let clock = Arc::new(Watched::default());
    let builder = Queue::builder().clock(Arc::clone(&clock));
    let queue = builder.backoff(Backoff::fixed(Duration::ZERO)).build();
    queue.push(7).unwrap();
    queue.close();
    clock.fails.store(true, Ordering::Relaxed);
    let (tell, told) = channel();
    let workers = Workers::builder(&queue)
        .threads(1)
        .on_error(move |failure| tell.send(failure.clone()).unwrap())
        .run(|_, _| Ok::<(), ()>(()));
    let report = ends(|| workers.join());
    assert_eq!((report.done, report.panicked), (1, 1));
    let failure = told.recv().unwrap();
    assert_eq!(
        (failure.items, failure.attempts, &*failure.error),
        (1, 1, "no time")
    );
    assert_at_rest(&queue, 0, 0);
}
