//! Transactions.

mod cold;
mod numbers;
mod record;
mod verbs;

use crate::batch::Batch;
use crate::call::{pop, swallow_panic, Call, Caller, Popped};
use crate::delivery::{RamItem, RamItems};
use crate::error::{PopError, PushError, StoreError};
use crate::handle::HandleState;
use crate::item::{Item, Items};
use crate::order::{Load, One, Order, Place, RamTx};
use crate::queue::shared::Shared;
use crate::ticket::Tickets;
use crate::{DurableQueue, Fifo};
use cold::Cold;
use parking_lot::{Mutex, MutexGuard};
use record::Recorded;
use requeue::backend::AbortCause;
use requeue::{DeliveryId, Wait};
use std::fmt;
use std::future::Future;
use std::iter;
use std::slice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// A transaction: the items it pops are held, the ones it pushes are staged, until it commits.
///
/// It has the verbs of [`requeue::Transaction`]; the items come from memory. It borrows its
/// [handle](crate::Handle::begin), or owns what it needs ([`DurableQueue::begin_owned`]).
///
/// Dropping it aborts: held items go back to the head of the queue in their order, staged ones are dropped. An abort
/// writes nothing, except delays if the queue has a [backoff](crate::Builder::backoff), and the [errors](Self::last_error) of
/// failed runs. A crash is an abort. Each of them
/// counts as a delivery of the held items, as in memory.
#[must_use = "a transaction that is dropped aborts"]
pub struct Transaction<'h, T: Send + 'static, O: Order<T> = Fifo> {
    /// `None` only after the end.
    core: Option<Core<T, O>>,
    home: Option<&'h mut HandleState<T, O>>,
}

/// The state of a transaction.
pub(crate) struct Core<T: Send + 'static, O: Order<T>> {
    /// The transaction in memory. It is always open: between transactions it holds nothing.
    pub(crate) ram: RamTx<T, O>,
    /// In a box, since it moves with each transaction.
    pub(crate) local: Box<Local<T, O>>,
}

/// What a handle has besides its transaction in memory.
pub(crate) struct Local<T: Send + 'static, O: Order<T>> {
    pub(crate) shared: Arc<Shared<T, O>>,
    /// A lock, since a future of a push has it while the transaction is shared.
    pub(crate) batch: Mutex<Batch>,
    /// In a queue with pages: the pushes that have no entries in memory.
    cold: Option<Cold<T, O>>,
    /// Whether the log has something of the transaction already, for which its commit has to wait.
    pub(crate) noted: AtomicBool,
    /// Whether a thread drives its futures, which may block it.
    pub(crate) blocks: bool,
    /// Whether it is that of one push at once.
    pub(crate) at_once: bool,
    /// Whether its commit has failed, for the error of its dead letters.
    pub(crate) failed: bool,
    /// Called when the transaction has ended, with whether it was committed.
    pub(crate) at_end: Mutex<Option<AtEnd>>,
}

pub(crate) type AtEnd = Box<dyn FnOnce(bool) + Send>;

const OPEN: &str = "the transaction is open until its end";

impl<T: Send + 'static, O: Order<T>> Core<T, O> {
    pub(crate) fn new(queue: &DurableQueue<T, O>, name: Option<Arc<str>>) -> Self {
        let handle = match name {
            Some(name) => queue.ram.named_handle(name),
            None => queue.ram.handle(),
        };
        Self {
            ram: handle.begin_owned(),
            local: Local::new(queue),
        }
    }

    /// Aborts.
    pub(crate) fn rollback(&mut self, cause: Option<AbortCause>) {
        self.local.forget_cold();
        let Local { shared, batch, .. } = &mut *self.local;
        batch.get_mut().clear();
        let worker = cause.as_ref().map(|cause| cause.backoff);
        if let Some(cause) = &cause {
            for mut item in self.ram.items() {
                let attempts = item.attempts();
                shared.note_error(&mut item, attempts, &cause.error);
            }
        }
        let held = self.ram.items().map(|item| (item.id, item.attempts()));
        shared.note_backoff(held, worker);
        match cause {
            None => self.ram.rollback(),
            Some(cause) => self
                .ram
                .rollback_with(cause.reason, cause.error, cause.backoff),
        }
        self.local.end(false);
    }

    /// Whether it made dead letters, or does when it aborts.
    pub(crate) fn makes_letters(&mut self) -> bool {
        let Local { shared, noted, .. } = &mut *self.local;
        let mut items = self.ram.items();
        let is_last = |most| items.any(|item| item.attempts() >= most);
        *noted.get_mut() || shared.max_attempts.is_some_and(is_last)
    }

    /// Whether it holds and has staged nothing.
    fn is_empty(&mut self) -> bool {
        self.local.batch.get_mut().is_empty() && self.ram.held() + self.ram.staged() == 0
    }
}

