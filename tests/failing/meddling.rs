//! User code that runs during a call must not use the transaction of that call.

use std::any::Any;
use std::cell::Cell;
use std::hash::Hash;
use std::mem;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::cloned::Cloned;
use crate::common::failing::{leased, put_off, SECOND};
use crate::common::futures::Task;
use crate::common::{assert_at_rest, drain, ends, panics};
use requeue::{
    ByKey, Clock, FairQueue, Fifo, Item, Leased, Limiter, ManualClock, Order, Pace, PopError,
    PushError, Queue, RateSlot, Transaction,
};

/// Whether a panic says that the transaction is borrowed.
fn says_borrowed(panic: &(dyn Any + Send)) -> bool {
    let text = panic.downcast_ref::<&str>().copied();
    text.is_some_and(|text| text.starts_with("transaction is borrowed by"))
}

/// A peek that is taken on another thread has work to do there; meanwhile the transaction is borrowed.
#[test]
fn a_peek_has_ended_when_its_item_is_cloned() {
    let (at_work, working) = channel();
    let (go_on, may_go_on) = channel::<()>();
    let may_go_on = Mutex::new(may_go_on);
    let (clock, queue) = leased([]);
    let hook = move || {
        at_work.send(()).unwrap();
        may_go_on.lock().unwrap().recv().unwrap_err();
    };
    queue.push(Cloned::new(7, hook)).ok().unwrap();
    queue.push(Cloned::new(8, || {})).ok().unwrap();
    let mut handle = queue.handle();
    let tx = handle.begin();
    let peek = tx.peek().unwrap();
    thread::scope(|scope| {
        let taker = scope.spawn(|| peek.take().number);
        working.recv().unwrap();
        let refused = panics(|| tx.pop().is_ok());
        drop(go_on);
        assert_eq!(taker.join().unwrap(), 7);
        assert!(refused, "used from two threads at the same time");
    });
    assert_eq!(tx.pop().unwrap().number, 8);
    clock.advance(SECOND);
    assert_eq!(queue.len(), 2);
    assert!(tx.try_commit().is_err());
    queue.stats().check().unwrap();
}

/// The transaction that stays open on this thread.
type Open = Transaction<'static, Cloned, Leased<Fifo>>;

thread_local! {
    static OPEN: Cell<Option<&'static Open>> = const { Cell::new(None) };
    static TAKEN: Cell<Vec<Item<'static, Cloned>>> = const { Cell::new(Vec::new()) };
}

/// The operations that a clone may try on the transaction that takes its original in a batch.
const MEDDLING: [fn(&'static Open); 3] = [
    |tx| assert!(tx.pop().is_ok()),
    |tx| assert_eq!(tx.pop_batch(1).len(), 1),
    |tx| {
        for item in TAKEN.take() {
            assert!(tx.retry_after(item, SECOND).is_ok());
        }
    },
];

#[test]
fn a_copy_may_not_use_the_transaction_that_takes_a_batch() {
    for meddle in MEDDLING {
        let (clock, queue) = leased([]);
        let hook = move || {
            if let Some(tx) = OPEN.take() {
                meddle(tx);
            }
        };
        for number in 0..8 {
            queue.push(Cloned::new(number, hook)).ok().unwrap();
        }
        let handle = Box::leak(Box::new(queue.handle()));
        let tx: &'static Open = Box::leak(Box::new(handle.begin()));
        TAKEN.set(tx.pop_batch(5).collect());
        OPEN.set(Some(tx));
        let panic = catch_unwind(AssertUnwindSafe(|| tx.pop_batch(2).len())).unwrap_err();
        assert!(says_borrowed(&*panic));
        TAKEN.take();
        assert_eq!(tx.held(), 7);
        clock.advance(SECOND);
        // Those that were not cloned are not leased.
        let mut numbers: Vec<_> = drain(&queue).iter().map(|item| item.number).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [0, 1, 2, 3, 4, 7]);
        queue.stats().check().unwrap();
    }
}

/// A limiter that allows all starts, and records the cancelled slots.
struct Cancelled<F>(F);

