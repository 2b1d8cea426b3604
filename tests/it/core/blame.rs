//! Panics of public calls describe the error, and report the caller's location.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::time::Duration;
use std::{iter, panic, thread};

use crate::common::failing::SECOND;
use crate::common::panics;
use requeue::{channel, Job, Limiter, ManualClock, Pace, PriorityQueue, Queue, RateSlot, Workers};

const FINE: Result<(), ()> = Ok(());

struct Deaf;

impl Wake for Deaf {
    fn wake(self: Arc<Self>) {}
}

#[track_caller]
fn poll(future: &mut (impl Future + Unpin)) {
    let waker = Waker::from(Arc::new(Deaf));
    let _ = Pin::new(future).poll(&mut Context::from_waker(&waker));
}

/// Polls a future that is ready at once, and then polls it again.
#[track_caller]
fn poll_twice(mut future: impl Future + Unpin) {
    poll(&mut future);
    poll(&mut future);
}

/// A custom limiter.
struct Free;

impl Limiter for Free {
    fn start(&self, _: std::time::Instant) -> Result<RateSlot, std::time::Instant> {
        unreachable!("nobody asks")
    }
}

/// A handle of a bounded queue with one item, whose transaction has staged nothing.
fn bounded() -> requeue::Handle<u32> {
    let queue = Queue::bounded(8);
    queue.push(1).unwrap();
    queue.handle()
}

/// An empty bounded queue.
fn by_priority() -> PriorityQueue<u32> {
    Queue::builder().by_priority().capacity(8).build()
}

