//! Loom models of the reserve, against those who plan. Their weakenings are in the table of `tests/loom/main.rs`.

use super::Agenda;
use crate::sync::model::model;
use crate::time::Time;
use crate::wait::{Kind, Line, Place, Wanted, Word};
use crate::ManualClock;
use loom::thread;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Duration;

/// Later than a waiter may be.
const LATE: Duration = Duration::from_secs(1);

/// A waker that says whether it was called.
#[derive(Default)]
struct Bell(AtomicBool);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// An agenda, its clock, and a bell in its line.
fn agenda() -> (Arc<Agenda>, ManualClock, Arc<Bell>) {
    let (clock, bell) = (ManualClock::new(), Arc::new(Bell::default()));
    let line = Arc::new(Line::new(Word::standing(false, false)));
    let agenda = Agenda::new(Time::of(Arc::new(clock.clone())), Arc::clone(&line));
    let waker = Waker::from(Arc::clone(&bell));
    let mut place = &mut Place::default();
    let nothing = |_: &mut _| None::<()>;
    let poll = Place::poll(
        &mut place,
        Wanted::Item,
        &line,
        Kind::One,
        &waker,
        |_| true,
        nothing,
    );
    assert!(poll.is_pending());
    (agenda, clock, bell)
}

/// Plans something, and tells the reserve.
fn plans(agenda: &Arc<Agenda>) -> thread::JoinHandle<()> {
    let agenda = Arc::clone(agenda);
    thread::spawn(move || {
        agenda.plan(1);
        agenda.call_reserve();
    })
}

#[test]
fn a_plan_against_the_reserve() {
    model(|| {
        let (agenda, clock, bell) = agenda();
        agenda.expect_tasks();
        agenda.plan(0);
        agenda.call_reserve();
        agenda.clear();
        let other = plans(&agenda);
        clock.advance(LATE / 10);
        other.join().unwrap();
        clock.advance(LATE);
        assert!(bell.0.load(Ordering::Relaxed));
    });
}

#[test]
fn a_plan_against_the_first_task() {
    model(|| {
        let (agenda, clock, bell) = agenda();
        let other = plans(&agenda);
        agenda.expect_tasks();
        agenda.call_reserve();
        other.join().unwrap();
        clock.advance(LATE);
        assert!(bell.0.load(Ordering::Relaxed));
    });
}