impl<T: Send + 'static, O: Order<T>> Local<T, O> {
    pub(crate) fn new(queue: &DurableQueue<T, O>) -> Box<Self> {
        let cold = queue.pages.as_ref();
        let cold = cold.map(|pages| Cold::new(Arc::clone(pages)));
        Box::new(Self {
            shared: Arc::clone(&queue.shared),
            batch: Mutex::default(),
            cold,
            noted: AtomicBool::new(false),
            blocks: false,
            at_once: false,
            failed: false,
            at_end: Mutex::default(),
        })
    }

    /// The transaction gives an item back or up, which is written.
    pub(crate) fn set_noted(&self) {
        // Relaxed: the transaction has one user at a time.
        self.noted.store(true, Ordering::Relaxed);
    }

    pub(crate) fn end(&mut self, is_committed: bool) {
        self.at_once = false;
        if let Some(at_end) = self.at_end.get_mut().take() {
            swallow_panic(|| at_end(is_committed));
        }
    }

    #[track_caller]
    pub(crate) fn batch(&self) -> MutexGuard<'_, Batch> {
        let batch = self.batch.try_lock();
        batch.expect("the transaction is used by the encoding of an item that it pushes")
    }
}

/// A [`Transaction`] that borrows nothing, from [`DurableQueue::begin_owned`] or
/// [`Handle::begin_owned`](crate::Handle::begin_owned).
pub type OwnedTransaction<T, O = Fifo> = Transaction<'static, T, O>;