/// A part of the message, and the call that panics.
type Case = (&'static str, fn());

const CASES: &[Case] = &[
    ("capacity is 0", || drop(Queue::<u32>::bounded(0))),
    ("capacity is 0", || {
        drop(Queue::<u32>::builder().by_priority().capacity(0).build());
    }),
    ("capacity is 0", || {
        drop(Queue::<u32>::builder().capacity(0));
    }),
    ("capacity is 0", || drop(channel::bounded::<u32>(0))),
    ("stickiness is 0", || {
        drop(Queue::<u32>::builder().stickiness(0));
    }),
    ("max_attempts is 0", || {
        drop(Queue::<u32>::builder().max_attempts(0));
    }),
    ("extend of a full queue", || {
        Queue::bounded(1).extend([1, 2]);
    }),
    ("extend of a closed queue", || {
        let mut queue = Queue::unbounded();
        queue.close();
        queue.extend([1]);
    }),
    ("lease of zero", || {
        drop(Queue::<u32>::builder().leased(Duration::ZERO));
    }),
    ("max_held is 0", || {
        drop(Queue::<u32>::builder().max_held(0));
    }),
    ("step of ageing is zero", || {
        drop(
            Queue::<u32>::builder()
                .by_priority()
                .age_after(Duration::ZERO),
        );
    }),
    ("key_capacity is 0", || {
        drop(Queue::builder().fair_by(|item: &u32| *item).key_capacity(0));
    }),
    ("rate of 0", || drop(Pace::rate(0, SECOND))),
    ("burst of 0", || drop(Pace::unlimited().burst(0))),
    ("burst of a shared pace", || {
        drop(Pace::shared(Free).burst(2));
    }),
    ("rate of 0", || Pace::every(SECOND).set_rate(0, SECOND)),
    ("an unlimited pace", || {
        Pace::unlimited().set_interval(SECOND);
    }),
    ("a shared pace", || Pace::shared(Free).set_interval(SECOND)),
    ("transaction is borrowed", || {
        let mut handle = bounded();
        let tx = handle.begin();
        let _peek = tx.peek();
        let _ = tx.push(2);
    }),
    ("transaction is borrowed", || {
        let mut handle = bounded();
        let tx = handle.begin();
        let _peek = tx.peek();
        let _ = tx.push_blocking(2);
    }),
    ("transaction is borrowed", || {
        let mut handle = bounded();
        let tx = handle.begin();
        let item = tx.pop().unwrap();
        let _push = tx.push_async(2);
        let _ = tx.fail(item, "broken");
    }),
    ("transaction is borrowed", || {
        let mut handle = by_priority().handle();
        let tx = handle.begin();
        let _pop = tx.pop_async();
        let _ = tx.priority(1).push(2);
    }),
    ("transaction is borrowed", || {
        let mut handle = by_priority().handle();
        let tx = handle.begin();
        let _pop = tx.pop_async();
        let _ = tx.after(SECOND).push_blocking(2);
    }),
    ("transaction is borrowed", || {
        let mut handle = by_priority().handle();
        let tx = handle.begin();
        let _pop = tx.pop_async();
        let _ = tx.priority(1).push_batch([2]);
    }),
    ("transaction is borrowed", || {
        let mut handle = by_priority().handle();
        let tx = handle.begin();
        let _pop = tx.pop_async();
        drop(tx.priority(1).push_async(2));
    }),
    ("transaction is borrowed", || {
        let mut handle = by_priority().handle();
        let tx = handle.begin();
        let _pop = tx.pop_async();
        let _ = tx.priority(1).push(2);
    }),
    ("transaction is borrowed", || {
        let mut handle = bounded();
        let tx = handle.begin();
        let _push = tx.push_batch_async([2]);
        let _ = tx.push_batch([2]);
    }),
    ("clock advanced beyond", || {
        ManualClock::new().advance(Duration::MAX);
    }),
    ("item does not belong to this transaction", || {
        let (tx, other) = (bounded().begin_owned(), bounded().begin_owned());
        let _ = tx.retry(other.pop().unwrap());
    }),
    ("item does not belong to this transaction", || {
        let (mut a, mut b) = (bounded(), bounded());
        let (tx, other) = (a.begin(), b.begin());
        let _ = tx.retry(other.pop().unwrap());
    }),
    ("item does not belong to this transaction", || {
        let (mut a, mut b) = (bounded(), bounded());
        let (tx, other) = (a.begin(), b.begin());
        let _ = tx.retry_after(other.pop().unwrap(), SECOND);
    }),
    ("item does not belong to this transaction", || {
        let (mut a, mut b) = (bounded(), bounded());
        let (tx, other) = (a.begin(), b.begin());
        let _ = tx.fail(other.pop().unwrap(), "broken");
    }),
    ("future polled after completion", || {
        poll_twice(bounded().pop_async());
    }),
    ("future polled after completion", || {
        poll_twice(bounded().push_async(2));
    }),
    ("future polled after completion", || {
        poll_twice(bounded().queue().pop_async());
    }),
    ("future polled after completion", || {
        poll_twice(bounded().queue().push_async(2));
    }),
    ("future polled after completion", || {
        poll_twice(bounded().queue().push_batch_async([2]));
    }),
    ("future polled after completion", || {
        poll_twice(bounded().push_batch_async([2]));
    }),
    ("future polled after completion", || {
        poll_twice(bounded().begin().pop_async());
    }),
    ("future polled after completion", || {
        poll_twice(bounded().begin().push_async(2));
    }),
    ("future polled after completion", || {
        poll_twice(by_priority().priority(1).push_async(2));
    }),
    ("future polled after completion", || {
        poll_twice(by_priority().handle().priority(1).push_async(2));
    }),
    ("future polled after completion", || {
        poll_twice(
            by_priority()
                .handle()
                .begin()
                .priority(0)
                .push_batch_async([2]),
        );
    }),
    ("future polled after completion", || {
        poll_twice(bounded().begin().push_batch_async([2]));
    }),
    ("outcome polled after completion", || {
        let (job, outcome) = Job::new(|| 1);
        drop(job);
        poll_twice(outcome);
    }),
    ("future polled after completion", || {
        poll_twice(Queue::<u32>::unbounded().wait_idle_async());
    }),
    ("pool of 0 workers", || {
        drop(Workers::builder(&Queue::<u32>::unbounded()).threads(0));
    }),
    ("batches of 0 items", || {
        let queue = Queue::<u32>::unbounded();
        drop(Workers::builder(&queue).run_batches(0, |_, _| FINE));
    }),
    ("no worker 2: the pool has 2, numbered 0 to 1", || {
        let queue = Queue::<u32>::unbounded();
        let workers = Workers::builder(&queue).threads(2);
        workers.run(|_, _| FINE).pause(2);
    }),
    ("no worker 9: the pool has 2, numbered 0 to 1", || {
        let queue = Queue::<u32>::unbounded();
        let workers = Workers::builder(&queue).threads(2);
        workers.run(|_, _| FINE).resume(9);
    }),
];

#[cfg(feature = "tokio")]
const TASKS: &[Case] = &[
    ("pool of 0 workers", || {
        drop(Workers::builder(&Queue::<u32>::unbounded()).tasks(0));
    }),
    ("there is no reactor running", || {
        let queue = Queue::<u32>::unbounded();
        drop(Workers::builder(&queue).run_async(|_, _| async { FINE }));
    }),
    ("no worker 2: the pool has 2, numbered 0 to 1", || {
        with_tasks(|tasks| tasks.pause(2));
    }),
    ("no worker 2: the pool has 2, numbered 0 to 1", || {
        with_tasks(|tasks| tasks.resume(2));
    }),
];

#[cfg(not(feature = "tokio"))]
const TASKS: &[Case] = &[];

#[cfg(feature = "tokio")]
fn with_tasks(act: fn(&requeue::Tasks)) {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(async {
        let queue = Queue::<u32>::unbounded();
        let tasks = Workers::builder(&queue).tasks(2);
        act(&tasks.run_async(|_, _| async { FINE }));
    });
}

#[test]
fn panics_blame_the_caller() {
    let last = Arc::new(Mutex::new(String::new()));
    let (heard, here) = (Arc::clone(&last), thread::current().id());
    // Other tests of this program panic concurrently, on other threads.
    let others = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        if thread::current().id() == here {
            *heard.lock().unwrap() = panic.to_string();
        } else {
            others(panic);
        }
    }));
    let mut wrong = Vec::new();
    for (place, (text, case)) in CASES.iter().chain(TASKS).enumerate() {
        last.lock().unwrap().clear();
        let panicked = panics(case);
        let said = last.lock().unwrap().clone();
        if !panicked || !said.contains(text) || !said.contains(file!()) {
            wrong.push(format!("{place}: {text}: {said:?}"));
        }
    }
    drop(panic::take_hook());
    assert_eq!(wrong, iter::empty::<String>().collect::<Vec<_>>());
}
