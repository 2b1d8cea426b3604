//! The handles that a queue makes by itself: one for each thread that uses it without a handle, and a pool of idle ones
//! for transactions that own their handle.

use super::local::{CellOf, Local};
use super::shared::Shared;
use crate::order::Order;
use crate::raw::{Own, ThreadCells, ThreadValue};
use crate::sync::{lock, Mutex};
use std::sync::Arc;

/// The maximum number of idle handles.
const MAX_IDLE_HANDLES: usize = 32;

/// The handles of a queue that no user has. They own the queue, so the pool is owned by queues and handles, not by the
/// shared state.
pub(crate) struct Pool<T, O: Order<T>> {
    threads: ThreadCells<CellOf<T, O>>,
    #[allow(clippy::vec_box)] // they come and go as boxes
    idle: Mutex<Vec<Box<CellOf<T, O>>>>,
    /// Dropped last: a handle that ends with its thread is not the last owner of the queue and its items.
    shared: Arc<Shared<T, O>>,
}

impl<T, O: Order<T>> Pool<T, O> {
    pub(crate) fn new(shared: Arc<Shared<T, O>>) -> Self {
        Self {
            threads: ThreadCells::new(),
            idle: Mutex::new(Vec::new()),
            shared,
        }
    }

    #[inline]
    pub(crate) fn shared(&self) -> &Arc<Shared<T, O>> {
        &self.shared
    }

    /// Makes a call with the handle of the current thread. If that is in use, or the thread ends, with one of the pool.
    #[inline]
    pub(crate) fn call<R>(self: &Arc<Self>, call: impl FnOnce(&mut CellOf<T, O>) -> R) -> R {
        match self.own() {
            Some(mut own) => call(&mut own),
            None => call(&mut self.check_out()),
        }
    }

    /// The handle of the current thread. `None`: it is in use, or the thread ends; one [of the pool](Pool::check_out)
    /// serves.
    #[inline(always)] // the push and the pop without a handle
    pub(crate) fn own(&self) -> Option<Own<'_, CellOf<T, O>>> {
        self.threads.own(|| self.make())
    }

    fn make(&self) -> CellOf<T, O> {
        Local::in_cell(Arc::clone(&self.shared), None)
    }

    /// Takes a handle out of the pool, or makes one.
    #[inline(never)]
    pub(crate) fn check_out(self: &Arc<Self>) -> CheckedOut<T, O> {
        let idle = {
            let mut idle = lock(&self.idle);
            if idle.capacity() == 0 {
                // Now, since the end of a transaction must not allocate.
                idle.reserve_exact(MAX_IDLE_HANDLES);
            }
            idle.pop()
        };
        let cell = idle.unwrap_or_else(|| Box::new(self.make()));
        CheckedOut::new(cell, Some(Arc::clone(self)))
    }

    /// Keeps a handle for the next transaction; returns it if the pool is full.
    fn check_in(&self, cell: Box<CellOf<T, O>>) -> Option<Box<CellOf<T, O>>> {
        let mut idle = lock(&self.idle);
        if idle.len() == MAX_IDLE_HANDLES {
            return Some(cell);
        }
        idle.push(cell);
        None
    }
}

impl<T, O: Order<T>> ThreadValue for CellOf<T, O> {
    fn may_end(&mut self) -> bool {
        !self.is_unsettled()
    }
}

/// The pool that a handle goes back to, if it is from one.
pub(crate) type Home<T, O> = Option<Arc<Pool<T, O>>>;

/// A handle owned by a transaction. It goes back to its pool, if it is from one, when this is dropped.
pub(crate) struct CheckedOut<T, O: Order<T>> {
    /// `None` only after the end.
    cell: Option<Box<CellOf<T, O>>>,
    pool: Home<T, O>,
}

impl<T, O: Order<T>> CheckedOut<T, O> {
    pub(crate) fn new(cell: Box<CellOf<T, O>>, pool: Home<T, O>) -> Self {
        let cell = Some(cell);
        Self { cell, pool }
    }

    /// Moves the handle out; nothing is left to go back.
    pub(crate) fn take(&mut self) -> Self {
        let (cell, pool) = (self.cell.take(), self.pool.take());
        Self { cell, pool }
    }

    /// Returns the handle, which then does not go back by itself, and its pool.
    pub(crate) fn into_parts(mut self) -> (Box<CellOf<T, O>>, Home<T, O>) {
        let cell = self.cell.take().expect(PRESENT);
        (cell, self.pool.take())
    }
}

const PRESENT: &str = "the handle is there until this is dropped";

deref! {
    [T, O: Order<T>] CheckedOut<T, O> => CellOf<T, O>,
    |handle| handle.cell.as_ref().expect(PRESENT), handle.cell.as_mut().expect(PRESENT)
}

impl<T, O: Order<T>> Drop for CheckedOut<T, O> {
    fn drop(&mut self) {
        if let (Some(mut cell), Some(pool)) = (self.cell.take(), &self.pool) {
            cell.end_forgotten(); // the wait of a future
            drop(pool.check_in(cell)); // not under the lock
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use crate::raw::record_pool;
    use crate::Queue;
    use std::sync::{Arc, Barrier};
    use std::thread;

    /// Uses the queue on many threads at the same time, which end.
    fn use_on_threads(queue: &Queue<usize>, threads: usize) {
        let at = Arc::new(Barrier::new(threads));
        let spawn = |_| {
            let (queue, at) = (queue.clone(), Arc::clone(&at));
            thread::spawn(move || {
                queue.push(1).unwrap();
                at.wait();
                queue.pop().unwrap();
                at.wait();
            })
        };
        let users: Vec<_> = (0..threads).map(spawn).collect();
        for user in users {
            user.join().unwrap();
        }
    }

    #[test]
    fn walks_visit_nothing_of_threads_that_have_ended() {
        let threads = if cfg!(miri) { 8 } else { 500 };
        let queue = Queue::bounded(10 * threads);
        use_on_threads(&queue, threads);
        // The first search for room collects the permits that they have left.
        while queue.push(1).is_ok() {}
        let room = queue.shared().room().unwrap();
        let shards = queue.shared().shards();
        let left = [
            room.capacity.records_in_use(),
            shards.handles_in_use(),
            shards.count(),
        ];
        // Those with the lowest numbers are never retired.
        let most = record_pool::FIRST;
        assert!(left.iter().all(|&left| left <= most), "{left:?}");
        queue.stats().check().unwrap();
    }
}
