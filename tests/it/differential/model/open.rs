//! Open and ended transactions.

use super::item::{Mark, Source, Tracked};
use super::queues::{on, AnyTaken, AnyTransaction, Family, Kind};
use super::waits::Waiter;
use super::work::Held;
use requeue::{try_commit_all, Expired, Handle};

/// A handle, and its state after forgotten values.
pub(crate) struct Worker<const PAD: usize, O: Kind<PAD>> {
    pub(crate) handle: Handle<Tracked<PAD>, O>,
    pub(crate) queue: usize,
    pub(crate) source: Source,
    pub(crate) left: Left,
}

/// Forgotten state that a handle keeps until its next use.
#[derive(Debug, Default)]
pub(crate) struct Left {
    /// Items held by a forgotten transaction: they will be ready again.
    pub(crate) held: Vec<Held>,
    /// Items staged by it: they will be dropped.
    pub(crate) staged: Vec<Mark>,
    /// Number of items of a forgotten `Taken`: they will be dropped.
    pub(crate) doomed: usize,
    /// A forgotten future, which keeps its waiter in the wait queue.
    pub(crate) waiter: Option<Waiter>,
}

/// The model of an open transaction.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) queue: usize,
    pub(crate) source: Source,
    pub(crate) staged: Vec<Mark>,
    pub(crate) held: Vec<Held>,
    /// The forgotten future that borrows the transaction; none for a forgotten peek.
    pub(crate) lent: Option<Waiter>,
}

impl Open {
    pub(crate) fn new<const PAD: usize, O: Kind<PAD>>(worker: &Worker<PAD, O>) -> Self {
        Self {
            queue: worker.queue,
            source: worker.source,
            staged: Vec::new(),
            held: Vec::new(),
            lent: None,
        }
    }

    /// Its state after the end, if it is not committed.
    pub(crate) fn left(&self) -> Left {
        Left {
            held: self.held.clone(),
            staged: self.staged.clone(),
            doomed: 0,
            waiter: self.lent.clone(),
        }
    }
}

/// Commits up to three transactions together.
pub(crate) fn commit_together<const PAD: usize, F: Family<PAD>>(
    txs: Vec<AnyTransaction<'_, PAD, F>>,
) -> Result<Vec<AnyTaken<'_, PAD, F>>, Expired> {
    let mut txs = txs.into_iter();
    match (txs.next(), txs.next(), txs.next()) {
        (Some(a), Some(b), Some(c)) => on!(a, A(a) => on!(b, B(b) => on!(c, C(c) => {
            let (a, b, c) = try_commit_all((a, b, c))?;
            Ok(vec![A(a), B(b), C(c)])
        }))),
        (Some(a), Some(b), None) => on!(a, A(a) => on!(b, B(b) => {
            let (a, b) = try_commit_all((a, b))?;
            Ok(vec![A(a), B(b)])
        })),
        (Some(a), ..) => on!(a, A(a) => Ok(vec![A(a.try_commit()?)])),
        (None, ..) => Ok(Vec::new()),
    }
}
