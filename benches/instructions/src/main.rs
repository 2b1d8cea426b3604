//! Does one of requeue's operations so and so many times, on one thread or with one worker, so that the number of
//! instructions depends on nothing else. `.ci/budgets` counts them for two numbers of operations: the difference is that
//! of the operations, without the start of the process.
//!
//! `requeue-instructions` lists the operations, `requeue-instructions NAME COUNT` does one.

use futures::task::noop_waker_ref;
use requeue::{
    Builder, Delivery, FairQueue, Handle, ManualClock, Order, PriorityQueue, Queue, Workers,
};
use std::cmp::Reverse;
use std::env;
use std::future::Future;
use std::hint::black_box;
use std::mem;
use std::num::{Saturating, Wrapping};
use std::pin::pin;
use std::task::Context;
use std::time::Duration;

/// Does an operation this often.
type Operation = fn(u64);

const OPERATIONS: &[(&str, Operation)] = &[
    ("push", push),
    ("push-pop", |count| pairs(&Queue::unbounded(), count)),
    ("pair-64", large_pairs::<8>),
    ("pair-1024", large_pairs::<128>),
    ("transaction-push", transaction_push),
    ("transaction-pop", |count| {
        transaction_pairs(&Queue::unbounded(), count);
    }),
    ("abort", abort),
    ("no-handle", no_handle),
    ("delivery", |count| {
        deliveries(&Queue::unbounded(), Delivery::ack, count);
    }),
    ("delivery-leased", |count| {
        let term = Duration::from_secs(60);
        let queue = Queue::builder().leased(term).build();
        deliveries(&queue, |taken| taken.try_ack().unwrap(), count);
    }),
    ("batch", batches),
    ("unique-batch", unique_batches),
    ("transaction-batch-push", transaction_batch_pushes),
    ("transaction-batch-pop", transaction_batch_pops),
    ("bounded", |count| pairs(&Queue::bounded(ROOM), count)),
    ("weighed", |count| {
        let weigh = |item: &u64| usize::from(*item % 2 > 0) + 1;
        pairs(&Queue::builder().weigh(weigh).capacity(ROOM).build(), count);
    }),
    ("bounded-transaction", |count| {
        transaction_pairs(&Queue::bounded(ROOM), count);
    }),
    ("bounded-transaction-push", bounded_transaction_pushes),
    ("blocking", blocking),
    ("bounded-blocking", bounded_blocking),
    ("transaction-blocking", transaction_blocking),
    ("task-wait", task_waits),
    ("worker", worker),
    ("lifo", |count| {
        pairs(&Queue::builder().lifo().build(), count);
    }),
    ("lifo-own", |count| own(1, count)),
    ("lifo-own-64", |count| own(64, count)),
    ("fair", fair),
    ("priority", priority),
    ("at-now", at_now),
    ("scheduled", |count| scheduled(Queue::builder(), count)),
    ("scheduled-priority", |count| {
        scheduled(Queue::builder().by_priority(), count);
    }),
    ("make-drop", make_drop),
];

/// More than a queue ever holds here.
const ROOM: usize = 1 << 20;
/// The keys of a fair queue.
const KEYS: u64 = 1_000;

/// Replaces the function of the C library: the seeds of all tables stay 0, and so their collisions are the same in each
/// run.
#[no_mangle]
extern "C" fn getrandom(_: *mut u8, len: usize, _: u32) -> usize {
    len
}

fn main() {
    let mut arguments = env::args().skip(1);
    let Some(name) = arguments.next() else {
        return OPERATIONS.iter().for_each(|(name, _)| println!("{name}"));
    };
    let count = arguments.next().and_then(|count| count.parse().ok());
    let count = count.expect("a number of operations after the name");
    let operation = OPERATIONS.iter().find(|(other, _)| *other == name);
    operation.expect("an operation of this name").1(count);
}

/// A handle that pushes and one that pops.
fn handles<T, O: Order<T>>(queue: &Queue<T, O>) -> (Handle<T, O>, Handle<T, O>) {
    (queue.handle(), queue.handle())
}

fn push(count: u64) {
    let mut handle = Queue::unbounded().handle();
    for item in 0..count {
        handle.push(item).unwrap();
    }
}

fn pairs<O: Order<u64>>(queue: &Queue<u64, O>, count: u64) {
    let (mut pusher, mut popper) = handles(queue);
    for item in 0..count {
        pusher.push(item).unwrap();
        black_box(popper.pop().unwrap());
    }
}

