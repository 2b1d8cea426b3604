//! A closed queue is drained, with a backlog of many handles: an item must not cost more where there are more of both.

use super::Sizes;
use crate::measure::{Round, Subject, Workload};
use crate::tally::Tally;
use requeue::{commit_all, Handle, ManualClock, PopError, Queue};
use std::time::{Duration, Instant};

/// The handles of the small queue, if the large one has as many.
const FEW: usize = 100;
/// Items that each handle has pushed.
const EACH: u64 = 50;
const DELAY: Duration = Duration::from_secs(1);

pub(super) fn workloads(sizes: Sizes) -> Vec<Workload> {
    let handles = [FEW.min(sizes.dropped), sizes.dropped];
    let drain = Workload::new("closed drain", move || {
        vec![
            drained("requeue", handles, |_| {}),
            drained("requeue, joint commit", handles, joint),
            drained("requeue, aborted items", handles, aborted),
            drained("requeue, delayed items", handles, delayed),
        ]
    });
    vec![drain.columns(&["100 handles", "2,000 handles"])]
}

/// A queue before it is closed, with a handle for each part of the items.
struct Backlog {
    queue: Queue<u64>,
    handles: Vec<Handle<u64>>,
    clock: ManualClock,
}

impl Backlog {
    fn new(handles: usize) -> Self {
        let clock = ManualClock::new();
        let queue = Queue::builder().clock(clock.clone()).build();
        let mut handles: Vec<_> = (0..handles).map(|_| queue.handle()).collect();
        for (handle, first) in handles.iter_mut().zip((0..).map(|handle| handle * EACH)) {
            let pushed = handle.push_batch(first..first + EACH);
            pushed.expect("the queue is open");
        }
        Self {
            queue,
            handles,
            clock,
        }
    }

    fn items(&self) -> u64 {
        self.handles.len() as u64 * EACH
    }
}

/// All items are committed at once, by a transaction of each handle.
fn joint(backlog: &mut Backlog) {
    let handles = backlog.handles.iter_mut();
    let transactions: Vec<_> = handles
        .map(|handle| {
            let tx = handle.begin();
            for _ in 0..EACH {
                let item = *tx.pop().expect("there are items");
                tx.push(item).expect("the queue is open");
            }
            tx
        })
        .collect();
    commit_all(transactions);
}

/// Each handle gives an item back, by a transaction of its own.
fn aborted(backlog: &mut Backlog) {
    let handles = backlog.handles.iter_mut();
    let open: Vec<_> = handles.map(Handle::begin).collect();
    for tx in &open {
        tx.pop().expect("there are items");
    }
    drop(open);
}

/// All items are retried later, and are due when the queue is closed.
fn delayed(backlog: &mut Backlog) {
    let open: Vec<_> = (0..backlog.handles.len())
        .map(|_| {
            let tx = backlog.queue.begin_owned();
            let max = usize::try_from(EACH).expect("64 bits");
            assert!(tx.pop_batch(max).len() > 0, "there are items");
            tx
        })
        .collect();
    for mut tx in open {
        tx.retry_all_after(DELAY).expect("the transaction is open");
    }
    backlog.clock.advance(DELAY);
}

/// The time of an item with few handles and items, and with many.
fn drained(name: &'static str, handles: [usize; 2], prepare: fn(&mut Backlog)) -> Subject {
    Subject::new(name, move || {
        let mut all = Round::new(Vec::new(), Tally::default(), Tally::default());
        for handles in handles {
            let mut backlog = Backlog::new(handles);
            prepare(&mut backlog);
            let mut received = Tally::default();
            backlog.queue.close();
            let start = Instant::now();
            let end = loop {
                match backlog.queue.pop() {
                    Ok(item) => received.add(item),
                    Err(error) => break error,
                }
            };
            let span = start.elapsed();
            all.sent += match end {
                PopError::Closed => Tally::of(0..backlog.items()),
                PopError::Empty => Tally::default(),
            };
            all.received += received;
            all.values.push(per_item(span, backlog.items()));
        }
        all
    })
}

#[allow(clippy::cast_precision_loss)]
fn per_item(span: Duration, items: u64) -> f64 {
    span.as_secs_f64() * 1e9 / items as f64
}
