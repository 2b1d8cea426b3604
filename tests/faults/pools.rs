//! Panics of user code in a pool of workers: the pool lives on, and every item is done or dead.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::amount::faults;
use crate::common::ends;
use crate::plan::{unless_planned, Alive, Call, Fault, Plan};
use crate::probes::{Probe, ProbeClock, ProbeError};
use crate::tour::limiter;
use requeue::{Backoff, Builder, Order, PopError, Queue, SystemClock, Workers};

const ITEMS: usize = 12;

/// An error whose text is that of a probe.
struct RunError(ProbeError);

impl fmt::Debug for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

fn build<O: Order<Probe>>(builder: Builder<Probe, O>, plan: &Arc<Plan>) -> Queue<Probe, O> {
    builder
        .max_attempts(4)
        .backoff(Backoff::fixed(Duration::from_micros(10)))
        .pace(limiter(plan))
        .max_held(2)
        .clock(ProbeClock(SystemClock, Alive::new(plan)))
        .name("pool")
        .build()
}

/// Runs all items; some runs fail at first, and their error handlers may panic too.
fn run<O: Order<Probe> + 'static>(
    queue: &Queue<Probe, O>,
    plan: &Arc<Plan>,
    threads: usize,
) -> u64 {
    let hooks = [(); 3].map(|()| Arc::clone(plan));
    let [on_error, on_panic, body] = hooks;
    let workers = Workers::builder(queue)
        .threads(threads)
        .on_error(move |_| on_error.reach(Call::Overflow))
        .on_panic(move |_, _| on_panic.reach(Call::Visit))
        .run(move |item, tx| {
            body.reach(Call::Body);
            if item.id % 3 == 0 && item.attempts() == 1 {
                return Err(RunError(ProbeError(Arc::clone(&body))));
            }
            let follow_up = Probe::new(ITEMS, &body);
            if item.id % 3 == 1 {
                drop(tx.push(follow_up));
            }
            Ok(())
        });
    workers.join().done
}

fn assert_pool_survives<O: Order<Probe> + 'static>(
    build_order: fn() -> Builder<Probe, O>,
    call: Call,
    number: u64,
    threads: usize,
) -> bool {
    let plan = Plan::new(call, number, Fault::Panic);
    let what = format!("panic {number} of {call:?}");
    let queue = build(build_order(), &plan);
    for id in 0..ITEMS {
        assert!(queue.push(Probe::new(id, &plan)).is_ok());
    }
    queue.close();
    plan.arm(true);
    let done = run(&queue, &plan, threads);
    plan.arm(false);
    let stats = queue.stats();
    stats
        .check()
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(queue.pop().err(), Some(PopError::Closed), "{what}");
    assert_eq!(stats.committed + stats.dead, stats.pushed, "{what}");
    assert_eq!(stats.committed, done, "{what}");
    assert!(
        stats.pushed >= ITEMS as u64 && stats.dead <= 1,
        "{what}: {stats:?}"
    );
    drop(queue);
    assert_eq!((plan.slots(), plan.alive()), (0, 0), "{what}: leaked");
    plan.was_carried_out()
}

fn assert_pools_survive<O: Order<Probe> + 'static>(build: fn() -> Builder<Probe, O>) {
    for (call, threads) in Call::ALL.iter().flat_map(|call| [(*call, 1), (*call, 2)]) {
        for number in faults(4).take_while(|number| *number <= 100) {
            let play = move || assert_pool_survives(build, call, number, threads);
            let played = unless_planned(|| ends(play));
            match played {
                Some(true) => {}
                Some(false) => break,
                None => panic!("{call:?} panics outside of a run"),
            }
        }
    }
}

#[test]
fn a_pool_of_workers_survives_panics() {
    assert_pools_survive(Queue::builder);
}

#[test]
fn a_pool_of_workers_with_leases_survives_panics() {
    assert_pools_survive(|| Queue::builder().leased(Duration::from_secs(60)));
}
