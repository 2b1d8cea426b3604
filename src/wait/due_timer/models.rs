//! Loom models of the backup against threads that plan. Their weakenings are in the table of `tests/loom/main.rs`.

use super::DueTimer;
use crate::sync::model::model;
use crate::time::{Time, START};
use crate::wait::models::Alone;
use crate::wait::{WaitQueue, WaitWord, Waiter, Waits};
use crate::ManualClock;
use loom::thread;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Duration;

/// Later than the grace period of the leader.
const LATE: Duration = Duration::from_secs(1);

/// A waker that records whether it was called.
#[derive(Default)]
struct Bell(AtomicBool);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A due timer, its clock, and a bell that waits in its wait queue.
fn due_timer() -> (Arc<DueTimer>, ManualClock, Arc<Bell>) {
    let (clock, bell) = (ManualClock::new(), Arc::new(Bell::default()));
    let wait_queue = WaitQueue::new(WaitWord::default(), false);
    let due_timer = DueTimer::new(Time::new(Some(Arc::new(clock.clone()))), wait_queue, None);
    let waker = Waker::from(Arc::clone(&bell));
    let mut wait = Alone {
        waiter: &mut Waiter::default(),
        wait_queue: due_timer.wait_queue(),
        gathers: false,
        attempt: |_: &Waiter| None,
    };
    let poll = wait.poll(&waker);
    assert!(poll.is_pending());
    (due_timer, clock, bell)
}

/// Plans something, and schedules the backup, on another thread.
fn plans(due_timer: &Arc<DueTimer>) -> thread::JoinHandle<()> {
    let due_timer = Arc::clone(due_timer);
    thread::spawn(move || {
        due_timer.plan(START + 1);
        due_timer.call_backup();
    })
}

#[test]
fn a_plan_against_the_backup() {
    model(|| {
        let (due_timer, clock, bell) = due_timer();
        due_timer.expect_tasks();
        due_timer.plan(START);
        due_timer.call_backup();
        due_timer.clear();
        let other = plans(&due_timer);
        clock.advance(LATE / 10);
        other.join().unwrap();
        clock.advance(LATE);
        assert!(bell.0.load(Ordering::Relaxed));
    });
}

#[test]
fn a_plan_against_the_first_task() {
    model(|| {
        let (due_timer, clock, bell) = due_timer();
        let other = plans(&due_timer);
        due_timer.expect_tasks();
        due_timer.call_backup();
        other.join().unwrap();
        clock.advance(LATE);
        assert!(bell.0.load(Ordering::Relaxed));
    });
}
