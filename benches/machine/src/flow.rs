//! Passes items from threads that push to threads that pop.

use crate::costs::CALL;
use crate::ends::{End, Plan, Subject};
use crate::threads::{compute, now, run, Counts};
use requeue::machine::yield_now;
use std::cell::Cell;
use std::rc::Rc;

/// What a run has shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) items: u64,
    /// From the first start to the last end.
    pub(crate) ticks: u64,
    pub(crate) counts: Counts,
    /// The longest time from when a thread began to try until it had pushed, or had an item.
    pub(crate) worst: u64,
}

/// What all threads count, without a cost.
#[derive(Default)]
struct Tally {
    pushing: Cell<usize>,
    received: Cell<u64>,
    sum: Cell<u64>,
    worst: Cell<u64>,
    end: Cell<u64>,
}

/// Runs a subject.
///
/// # Panics
///
/// The queue has lost items, or delivered them twice.
pub(crate) fn pass(subject: &Subject, plan: Plan, seed: u64) -> Outcome {
    let tally = Rc::new(Tally::default());
    let pushers = plan.threads.div_ceil(2);
    tally.pushing.set(pushers);
    let threads = (subject.open)(plan).into_iter().enumerate();
    let work = |(number, mut end): (usize, Box<dyn End>)| {
        let tally = Rc::clone(&tally);
        let of_pusher = |pusher| (plan.items * pusher / pushers) as u64;
        let part = of_pusher(number / 2)..of_pusher(number / 2 + 1);
        let (items, is_alone) = (plan.items as u64, plan.threads == 1);
        let work = move || {
            if is_alone {
                part.for_each(|item| {
                    push(&mut *end, item, &tally);
                    while !pop(&mut *end, 1 + item, &tally) {}
                });
            } else if number % 2 == 0 {
                part.for_each(|item| push(&mut *end, item, &tally));
                tally.pushing.set(tally.pushing.get() - 1);
                if tally.pushing.get() == 0 {
                    end.close();
                }
            } else {
                while pop(&mut *end, items, &tally) {}
            }
            tally.end.set(tally.end.get().max(now()));
        };
        Box::new(work) as Box<dyn FnOnce()>
    };
    let counts = run(seed, threads.map(work).collect());
    let items = plan.items as u64;
    let all = (items, items * (items - 1) / 2);
    assert_eq!(
        (tally.received.get(), tally.sum.get()),
        all,
        "{}",
        subject.name
    );
    Outcome {
        items,
        ticks: tally.end.get(),
        counts,
        worst: tally.worst.get(),
    }
}

fn push(end: &mut dyn End, item: u64, tally: &Tally) {
    let start = now();
    compute(CALL);
    while !end.push(item) {
        yield_now();
        compute(CALL);
    }
    tally.worst.set(tally.worst.get().max(now() - start));
}

/// Pops an item, unless this number of items is received: then it returns false.
fn pop(end: &mut dyn End, items: u64, tally: &Tally) -> bool {
    let start = now();
    while tally.received.get() < items {
        compute(CALL);
        if let Some(item) = end.pop() {
            tally.received.set(tally.received.get() + 1);
            tally.sum.set(tally.sum.get() + item);
            tally.worst.set(tally.worst.get().max(now() - start));
            return true;
        }
        yield_now();
    }
    false
}
