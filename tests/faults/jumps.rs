//! Clocks that jump, and the shortest and longest durations.

use std::task::Waker;
use std::time::{Duration, Instant};

use crate::amount::faults;
use crate::common::failing::{INSTANT, SECOND};
use crate::common::{drain, ends};
use crate::orders::{self, Visitor};
use crate::plan::{Call, Fault, Plan};
use crate::probes::{jump, Probe};
use crate::tour::{play, Step, Traits, CENTURY};
use requeue::{
    hold_any_timeout, pop_any_timeout, Backoff, Builder, Clock, ManualClock, Order, Pace,
    PriorityQueue, Queue, Workers,
};

/// A century in seconds.
const YEARS: i64 = 100 * 365 * 24 * 60 * 60;

/// Lets the clock jump at each of its readings, each in a new tour.
struct Jumps;

impl Visitor for Jumps {
    fn visit<O: Order<Probe> + 'static>(
        self,
        order: &str,
        build: fn() -> Builder<Probe, O>,
        traits: Traits,
        steps: &[Step<O>],
    ) {
        for seconds in [YEARS, 1, -1, -YEARS] {
            for number in faults(8) {
                let plan = Plan::new(Call::Now, number, Fault::Jump(seconds));
                let what = format!("{order}, a jump of {seconds} s at reading {number}");
                play(build, traits, &plan, steps, &what);
                if !plan.was_carried_out() {
                    break;
                }
            }
        }
    }
}

#[test]
fn queues_survive_clocks_that_jump() {
    orders::plain(Jumps);
    orders::weighed(Jumps);
    orders::serial(Jumps);
    orders::of_priority(Jumps);
}

#[test]
fn leased_queues_survive_clocks_that_jump() {
    orders::leased_plain(Jumps);
    orders::leased_of_key(Jumps);
    orders::leased_of_priority(Jumps);
}

const DURATIONS: [Duration; 6] = [
    Duration::ZERO,
    INSTANT,
    SECOND,
    CENTURY,
    Duration::from_secs(u64::MAX),
    Duration::MAX,
];

/// A queue with four items, and a clock that was set before or after the time of the queue's birth.
fn with_items(builder: Builder<u32>, seconds: i64) -> (ManualClock, Queue<u32>) {
    let clock = ManualClock::new();
    let queue = builder.clock(clock.clone()).build();
    queue.handle().push_batch(0..4).unwrap();
    jump(&clock, seconds);
    (clock, queue)
}

/// How much later than planned items are due, since a clock that goes backwards prolongs delays.
fn lateness(seconds: i64) -> Duration {
    Duration::from_secs(seconds.min(0).unsigned_abs())
}

/// Calls `check` with every duration, before, at and after the birth of a queue.
fn with_each(check: impl Fn(Duration, i64) + Send + 'static) {
    ends(move || {
        for duration in DURATIONS {
            for seconds in [0, YEARS, -YEARS] {
                check(duration, seconds);
            }
        }
    });
}

/// A clock that goes backwards at each reading, so that no deadline is ever reached.
struct Backwards(ManualClock);

impl Clock for Backwards {
    fn now(&self) -> Instant {
        jump(&self.0, -1);
        self.0.now()
    }

    fn wake_at(&self, at: Instant, waker: &Waker) {
        self.0.wake_at(at, waker);
    }
}

#[test]
fn a_timeout_of_zero_ends_though_the_clock_goes_backwards() {
    ends(|| {
        let clock = ManualClock::new();
        let builder = Queue::builder().clock(Backwards(clock.clone()));
        let queue = builder.capacity(1).build();
        clock.advance(CENTURY);
        let (zero, mut handle) = (Duration::ZERO, queue.handle());
        assert!(queue.pop_timeout(zero).is_err() && handle.pop_timeout(zero).is_err());
        assert_eq!(queue.pop_batch_timeout(1, 2, &mut Vec::new(), zero), 0);
        assert!(pop_any_timeout(&mut [&mut handle], zero).is_err());
        queue.push(1).unwrap();
        assert!(queue.push_timeout(2, zero).is_err() && handle.push_timeout(2, zero).is_err());
        assert!(handle.push_batch_timeout([2], zero).is_err());
        assert!(!queue.wait_idle_timeout(zero));
        let tx = handle.begin();
        assert!(tx.pop().is_ok());
        assert!(tx.pop_timeout(zero).is_err() && tx.peek_timeout(zero).is_err());
        assert!(hold_any_timeout([&tx], zero).is_err());
        assert_eq!(tx.pop_batch_timeout(1, 2, zero).len(), 0);
    });
}

