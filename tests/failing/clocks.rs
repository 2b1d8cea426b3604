//! Custom clocks: a panic of a clock loses no item and no wake-up.

use std::cell::Cell;
use std::task::Waker;
use std::time::Instant;

use crate::common::failing::{assert_room, put_off, SECOND};
use crate::common::futures::Task;
use crate::common::{drain, ends, panics};
use requeue::{
    try_commit_all, Backoff, Builder, Clock, Fifo, Handle, Leased, ManualClock, Order, Queue,
};

thread_local! {
    /// Number of readings of this thread's clock until it panics, once.
    static READINGS: Cell<Option<u32>> = const { Cell::new(None) };
}

/// A clock that may panic when it is read.
struct Fragile(ManualClock);

impl Clock for Fragile {
    fn now(&self) -> Instant {
        let left = READINGS.take();
        assert_ne!(left, Some(0), "the clock fails");
        READINGS.set(left.map(|left| left - 1));
        self.0.now()
    }

    fn wake_at(&self, at: Instant, waker: &Waker) {
        self.0.wake_at(at, waker);
    }
}

/// Queues that read their clock for different reasons, with room for four items.
fn builders() -> [Builder<u32>; 3] {
    let builder = || Queue::builder().capacity(4);
    [
        builder(),
        builder().backoff(Backoff::fixed(SECOND)),
        builder().timestamps(),
    ]
}

fn leased_builders() -> [Builder<u32, Leased<Fifo>>; 3] {
    let builder = || Queue::builder().capacity(4).leased(10 * SECOND);
    [
        builder().timestamps(),
        builder().backoff(Backoff::fixed(SECOND)),
        builder().name("observed"),
    ]
}

/// A call of a handle that does not change the items of the queue.
type Call<O = Fifo> = fn(&Queue<u32, O>, &mut Handle<u32, O>);

