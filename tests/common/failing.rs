//! Queues with failed deliveries.

use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use super::panics;
use requeue::{
    Builder, Clock, Expired, Fifo, Handle, Leased, ManualClock, Order, Queue, Reason, Transaction,
};

pub(crate) const SECOND: Duration = Duration::from_secs(1);
/// The shortest duration.
pub(crate) const INSTANT: Duration = Duration::from_nanos(1);
/// One nanosecond less than a second.
pub(crate) const NEARLY: Duration = Duration::from_nanos(999_999_999);

/// A builder with a manual clock.
pub(crate) fn clocked<T>() -> (ManualClock, Builder<T>) {
    let clock = ManualClock::new();
    let builder = Queue::builder().clock(clock.clone());
    (clock, builder)
}

/// A manual clock that counts the timers that are set.
#[derive(Clone)]
pub(crate) struct CountingClock {
    clock: ManualClock,
    timers: Arc<AtomicUsize>,
}

impl CountingClock {
    pub(crate) fn new() -> Self {
        let (clock, timers) = (ManualClock::new(), Arc::default());
        Self { clock, timers }
    }

    /// How often a timer was set.
    pub(crate) fn timers(&self) -> usize {
        self.timers.load(Ordering::SeqCst)
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }
}

impl Clock for CountingClock {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn wake_at(&self, at: Instant, waker: &Waker) {
        self.clock.wake_at(at, waker);
        self.timers.fetch_add(1, Ordering::SeqCst);
    }
}

/// A queue with a manual clock and these items, pushed by one handle.
pub(crate) fn clocked_with<T>(items: impl IntoIterator<Item = T>) -> (ManualClock, Queue<T>) {
    let (clock, builder) = clocked();
    let queue = builder.build();
    queue.handle().push_batch(items).unwrap();
    (clock, queue)
}

/// A queue with leases of one second.
pub(crate) fn leased<T: Clone>(
    items: impl IntoIterator<Item = T>,
) -> (ManualClock, Queue<T, Leased<Fifo>>) {
    let (clock, builder) = clocked();
    let queue = builder.leased(SECOND).build();
    queue.handle().push_batch(items).unwrap();
    (clock, queue)
}

/// Takes the next item and retries it after a delay.
#[track_caller]
pub(crate) fn put_off<T, O: Order<T>>(queue: &Queue<T, O>, delay: Duration) {
    let mut handle = queue.handle();
    let tx = handle.begin();
    let item = tx.pop().unwrap();
    assert!(tx.retry_after(item, delay).is_ok());
    tx.try_commit().unwrap();
}

/// Removes the dead letters: the items, their delivery counts, and the last reasons.
pub(crate) fn letters<T, O: Order<T>>(queue: &Queue<T, O>) -> Vec<(T, u32, Reason)> {
    let letters = queue.dead_letters();
    letters
        .map(|letter| (letter.item, letter.attempts, letter.reason))
        .collect()
}

/// A way to end a transaction that holds items without a commit.
pub(crate) type Failure<T, O = Fifo> =
    fn(&mut Handle<T, O>, &mut dyn FnMut(&Transaction<'_, T, O>));

/// All ways, and the reasons of their dead letters.
pub(crate) fn failures<T, O: Order<T>>() -> [(Reason, Failure<T, O>); 6] {
    [
        (Reason::Aborted, |handle, work| {
            let tx = handle.begin();
            work(&tx);
            tx.abort();
        }),
        (Reason::Aborted, |handle, work| work(&handle.begin())),
        (Reason::Aborted, |handle, work| {
            let failed = handle.try_transact(|tx| {
                work(tx);
                Err::<(), _>(Expired)
            });
            assert!(failed.is_err());
        }),
        (Reason::Panicked, |handle, work| {
            assert!(panics(|| {
                let tx = handle.begin();
                work(&tx);
                panic!("the worker fails");
            }));
        }),
        (Reason::Forgotten, |handle, work| {
            let tx = handle.begin();
            work(&tx);
            mem::forget(tx);
            drop(handle.begin());
        }),
        (Reason::Retried, |handle, work| {
            let tx = handle.begin();
            work(&tx);
            tx.try_commit().unwrap();
        }),
    ]
}

/// Takes the next item once, and fails in the given way.
#[track_caller]
pub(crate) fn fail<T, O: Order<T>>(
    handle: &mut Handle<T, O>,
    (reason, failure): (Reason, Failure<T, O>),
) {
    failure(handle, &mut |tx| {
        let item = tx.pop().unwrap();
        if reason == Reason::Retried {
            assert!(tx.retry(item).is_ok());
        }
    });
}

/// Checks that the free room of a bounded queue at rest is its capacity less its items.
#[track_caller]
pub(crate) fn assert_room<O: Order<u32>>(queue: &Queue<u32, O>) {
    let stats = queue.stats();
    let inside = stats.ready + stats.held + stats.delayed;
    let capacity = queue.capacity().unwrap() as u64;
    let mut handle = queue.handle();
    for item in inside..capacity {
        assert!(handle.push(0).is_ok(), "{item} of {capacity}");
    }
    assert!(handle.push(0).is_err(), "more than {capacity}");
}
