//! What a thread does with a queue.

use crate::models::{
    ArrayQueue, Consumer, LockedDeque, Padded, PerProducer, Producer, SegmentQueue,
};
use requeue::{ByKey, ByPriority, FairQueue, Handle, Order, PriorityQueue, Queue};
use std::rc::Rc;

/// The items of a bounded queue.
pub(crate) const BOUND: usize = 1024;
/// Numbers of keys and of priorities among the items.
const KEYS: u64 = 1000;
const PRIORITIES: u64 = 9999;
/// One of this number of transactions aborts.
const ABORTED: u64 = 10;

/// One side of a queue, or both.
pub(crate) trait End {
    /// False: there is no room.
    fn push(&mut self, item: u64) -> bool;

    /// `None`: there is no item, or, if it waits for one, there will be none.
    fn pop(&mut self) -> Option<u64>;

    /// Called when all items are pushed.
    fn close(&self) {}
}

/// Handles share no line with each other, as if each thread had made its own. Without this those of two neighbours do, depending
/// on their size.
impl<E: End> End for Padded<E> {
    fn push(&mut self, item: u64) -> bool {
        self.0.push(item)
    }

    fn pop(&mut self) -> Option<u64> {
        self.0.pop()
    }

    fn close(&self) {
        self.0.close();
    }
}

/// The threads of a run, and the items that they pass.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) threads: usize,
    pub(crate) items: usize,
}

/// A kind of queue, used in some way.
pub(crate) struct Subject {
    pub(crate) name: &'static str,
    /// The ends of all threads: those with even numbers push, the others pop. A single one does both.
    pub(crate) open: fn(Plan) -> Vec<Box<dyn End>>,
}

fn ends<E: End + 'static>(plan: Plan, make: impl FnMut(usize) -> E) -> Vec<Box<dyn End>> {
    let boxed = |end| Box::new(Padded(end)) as Box<dyn End>;
    (0..plan.threads).map(make).map(boxed).collect()
}

/// Spreads numbers.
fn spread(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32
}

struct Plain(Handle<u64>);

impl End for Plain {
    fn push(&mut self, item: u64) -> bool {
        self.0.push(item).is_ok()
    }

    fn pop(&mut self) -> Option<u64> {
        self.0.pop().ok()
    }
}

struct Waiting(Handle<u64>);

impl End for Waiting {
    fn push(&mut self, item: u64) -> bool {
        self.0.push_blocking(item).is_ok()
    }

    fn pop(&mut self) -> Option<u64> {
        self.0.pop_blocking().ok()
    }

    fn close(&self) {
        self.0.queue().close();
    }
}

/// Aborts some of its transactions, if it is to.
struct Transactions {
    handle: Handle<u64>,
    aborts: bool,
    count: u64,
}

impl End for Transactions {
    fn push(&mut self, item: u64) -> bool {
        let tx = self.handle.begin();
        let pushed = tx.push(item).is_ok();
        tx.commit();
        pushed
    }

    fn pop(&mut self) -> Option<u64> {
        let tx = self.handle.begin();
        let item = *tx.pop().ok()?;
        self.count += 1;
        if self.aborts && self.count.is_multiple_of(ABORTED) {
            tx.abort();
            return None;
        }
        tx.commit();
        Some(item)
    }
}

/// Passes items in batches, by transactions if it is to.
struct Batches {
    handle: Handle<u64>,
    in_transactions: bool,
    size: usize,
    to_push: Vec<u64>,
    popped: Vec<u64>,
}

impl Batches {
    fn push_all(&mut self) {
        let items = self.to_push.drain(..);
        if self.in_transactions {
            let tx = self.handle.begin();
            tx.push_batch(items).expect("it is open");
            tx.commit();
        } else {
            self.handle.push_batch(items).expect("it is open");
        }
    }

    /// Pops a batch, whose first item comes last.
    fn pop_some(&mut self) {
        if self.in_transactions {
            let tx = self.handle.begin();
            self.popped
                .extend(tx.pop_batch(self.size).map(|item| *item));
            tx.commit();
        } else {
            self.handle.pop_batch(self.size, &mut self.popped);
        }
        self.popped.reverse();
    }
}

impl End for Batches {
    fn push(&mut self, item: u64) -> bool {
        self.to_push.push(item);
        if self.to_push.len() == self.size {
            self.push_all();
        }
        true
    }

    fn pop(&mut self) -> Option<u64> {
        self.push_all();
        if self.popped.is_empty() {
            self.pop_some();
        }
        self.popped.pop()
    }
}

impl Drop for Batches {
    fn drop(&mut self) {
        self.push_all();
    }
}

struct NoHandle(Queue<u64>);

impl End for NoHandle {
    fn push(&mut self, item: u64) -> bool {
        self.0.push(item).is_ok()
    }

    fn pop(&mut self) -> Option<u64> {
        self.0.pop().ok()
    }
}

struct Ordered<O: Order<u64>> {
    handle: Handle<u64, O>,
    push: fn(&mut Handle<u64, O>, u64) -> bool,
}

impl<O: Order<u64>> End for Ordered<O> {
    fn push(&mut self, item: u64) -> bool {
        (self.push)(&mut self.handle, item)
    }

    fn pop(&mut self) -> Option<u64> {
        self.handle.pop().ok()
    }
}

