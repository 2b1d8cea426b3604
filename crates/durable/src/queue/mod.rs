//! Durable queues.

mod builder;
mod fair;
mod inspect;
mod iter;
mod letters;
pub(crate) mod pages;
mod priority;
mod recover;
mod removal;
pub(crate) mod shared;
pub(crate) mod times;
mod verbs;
pub(crate) mod windows;

pub use builder::Builder;
pub use inspect::{Inspector, ItemInfo, Kind, LetterInfo, QueueInfo, Record};
pub use iter::Iter;
pub use letters::{Cause, DeadLetter, DeadLetters, UndecodableLetter};
pub use priority::{PushTo, PushWith};

use crate::batch::Change;
use crate::error::StoreError;
use crate::format::level::Level;
use crate::handle::{Handle, HandleState};
#[cfg(feature = "metrics")]
use crate::log::swallow_panic;
use crate::order::{EntryOf, Order, RamQueue, Unleased};
use crate::transaction::{Core, Local};
use crate::{Fifo, Transaction};
#[cfg(feature = "metrics")]
use metrics::counter;
use pages::Pages;
use requeue::{Held, Leased, Pace, Stats};
use shared::Shared;
use std::cell::RefCell;
use std::future::Future;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thread_local::ThreadLocal;

/// A queue whose committed items are on the disk. Clones are the same queue.
///
/// It has the verbs of [`requeue::Queue`]. Each is a transaction of its own, and durable when it returns: see
/// [`Durability`](crate::Durability). One commit is one sync of the disk at most, and threads that commit at the same time share
/// it: so batches, transactions and threads make it fast.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let store = requeue_durable::Store::open(directory.path())?;
/// use requeue_durable::DurableQueue;
///
/// let jobs: DurableQueue<String> = store.queue("jobs")?;
/// jobs.push("fetch".to_string())?;
/// let mut worker = jobs.handle();
/// let tx = worker.begin();
/// let job = tx.pop()?; // from memory
/// tx.push(format!("parse what {} got", *job))?;
/// tx.commit()?; // both, or neither, are on the disk
/// assert_eq!(jobs.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # After a crash
///
/// A crash is an abort of all transactions that were open: their items are back at the head, in their order, as they were
/// pushed, and before all that is pushed later. (An abort keeps the changes that a worker made to an item; a crash does not.)
pub struct DurableQueue<T: Send + 'static, O: Order<T> = Fifo> {
    pub(crate) shared: Arc<Shared<T, O>>,
    pub(crate) ram: RamQueue<T, O>,
    pub(crate) pages: Option<Arc<Pages<T, O>>>,
    /// A handle for each thread that uses the queue without one.
    threads: Arc<ThreadLocal<RefCell<HandleState<T, O>>>>,
}

