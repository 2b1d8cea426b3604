//! A handle: one worker's access to a queue.

// In this order, since rustdoc shows the methods of a type in the order of their modules.
mod begin;
mod verbs;

mod pop_batch;
mod push_batch;

use crate::core::pool::{CheckedOut, Pool};
use crate::core::shared::Shared;
use crate::core::{CellOf, Local};
use crate::order::Order;
use crate::raw::Exclusive;
use crate::Fifo;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

/// One worker's access to a [`Queue`](crate::Queue), with its transactions.
///
/// A handle belongs to one thread or task at a time, and may move between them. It owns a reference to its queue.
/// Dropping it loses nothing: committed items stay in the queue, and a forgotten open transaction aborts.
///
/// Items pushed through one handle are popped in that order, except after aborts.
///
/// Every method first cleans up after values of this handle leaked by [`std::mem::forget`]: a transaction is aborted,
/// the remaining items of a [`Taken`](crate::Taken) are dropped, and a future is removed from the wait queue.
///
/// # Waiting
///
/// Threads and tasks share one wait queue, on any async runtime, and are woken in FIFO order, one per item. A
/// newcomer that waits can overtake a woken waiter at most once: that waiter keeps its place, and when it is woken
/// again, newcomers that wait leave the item to it. A plain [`pop`](Self::pop) does not wait; it yields the processor
/// a few times while such a waiter has been woken. A wait spins for a few microseconds at its beginning and then uses
/// no processor time.
///
/// A timeout of zero tries once, [`Duration::MAX`](std::time::Duration::MAX) waits forever. Success takes precedence over an elapsed timeout.
///
/// The futures are cancel safe: if one is dropped, no item is lost, and a pending wake-up is passed to the next
/// waiter. They need no particular runtime.
///
/// # Example
///
/// ```
/// let queue = requeue::Queue::unbounded();
/// let mut handle = queue.handle();
/// handle.push_batch(["a", "b"])?;
/// let job = handle.transact(|tx| tx.pop().map(|job| *job))?;
/// assert_eq!(job, "a");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Cloning a handle makes another handle of the same queue, with the same name if it has one, and shares nothing
/// else.
///
/// Two threads cannot use one handle at once, but each may have its own:
///
/// ```compile_fail
/// let handle = requeue::Queue::unbounded().handle();
/// let shared = &handle;
/// std::thread::scope(|scope| {
///     scope.spawn(|| shared.push(1)); // needs `&mut`
/// });
/// ```
///
/// ```
/// let handle = requeue::Queue::unbounded().handle();
/// std::thread::scope(|scope| {
///     for number in 0..2 {
///         let mut own = handle.clone();
///         scope.spawn(move || own.push(number));
///     }
/// });
/// assert_eq!(handle.queue().len(), 2);
/// ```
pub struct Handle<T, O: Order<T> = Fifo> {
    /// Used only through `&mut`, so the handle may be `Sync`.
    cell: Exclusive<CellOf<T, O>>,
    shared: Arc<Shared<T, O>>,
    /// The pool of handles for owned transactions of the queue.
    pool: Arc<Pool<T, O>>,
    name: Option<Arc<str>>,
}

impl<T, O: Order<T>> Handle<T, O> {
    pub(crate) fn new(
        shared: Arc<Shared<T, O>>,
        pool: Arc<Pool<T, O>>,
        name: Option<Arc<str>>,
    ) -> Self {
        let cell = Local::in_cell(Arc::clone(&shared), name.clone());
        Self {
            cell: Exclusive::new(cell),
            shared,
            pool,
            name,
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared<T, O>> {
        &self.shared
    }

    pub(crate) fn pool(&self) -> &Arc<Pool<T, O>> {
        &self.pool
    }

    #[inline]
    pub(crate) fn cell(&mut self) -> &mut CellOf<T, O> {
        self.cell.get_mut()
    }

    /// The handle's local state, after the cleanup of a forgotten transaction or future.
    #[inline]
    pub(crate) fn local(&mut self) -> &mut Local<T, O> {
        self.cell().settled()
    }

    /// The name that was given to the handle by [`Queue::named_handle`](crate::Queue::named_handle).
    ///
    /// ```
    /// let queue = requeue::Queue::<u32>::unbounded();
    /// assert_eq!(queue.named_handle("mailer").name(), Some("mailer"));
    /// assert_eq!(queue.handle().name(), None);
    /// ```
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Converts the handle for a transaction that owns it.
    pub(crate) fn check_out(self) -> CheckedOut<T, O> {
        CheckedOut::new(Box::new(self.cell.into_inner()), None)
    }
}

impl<T, O: Order<T>> Clone for Handle<T, O> {
    fn clone(&self) -> Self {
        let (shared, pool) = (Arc::clone(&self.shared), Arc::clone(&self.pool));
        Self::new(shared, pool, self.name.clone())
    }
}

/// A panic leaves a handle in a consistent state, as any other end of a transaction does.
impl<T, O: Order<T>> UnwindSafe for Handle<T, O> {}
impl<T, O: Order<T>> RefUnwindSafe for Handle<T, O> {}

debug_struct!([T, O: Order<T>] Handle<T, O>);
