//! All workloads, and the queues in each.

use crate::measure::Workload;
use crate::peers::{Peer, Plan};
use crate::tally::{Payload, Tally};
use crate::threads::Load;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// The capacity of bounded queues.
const BOUND: usize = 1024;

/// How much the workloads do in each round.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) items: u64,
    /// For how long a receiver waits in vain before items are regarded as lost.
    pub(crate) patience: Duration,
    pub(crate) handles: usize,
    pub(crate) dropped: usize,
    pub(crate) wakes: u64,
    /// How long items are sent at a fixed rate.
    pub(crate) rated: Duration,
    pub(crate) settle: Duration,
    pub(crate) rest: Duration,
}

impl Sizes {
    pub(crate) const FULL: Self = Self {
        items: 500_000,
        patience: Duration::from_secs(10),
        handles: 10_000,
        dropped: 2_000,
        wakes: 16,
        rated: Duration::from_millis(200),
        settle: Duration::from_millis(200),
        rest: Duration::from_secs(2),
    };

    pub(crate) const QUICK: Self = Self {
        items: 400,
        handles: 16,
        dropped: 16,
        wakes: 2,
        rated: Duration::from_millis(2),
        settle: Duration::ZERO,
        rest: Duration::ZERO,
        ..Self::FULL
    };

    fn load(&self) -> Load {
        self.load_of(1)
    }

    /// For pairs of one thread, whose rounds can be so short that they are seldom interrupted.
    fn alone(&self) -> Load {
        self.load_of(10)
    }

    /// One of `parts` equal parts of the items.
    fn load_of(&self, parts: u64) -> Load {
        Load {
            items: (self.items / parts).max(1),
            patience: self.patience,
        }
    }

    fn room(&self) -> usize {
        usize::try_from(self.items).expect("64 bits").max(BOUND)
    }

    fn plan(&self, senders: usize, receivers: usize) -> Plan {
        Plan {
            senders,
            receivers,
            bound: None,
            room: self.room(),
        }
    }

    fn bounded(&self, senders: usize, receivers: usize, bound: usize) -> Plan {
        Plan {
            bound: Some(bound),
            ..self.plan(senders, receivers)
        }
    }
}

/// The subjects of a workload: its function for each of the peers, and these items.
macro_rules! each {
    ($item:ty: $function:ident $arguments:tt for $($peer:ident),+ $(; cpp $($cpp:ident),+)?) => {
        Vec::from([
            $($function::<$crate::peers::$peer, $item> $arguments,)+
            $($(#[cfg(feature = "cpp")] $function::<$crate::peers::$cpp, $item> $arguments,)+)?
        ])
    };
}

/// For all queues of this crate and others that take several senders, several receivers and any items.
macro_rules! mpmc {
    ($item:ty: $function:ident $arguments:tt $(; cpp $($cpp:ident),+)?) => {
        each!($item: $function $arguments for Plain, Transactional, Direct, SegQueue, ArrayQueue, Crossbeam, Injector,
            ConcurrentQueue, Flume, Kanal, AsyncChannel, ThingBuf, Locked $(; cpp $($cpp),+)?)
    };
}

/// For all queues that support this number of senders and receivers.
macro_rules! all {
    ($senders:expr, $receivers:expr; $function:ident $arguments:tt) => {{
        let mut subjects = mpmc!(u64: $function $arguments; cpp Moodycamel, MoodycamelImplicit, Tbb);
        if $receivers == 1 {
            subjects.extend(each!(u64: $function $arguments for StdUnbounded, TokioUnbounded));
        }
        if $senders == 1 && $receivers == 1 {
            subjects.extend(each!(u64: $function $arguments for Rtrb));
        }
        subjects
    }};
}

/// For all bounded queues that support this number of senders and receivers.
macro_rules! all_bounded {
    ($senders:expr, $receivers:expr; $function:ident $arguments:tt) => {{
        let mut subjects = each!(u64: $function $arguments for Plain, Transactional, Direct, ArrayQueue, Crossbeam,
            ConcurrentQueue, Flume, Kanal, AsyncChannel, ThingBuf, Locked);
        if $receivers == 1 {
            subjects.extend(each!(u64: $function $arguments for StdBounded, TokioBounded));
        }
        if $senders == 1 && $receivers == 1 {
            subjects.extend(each!(u64: $function $arguments for Rtrb));
        }
        subjects
    }};
}

// After the macros, which they use.
mod alone;
mod at_rest;
mod batches;
mod bounded;
mod closed_drain;
mod crowd;
mod deliveries;
mod ended_threads;
mod latency;
mod memory;
mod orders;
mod payloads;
mod rank;
mod round_trip;
mod served_waiter;
mod stickiness;
pub(crate) mod stream;
mod waiting;
pub(crate) mod wake;

pub(crate) fn workloads(sizes: Sizes) -> Vec<Workload> {
    [
        stream::workloads,
        alone::workloads,
        batches::workloads,
        deliveries::workloads,
        bounded::workloads,
        waiting::workloads,
        round_trip::workloads,
        wake::workloads,
        crowd::workloads,
        closed_drain::workloads,
        ended_threads::workloads,
        served_waiter::workloads,
        orders::workloads,
        payloads::workloads,
        rank::workloads,
        stickiness::workloads,
        latency::workloads,
        memory::workloads,
        at_rest::workloads,
    ]
    .iter()
    .flat_map(|workloads| workloads(sizes))
    .collect()
}

/// A queue with one end of each kind.
fn one_each<P: Peer<T>, T: Payload>() -> (P::Sender, P::Receiver) {
    one_each_with_room::<P, T>(BOUND)
}

fn one_each_with_room<P: Peer<T>, T: Payload>(room: usize) -> (P::Sender, P::Receiver) {
    let (mut senders, mut receivers) = P::open(Plan {
        senders: 1,
        receivers: 1,
        bound: None,
        room,
    });
    (senders.remove(0), receivers.remove(0))
}

/// "1 thread", "2 threads".
fn of_threads(threads: usize) -> String {
    format!("{threads} thread{}", if threads == 1 { "" } else { "s" })
}

/// What the items with these numbers amount to.
fn items(numbers: impl Iterator<Item = u64>) -> Tally {
    let mut tally = Tally::default();
    numbers.for_each(|number| tally.add(number));
    tally
}

fn current_thread() -> Runtime {
    let runtime = Builder::new_current_thread().build();
    runtime.expect("a runtime")
}

fn multi_thread() -> Runtime {
    let runtime = Builder::new_multi_thread().worker_threads(2).build();
    runtime.expect("a runtime")
}