fn calls<O: Order<u32>>() -> [(&'static str, Call<O>); 11] {
    [
        ("pop", |_, handle| drop(handle.begin().pop())),
        ("pop_timeout", |_, handle| {
            drop(handle.begin().pop_timeout(SECOND));
        }),
        ("pop_batch", |_, handle| _ = handle.begin().pop_batch(2)),
        ("peek", |_, handle| drop(handle.begin().peek())),
        ("take", |_, handle| {
            handle.begin().peek().unwrap().take();
        }),
        ("retry", |_, handle| {
            let tx = handle.begin();
            let mut items = tx.pop_batch(2);
            tx.retry(items.next().unwrap()).unwrap();
            tx.retry_after(items.next().unwrap(), SECOND).unwrap();
        }),
        ("abort", |_, handle| {
            let tx = handle.begin();
            assert_eq!(tx.pop_batch(3).len(), 3);
            tx.abort();
        }),
        ("renew", |_, handle| {
            let tx = handle.begin();
            tx.pop().unwrap();
            tx.renew().unwrap();
        }),
        ("stats", |queue, _| {
            queue.stats();
            queue.held();
        }),
        ("stage", |_, handle| {
            let tx = handle.begin();
            tx.push(4).unwrap();
        }),
        ("stage_timeout", |_, handle| {
            let tx = handle.begin();
            assert!(tx.push_timeout(4, SECOND).is_ok());
        }),
    ]
}

/// Panics at each reading of the clock in turn, until the call needs no more readings.
fn at_each_reading<O: Order<u32>>(builder: &Builder<u32, O>, name: &str, call: Call<O>) {
    for reading in 0.. {
        let clock = ManualClock::new();
        let queue = builder.clone().clock(Fragile(clock.clone())).build();
        queue.handle().push_batch([1, 2, 3]).unwrap();
        let mut handle = queue.named_handle("worker");
        READINGS.set(Some(reading));
        let failed = panics(|| call(&queue, &mut handle));
        READINGS.set(None);
        drop(handle.begin());
        queue.stats().check().unwrap();
        assert_eq!(queue.stats().held, 0, "{name} at reading {reading}");
        clock.advance(20 * SECOND);
        assert_room(&queue);
        let mut left = drain(&queue);
        left.sort_unstable();
        assert_eq!(left, [0, 1, 2, 3], "{name} at reading {reading}");
        if !failed {
            return;
        }
    }
}

#[test]
fn a_clock_that_panics_loses_nothing() {
    for builder in builders() {
        for (name, call) in calls() {
            at_each_reading(&builder, name, call);
        }
    }
    for builder in leased_builders() {
        for (name, call) in calls() {
            at_each_reading(&builder, name, call);
        }
    }
}

#[test]
fn an_abort_does_not_fail_with_its_clock() {
    let builder = || Queue::builder().clock(Fragile(ManualClock::new()));
    for queue in [
        builder().max_attempts(9).build(),
        builder().backoff(Backoff::fixed(SECOND)).build(),
    ] {
        queue.push(1).unwrap();
        let mut handle = queue.handle();
        for unwinds in [true, false] {
            let tx = handle.begin();
            assert_eq!(*tx.pop().unwrap(), 1);
            let failed = panics(move || {
                READINGS.set(Some(0));
                assert!(!unwinds, "the job fails");
                tx.abort();
            });
            READINGS.set(None);
            assert_eq!(failed, unwinds);
            // Not delayed, since the time is unknown.
            assert_eq!(queue.len(), 1);
        }
        assert_eq!(queue.pop(), Ok(1));
    }
}

/// The clock panics while a thread is in the wait queue: its waiter is removed.
#[test]
fn a_clock_that_panics_during_a_wait_leaves_no_waiter_behind() {
    for reading in 0.. {
        let clock = ManualClock::new();
        let queue = Queue::builder().clock(Fragile(clock.clone())).build();
        queue.push(1).unwrap();
        put_off(&queue, SECOND);
        let (mut a, mut b) = (queue.handle(), queue.handle());
        READINGS.set(Some(reading));
        let mut first = Task::new(a.pop_async());
        let failed = panics(|| first.poll().is_ready());
        READINGS.set(None);
        let mut second = Task::waiting(b.pop_async());
        drop(first);
        clock.advance(SECOND);
        assert!(second.was_woken());
        assert_eq!(second.output(), Ok(1));
        if !failed {
            break;
        }
    }
}

/// A timeout that reads the clock before and after it has entered the wait queue, and would not end otherwise.
#[test]
fn a_clock_that_panics_in_a_timeout_leaves_no_waiter_behind() {
    for reading in 0..2 {
        ends(move || {
            let clock = Fragile(ManualClock::new());
            let queue = Queue::builder().capacity(1).clock(clock).build();
            let (mut a, mut b) = (queue.handle(), queue.handle());
            READINGS.set(Some(reading));
            assert!(panics(|| a.pop_timeout(SECOND)));
            let pop = Task::waiting(b.pop_async());
            queue.push(1).unwrap();
            assert!(pop.was_woken());
            drop(pop);
            READINGS.set(Some(reading));
            assert!(panics(|| a.push_timeout(2, SECOND)));
            let mut push = Task::waiting(b.push_async(2));
            assert_eq!(queue.pop(), Ok(1));
            assert!(push.was_woken());
            assert_eq!(push.output(), Ok(()));
        });
    }
}

/// Pushes of one item, which is lost by the panic; its permit is not.
const PUSHES: [(&str, Call); 6] = [
    ("of a queue", |queue, _| _ = queue.push(0)),
    ("of a handle", |_, handle| _ = handle.push(0)),
    ("with a timeout", |_, handle| {
        _ = handle.push_timeout(0, SECOND);
    }),
    ("of a batch", |_, handle| _ = handle.push_batch([0])),
    ("of a batch that may wait", |_, handle| {
        _ = handle.push_batch_blocking([0]);
    }),
    ("of a transaction", |_, handle| {
        let tx = handle.begin();
        tx.push(0).unwrap();
        tx.commit();
    }),
];

#[test]
fn a_clock_that_panics_takes_no_room() {
    for (name, push) in PUSHES {
        for reading in 0..4 {
            let clock = Fragile(ManualClock::new());
            let builder = Queue::builder().timestamps().capacity(2);
            let queue = builder.clock(clock).build();
            let mut handle = queue.handle();
            READINGS.set(Some(reading));
            let failed = panics(|| push(&queue, &mut handle));
            READINGS.set(None);
            drop(handle);
            assert_eq!(queue.len(), usize::from(!failed), "{name}");
            assert_room(&queue);
        }
    }
}

#[test]
fn a_batch_whose_clock_panics_leaves_its_room_to_others_while_its_transaction_is_open() {
    let builder = Queue::builder().timestamps().capacity(2);
    let queue = builder.clock(Fragile(ManualClock::new())).build();
    let mut handle = queue.handle();
    let tx = handle.begin();
    READINGS.set(Some(0));
    assert!(panics(|| tx.push_batch([1, 2])));
    READINGS.set(None);
    queue.push_batch([3, 4]).unwrap();
    tx.commit();
    assert_eq!(drain(&queue), [3, 4]);
    assert_room(&queue);
}

/// The waiter that would plan the next due time panics as it wakes: another waiter must plan it.
#[test]
fn a_panicking_clock_does_not_stop_the_due_timer() {
    let clock = ManualClock::new();
    let queue = Queue::builder().clock(Fragile(clock.clone())).build();
    queue.push(1).unwrap();
    put_off(&queue, SECOND);
    let (mut a, mut b) = (queue.handle(), queue.handle());
    let mut first = Task::waiting(a.pop_async());
    let mut second = Task::waiting(b.pop_async());
    clock.advance(SECOND);
    assert!(first.was_woken() && !second.was_woken());
    READINGS.set(Some(0));
    assert!(panics(|| first.poll()));
    drop(first);
    assert!(second.was_woken());
    assert_eq!(second.output(), Ok(1));
}

/// The clock is read for telemetry after the commit; the leases of both queues have expired by then.
#[test]
fn a_waiter_is_notified_of_a_new_time_although_the_clock_panics() {
    for readings in 0..3 {
        let clock = ManualClock::new();
        let builder = Queue::builder().by_priority();
        let queue = builder.clock(Fragile(clock.clone())).build();
        let ticket = queue.after(9 * SECOND).push(7).unwrap();
        let mut handle = queue.handle();
        let mut task = Task::waiting(handle.pop_async());
        let soon = clock.now() + SECOND;
        READINGS.set(Some(readings));
        let fails = panics(|| queue.reschedule(ticket, soon));
        READINGS.set(None);
        assert_eq!(fails, readings < 2);
        if queue.next_scheduled() != Some(soon) {
            assert!(queue.reschedule(ticket, soon));
        }
        assert!(task.was_woken());
        task.assert_waits();
        clock.advance(SECOND);
        assert_eq!(task.output(), Ok(7));
    }
}

#[test]
fn a_clock_that_panics_in_a_joint_commit_keeps_no_leases() {
    for reading in 0..4 {
        let clock = ManualClock::new();
        let queues = [1, 2].map(|item| {
            let builder = Queue::builder().name("observed").leased(SECOND);
            let queue = builder.clock(Fragile(clock.clone())).build();
            queue.push(item).unwrap();
            queue
        });
        let [mut a, mut b] = [&queues[0], &queues[1]].map(Queue::handle);
        let (tx_a, tx_b) = (a.begin(), b.begin());
        assert_eq!((*tx_a.pop().unwrap(), *tx_b.pop().unwrap()), (1, 2));
        READINGS.set(Some(reading));
        panics(|| try_commit_all((tx_a, tx_b)).is_ok());
        READINGS.set(None);
        let (tx_a, tx_b) = (a.begin(), b.begin());
        for (queue, tx) in queues.iter().zip([&tx_a, &tx_b]) {
            queue.push(3).unwrap();
            tx.pop().unwrap();
        }
        clock.advance(SECOND);
        assert!(queues.iter().all(|queue| queue.pop() == Ok(3)));
    }
}