impl<T: Send + 'static, O: Order<T>> DurableQueue<T, O> {
    fn new(
        shared: Arc<Shared<T, O>>,
        ram: RamQueue<T, O>,
        pages: Option<Arc<Pages<T, O>>>,
    ) -> Self {
        Self {
            shared,
            ram,
            pages,
            threads: Arc::new(ThreadLocal::new()),
        }
    }

    /// A handle for one thread or task.
    pub fn handle(&self) -> Handle<T, O> {
        Handle::new(self.clone(), None)
    }

    /// A handle with a name, for [`DurableQueue::held`] and [`DurableQueue::recover`].
    pub fn named_handle(&self, name: impl Into<Arc<str>>) -> Handle<T, O> {
        Handle::new(self.clone(), Some(name.into()))
    }

    /// Begins a transaction that borrows nothing, and may be stored, sent, and committed or aborted elsewhere.
    pub fn begin_owned(&self) -> Transaction<'static, T, O> {
        let (ram, local) = (self.ram.begin_owned(), Local::new(self));
        Transaction::of(Core { ram, local }, None)
    }

    /// Calls with a transaction of this thread, or with another one if that is in use, by a codec or a destructor.
    pub(crate) fn with_tx<R>(&self, call: impl FnOnce(Transaction<'_, T, O>) -> R) -> R {
        let begin = |state: &mut HandleState<T, O>| {
            let core = state.take(|| Core::new(self, None));
            call(Transaction::of(core, Some(state)))
        };
        match self.threads.get_or_default().try_borrow_mut() {
            Ok(mut state) => begin(&mut state),
            Err(_) => begin(&mut HandleState::default()),
        }
    }

    /// The name of the queue.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Refuses further pushes; see [`requeue::Queue::close`]. Returns whether it was open. The queue stays closed in later
    /// processes, unless they [reopen](Builder::reopened) it.
    ///
    /// # Errors
    ///
    /// [`StoreError::Poisoned`]: the queue is closed in this process.
    pub fn close(&self) -> Result<bool, StoreError> {
        let was_open = self.ram.close();
        if was_open {
            self.shared.write(Change::Close(self.shared.id, true))?;
        }
        Ok(was_open)
    }

    /// Calls with the numbers of items that have no entry in memory, and of those of them that are scheduled, which are the same during
    /// the call.
    fn with_cold<R>(&self, call: impl FnOnce(usize, usize) -> R) -> R {
        match self.pages.as_ref().filter(|pages| pages.is_cold()) {
            None => call(0, 0),
            Some(pages) => {
                // Those whose time to live is over are replaced by items that were on the disk only, and what is due is read.
                self.ram.len();
                let mut state = pages.state();
                let (all, scheduled) = pages.counts(&mut state);
                call(all, scheduled)
            }
        }
    }

    /// The number of ready items; see [`requeue::Queue::len`].
    pub fn len(&self) -> usize {
        self.with_cold(|cold, scheduled| cold - scheduled + self.ram.len())
    }

    /// Whether nothing is ready; see [`requeue::Queue::is_empty`].
    pub fn is_empty(&self) -> bool {
        self.with_cold(|cold, scheduled| cold == scheduled && self.ram.is_empty())
    }

    /// The total [weight](Builder::weigh) of the items, or their number where they have none; see
    /// [`requeue::Queue::weight`].
    pub fn weight(&self) -> usize {
        self.with_cold(|cold, _| cold + self.ram.weight())
    }

    forward! {
        |queue| queue.ram;
        /// Whether the queue is closed.
        is_closed() -> bool;
        /// The capacity, unless the queue is unbounded.
        capacity() -> Option<usize>;
        /// Whether the queue has no room; see [`requeue::Queue::is_full`].
        is_full() -> bool;
        /// Who holds what; see [`requeue::Queue::held`].
        held() -> Vec<Held>;
        /// Stops deliveries, in this process; see [`requeue::Queue::pause`].
        pause();
        /// Stops deliveries for a while, in this process; see [`requeue::Queue::pause_for`].
        pause_for(duration: Duration);
        /// Resumes deliveries.
        resume();
        /// Whether deliveries are stopped.
        is_paused() -> bool;
        /// Changes the pace; see [`requeue::Queue::set_pace`].
        set_pace(pace: Pace);
        /// The pace of the queue, which shares its rate limit; see [`requeue::Queue::pace`].
        pace() -> Pace;
        /// The time of the queue's clock.
        now() -> Instant;
        /// When the next delayed item is due.
        next_due() -> Option<Instant>;
        /// Waits until nothing is ready, delayed, held or staged; see [`requeue::Queue::wait_idle`].
        wait_idle();
    }

    /// Statistics since the queue was opened. [`DurableQueue::dead_letters`] has the number of dead letters.
    pub fn stats(&self) -> Stats {
        let mut stats = self.counts();
        // In memory all whose time to live is over are dead. Relaxed: statistics.
        let dropped = self
            .shared
            .timed_out
            .load(Ordering::Relaxed)
            .min(stats.dead);
        (stats.dead, stats.timed_out) = (stats.dead - dropped, dropped);
        #[cfg(feature = "metrics")]
        self.emit(dropped);
        stats
    }

    /// The counts of the queue in memory, and the items that have no entry there.
    pub(crate) fn counts(&self) -> Stats {
        self.with_cold(|cold, scheduled| {
            let mut stats = self.ram.stats();
            stats.ready += (cold - scheduled) as u64;
            stats.delayed += scheduled as u64;
            stats.pushed += cold as u64;
            stats
        })
    }

    /// Emits what the queue in memory does not know.
    #[cfg(feature = "metrics")]
    fn emit(&self, timed_out: u64) {
        self.shared.log().disk().report();
        swallow_panic(|| {
            let counter = counter!("requeue_timed_out_total", "queue" => self.name().to_owned());
            counter.absolute(timed_out);
        });
    }

    /// The dead letters.
    pub fn dead_letters(&self) -> DeadLetters<T, O> {
        DeadLetters::new(self.clone())
    }

    /// Whether it is the same queue.
    pub fn same_queue(&self, other: &Self) -> bool {
        self.ram.same_queue(&other.ram)
    }

    /// Visits the ready items; see [`requeue::Queue::peek_each`]. Items that are not in memory are read from the disk.
    ///
    /// # Errors
    ///
    /// If an item could not be read; the others were visited.
    pub fn peek_each(&self, mut visit: impl FnMut(&T)) -> Result<usize, StoreError> {
        let visit = |item: &T| {
            visit(item);
            true
        };
        self.visit_items(None, visit, |entry| self.ram.peek_each(entry))
    }

    /// Calls `visit` with the items of the entries that `each` visits, and with those on the disk only, or those of a level, and returns
    /// for how many it was `true`.
    fn visit_items(
        &self,
        level: Option<Level>,
        mut visit: impl FnMut(&T) -> bool,
        each: impl FnOnce(&mut dyn FnMut(&EntryOf<T, O>)) -> usize,
    ) -> Result<usize, StoreError> {
        let pages = self.pages.as_ref();
        let rows = pages.map(|pages| pages.snapshot(level)).transpose()?;
        let rows = rows.flatten();
        let (mut failed, mut count) = (Ok(()), 0);
        each(&mut |entry| {
            let visited = pages.zip(rows.as_ref());
            if visited.is_some_and(|(pages, rows)| pages.had(rows, entry.id)) {
                return; // visited below
            }
            let is_counted = match &entry.item {
                Some(item) => Ok(visit(item)),
                None => self.shared.read(entry.id).map(|item| visit(&item)),
            };
            match is_counted {
                Ok(is_counted) => count += usize::from(is_counted),
                Err(error) => failed = Err(error),
            }
        });
        failed?;
        if let Some((pages, mut rows)) = pages.zip(rows) {
            pages.visit(&mut rows, |item| {
                if pages.due(&item).is_none() {
                    count += usize::from(visit(&pages.decode(&item)?));
                }
                Ok(())
            })?;
        }
        Ok(count)
    }

    requeue::verb! {
        wait_idle(&self) -> bool, |wait| self.ram.wait_idle_waiting(wait);
        timed: "Returns whether the queue was [idle](Self::wait_idle)", "that",
        /// # let directory = tempfile::tempdir()?;
        /// # let store = requeue_durable::Store::open(directory.path())?;
        /// let jobs = store.queue("jobs")?;
        /// jobs.push(7)?;
        is_idle = jobs();
        /// assert!(!is_idle);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        async(&self) -> impl Future<Output = ()> + Send + 'static { self.ram.wait_idle_async() }
        /// As [`wait_idle`](Self::wait_idle), in a task.
    }
}

impl<T: Clone + Send + 'static, O: Unleased<T>> DurableQueue<T, Leased<O>> {
    /// Takes leased items back from a worker; see [`requeue::Queue::recover`].
    pub fn recover(&self, worker: &str, before: Instant) -> usize {
        self.ram.recover(worker, before)
    }
}

impl<T: Send + 'static, O: Order<T>> Clone for DurableQueue<T, O> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            ram: self.ram.clone(),
            pages: self.pages.clone(),
            threads: Arc::clone(&self.threads),
        }
    }
}

requeue::debug_struct!([T: Send + 'static, O: Order<T>] DurableQueue<T, O>, |it| name: it.name(), ram: it.ram);
