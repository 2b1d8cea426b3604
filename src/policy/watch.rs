//! Watches: the state of a handle's open transaction that others can see, and the items that they can reclaim from it.
//!
//! Handles are watched if they have a name, or if their queue keeps times, leases its items, or emits events.

use crate::sync::{lock, AtomicU64, Mutex, Ordering};
use std::cell::Cell;
use std::sync::{atomic, Arc};
use std::thread::{self, ThreadId};

/// The watches of a queue, by the number of the handle's counters. Numbers are small: handles get the lowest free ones.
#[derive(Default)]
pub(crate) struct WatchTable<R>(Mutex<Vec<Option<Arc<Watch<R>>>>>);

/// The state of one handle that is visible to others.
pub(crate) struct Watch<R> {
    /// The number of the handle's counters.
    pub(crate) counters: usize,
    name: Option<Arc<str>>,
    /// The time stamp of when its transaction took the first item.
    since: AtomicU64,
    /// The thread that took the first item.
    thread: Mutex<Option<ThreadId>>,
    /// The number of that thread, for the user of the handle alone.
    thread_number: AtomicU64,
    /// What others can reclaim from the transaction.
    pub(crate) reclaimable: R,
}

impl<R: Default> WatchTable<R> {
    /// Adds a watch for a handle.
    pub(crate) fn add(&self, counters: usize, name: Option<Arc<str>>) -> Arc<Watch<R>> {
        let watch = Arc::new(Watch {
            counters,
            name,
            since: AtomicU64::new(0),
            thread: Mutex::new(None),
            thread_number: AtomicU64::new(0),
            reclaimable: R::default(),
        });
        let mut watches = lock(&self.0);
        let len = watches.len().max(counters + 1);
        watches.resize_with(len, || None);
        watches[counters] = Some(Arc::clone(&watch));
        watch
    }

    pub(crate) fn remove(&self, counters: usize) {
        let mut watches = lock(&self.0);
        watches[counters] = None;
        while let Some(None) = watches.last() {
            watches.pop();
        }
        if watches.len() < watches.capacity() / 4 {
            watches.shrink_to_fit();
        }
    }

    pub(crate) fn get(&self, counters: usize) -> Option<Arc<Watch<R>>> {
        lock(&self.0).get(counters)?.clone()
    }

    /// All current watches.
    pub(crate) fn all(&self) -> Vec<Arc<Watch<R>>> {
        lock(&self.0).iter().flatten().cloned().collect()
    }
}

impl<R> Watch<R> {
    pub(crate) fn name(&self) -> Option<&Arc<str>> {
        self.name.as_ref()
    }

    /// Records that the transaction has taken its first item.
    pub(crate) fn begin(&self, stamp: u64) {
        // ORDERING: Relaxed; statistics.
        self.since.store(stamp, Ordering::Relaxed);
        let (number, id) = this_thread();
        // ORDERING: Relaxed, as in `moved`; one thread at a time uses the handle.
        if self.thread_number.load(Ordering::Relaxed) != number {
            self.moved(number, id);
        }
    }

    /// Records that another thread uses the handle.
    #[cold]
    fn moved(&self, number: u64, id: ThreadId) {
        *lock(&self.thread) = Some(id);
        // ORDERING: Relaxed; as in `begin`.
        self.thread_number.store(number, Ordering::Relaxed);
    }

    /// The time stamp of when the transaction took its first item.
    pub(crate) fn since(&self) -> u64 {
        // ORDERING: Relaxed; as above.
        self.since.load(Ordering::Relaxed)
    }

    pub(crate) fn thread(&self) -> Option<ThreadId> {
        *lock(&self.thread)
    }
}

/// A number that belongs to the current thread alone, and is never 0, and its id. `thread::current` is called once for each
/// thread: it has a count of references, and may panic in destructors of thread-locals.
fn this_thread() -> (u64, ThreadId) {
    /// The number of threads that have one. Not an atomic of the models, since there are no races.
    static NUMBERED: atomic::AtomicU64 = atomic::AtomicU64::new(0);
    std::thread_local! {
        static THIS: Cell<Option<(u64, ThreadId)>> = const { Cell::new(None) };
    }
    THIS.with(|this| {
        this.get().unwrap_or_else(|| {
            // ORDERING: Relaxed; each thread gets another number.
            let number = NUMBERED.fetch_add(1, atomic::Ordering::Relaxed) + 1;
            let known = (number, thread::current().id());
            this.set(Some(known));
            known
        })
    })
}