impl<F: Fn() + Send + Sync + 'static> Limiter for Cancelled<F> {
    fn start(&self, now: Instant) -> Result<RateSlot, Instant> {
        Ok(RateSlot::new(now, 0))
    }

    fn cancel(&self, _: RateSlot, _: Instant) {
        (self.0)();
    }
}

/// A peek that is dropped on another thread returns its slot and its place under the concurrency limit before its
/// transaction can be used again.
#[test]
fn a_peek_returns_its_token_before_its_end() {
    let (at_work, working) = channel();
    let (go_on, may_go_on) = channel::<()>();
    let may_go_on = Mutex::new(may_go_on);
    let pace = Cancelled(move || {
        at_work.send(()).unwrap();
        may_go_on.lock().unwrap().recv().unwrap_err();
    });
    let queue = Queue::builder()
        .pace(Pace::shared(pace))
        .max_held(1)
        .build();
    queue.push(7).unwrap();
    let mut handle = queue.handle();
    let tx = handle.begin();
    let peek = tx.peek().unwrap();
    thread::scope(|scope| {
        let other = scope.spawn(|| drop(peek));
        working.recv().unwrap();
        let refused = panics(|| tx.held());
        drop(go_on);
        other.join().unwrap();
        assert!(refused, "used from two threads at the same time");
    });
    assert_eq!(tx.pop().as_deref(), Ok(&7));
}

thread_local! {
    /// The action of the clock at its next reading on this thread.
    static HOOK: Cell<Option<Box<dyn FnMut()>>> = const { Cell::new(None) };
}

/// A clock that runs a hook, unless the hook is running.
struct Hooked(ManualClock);

impl Clock for Hooked {
    fn now(&self) -> Instant {
        /// Restores the hook, even after a panic.
        struct Running(Option<Box<dyn FnMut()>>);
        impl Drop for Running {
            fn drop(&mut self) {
                HOOK.set(self.0.take());
            }
        }
        let mut running = Running(HOOK.take());
        if let Some(hook) = &mut running.0 {
            hook();
        }
        self.0.now()
    }

    fn wake_at(&self, at: Instant, waker: &Waker) {
        self.0.wake_at(at, waker);
    }
}

