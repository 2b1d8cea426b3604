//! Scenarios for transactions, which only requeue has.

use super::alone::time;
use super::{Contender, ITEMS};
use requeue::{commit_all, Handle, Queue, Transaction};
use std::time::Duration;

/// Number of items that a transaction holds.
const HELD: usize = 32;

/// Number of transactions that are open at the same time.
const OPEN: usize = 64;

/// How a transaction ends.
#[derive(Clone, Copy)]
pub(super) enum End {
    Commit,
    Abort,
}

impl End {
    fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Abort => "abort",
        }
    }

    fn run(self, tx: Transaction<'_, u64>) {
        match self {
            Self::Commit => drop(tx.commit()),
            Self::Abort => tx.abort(),
        }
    }
}

fn fill(queue: &Queue<u64>) {
    let _ = queue.handle().push_batch(0..ITEMS as u64);
}

fn drain(queue: &Queue<u64>) {
    while queue.pop().is_ok() {}
}

fn hold(tx: &Transaction<'_, u64>) {
    while tx.held() < HELD {
        assert!(
            tx.pop_batch(HELD - tx.held()).len() > 0,
            "there are more items"
        );
    }
}

/// Many transactions hold items at the same time; only their ends are measured.
pub(super) fn end(end: End) -> Contender {
    let queue = Queue::unbounded();
    let mut handles: Vec<_> = (0..OPEN).map(|_| queue.handle()).collect();
    Contender::new(end.name(), move || {
        fill(&queue);
        let elapsed = (0..ITEMS).step_by(OPEN * HELD).map(|_| {
            let txs: Vec<_> = handles.iter_mut().map(Handle::begin).collect();
            txs.iter().for_each(hold);
            time(|| txs.into_iter().for_each(|tx| end.run(tx)))
        });
        let elapsed = elapsed.sum();
        drain(&queue);
        elapsed
    })
}

/// Transactions hold items and end, one after the other; each abort is followed by a new attempt.
pub(super) fn hold_and_end(end: End) -> Contender {
    let queue = Queue::unbounded();
    let mut handle = queue.handle();
    Contender::new(end.name(), move || {
        fill(&queue);
        let elapsed = time(|| {
            for _ in (0..ITEMS).step_by(HELD) {
                let tx = handle.begin();
                hold(&tx);
                end.run(tx);
            }
        });
        drain(&queue);
        elapsed
    })
}

/// Two queues get one item each from one joint commit.
pub(super) fn joint() -> Contender {
    pushes("requeue, commit_all", |a, b| drop(commit_all((a, b))))
}

/// Two queues get one item each from separate commits.
pub(super) fn separate() -> Contender {
    pushes("requeue, two commits", |a, b| {
        a.commit();
        b.commit();
    })
}

fn pushes(
    name: &'static str,
    end: impl Fn(Transaction<'_, u64>, Transaction<'_, u64>) + 'static,
) -> Contender {
    let queues = [Queue::unbounded(), Queue::unbounded()];
    let [first, second] = &queues;
    let (mut a, mut b) = (first.handle(), second.handle());
    Contender::new(name, move || -> Duration {
        let elapsed = time(|| {
            for item in 0..ITEMS / 2 {
                let (a, b) = (a.begin(), b.begin());
                let _ = (a.push(item as u64), b.push(item as u64));
                end(a, b);
            }
        });
        queues.iter().for_each(drain);
        elapsed
    })
}
