//! Loom models of the limiter.
//!
//! A lock guards the whole state, so there are no orderings to weaken: the models check that each step is atomic.

use super::gcra::Gcra;
use crate::sync::model::model;
use loom::thread;
use std::sync::Arc;
use std::time::Duration;

const START: u64 = 1 << 62;

/// A limiter with an interval of ten nanoseconds.
fn gcra(burst: u32) -> Arc<Gcra> {
    Arc::new(Gcra::new(Duration::from_nanos(10), burst))
}

/// Takes a slot at the given time on another thread.
fn taker(gcra: &Arc<Gcra>, at: u64) -> thread::JoinHandle<bool> {
    let gcra = Arc::clone(gcra);
    thread::spawn(move || gcra.take(START + at).is_ok())
}

#[test]
fn starts_are_an_interval_apart() {
    model(|| {
        let gcra = gcra(1);
        let others = [5, 14].map(|at| taker(&gcra, at));
        let mine = gcra.take(START + 8).is_ok();
        let taken = others.map(|other| other.join().unwrap());
        let starts = u32::from(taken[0]) + u32::from(taken[1]) + u32::from(mine);
        assert_eq!(starts, 1, "all are closer together than ten");
    });
}

#[test]
fn a_burst_is_used_up_once() {
    model(|| {
        let gcra = gcra(2);
        let others = [0, 0].map(|at| taker(&gcra, at));
        let mine = gcra.take(START).is_ok();
        let taken = others.map(|other| other.join().unwrap());
        let starts = u32::from(taken[0]) + u32::from(taken[1]) + u32::from(mine);
        assert_eq!(starts, 2);
        assert_eq!(gcra.take(START), Err(START + 10));
    });
}

#[test]
fn a_refunded_turn_is_not_lost() {
    model(|| {
        let gcra = gcra(3);
        assert!(gcra.take(START).is_ok());
        let other = taker(&gcra, 0);
        gcra.refund(START, START);
        assert!(other.join().unwrap());
        assert!(gcra.take(START).is_ok());
        assert!(gcra.take(START).is_ok());
        assert_eq!(gcra.take(START), Err(START + 10));
    });
}

#[test]
fn a_turn_is_cancelled_once_and_for_all() {
    model(|| {
        let gcra = gcra(1);
        assert!(gcra.take(START).is_ok());
        let other = taker(&gcra, 4);
        gcra.refund(START, START + 4);
        let started = other.join().unwrap();
        assert_eq!(gcra.take(START + 13).is_ok(), !started);
        assert!(!started || gcra.take(START + 14).is_ok());
    });
}

#[test]
fn another_interval_forgets_no_start() {
    model(|| {
        let gcra = gcra(1);
        assert!(gcra.take(START).is_ok());
        let other = taker(&gcra, 10);
        gcra.set_interval(Duration::from_nanos(30));
        let last = if other.join().unwrap() { 10 } else { 0 };
        assert_eq!(gcra.take(START + last + 29), Err(START + last + 30));
        assert!(gcra.take(START + last + 30).is_ok());
    });
}
