//! All scenarios, and their contenders.

use crate::kinds::{AsyncChannel, Crossbeam, Flume, Kanal, Requeue, Std, Tokio};
use crate::report::{Scenario, Target};
use crate::{idle, latency, round_trip, stream};
use requeue::{Pace, Queue};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

const PLAIN: &str = "requeue";
const UNBOUNDED: &str = "requeue, unbounded";

/// The amount of work per round.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    trips: u32,
    items: u32,
    capacity: usize,
    wakes: usize,
    settle: Duration,
    idle: Duration,
}

impl Sizes {
    pub(crate) const FULL: Self = Self {
        trips: 2_000,
        items: 100_000,
        capacity: 1024,
        wakes: 16,
        settle: Duration::from_millis(200),
        idle: Duration::from_secs(2),
    };

    #[cfg(test)]
    pub(crate) const TINY: Self = Self {
        trips: 10,
        items: 200,
        capacity: 8,
        wakes: 2,
        settle: Duration::ZERO,
        idle: Duration::ZERO,
    };
}

/// The contenders of a scenario: its function for each of the kinds.
macro_rules! each {
    ($module:ident :: $function:ident $arguments:tt, [$($kind:ty),+]) => {
        vec![$($module::$function::<$kind> $arguments),+]
    };
}

/// All scenarios, with queues ready to run.
pub(crate) fn scenarios(sizes: Sizes) -> Vec<Scenario> {
    let mut scenarios = round_trips(sizes);
    scenarios.extend(streams(sizes));
    scenarios.extend(wake_ups(sizes));
    scenarios.push(waiters_at_rest(sizes));
    scenarios.extend(other_orders(sizes));
    scenarios
}

fn round_trips(Sizes { trips, .. }: Sizes) -> Vec<Scenario> {
    let mut scenarios = vec![Scenario::new(
        "round trip, two threads",
        each!(
            round_trip::threads(trips),
            [Requeue, Crossbeam, Flume, Kanal, AsyncChannel, Std]
        ),
        vec![Target::Best],
    )];
    let runtimes = [
        ("round trip, tasks, 1 thread", current_thread()),
        ("round trip, tasks, 2 threads", multi_thread()),
    ];
    for (name, runtime) in runtimes {
        let runtime = Arc::new(runtime);
        scenarios.push(Scenario::new(
            name,
            each!(
                round_trip::tasks(&runtime, trips),
                [Requeue, AsyncChannel, Flume, Kanal, Tokio]
            ),
            vec![Target::Best],
        ));
    }
    scenarios
}

fn streams(sizes: Sizes) -> Vec<Scenario> {
    let Sizes {
        items, capacity, ..
    } = sizes;
    let one_to_one = each!(
        stream::one_to_one(items),
        [Requeue, Crossbeam, Flume, Kanal, AsyncChannel, Std]
    );
    let mut waiting = each!(
        stream::bounded(capacity, items),
        [Requeue, Crossbeam, Flume, Kanal, AsyncChannel]
    );
    waiting.push(stream::unbounded(UNBOUNDED, items));
    let roomy = items as usize;
    let trying = vec![
        stream::trying(UNBOUNDED, &Queue::unbounded(), items),
        stream::trying("requeue, never full", &Queue::bounded(roomy), items),
        stream::trying("requeue, bounded", &Queue::bounded(capacity), items),
    ];
    vec![
        Scenario::new("1P1C, unbounded, waiting", one_to_one, vec![Target::Best]),
        Scenario::new(
            "2P2C, bounded, waiting",
            waiting,
            vec![Target::Times(1.3, UNBOUNDED), Target::Best],
        ),
        Scenario::new("2P2C, bounded, trying", trying, Vec::new()),
    ]
}

fn wake_ups(Sizes { wakes, .. }: Sizes) -> Vec<Scenario> {
    let runtime = &Arc::new(current_thread());
    let threads = each!(
        latency::of_a_thread(wakes),
        [Requeue, Crossbeam, Flume, Kanal, AsyncChannel, Std]
    );
    let tasks = each!(
        latency::of_a_task(runtime, wakes),
        [Requeue, AsyncChannel, Flume, Kanal, Tokio]
    );
    vec![
        Scenario::new("wake a sleeping thread", threads, vec![Target::Best]),
        Scenario::new("wake a sleeping task", tasks, vec![Target::Best]),
    ]
}

fn other_orders(Sizes { items, .. }: Sizes) -> Vec<Scenario> {
    use crate::orders::{
        alone, by_priority, fair, paced, plain, two_to_two, LockedHeap, LockedRounds, SkipList,
    };
    let rounds = LockedRounds::default();
    let fairly = vec![
        two_to_two("requeue, by key", fair(), items),
        two_to_two("Mutex, HashMap", move || rounds.clone(), items),
    ];
    let heap = LockedHeap::default();
    let list = SkipList::default();
    let urgently = vec![
        two_to_two("requeue, by priority", by_priority(), items),
        two_to_two("Mutex, BinaryHeap", move || heap.clone(), items),
        two_to_two("crossbeam-skiplist", move || list.clone(), items),
    ];
    let endless = Pace::rate(u32::MAX, Duration::from_secs(1)).burst(u32::MAX);
    let choices = vec![
        alone(PLAIN, plain()(), items),
        alone("requeue, by key", fair()(), items),
        alone("requeue, by priority", by_priority()(), items),
        alone("requeue, unlimited", paced(Pace::unlimited())(), items),
        alone("requeue, fast pace", paced(endless)(), items),
    ];
    let plain_pace = vec![
        alone("requeue, unlimited", paced(Pace::unlimited())(), items),
        alone(PLAIN, plain()(), items),
    ];
    vec![
        Scenario::new(
            "orders, 2P2C, 1000 keys",
            fairly,
            vec![Target::Times(0.334, "Mutex, HashMap")],
        ),
        Scenario::new("orders, 2P2C, priorities", urgently, vec![Target::Best]),
        Scenario::new("orders, push+pop", choices, Vec::new()),
        Scenario::new(
            "orders, push+pop, paced",
            plain_pace,
            vec![Target::Times(2.0, PLAIN)],
        ),
    ]
}

fn waiters_at_rest(sizes: Sizes) -> Scenario {
    let contenders = each!(
        idle::idle(sizes.settle, sizes.idle),
        [Requeue, AsyncChannel, Flume, Kanal]
    );
    Scenario {
        unit: "ms",
        long: true,
        ..Scenario::new(
            "64 waiters at rest, CPU",
            contenders,
            vec![Target::Units(10.0)],
        )
    }
}

fn current_thread() -> Runtime {
    let runtime = Builder::new_current_thread().build();
    runtime.expect("a runtime")
}

/// Two threads.
pub(crate) fn multi_thread() -> Runtime {
    let runtime = Builder::new_multi_thread().worker_threads(2).build();
    runtime.expect("a runtime")
}
