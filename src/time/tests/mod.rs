//! Tests of times, delays and timers.

mod backoff;
mod manual;
mod timer;
mod timer_queue;

use super::clock::within_horizon;
use super::{Clock, ManualClock, SystemClock, Time, NEVER, START};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

/// A waker that sends its name, and then runs a closure once.
struct Bell {
    name: &'static str,
    rings: Sender<&'static str>,
    then: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.rings.send(self.name).unwrap();
        let then = self.then.lock().unwrap().take();
        if let Some(then) = then {
            then();
        }
    }
}

/// Creates bells, and receives their rings.
struct Bells {
    maker: Sender<&'static str>,
    rings: Receiver<&'static str>,
}

impl Bells {
    fn new() -> Self {
        let (maker, rings) = channel();
        Self { maker, rings }
    }

    fn bell(&self, name: &'static str) -> Waker {
        self.bell_that(name, || ())
    }

    fn bell_that(&self, name: &'static str, then: impl FnOnce() + Send + 'static) -> Waker {
        Waker::from(Arc::new(Bell {
            name,
            rings: self.maker.clone(),
            then: Mutex::new(Some(Box::new(then))),
        }))
    }

    /// The names of the bells that have rung.
    fn rung(&self) -> Vec<&'static str> {
        self.rings.try_iter().collect()
    }

    /// Waits for the next ring.
    fn next(&self) -> &'static str {
        self.rings.recv().unwrap()
    }
}

const SECOND: Duration = Duration::from_secs(1);

/// The time of a queue, and its clock.
fn manual() -> (Time, ManualClock) {
    let clock = ManualClock::new();
    (Time::new(Some(Arc::new(clock.clone()))), clock)
}

#[test]
fn a_queue_counts_from_its_creation() {
    let (time, clock) = manual();
    assert_eq!(time.now(), START);
    clock.advance(SECOND);
    assert_eq!(time.now(), START + 1_000_000_000);
    assert_eq!(time.after(SECOND), START + 2_000_000_000);
    assert_eq!(time.instant(START + 1_000_000_000), Some(clock.now()));
    assert_eq!(time.nanos(clock.now()), START + 1_000_000_000);
    assert!(!time.is_system());
}

#[test]
fn system_time_advances() {
    let before = Instant::now();
    let time = Time::new(None);
    assert!(time.is_system());
    let now = time.now();
    assert!(time.instant(START).unwrap() >= before);
    assert!(time.instant(now).unwrap() <= Instant::now());
}

#[test]
fn times_before_the_origin_are_the_first() {
    let (time, clock) = manual();
    let early = clock.now().checked_sub(SECOND).unwrap();
    assert_eq!(time.nanos(early), START);
    clock.set(early);
    assert_eq!(time.now(), START);
    assert_eq!(time.after(SECOND), START + 1_000_000_000);
}

#[test]
fn the_last_time_is_not_never() {
    let (time, clock) = manual();
    assert_eq!(time.after(Duration::MAX), NEVER - 1);
    clock.advance(SECOND);
    assert_eq!(time.after(Duration::from_nanos(NEVER - 1)), NEVER - 1);
    assert_eq!(time.instant(NEVER), None);
    let centuries = clock.now().checked_add(Duration::from_secs(u64::MAX / 4));
    if let Some(late) = centuries {
        assert_eq!(time.nanos(late), NEVER - 1);
    }
}

#[test]
fn a_timer_is_set_at_the_clock() {
    let (bells, (time, clock)) = (Bells::new(), manual());
    time.wake_at(START + 1_000_000_000, &bells.bell("second"));
    time.wake_at(NEVER, &bells.bell("never"));
    assert!(format!("{clock:?}").contains("timers: 1"));
    clock.advance(SECOND);
    assert_eq!(bells.rung(), ["second"]);
}

#[test]
fn a_shared_clock_is_the_same_clock() {
    let bells = Bells::new();
    let manual = ManualClock::new();
    let shared: Arc<dyn Clock> = Arc::new(Arc::new(manual.clone()));
    shared.wake_at(shared.now() + SECOND, &bells.bell("second"));
    manual.advance(SECOND);
    assert_eq!((shared.now(), bells.next()), (manual.now(), "second"));
}

#[test]
fn the_system_clock_keeps_no_timer_for_long() {
    let now = Instant::now();
    let kept = |delay| within_horizon(now + delay, now) - now;
    assert_eq!(kept(SECOND), SECOND);
    assert_eq!(kept(60 * SECOND), 60 * SECOND);
    assert_eq!(kept(61 * SECOND), 60 * SECOND);
}

#[test]
fn the_system_clock_calls_a_late_waker_at_once() {
    let bells = Bells::new();
    let bell = bells.bell_that("late", || panic!("of the waker"));
    SystemClock.wake_at(SystemClock.now(), &bell);
    assert_eq!(bells.rung(), ["late"]);
}
