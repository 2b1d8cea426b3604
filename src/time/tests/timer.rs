//! Tests of the timer thread.

use super::super::timer::Timer;
use super::{Bells, SECOND};
use std::io::{Error, ErrorKind};
use std::task::Waker;
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_millis(1);
const LATE: Duration = Duration::from_secs(24 * 3600);

/// Creates a separate timer with its own thread.
fn timer() -> &'static Timer {
    Box::leak(Box::default())
}

/// Sets a timer while no thread can be spawned.
fn set_without_thread(timer: &Timer, waker: &Waker) {
    timer.set(Instant::now() + LATE, waker, || {
        Err(Error::from(ErrorKind::WouldBlock))
    });
}

#[test]
fn it_fires_when_a_timer_is_due() {
    let (bells, timer) = (Bells::new(), timer());
    for _ in 0..3 {
        let at = Instant::now() + SOON;
        timer.wake_at(at, &bells.bell("soon"));
        assert_eq!(bells.next(), "soon");
        assert!(Instant::now() >= at);
    }
}

#[test]
fn an_earlier_timer_fires_first() {
    let (bells, timer) = (Bells::new(), timer());
    let late = bells.bell("late");
    timer.wake_at(Instant::now() + LATE, &late);
    // The thread sleeps for long, or will: this must not delay the next timers.
    for name in ["a", "b", "c"] {
        timer.wake_at(Instant::now() + SOON, &bells.bell(name));
        assert_eq!(bells.next(), name);
    }
    timer.wake_at(Instant::now() + SOON, &late);
    assert_eq!(bells.next(), "late");
}

#[test]
fn wakers_may_panic_and_set_timers() {
    let (bells, timer) = (Bells::new(), timer());
    let last = bells.bell("last");
    let bad = bells.bell_that("bad", move || {
        timer.wake_at(Instant::now() + SOON, &last);
        panic!("of the waker");
    });
    timer.wake_at(Instant::now() + SOON, &bad);
    assert_eq!([bells.next(), bells.next()], ["bad", "last"]);
}

#[test]
fn without_a_thread_it_fires_at_once() {
    let (bells, timer) = (Bells::new(), timer());
    for _ in 0..2 {
        set_without_thread(timer, &bells.bell("vain"));
        assert_eq!(bells.rung(), ["vain"]);
    }
    timer.wake_at(Instant::now() + SOON, &bells.bell("soon"));
    assert_eq!(bells.next(), "soon");
}

#[test]
fn without_a_thread_it_fires_all_timers() {
    let (bells, timer) = (Bells::new(), timer());
    let (first, second) = (bells.bell("first"), bells.bell("second"));
    let late = Instant::now() + LATE;
    timer.set(late, &first, || {
        timer.set(late + SECOND, &second, || {
            unreachable!("it is being started")
        });
        Err(Error::from(ErrorKind::WouldBlock))
    });
    assert_eq!(bells.rung(), ["first", "second"]);
}
