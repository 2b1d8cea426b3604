//! Tests of the timer queue.

use super::super::timer_queue::{TimerEntry, TimerQueue};
use super::{Bells, SECOND};
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

/// A timer queue, and the instant from which its seconds count.
struct Set {
    timers: TimerQueue,
    start: Instant,
}

impl Set {
    fn new() -> Self {
        Self {
            timers: TimerQueue::default(),
            start: Instant::now(),
        }
    }

    /// Sets a timer; returns whether it was added.
    fn set(&mut self, second: u32, waker: &Waker) -> bool {
        let at = self.start + second * SECOND;
        let before = self.timers.len();
        self.timers.set(at, &TimerEntry::new(waker));
        self.timers.len() > before
    }

    fn fire(&mut self, second: u32) {
        let due = self.timers.take_due(self.start + second * SECOND);
        due.into_iter().for_each(TimerEntry::fire);
    }

    fn first(&self) -> Option<u32> {
        let first = self.timers.first()?;
        (0..20).find(|&second| self.start + second * SECOND == first)
    }
}

#[test]
fn timers_fire_in_the_order_of_their_times() {
    let (bells, mut set) = (Bells::new(), Set::new());
    for (second, name) in [(3, "c"), (1, "a"), (4, "e"), (1, "b"), (3, "d")] {
        assert!(set.set(second, &bells.bell(name)));
    }
    set.fire(0);
    assert!(bells.rung().is_empty());
    set.fire(3);
    assert_eq!(bells.rung(), ["a", "b", "c", "d"]);
    assert_eq!((set.first(), set.timers.len()), (Some(4), 1));
    set.fire(4);
    assert_eq!(bells.rung(), ["e"]);
    assert_eq!(set.first(), None);
}

#[test]
fn a_waker_has_one_timer_the_earliest() {
    let (bells, mut set) = (Bells::new(), Set::new());
    let (bell, other) = (bells.bell("bell"), bells.bell("other"));
    assert!(set.set(5, &bell));
    assert!(set.set(4, &other));
    assert_eq!(set.first(), Some(4));
    for (second, first) in [(6, 4), (5, 4), (3, 3), (5, 3), (2, 2)] {
        assert!(!set.set(second, &bell.clone()));
        assert_eq!((set.first(), set.timers.len()), (Some(first), 2));
    }
    set.fire(10);
    assert_eq!(bells.rung(), ["bell", "other"]);
    assert!(set.set(11, &bell));
}

#[test]
fn redundant_wakers_are_not_kept() {
    let (bells, mut set) = (Bells::new(), Set::new());
    let kept = Arc::new(());
    let count = || Arc::strong_count(&kept);
    let inside = kept.clone();
    let bell = bells.bell_that("bell", move || drop(inside));
    assert!(set.set(1000, &bell));
    assert!((1..1000).rev().all(|second| !set.set(second, &bell)));
    assert_eq!(set.timers.len(), 1);
    assert!(set.timers.queue.len() <= 64); // their positions neither
    drop(bell);
    assert_eq!(count(), 2);
    set.fire(1);
    assert_eq!((bells.rung(), count()), (vec!["bell"], 1));
}

#[test]
fn all_timers_can_be_removed() {
    let (bells, mut set) = (Bells::new(), Set::new());
    let names = ["a", "b", "c"];
    for (second, name) in (1..).zip(names) {
        set.set(second, &bells.bell(name));
    }
    set.timers.into_all().for_each(TimerEntry::fire);
    assert_eq!(bells.rung(), names);
}
