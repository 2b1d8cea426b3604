//! The queues, which live as long as the soak, and what is checked of each.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;

use requeue::{
    Backoff, ByKey, ByPriority, Fifo, Handle, Leased, Order, PriorityQueue, Queue, Transaction,
};

use super::counts::{Counter, Counts};
use super::ledger::{Job, Ledger};
use super::rng::Rng;

/// Number of keys.
pub(crate) const KEYS: u8 = 16;
/// Holding an item for longer than this is not rare here.
const TERM: Duration = Duration::from_millis(1);
const SHORT: Duration = Duration::from_micros(500);

pub(crate) type Keys = u8;
pub(crate) type Keyed = ByKey<Keys, Job>;

/// An order, and how items with a priority or a delay are pushed if it has them.
pub(crate) trait Put: Order<Job> + Sized + 'static {
    /// Pushes through a handle, with the priority of the job. `false` if it is refused.
    fn push(handle: &mut Handle<Job, Self>, job: Job, _delay: Option<Duration>) -> bool {
        handle.push(job).is_ok()
    }

    /// Stages in a transaction.
    fn stage(tx: &Transaction<'_, Job, Self>, job: Job) -> bool {
        tx.push(job).is_ok()
    }

    /// The job as it is pushed in this order.
    fn prepared(job: Job) -> Job {
        job
    }
}

impl Put for Fifo {}
impl Put for Leased<Fifo> {}
impl Put for Keyed {}
impl Put for Leased<Keyed> {}

impl Put for ByPriority {
    fn push(handle: &mut Handle<Job, Self>, job: Job, delay: Option<Duration>) -> bool {
        let view = handle.priority(job.priority);
        match delay {
            Some(delay) => view.after(delay).push(job).is_ok(),
            None => view.push(job).is_ok(),
        }
    }

    fn stage(tx: &Transaction<'_, Job, Self>, job: Job) -> bool {
        tx.priority(job.priority).push(job).is_ok()
    }

    fn prepared(job: Job) -> Job {
        let priority = 1 + u16::from(job.key);
        Job { priority, ..job }
    }
}

/// What a queue promises in addition to loss and duplication.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum InOrder {
    /// The items of a handle come in their order.
    Handle,
    /// The items of a handle with the same key come in their order.
    Key,
    /// By priority, which is checked when nothing else uses the queue.
    Priority,
    /// It is not checked: items are looked at, and others overtake them meanwhile.
    No,
}

/// What is checked of a queue.
pub(crate) struct Rules {
    pub(crate) id: u8,
    pub(crate) name: &'static str,
    pub(crate) leased: bool,
    pub(crate) in_order: InOrder,
    pub(crate) max_held: usize,
    /// For a serial queue: whether an item of the key is held.
    pub(crate) busy: Option<Box<[AtomicBool]>>,
    pub(crate) held: AtomicUsize,
    pub(crate) pushed: Counter,
}

impl Rules {
    fn new(id: u8, name: &'static str, in_order: InOrder) -> Self {
        Self {
            id,
            name,
            leased: false,
            in_order,
            max_held: usize::MAX,
            busy: None,
            held: AtomicUsize::new(0),
            pushed: Counter::default(),
        }
    }

    /// Of the short-lived queues.
    pub(crate) fn of_pool() -> Self {
        Self::new(7, "pool", InOrder::No)
    }

    /// Whether items may be looked at here.
    pub(crate) fn may_peek(&self) -> bool {
        matches!(self.in_order, InOrder::No | InOrder::Priority)
    }
}

pub(crate) struct Lane<O: Order<Job>> {
    pub(crate) queue: Queue<Job, O>,
    pub(crate) rules: Rules,
}

impl<O: Put> Lane<O> {
    /// A new item for this queue; `None` if the round has had all of its items.
    pub(crate) fn job(&self, ledger: &Ledger, stream: u32, rng: &mut Rng) -> Option<Job> {
        let key = u8::try_from(rng.below(u16::from(KEYS))).expect("there are few keys");
        let number = ledger.number()?;
        Some(self.numbered(ledger, number, stream, key))
    }

    pub(crate) fn numbered(&self, ledger: &Ledger, number: u32, stream: u32, key: u8) -> Job {
        Job {
            round: ledger.round(),
            number,
            stream,
            priority: PriorityQueue::<Job>::DEFAULT_PRIORITY,
            lane: self.rules.id,
            key,
        }
    }

    /// Records that the push of `job` was committed.
    pub(crate) fn accept(&self, ledger: &Ledger, counts: &Counts, job: &Job) {
        ledger.pushed(job);
        counts.pushed.one();
        self.rules.pushed.one();
    }

    /// Records that the pop of `job` was committed.
    pub(crate) fn consume(&self, ledger: &Ledger, counts: &Counts, job: &Job) {
        if job.lane != self.rules.id {
            ledger.fault(format_args!("{job:?} was popped from {}", self.rules.name));
        }
        ledger.consumed(job);
        counts.committed.one();
    }

