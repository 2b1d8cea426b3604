//! Helpers that several test programs share.

#![allow(dead_code)] // Each test program uses a part of it.

pub(crate) mod cloned;
pub(crate) mod events;
pub(crate) mod failing;
pub(crate) mod futures;
pub(crate) mod rng;
pub(crate) mod waits;

use std::iter;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use requeue::{Order, Queue};

/// Longer than any test takes unless a thread sleeps forever.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A queue with `items`, pushed in that order by one handle.
pub(crate) fn filled<T>(items: impl IntoIterator<Item = T>) -> Queue<T> {
    let queue = Queue::unbounded();
    queue.handle().push_batch(items).unwrap();
    queue
}

/// Pops all ready items, in their order.
pub(crate) fn drain<T, O: Order<T>>(queue: &Queue<T, O>) -> Vec<T> {
    iter::from_fn(|| queue.pop().ok()).collect()
}

/// Checks the statistics of a queue at rest: the numbers of ready and held items, and that no item was lost.
pub(crate) fn assert_at_rest<T, O: Order<T>>(queue: &Queue<T, O>, ready: usize, held: u64) {
    let stats = queue.stats();
    assert_eq!(queue.len(), ready);
    assert_eq!(queue.is_empty(), ready == 0);
    assert_eq!((stats.ready, stats.held), (ready as u64, held));
    stats.check().unwrap();
}

/// Whether `f` panics.
pub(crate) fn panics<R>(f: impl FnOnce() -> R) -> bool {
    panic::catch_unwind(AssertUnwindSafe(f)).is_err()
}

/// Runs `work` on its own thread, and fails if it does not end.
#[track_caller]
pub(crate) fn ends<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    let (sender, receiver) = channel();
    let worker = thread::spawn(move || sender.send(work()));
    match receiver.recv_timeout(PATIENCE) {
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout) => panic!("a thread sleeps forever"),
        Err(RecvTimeoutError::Disconnected) => panic::resume_unwind(worker.join().unwrap_err()),
    }
}

/// Counts the drops of a number of tracked items.
#[derive(Clone)]
pub(crate) struct Ledger(Arc<[AtomicUsize]>);

impl Ledger {
    pub(crate) fn new(items: usize) -> Self {
        Self((0..items).map(|_| AtomicUsize::new(0)).collect())
    }

    pub(crate) fn item(&self, id: usize) -> Tracked {
        let (bomb, ledger) = (false, self.clone());
        Tracked { id, bomb, ledger }
    }

    /// All items of the ledger, in order.
    pub(crate) fn items(&self) -> impl Iterator<Item = Tracked> + '_ {
        (0..self.0.len()).map(|id| self.item(id))
    }

    /// All items of the ledger, in order; the destructor of one panics after it was counted.
    pub(crate) fn items_with_bomb(&self, bomb: usize) -> impl Iterator<Item = Tracked> {
        let mut items: Vec<_> = self.items().collect();
        items[bomb].bomb = true;
        items.into_iter()
    }

    /// Number of drops of each item.
    pub(crate) fn drops(&self) -> Vec<usize> {
        let count = |drops: &AtomicUsize| drops.load(Ordering::SeqCst);
        self.0.iter().map(count).collect()
    }

    pub(crate) fn assert_each_dropped_once(&self) {
        assert_eq!(self.drops(), vec![1; self.0.len()]);
    }
}

/// An item that reports its drop to its ledger.
pub(crate) struct Tracked {
    pub(crate) id: usize,
    bomb: bool,
    ledger: Ledger,
}

impl Drop for Tracked {
    fn drop(&mut self) {
        self.ledger.0[self.id].fetch_add(1, Ordering::SeqCst);
        assert!(!self.bomb || thread::panicking(), "item {} panics", self.id);
    }
}