/// One handle pushes to a stack, so many items at a time, and pops them.
fn own(ready: u64, count: u64) {
    let mut handle = Queue::builder().lifo().build().handle();
    for _ in 0..count / ready {
        for item in 0..ready {
            handle.push(item).unwrap();
        }
        for _ in 0..ready {
            black_box(handle.pop().unwrap());
        }
    }
}

/// Items of so many words, 1,000 of which are ready when the first one is popped.
fn large_pairs<const WORDS: usize>(count: u64) {
    const READY: u64 = 1_000;
    let queue = Queue::unbounded();
    let (mut pusher, mut popper) = (queue.handle(), queue.handle());
    for _ in 0..count / READY {
        for item in 0..READY {
            pusher.push([item; WORDS]).unwrap();
        }
        for _ in 0..READY {
            black_box(popper.pop().unwrap());
        }
    }
}

fn transaction_push(count: u64) {
    let mut handle = Queue::unbounded().handle();
    for item in 0..count {
        let tx = handle.begin();
        tx.push(item).unwrap();
        tx.commit();
    }
}

fn transaction_pairs(queue: &Queue<u64>, count: u64) {
    let (mut pusher, mut popper) = handles(queue);
    for item in 0..count {
        pusher.push(item).unwrap();
        let tx = popper.begin();
        black_box(*tx.pop().unwrap());
        tx.commit();
    }
}

/// The same item again and again.
fn abort(count: u64) {
    let (mut pusher, mut popper) = handles(&Queue::unbounded());
    pusher.push(0).unwrap();
    for _ in 0..count {
        let tx = popper.begin();
        black_box(*tx.pop().unwrap());
        tx.abort();
    }
}

fn no_handle(count: u64) {
    let queue = Queue::unbounded();
    for item in 0..count {
        queue.push(item).unwrap();
        black_box(queue.pop().unwrap());
    }
}

fn deliveries<O: Order<u64>>(
    queue: &Queue<u64, O>,
    ack: impl Fn(Delivery<u64, O>) -> u64,
    count: u64,
) {
    let mut pusher = queue.handle();
    for item in 0..count {
        pusher.push(item).unwrap();
        black_box(ack(queue.take().unwrap()));
    }
}

/// Batches of 32, counted by items.
fn batches(count: u64) {
    let (mut pusher, mut popper) = handles(&Queue::unbounded());
    for _ in 0..count / 32 {
        pusher.push_batch(0..32).unwrap();
        let tx = popper.begin();
        black_box(tx.pop_batch(32).len());
        tx.commit();
    }
}

/// As [`batches`], of 1,000 unique items.
fn unique_batches(count: u64) {
    let unique = |Wrapping(item): &Wrapping<u32>| *item;
    let (mut pusher, mut popper) = handles(&Queue::builder().unique_by(unique).build());
    for _ in 0..count / 1_000 {
        pusher.push_batch((0..1_000).map(Wrapping)).unwrap();
        let tx = popper.begin();
        black_box(tx.pop_batch(1_000).len());
        tx.commit();
    }
}

/// As [`batches`], of a type of their own (see [`bounded_blocking`]): each batch is pushed in a transaction.
fn transaction_batch_pushes(count: u64) {
    let mut handle = Queue::unbounded().handle();
    for first in (0..count).step_by(32) {
        let tx = handle.begin();
        tx.push_batch((first..first + 32).map(Reverse)).unwrap();
        tx.commit();
    }
    mem::forget(handle); // with the queue: without the drops of the items
}

/// As [`transaction_batch_pushes`], each popped in one, and each item read. Pushes all items at once before.
fn transaction_batch_pops(count: u64) {
    let (mut pusher, mut popper) = handles(&Queue::unbounded());
    pusher.push_batch((0..count).map(Reverse)).unwrap();
    for _ in 0..count / 32 {
        let tx = popper.begin();
        for item in tx.pop_batch(32) {
            black_box(item.0);
        }
        tx.commit();
    }
}

/// Of a type of their own (see [`bounded_blocking`]): each push is a transaction, and finds room.
fn bounded_transaction_pushes(count: u64) {
    let (mut pusher, mut popper) = handles(&Queue::bounded(ROOM));
    for item in 0..count {
        let tx = pusher.begin();
        tx.push(Saturating(item)).unwrap();
        tx.commit();
        black_box(popper.pop().unwrap());
    }
}

