//! Transactions: pops that become final, and pushes that become visible, at the commit.

#![allow(private_interfaces)] // of the sealed traits of `commit_all`

// In this order, since rustdoc shows the methods of a type in the order of their modules.
mod pop;
mod push;

mod end;

mod pop_batch;
mod retry;

mod commit_all;
mod delivery;
mod owned;
mod peek;
mod taken;

#[cfg(feature = "workers")]
pub(crate) use commit_all::commit_closed;
pub use commit_all::{commit_all, try_commit_all, Transactions};
pub use owned::OwnedTransaction;
pub use peek::Peek;
pub use taken::{OwnedTaken, Taken};

use crate::core::Local;
use crate::order::Order;
use crate::raw::{Borrow, Open};
use crate::Fifo;
#[cfg(feature = "workers")]
use crate::{policy::telemetry::RunSpan, DeliveryId};
use std::fmt;
#[cfg(feature = "workers")]
use std::sync::Arc;

/// A transaction of one [`Handle`](crate::Handle).
///
/// Items it pops are *held*: invisible to others. Items it pushes are *staged*: invisible to all, this transaction
/// included. [`commit`](Self::commit) makes all pushes visible at once and the pops final. Dropping the transaction,
/// by an early return or a panic too, aborts it: held items go back to the head of the queue in their order, staged
/// ones are dropped. A forgotten transaction stays open until its handle is used again or dropped.
///
/// It borrows its handle. An [`OwnedTransaction`] owns its handle, so that it may be stored and sent.
///
/// An abort cannot fail. It allocates nothing, on whatever thread, with [few
/// exceptions](crate::internals#delays-and-dead-letters), such as a timer if tasks wait for items that it delays.
/// Modifications of held items are kept. Aborted items are ready again at once, without limit. For work that fails repeatedly, give
/// the queue a [backoff](crate::Builder::backoff) and [`max_attempts`](crate::Builder::max_attempts),
/// [retry](Self::retry_after) an item later, or [fail](Self::fail) it. [`Workers`](crate::Workers) back off by
/// default.
///
/// Dropping an [`Item`](crate::Item) gives nothing back: it is held until its transaction ends.
///
/// A commit never fails. A queue that [leases](crate::Builder::leased) its items may have delivered them to another
/// worker meanwhile; its transactions have [`try_commit`](Self::try_commit) instead.
///
/// # Example
///
/// A job stays borrowed while its follow-ups are pushed:
///
/// ```
/// let queue = requeue::Queue::unbounded();
/// let mut worker = queue.handle();
/// worker.push(vec![1, 2])?;
///
/// let tx = worker.begin();
/// let job = tx.pop()?;
/// for part in job.iter() {
///     tx.push(vec![*part])?;
/// }
/// tx.commit();
/// assert_eq!(queue.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Borrowing
///
/// A transaction is borrowed, and all its methods by `&self` panic,
///
/// - by a future of [`pop_async`](Self::pop_async) or [`push_async`](Self::push_async), until the future is
///   ready or dropped;
/// - by a [`Peek`], until it is taken or dropped;
/// - by each call on it, until it returns. So user code that runs within a call, such as a clock, a waker or a key
///   function, cannot use the transaction.
///
/// A method that panics for that reason has changed nothing; an item that it was to push is dropped.
///
/// # What the compiler rejects
///
/// A committed transaction cannot be used again:
///
/// ```compile_fail
/// let mut worker = requeue::Queue::unbounded().handle();
/// let tx = worker.begin();
/// tx.push(1).unwrap();
/// tx.commit();
/// tx.push(2).unwrap();
/// ```
///
/// A held item cannot outlive its transaction:
///
/// ```compile_fail
/// let mut worker = requeue::Queue::<u32>::unbounded().handle();
/// let tx = worker.begin();
/// let job = tx.pop().unwrap();
/// tx.commit();
/// println!("{}", *job);
/// ```
///
/// A transaction is `Send`, and may be held across an `.await`. It is not `Sync`: it is used by one thread at a time.
///
/// ```compile_fail
/// let mut worker = requeue::Queue::unbounded().handle();
/// let tx = worker.begin();
/// std::thread::scope(|scope| {
///     scope.spawn(|| tx.push(1)); // shares it with the other thread
/// });
/// ```
#[must_use = "a transaction that is dropped aborts"]
pub struct Transaction<'h, T, O: Order<T> = Fifo> {
    open: Open<'h, Local<T, O>>,
}

impl<'h, T, O: Order<T>> Transaction<'h, T, O> {
    #[inline]
    pub(crate) fn new(open: Open<'h, Local<T, O>>) -> Self {
        Self { open }
    }

    /// Borrows the transaction.
    ///
    /// # Panics
    ///
    /// If it [is borrowed](Transaction#borrowing).
    #[inline(always)] // the push and pop
    #[track_caller]
    pub(crate) fn local(&self) -> Borrow<'_, Local<T, O>> {
        self.open.borrow()
    }

    /// Whether it has retried or failed an item itself.
    #[cfg(feature = "workers")]
    pub(crate) fn has_given_up(&mut self) -> bool {
        let local = self.open.cell_mut().get_mut();
        local.deliveries().has_given_up()
    }

    /// The span of a worker's run, whose first item is at the given attempt.
    #[cfg(feature = "workers")]
    pub(crate) fn run_span(&self, worker: &str, attempt: u32) -> RunSpan {
        if cfg!(feature = "tracing") {
            let local = self.local();
            let (shared, holder) = (Arc::clone(local.shared()), local.holder());
            drop(local); // before a subscriber runs
            if let Some(telemetry) = &shared.telemetry {
                let id = DeliveryId::new(holder.counters, holder.ended);
                return telemetry.run_span(worker, id, attempt);
            }
        }
        RunSpan::none()
    }
}

impl<T, O: Order<T>> fmt::Debug for Transaction<'_, T, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Transaction");
        // Another thread may borrow a transaction of a task meanwhile.
        let Some(local) = self.open.cell().try_borrow() else {
            return debug.finish_non_exhaustive();
        };
        let (staged, held) = (local.staged(), local.held());
        drop(local); // before a formatter runs
        debug.field("staged", &staged).field("held", &held).finish()
    }
}