/// Reads the clock only while the closure runs.
fn hooked<R>(hook: impl FnMut() + 'static, run: impl FnOnce() -> R) -> R {
    HOOK.set(Some(Box::new(hook)));
    let result = catch_unwind(AssertUnwindSafe(run));
    HOOK.set(None);
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// A clock that panics during a peek.
#[test]
fn a_failed_peek_puts_its_item_back_and_wakes_a_waiter() {
    let queue = Queue::builder().clock(Hooked(ManualClock::new())).build();
    queue.push(7).unwrap();
    let mut worker = queue.named_handle("worker");
    let other: &'static mut _ = Box::leak(Box::new(queue.handle()));
    let mut task = Some(other.pop_async());
    let waiting: &'static Mutex<Option<Task<_>>> = Box::leak(Box::new(Mutex::new(None)));
    let hook = move || {
        let mut waiting = waiting.lock().unwrap();
        *waiting = task.take().map(Task::waiting);
        panic!("the clock fails");
    };
    let tx = worker.begin();
    assert!(panics(|| hooked(hook, || tx.peek().is_ok())));
    let mut waiting = waiting.lock();
    let task = match &mut waiting {
        Ok(task) => task.as_mut(),
        Err(poisoned) => poisoned.get_mut().as_mut(),
    };
    assert_eq!(task.unwrap().output(), Ok(7));
    assert_eq!(tx.pop().unwrap_err(), PopError::Empty);
}

type Numbers<O = Fifo> = Transaction<'static, u32, O>;

/// The operations that user code may try on the transaction of the running call.
fn reentry<O: Order<u32>>() -> [fn(&'static Numbers<O>); 8] {
    [
        |tx| drop(tx.pop_async()),
        |tx| drop(tx.push_async(1)),
        |tx| _ = tx.pop_timeout(Duration::ZERO),
        |tx| _ = tx.push_timeout(1, Duration::ZERO),
        |tx| _ = tx.pop_batch(1),
        |tx| _ = tx.pop(),
        |tx| _ = tx.push(1),
        |tx| _ = tx.peek(),
    ]
}

/// The ways in which a transaction waits for an item.
const WAITS: [fn(&'static Numbers) -> bool; 3] = [
    |tx| tx.pop_blocking().is_ok(),
    |tx| tx.pop_timeout(SECOND).is_ok(),
    |tx| tx.pop_batch_timeout(1, 1, SECOND).len() == 1,
];

/// An open transaction of an empty queue that will have an item later.
fn open() -> (Queue<u32>, &'static Numbers) {
    let queue = Queue::builder().clock(Hooked(ManualClock::new())).build();
    queue.push(0).unwrap();
    put_off(&queue, SECOND);
    let handle = Box::leak(Box::new(queue.handle()));
    let tx = Box::leak(Box::new(handle.begin()));
    (queue, tx)
}

/// The clock is read while the transaction is in the wait queue.
#[test]
fn a_clock_may_not_use_the_transaction_that_waits_for_an_item() {
    for meddle in reentry() {
        for wait in WAITS {
            ends(move || {
                let (queue, tx) = open();
                let hook = {
                    let queue = queue.clone();
                    move || {
                        if !queue.is_empty() || queue.stats().waiting == 0 {
                            return;
                        }
                        let panic = catch_unwind(AssertUnwindSafe(|| meddle(tx)));
                        queue.push(7).unwrap();
                        assert!(says_borrowed(&*panic.unwrap_err()));
                    }
                };
                assert!(hooked(hook, || wait(tx)));
                assert_eq!((tx.held(), queue.stats().waiting), (1, 0));
            });
        }
    }
}

#[test]
fn a_clock_that_fails_ends_the_wait_for_an_item() {
    for wait in WAITS {
        let (queue, tx) = open();
        let hook = {
            let queue = queue.clone();
            move || assert_eq!(queue.stats().waiting, 0, "the clock fails")
        };
        assert!(panics(|| hooked(hook, || wait(tx))));
        assert_at_rest(&queue, 0, 0);
        queue.push(7).unwrap();
        assert!(wait(tx));
        assert_eq!(tx.held(), 1);
        tx.push(8).unwrap();
        assert_eq!(tx.staged(), 1);
    }
}

type Keyed = FairQueue<u32, u32>;

thread_local! {
    /// The action when the next key is computed on this thread.
    static ON_KEY: Cell<Option<Box<dyn FnOnce()>>> = const { Cell::new(None) };
}

/// A fair queue, and an open transaction of it.
fn keyed() -> (Arc<Keyed>, &'static Numbers<ByKey<u32, u32>>) {
    let by = |item: &u32| {
        if let Some(hook) = ON_KEY.take() {
            hook();
        }
        *item
    };
    let queue = Queue::builder().fair_by(by).key_capacity(1).build();
    let handle = Box::leak(Box::new(queue.handle()));
    let tx = Box::leak(Box::new(handle.begin()));
    (Arc::new(queue), tx)
}

/// Whether the queue counts an item with the key 7: there is room for one.
fn knows(queue: &Keyed) -> bool {
    queue.key_at_limit(&7).is_some()
}

type Stage<K = u32> = fn(&'static Numbers<ByKey<K, u32>>) -> Result<(), PushError<u32>>;

/// The ways in which a transaction stages.
fn stages<K>() -> [Stage<K>; 8]
where
    K: Hash + Eq + Send + Sync + 'static,
{
    [
        |tx| tx.push(7),
        |tx| tx.push_blocking(7),
        |tx| tx.push_timeout(7, Duration::MAX),
        |tx| Task::new(tx.push_async(7)).output(),
        |tx| only(tx.push_batch([7])),
        |tx| only(tx.push_batch_blocking([7])),
        |tx| only(tx.push_batch_timeout([7], Duration::MAX)),
        |tx| only(Task::new(tx.push_batch_async([7])).output()),
    ]
}

/// Converts the error of a batch of one item.
fn only(pushed: Result<usize, PushError<Vec<u32>>>) -> Result<(), PushError<u32>> {
    match pushed {
        Ok(count) => {
            assert_eq!(count, 1);
            Ok(())
        }
        Err(PushError::Full(items)) => Err(PushError::Full(items[0])),
        Err(PushError::Closed(items)) => Err(PushError::Closed(items[0])),
        Err(refused) => panic!("neither full nor closed: {refused:?}"),
    }
}

#[test]
fn a_key_function_cannot_use_the_staging_transaction() {
    for meddle in reentry() {
        for stage in stages() {
            let (queue, tx) = keyed();
            queue.push(7).unwrap();
            let hook = {
                let queue = Arc::clone(&queue);
                move || {
                    let panic = catch_unwind(AssertUnwindSafe(|| meddle(tx)));
                    assert_eq!(queue.pop(), Ok(7));
                    assert!(says_borrowed(&*panic.unwrap_err()));
                }
            };
            ON_KEY.set(Some(Box::new(hook)));
            assert_eq!(stage(tx), Ok(()));
            assert_eq!((tx.held(), tx.staged(), knows(&queue)), (0, 1, true));
        }
    }
}

#[test]
fn a_key_that_is_not_found_ends_the_push() {
    for stage in stages() {
        let (queue, tx) = keyed();
        ON_KEY.set(Some(Box::new(|| panic!("no key"))));
        assert!(panics(|| stage(tx)));
        assert_eq!((tx.staged(), knows(&queue)), (0, false));
        assert_eq!(stage(tx), Ok(()));
        assert_eq!((tx.staged(), knows(&queue)), (1, true));
    }
}

#[test]
fn a_push_that_is_refused_leaves_no_key() {
    for stage in stages() {
        let alive = Arc::new(());
        let by = {
            let alive = Arc::clone(&alive);
            move |item: &u32| (*item, Arc::clone(&alive))
        };
        let queue = FairQueue::by(by);
        let handle = Box::leak(Box::new(queue.handle()));
        let tx = &*Box::leak(Box::new(handle.begin()));
        let none = Arc::strong_count(&alive);
        let pop = tx.pop_async();
        assert!(panics(|| stage(tx)));
        assert_eq!(Arc::strong_count(&alive), none);
        drop(pop);
        assert_eq!(stage(tx), Ok(()));
        assert_eq!(Arc::strong_count(&alive), none + 1);
    }
}

/// The transaction is borrowed when its key is computed, but was not when the push began.
#[test]
fn a_key_function_that_leaks_a_future_is_refused() {
    for stage in stages() {
        let (queue, tx) = keyed();
        ON_KEY.set(Some(Box::new(|| mem::forget(tx.pop_async()))));
        assert!(panics(|| stage(tx)));
        assert!(!knows(&queue));
        assert_eq!(stage(tx), Ok(()));
    }
}

/// The state of its items is forgotten.
#[test]
fn a_batch_is_refused_as_a_whole_if_the_queue_is_closed_while_it_is_admitted() {
    let builder = Queue::builder().fair_by(|item: &u32| item % 2);
    let builder = builder.key_capacity(1).timestamps();
    let queue = builder.clock(Hooked(ManualClock::new())).build();
    let mut handle = queue.handle();
    let tx = handle.begin();
    let others = queue.clone();
    let refused = hooked(move || _ = others.close(), || tx.push_batch([1, 2]));
    assert_eq!(refused, Err(PushError::Closed(vec![1, 2])));
    assert_eq!((tx.staged(), queue.key_at_limit(&1)), (0, None));
    assert_eq!(queue.pop(), Err(PopError::Closed));
}

#[test]
fn a_clock_may_not_use_the_transaction_that_waits_with_a_priority() {
    let builder = Queue::builder().by_priority().capacity(2).timestamps();
    let queue = builder.clock(Hooked(ManualClock::new())).build();
    let handle = Box::leak(Box::new(queue.handle()));
    let tx: &'static Transaction<'_, u32, _> = Box::leak(Box::new(handle.begin()));
    let hook = || {
        let panic = catch_unwind(AssertUnwindSafe(|| drop(tx.push_async(1))));
        assert!(says_borrowed(&*panic.unwrap_err()));
    };
    hooked(hook, || {
        tx.priority(1).push_blocking(1).unwrap();
        tx.priority(1).push_batch_timeout([2], SECOND).unwrap();
    });
    assert_eq!(tx.staged(), 2);
}