#[test]
fn a_timeout_of_any_length_finds_what_is_there() {
    with_each(|timeout, seconds| {
        let (_clock, queue) = with_items(Queue::builder().capacity(8), seconds);
        let mut handle = queue.handle();
        queue.push_timeout(4, timeout).unwrap();
        handle.push_timeout(5, timeout).unwrap();
        handle.push_batch_timeout(6..8, timeout).unwrap();
        assert!(queue.pop_timeout(timeout).is_ok());
        assert!(handle.pop_timeout(timeout).is_ok());
        let mut items = Vec::new();
        assert_eq!(handle.pop_batch_timeout(1, 2, &mut items, timeout), 2);
        let tx = handle.begin();
        assert!(tx.peek_timeout(timeout).is_ok());
        assert_eq!(tx.pop_batch_timeout(2, 2, timeout).len(), 2);
        assert!(hold_any_timeout([&tx], timeout).is_ok());
        tx.commit();
        assert!(pop_any_timeout(&mut [&mut handle], timeout).is_ok());
        assert!(queue.wait_idle_timeout(timeout));
    });
}

#[test]
fn a_delay_of_any_length_loses_nothing() {
    with_each(|delay, seconds| {
        let backoff = Backoff::exponential(delay, delay).with_jitter();
        let (clock, queue) = with_items(Queue::builder().backoff(backoff), seconds);
        let mut handle = queue.handle();
        let tx = handle.begin();
        tx.retry_after(tx.pop().unwrap(), delay).unwrap();
        tx.retry(tx.pop().unwrap()).unwrap();
        tx.commit();
        let mut tx = queue.begin_owned();
        tx.pop().unwrap();
        tx.retry_all_after(delay).unwrap();
        tx.pop().unwrap();
        tx.abort();
        queue.stats().check().unwrap();
        if delay <= CENTURY {
            clock.advance(delay + lateness(seconds));
            assert_eq!(drain(&queue).len(), 4);
        } else {
            clock.advance(CENTURY);
            assert_eq!((queue.len(), queue.stats().delayed), (0, 4));
        }
    });
}

#[test]
fn a_lease_of_any_length_is_kept() {
    with_each(|term, seconds| {
        let term = term.max(INSTANT);
        let clock = ManualClock::new();
        let builder = Queue::builder().clock(clock.clone()).timestamps();
        let queue = builder.leased(term).build();
        queue.push(1).unwrap();
        jump(&clock, seconds);
        let mut handle = queue.handle();
        let tx = handle.begin();
        tx.pop().unwrap();
        tx.renew().unwrap();
        assert!(queue.pop().is_err());
        if term <= CENTURY {
            clock.advance(term + lateness(seconds));
            assert_eq!(queue.pop(), Ok(1));
            assert!(tx.try_commit().is_err());
        } else {
            clock.advance(CENTURY);
            assert!(queue.pop().is_err() && tx.try_commit().is_ok());
        }
        queue.stats().check().unwrap();
    });
}

/// A rate limit knows times of up to 146 years after its first one.
#[test]
fn an_interval_of_any_length_paces() {
    with_each(|interval, seconds| {
        let interval = interval.max(INSTANT);
        for pace in [Pace::every(interval), Pace::rate(1, interval).burst(2)] {
            let (clock, queue) = with_items(Queue::builder().pace(pace.clone()), seconds);
            assert_eq!(queue.pop(), Ok(0));
            drop(queue.handle().begin().pop());
            if interval <= SECOND {
                clock.advance(interval + lateness(seconds));
                assert!(queue.pop().is_ok(), "{interval:?}");
            }
            pace.set_interval(SECOND);
            pace.set_interval(interval);
            pace.set_interval(INSTANT);
            clock.advance(2 * INSTANT + lateness(seconds));
            assert!(queue.pop().is_ok(), "{interval:?} from {seconds}");
        }
    });
}

#[test]
fn a_schedule_of_any_length_loses_nothing() {
    with_each(|delay, seconds| {
        let clock = ManualClock::new();
        let builder = Queue::builder().by_priority().clock(clock.clone());
        let queue: PriorityQueue<u32> = builder.age_after(delay.max(INSTANT)).build();
        jump(&clock, seconds);
        let ticket = queue.after(delay).push(1).unwrap();
        queue.after(delay).priority(9).push(2).unwrap();
        queue.reschedule(ticket, queue.next_scheduled().unwrap_or(queue.now()));
        clock.advance(CENTURY + lateness(seconds));
        let due = drain(&queue).len();
        assert_eq!(due, if delay <= CENTURY { 2 } else { 0 });
        assert_eq!(queue.cancel(ticket).is_some(), due == 0);
        queue.stats().check().unwrap();
    });
}

#[test]
fn a_shutdown_waits_for_workers_that_end() {
    for timeout in DURATIONS.into_iter().skip(2) {
        ends(move || {
            let queue = (0..4).collect::<Queue<_>>();
            queue.close();
            let workers = Workers::builder(&queue).threads(2);
            let workers = workers.run(|_, _| Ok::<(), ()>(()));
            let report = workers.shutdown(timeout);
            assert!(report.stuck.is_empty());
        });
    }
}
