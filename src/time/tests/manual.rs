//! Tests of the manual clock.

use super::super::{Clock, ManualClock};
use super::{Bells, SECOND};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::time::Duration;

#[test]
fn it_calls_wakers_when_it_is_set() {
    let (bells, clock) = (Bells::new(), ManualClock::new());
    let start = clock.now();
    for (second, name) in [(2, "b"), (1, "a"), (3, "c")] {
        clock.wake_at(start + second * SECOND, &bells.bell(name));
    }
    clock.advance(SECOND.saturating_sub(Duration::from_nanos(1)));
    assert!(bells.rung().is_empty());
    clock.advance(Duration::from_nanos(1));
    assert_eq!(bells.rung(), ["a"]);
    clock.set(start + 3 * SECOND);
    assert_eq!(bells.rung(), ["b", "c"]);
}

#[test]
fn it_calls_a_waker_that_is_due_at_once() {
    let (bells, clock) = (Bells::new(), ManualClock::new());
    clock.wake_at(clock.now(), &bells.bell("now"));
    assert_eq!(bells.rung(), ["now"]);
}

#[test]
fn set_backwards_it_calls_wakers_later() {
    let (bells, clock) = (Bells::new(), ManualClock::new());
    let start = clock.now();
    clock.wake_at(start + SECOND, &bells.bell("second"));
    clock.set(start.checked_sub(SECOND).unwrap());
    clock.advance(SECOND);
    assert!(bells.rung().is_empty());
    clock.advance(SECOND);
    assert_eq!(bells.rung(), ["second"]);
}

#[test]
fn a_waker_may_use_the_clock() {
    let (bells, clock) = (Bells::new(), ManualClock::new());
    let at = clock.now() + SECOND;
    let (again, other) = (clock.clone(), bells.bell("other"));
    let bell = bells.bell_that("first", move || {
        assert_eq!(again.now(), at);
        again.wake_at(at, &other);
        again.wake_at(at + SECOND, &other);
        again.advance(SECOND);
    });
    clock.wake_at(at, &bell);
    clock.advance(SECOND);
    assert_eq!(bells.rung(), ["first", "other", "other"]);
    assert_eq!(clock.now(), at + SECOND);
}

#[test]
fn a_waker_that_panics_does_not_affect_others() {
    let (bells, clock) = (Bells::new(), ManualClock::new());
    let at = clock.now() + SECOND;
    clock.wake_at(at, &bells.bell_that("bad", || panic!("of the waker")));
    clock.wake_at(at, &bells.bell("good"));
    clock.advance(SECOND);
    assert_eq!(bells.rung(), ["bad", "good"]);
    clock.wake_at(at, &bells.bell_that("late", || panic!("of the waker")));
    assert_eq!(bells.rung(), ["late"]);
}

#[test]
fn beyond_the_last_instant_it_does_not_change() {
    let clock = ManualClock::new();
    let now = clock.now();
    assert!(catch_unwind(AssertUnwindSafe(|| clock.advance(Duration::MAX))).is_err());
    assert_eq!(clock.now(), now);
}