/// Pops that may wait, and find an item.
fn blocking(count: u64) {
    let (mut pusher, mut popper) = handles(&Queue::unbounded());
    for item in 0..count {
        pusher.push(item).unwrap();
        black_box(popper.pop_blocking().unwrap());
    }
}

/// Pushes and pops that may wait, and find room and an item. Of a type of their own, so that the compiler inlines those of
/// other operations as it does in programs that have no others.
fn bounded_blocking(count: u64) {
    let (mut pusher, mut popper) = handles(&Queue::bounded(ROOM));
    for item in 0..count {
        pusher.push_blocking(Wrapping(item)).unwrap();
        black_box(popper.pop_blocking().unwrap());
    }
}

/// As [`bounded_blocking`], each in a transaction.
fn transaction_blocking(count: u64) {
    let (mut pusher, mut popper) = handles(&Queue::bounded(ROOM));
    for item in 0..count {
        let tx = pusher.begin();
        tx.push_blocking(Wrapping(item)).unwrap();
        tx.commit();
        let tx = popper.begin();
        black_box(*tx.pop_blocking().unwrap());
        tx.commit();
    }
}

/// A task finds nothing and waits, is woken by a push, and receives its item.
fn task_waits(count: u64) {
    let (mut pusher, mut popper) = handles(&Queue::unbounded());
    let mut context = Context::from_waker(noop_waker_ref());
    for item in 0..count {
        let mut pop = pin!(popper.pop_async());
        assert!(pop.as_mut().poll(&mut context).is_pending());
        pusher.push(item).unwrap();
        assert!(black_box(pop.as_mut().poll(&mut context)).is_ready());
    }
}

/// Runs of one worker, for items that are there.
fn worker(count: u64) {
    let queue = Queue::unbounded();
    queue.push_batch(0..count).unwrap();
    queue.close();
    let workers = Workers::builder(&queue).threads(1).run(|item, _tx| {
        black_box(*item);
        Ok::<(), ()>(())
    });
    assert_eq!(workers.join().done, count);
}

fn fair(count: u64) {
    let queue = FairQueue::by(|item: &u64| item % KEYS);
    let (mut pusher, mut popper) = (queue.handle(), queue.handle());
    for item in 0..count {
        pusher.push(item).unwrap();
    }
    for _ in 0..count {
        black_box(popper.pop().unwrap());
    }
}

/// Priorities in no order that a heap would like.
fn priority(count: u64) {
    let queue = PriorityQueue::by_priority();
    let (mut pusher, mut popper) = (queue.handle(), queue.handle());
    for item in 0..count {
        let priority = u16::try_from(item * 7_919 % 9_999 + 1).expect("less than 10,000");
        pusher.priority(priority).push(item).unwrap();
    }
    for _ in 0..count {
        black_box(popper.pop().unwrap());
    }
}

/// Pushes whose time has come, beside 1,000 items whose time has not.
fn at_now(count: u64) {
    const HOUR: Duration = Duration::from_secs(3_600);
    let queue = Queue::builder().clock(ManualClock::new()).build();
    let (mut pusher, mut popper) = handles(&queue);
    pusher.after(HOUR).push_batch(0..1_000).unwrap();
    let now = queue.now();
    for item in 0..count {
        pusher.at(now).push(item).unwrap();
        black_box(popper.pop().unwrap());
    }
}

/// Items that become due in another order than they were pushed, 1,000 at a time.
fn scheduled<O: Order<u32>>(builder: Builder<u32, O>, count: u64) {
    const WAITING: u32 = 1_000;
    const NANO: Duration = Duration::from_nanos(1);
    let clock = ManualClock::new();
    let queue = builder.clock(clock.clone()).build();
    let (mut pusher, mut popper) = (queue.handle(), queue.handle());
    for _ in 0..count / u64::from(WAITING) {
        for item in 0..WAITING {
            let delay = NANO * (1 + item * 7_919 % WAITING);
            pusher.after(delay).push(item).unwrap();
        }
        clock.advance(NANO * WAITING);
        for _ in 0..WAITING {
            black_box(popper.pop().unwrap());
        }
    }
}

/// A queue that is made and dropped; `unbounded` of crossbeam-channel takes 896 instructions for it.
fn make_drop(count: u64) {
    for _ in 0..count {
        black_box(Queue::<u64>::unbounded());
    }
}