impl<'h, T: Send + 'static, O: Order<T>> Transaction<'h, T, O> {
    pub(crate) fn of(core: Core<T, O>, home: Option<&'h mut HandleState<T, O>>) -> Self {
        let core = Some(core);
        Self { core, home }
    }

    /// The transaction of one push at once.
    pub(crate) fn at_once(mut self) -> Result<Self, StoreError> {
        let local = &mut self.core_mut().local;
        local.at_once = true;
        // What replaces or follows is in the log before the commit, which would check that.
        let is_full = local.shared.supersedes && local.shared.log().disk().is_full(0);
        (!is_full).then_some(self).ok_or(StoreError::DiskFull)
    }

    #[inline]
    pub(crate) fn core(&self) -> &Core<T, O> {
        self.core.as_ref().expect(OPEN)
    }

    #[inline]
    pub(crate) fn core_mut(&mut self) -> &mut Core<T, O> {
        self.core.as_mut().expect(OPEN)
    }

    /// Leaves it without a state, until [`put_core`](Self::put_core).
    pub(crate) fn take_core(&mut self) -> Core<T, O> {
        self.core.take().expect(OPEN)
    }

    pub(crate) fn put_core(&mut self, core: Core<T, O>) {
        self.core = Some(core);
    }

    /// Ends it without an abort.
    pub(crate) fn into_parts(mut self) -> (Core<T, O>, Option<&'h mut HandleState<T, O>>) {
        (self.take_core(), self.home.take())
    }

    /// Stages an item of a thread. Without a future, whose moves are a sixth of the instructions of a buffered push.
    #[inline]
    pub(crate) fn stage_now(
        &self,
        item: T,
        place: Option<Place>,
        wait: Wait,
    ) -> Result<Tickets, PushError<T>> {
        let Core { ram, local } = self.core();
        let mut recorded = match Recorded::new(local, slice::from_ref(&item), place) {
            Ok(recorded) => recorded,
            Err(error) => return Err(error.map(|()| item)),
        };
        recorded.admit(ram);
        let (entry, place) = (recorded.entries::<One>(item), recorded.place());
        recorded.settle::<One>(ram.push_to(place, entry, wait))
    }

    /// Stages all items, or none.
    #[inline]
    pub(crate) fn stage<L: Load>(
        &self,
        load: L::Of<T>,
        place: Option<Place>,
        caller: Caller,
    ) -> impl Future<Output = Result<Tickets, PushError<L::Of<T>>>> + Send + '_ {
        let Core { ram, local } = self.core();
        let recorded = Recorded::new(local, L::as_slice(&load), place);
        let staging = match recorded {
            Err(error) => Err(error.map(|()| load)),
            Ok(mut recorded) => {
                recorded.admit(ram);
                let (entries, place) = (recorded.entries::<L>(load), recorded.place());
                Ok((recorded, L::stage(ram, entries, place, caller)))
            }
        };
        async move {
            let (recorded, staging) = staging?;
            recorded.settle::<L>(staging.await)
        }
    }

    /// Takes an item, and does not hand it out.
    pub(crate) fn take(
        &self,
        caller: Caller,
    ) -> impl Future<Output = Result<RamItem<'_, T, O>, PopError>> + Send + '_ {
        let Core { ram, local } = self.core();
        let ram = &**ram;
        let popping = pop!(caller, local, ram.[pop_waiting pop_async]());
        async { Ok(popping.await??) }
    }

    /// Takes an item, and hands it out.
    pub(crate) fn hold(
        &self,
        caller: Caller,
    ) -> impl Future<Output = Result<Item<'_, T, O>, PopError>> + Send + '_ {
        let Core { ram, local } = self.core();
        let (shared, ram) = (self.shared(), &**ram);
        // Looked at until its delivery is written: then nothing is held if the future is dropped.
        let begun = if shared.max_attempts.is_some() {
            Err(pop!(caller, local, ram.[peek_waiting peek_async]()))
        } else {
            Ok(self.take(caller))
        };
        async move {
            let peek = match begun {
                Ok(taking) => return Ok(shared.hand_out(taking.await?)?),
                Err(peeking) => peeking.await??,
            };
            let delivery = (peek.id, peek.attempts() + 1);
            shared.mark_one(delivery, caller).await?;
            Ok(shared.hand_out(peek.take())?)
        }
    }

    /// Takes up to `max` items, waits for the first `min`, and does not hand them out.
    pub(crate) fn take_batch(
        &self,
        min: usize,
        max: usize,
        caller: Caller,
    ) -> impl Future<Output = Result<RamItems<'_, T, O>, StoreError>> + Send + '_ {
        let Core { ram, local } = self.core();
        let ram = &**ram;
        let popping = pop!(caller, local, ram.[pop_batch_waiting pop_batch_async](min, max));
        popping
    }

    pub(crate) fn hold_batch(
        &self,
        min: usize,
        max: usize,
        caller: Caller,
    ) -> impl Future<Output = Result<Items<'_, T, O>, StoreError>> + Send + '_ {
        let (shared, popping) = (self.shared(), self.take_batch(min, max, caller));
        async move { shared.deliver_batch(popping.await?, caller).await }
    }

    /// Has `at_end` called when it has ended.
    pub(crate) fn at_end(&self, at_end: impl FnOnce(bool) + Send + 'static) {
        *self.core().local.at_end.lock() = Some(Box::new(at_end));
    }

    pub(crate) fn shared(&self) -> &Shared<T, O> {
        &self.core().local.shared
    }

    /// Delivers the item again: see [`requeue::Transaction::retry`]. The delay, if the queue has a
    /// [backoff](crate::Builder::backoff), is on the disk when the transaction has committed.
    ///
    /// # Errors
    ///
    /// [`PushError::Full`] as for [`requeue::Transaction::retry`]: the item is still held.
    pub fn retry(&self, item: Item<'_, T, O>) -> Result<(), PushError<()>> {
        let Core { ram, local } = self.core();
        let delivery = (item.ram.id, item.attempts());
        if local.shared.backoff.is_some() || local.shared.max_attempts.is_some() {
            local.set_noted();
        }
        local.shared.note_backoff(iter::once(delivery), None);
        Ok(ram.retry(item.ram)?)
    }

    /// Delivers the item again after `delay`, also in the next process: see [`requeue::Transaction::retry_after`]. The delay
    /// is on the disk when the transaction has committed.
    ///
    /// # Errors
    ///
    /// [`PushError::Full`] as for [`requeue::Transaction::retry_after`]: the item is still held.
    pub fn retry_after(&self, item: Item<'_, T, O>, delay: Duration) -> Result<(), PushError<()>> {
        let Core { ram, local } = self.core();
        let delivery = (item.ram.id, item.attempts());
        local.set_noted();
        // Before others can take it, since what they write is later in the log.
        local.shared.note_delays(iter::once(delivery), |_| delay);
        Ok(ram.retry_after(item.ram, delay)?)
    }

    /// Makes the item a [dead letter](DurableQueue::dead_letters) with this error, at once: see
    /// [`requeue::Transaction::fail`]. It is on the disk when the transaction has committed.
    ///
    /// # Errors
    ///
    /// [`PushError::Full`] as for [`requeue::Transaction::fail`]: the item is still held.
    pub fn fail(
        &self,
        item: Item<'_, T, O>,
        error: impl fmt::Display,
    ) -> Result<(), PushError<()>> {
        let Core { ram, local } = self.core();
        local.set_noted();
        Ok(ram.fail(item.ram, error)?)
    }

    /// The items that the transaction holds, again, in the order of the pops.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// let jobs = store.queue("jobs")?;
    /// jobs.push_batch([1, 2])?;
    /// let mut delivery = jobs.begin_owned();
    /// delivery.pop_batch(2)?;
    /// assert_eq!(delivery.items().map(|job| *job).sum::<i32>(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn items(&mut self) -> Items<'_, T, O> {
        let items: Vec<_> = self
            .core_mut()
            .ram
            .items()
            .map(|ram| Item { ram })
            .collect();
        items.into_iter()
    }

    /// Delivers all held items again after `delay`, as [`retry_after`](Self::retry_after) does.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// use std::time::Duration;
    ///
    /// let jobs = store.queue("jobs")?;
    /// jobs.push_batch([1, 2])?;
    /// let mut delivery = jobs.begin_owned();
    /// delivery.pop_batch(2)?;
    /// delivery.retry_all_after(Duration::from_secs(60))?;
    /// assert_eq!((delivery.held(), jobs.len()), (0, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PushError::Full`] as for [`requeue::OwnedTransaction::retry_all_after`].
    pub fn retry_all_after(&mut self, delay: Duration) -> Result<(), PushError<()>> {
        let Core { ram, local } = self.core_mut();
        let held: Vec<_> = ram.items().map(|item| (item.id, item.attempts())).collect();
        local.set_noted();
        local.shared.note_delays(held.into_iter(), |_| delay);
        Ok(ram.retry_all_after(delay)?)
    }

    /// Makes all held items [dead letters](DurableQueue::dead_letters) with this error.
    ///
    /// # Errors
    ///
    /// [`PushError::Full`] as for [`requeue::OwnedTransaction::fail_all`].
    pub fn fail_all(&mut self, error: impl fmt::Display) -> Result<(), PushError<()>> {
        let Core { ram, local } = self.core_mut();
        local.set_noted();
        Ok(ram.fail_all(error)?)
    }

    /// The last error with which a run of a pool of [`Workers`](crate::Workers) has failed that had this item, also in an earlier
    /// process: the first 1,000 bytes of it, with the number of its [deliveries](Item::attempts). It is written without a wait. A
    /// dead letter has the [error](crate::DeadLetter::error) of its last delivery.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// use requeue_durable::Workers;
    ///
    /// let jobs = store.queue("jobs")?;
    /// jobs.push(7)?;
    /// jobs.close()?;
    /// let workers = Workers::builder(&jobs).run(|job, tx| match tx.last_error(&job).as_deref() {
    ///     None => Err("no connection"),
    ///     Some(error) => Ok(assert_eq!((error, job.attempts()), ("\"no connection\"", 2))),
    /// });
    /// assert_eq!(workers.join().done, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn last_error(&self, item: &Item<'_, T, O>) -> Option<Arc<str>> {
        item.ram.error()
    }

    /// The number of staged items.
    pub fn staged(&self) -> usize {
        self.core().ram.staged()
    }

    forward! {
        |tx| tx.core().ram;
        /// The number of held items.
        held() -> usize;
        /// The id of the transaction, also reported by [`DurableQueue::held`](crate::DurableQueue::held): see
        /// [`requeue::Transaction::id`].
        id() -> DeliveryId;
    }

    /// Restarts the leases of all held items: see [`requeue::Transaction::renew`].
    ///
    /// # Errors
    ///
    /// [`StoreError::Expired`] if the lease of an item expired.
    pub fn renew(&self) -> Result<(), StoreError> {
        Ok(self.core().ram.renew()?)
    }

    /// Aborts: held items go back to the head, in their order; staged ones are dropped. Writes nothing, except delays if the
    /// queue has a [backoff](crate::Builder::backoff).
    pub fn abort(self) {
        drop(self);
    }
}

impl<T: Send + 'static, O: Order<T>> Drop for Transaction<'_, T, O> {
    fn drop(&mut self) {
        let Some(mut core) = self.core.take() else {
            return;
        };
        if !core.is_empty() {
            core.rollback(None);
        }
        *core.local.noted.get_mut() = false;
        core.local.at_once = false;
        if let Some(home) = self.home.take() {
            *home = HandleState::Rests(core);
        }
    }
}

requeue::debug_struct!([T: Send + 'static, O: Order<T>] Transaction<'_, T, O>, |it| ram: it.core.as_ref().map(|core| &core.ram));