fn plain(plan: Plan, queue: &Queue<u64>) -> Vec<Box<dyn End>> {
    ends(plan, |_| Plain(queue.handle()))
}

fn waiting(plan: Plan, queue: &Queue<u64>) -> Vec<Box<dyn End>> {
    ends(plan, |_| Waiting(queue.handle()))
}

fn transactions(plan: Plan, aborts: bool) -> Vec<Box<dyn End>> {
    let queue = Queue::unbounded();
    ends(plan, |_| Transactions {
        handle: queue.handle(),
        aborts,
        count: 0,
    })
}

fn batches(plan: Plan, size: usize, in_transactions: bool) -> Vec<Box<dyn End>> {
    let queue = Queue::unbounded();
    ends(plan, |_| Batches {
        handle: queue.handle(),
        in_transactions,
        size,
        to_push: Vec::new(),
        popped: Vec::new(),
    })
}

fn fair(plan: Plan) -> Vec<Box<dyn End>> {
    let queue: FairQueue<u64, u64> = FairQueue::by(|item| spread(*item) % KEYS);
    ends(plan, |_| Ordered::<ByKey<u64, u64>> {
        handle: queue.handle(),
        push: |handle, item| handle.push(item).is_ok(),
    })
}

fn priority(plan: Plan) -> Vec<Box<dyn End>> {
    let queue = PriorityQueue::by_priority();
    ends(plan, |_| Ordered::<ByPriority> {
        handle: queue.handle(),
        push: |handle, item| {
            let priority = u16::try_from(1 + spread(item) % PRIORITIES).expect("below 10,000");
            handle.priority(priority).push(item).is_ok()
        },
    })
}

impl End for Rc<ArrayQueue> {
    fn push(&mut self, item: u64) -> bool {
        ArrayQueue::push(self, item)
    }

    fn pop(&mut self) -> Option<u64> {
        ArrayQueue::pop(self)
    }
}

impl End for Rc<SegmentQueue> {
    fn push(&mut self, item: u64) -> bool {
        SegmentQueue::push(self, item);
        true
    }

    fn pop(&mut self) -> Option<u64> {
        SegmentQueue::pop(self)
    }
}

impl End for Rc<LockedDeque> {
    fn push(&mut self, item: u64) -> bool {
        LockedDeque::push(self, item)
    }

    fn pop(&mut self) -> Option<u64> {
        LockedDeque::pop(self)
    }
}

impl End for (Producer, Consumer) {
    fn push(&mut self, item: u64) -> bool {
        self.0.push(item);
        true
    }

    fn pop(&mut self) -> Option<u64> {
        self.1.pop()
    }
}

fn shared<Q: 'static>(plan: Plan, queue: Q) -> Vec<Box<dyn End>>
where
    Rc<Q>: End,
{
    let queue = Rc::new(queue);
    ends(plan, |_| Rc::clone(&queue))
}

fn per_producer(plan: Plan) -> Vec<Box<dyn End>> {
    let producers = plan.threads.div_ceil(2);
    let queue = PerProducer::new(producers, plan.items.div_ceil(producers));
    ends(plan, |thread| {
        let own = thread / 2;
        (Producer::new(&queue, own), Consumer::new(&queue, own))
    })
}

macro_rules! subjects {
    ($($name:literal: $open:expr,)+) => {
        &[$(Subject { name: $name, open: $open },)+]
    };
}

/// All workloads by name, with what is compared in each.
pub(crate) const WORKLOADS: &[(&str, &[Subject])] = &[
    (
        "stream",
        subjects! {
            "requeue": |plan| plain(plan, &Queue::unbounded()),
            "array queue": |plan| shared(plan, ArrayQueue::new(plan.items.next_power_of_two())),
            "segment queue": |plan| shared(plan, SegmentQueue::new(plan.items)),
            "per producer": per_producer,
            "locked deque": |plan| shared(plan, LockedDeque::new(None)),
        },
    ),
    (
        "no handle",
        subjects! {
            "requeue": |plan| {
                let queue = Queue::unbounded();
                ends(plan, |_| NoHandle(queue.clone()))
            },
        },
    ),
    (
        "transactions",
        subjects! {
            "requeue": |plan| transactions(plan, false),
            "requeue, 10 % aborted": |plan| transactions(plan, true),
        },
    ),
    (
        "batches",
        subjects! {
            "of 8": |plan| batches(plan, 8, false),
            "of 32": |plan| batches(plan, 32, false),
            "of 256": |plan| batches(plan, 256, false),
            "of 8, in transactions": |plan| batches(plan, 8, true),
            "of 32, in transactions": |plan| batches(plan, 32, true),
            "of 256, in transactions": |plan| batches(plan, 256, true),
        },
    ),
    (
        "bounded",
        subjects! {
            "requeue": |plan| plain(plan, &Queue::bounded(BOUND)),
            "array queue": |plan| shared(plan, ArrayQueue::new(BOUND)),
            "locked deque": |plan| shared(plan, LockedDeque::new(Some(BOUND))),
        },
    ),
    (
        "waiting",
        subjects! {
            "requeue": |plan| waiting(plan, &Queue::unbounded()),
            "requeue, bounded": |plan| waiting(plan, &Queue::bounded(BOUND)),
        },
    ),
    (
        "fair",
        subjects! {
            "requeue": fair,
        },
    ),
    (
        "priority",
        subjects! {
            "requeue": priority,
        },
    ),
];