    /// The limits hold at any time.
    pub(crate) fn check_limits(&self, ledger: &Ledger) {
        let Some(capacity) = self.queue.capacity() else {
            return;
        };
        let (len, ready) = (self.queue.len(), self.queue.stats().ready);
        if len.max(usize::try_from(ready).unwrap_or(usize::MAX)) > capacity {
            let name = self.rules.name;
            ledger.fault(format_args!(
                "{name}: {len} items, {ready} ready, in room for {capacity}"
            ));
        }
    }
}

/// Marks a key as held or not. `false` if it was already.
pub(crate) fn mark_busy(busy: &AtomicBool, value: bool) -> bool {
    // ORDERING: AcqRel, so that the marks of two holders, one after the other, are seen in that order even if the
    // queue did not order them.
    busy.swap(value, Ordering::AcqRel) != value
}

pub(crate) struct Lanes {
    pub(crate) plain: Lane<Fifo>,
    pub(crate) bounded: Lane<Fifo>,
    pub(crate) leased: Lane<Leased<Fifo>>,
    pub(crate) leased_by_key: Lane<Leased<Keyed>>,
    pub(crate) serial: Lane<Keyed>,
    pub(crate) fair: Lane<Keyed>,
    pub(crate) priority: Lane<ByPriority>,
}

/// Does the same with each queue, whatever its order.
macro_rules! each_lane {
    ($lanes:expr, $lane:ident => $call:expr) => {{
        let lanes = &$lanes;
        each_lane!(lanes, $lane => $call; plain bounded leased leased_by_key serial fair priority);
    }};
    ($lanes:ident, $lane:ident => $call:expr; $($name:ident)*) => {
        $({
            let $lane = &$lanes.$name;
            $call;
        })*
    };
}
pub(crate) use each_lane;

/// Few enough that the workers reach it.
const BOUNDED_HELD: usize = 8;

impl Lanes {
    pub(crate) fn new(ledger: &Arc<Ledger>, counts: &Arc<Counts>) -> Self {
        Self {
            plain: plain(),
            bounded: bounded(),
            leased: leased(ledger, counts),
            leased_by_key: leased_by_key(),
            serial: serial(),
            fair: fair(),
            priority: priority(),
        }
    }
}

/// A FIFO queue with few options. It has no clock to read until an item is retried.
fn plain() -> Lane<Fifo> {
    Lane {
        queue: Queue::builder()
            .max_attempts(4)
            .max_dead_letters(64)
            .build(),
        rules: Rules::new(0, "plain", InOrder::Handle),
    }
}

/// Producers wait for room here, consumers may be limited too.
fn bounded() -> Lane<Fifo> {
    let queue = Queue::builder()
        .capacity(128)
        .max_held(BOUNDED_HELD)
        .backoff(Backoff::exponential(SHORT / 4, SHORT).with_jitter())
        .timestamps()
        .name("bounded");
    let rules = Rules::new(1, "bounded", InOrder::No);
    Lane {
        queue: queue.build(),
        rules: Rules {
            max_held: BOUNDED_HELD,
            ..rules
        },
    }
}

/// Dead letters that are too many are handed to a function.
fn leased(ledger: &Arc<Ledger>, counts: &Arc<Counts>) -> Lane<Leased<Fifo>> {
    let (ledger, counts) = (Arc::clone(ledger), Arc::clone(counts));
    let queue = Queue::builder()
        .leased(TERM)
        .max_attempts(5)
        .max_dead_letters(4)
        .on_dead_overflow(move |letter| {
            ledger.consumed(&letter.item);
            counts.letters.one();
        });
    let rules = Rules::new(2, "leased", InOrder::Handle);
    Lane {
        queue: queue.build(),
        rules: Rules {
            leased: true,
            ..rules
        },
    }
}

fn leased_by_key() -> Lane<Leased<Keyed>> {
    let queue = Queue::builder()
        .fair_by(|job: &Job| job.key)
        .leased(TERM)
        .capacity(512)
        .max_attempts(8);
    let rules = Rules::new(3, "leased by key", InOrder::No);
    Lane {
        queue: queue.build(),
        rules: Rules {
            leased: true,
            ..rules
        },
    }
}

/// One item of a key at a time.
fn serial() -> Lane<Keyed> {
    let queue = Queue::builder()
        .fair_by(|job: &Job| job.key)
        .serial()
        .max_attempts(6);
    let rules = Rules::new(4, "serial", InOrder::Key);
    let busy = (0..KEYS).map(|_| AtomicBool::new(false)).collect();
    Lane {
        queue: queue.build(),
        rules: Rules {
            busy: Some(busy),
            ..rules
        },
    }
}

fn fair() -> Lane<Keyed> {
    let queue = Queue::builder()
        .fair_by(|job: &Job| job.key)
        .key_capacity(64)
        .max_attempts(3)
        .backoff(Backoff::fixed(SHORT));
    Lane {
        queue: queue.build(),
        rules: Rules::new(5, "fair", InOrder::No),
    }
}

fn priority() -> Lane<ByPriority> {
    let queue = Queue::builder().by_priority().max_attempts(6);
    Lane {
        queue: queue.build(),
        rules: Rules::new(6, "priority", InOrder::Priority),
    }
}
