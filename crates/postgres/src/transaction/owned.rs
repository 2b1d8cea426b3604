//! Transactions bound to a queue: those of the traits [`Backend`] and [`Tx`], and of worker pools.

use super::{Ending, PgTransaction, Taken};
use crate::error::{Error, Result};
use crate::item::PgItem;
use crate::jobs::Cancellation;
use crate::queue::{Core, PgQueue};
use requeue::backend::{AbortCause, Backend, Cancelled, Committed, Holds, Settlement, Share, Tx};
use requeue::workers::{KeptTransaction, PoolBuilder};
use requeue::{Reason, Wait};
use std::future::{pending, poll_fn, ready, Future};
use std::mem;
use std::ops::{Deref, DerefMut};
use std::pin::pin;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::timeout;

/// The place to which a failed run is undone, and a pop that was dropped.
const MARK: &str = "savepoint requeue_run";
const ROLL_BACK: &str = "rollback to savepoint requeue_run";
/// How long the end of a pool waits until items are given back.
const RELEASE: Duration = Duration::from_secs(5);
const LOCKED: &str = "the transaction is locked";
/// The timestamps of transactions are microseconds since then.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Builds a pool of workers, from [`PgQueue::workers`].
pub type WorkersBuilder<T> = PoolBuilder<PgQueue<T>>;

/// The transaction of a run of [`run_async`](WorkersBuilder::run_async), which its pool ends.
pub type RunTransaction<T> = KeptTransaction<OwnedTransaction<T>>;

/// The locked transaction of a run, from [`OwnedTransaction::lock`].
pub struct RunGuard(OwnedMutexGuard<Bound>);

impl Deref for RunGuard {
    type Target = PgTransaction<'static>;

    fn deref(&self) -> &Self::Target {
        &self.0.tx
    }
}

impl DerefMut for RunGuard {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0.tx
    }
}

requeue::debug_struct!([] RunGuard, |guard| tx: guard.0.tx);

/// A transaction bound to one queue, from [`PgQueue::begin`]: a [`Tx`], as those of the queues in memory and on disk.
///
/// All other verbs are those of its [`PgTransaction`], from [`lock`](Self::lock).
///
/// ```no_run
/// # #[tokio::main] async fn main() -> Result<(), requeue_postgres::Error> {
/// use requeue::backend::{Backend, Tx};
/// use requeue::Wait;
/// use requeue_postgres::{PgQueue, Postgres};
///
/// /// Pushes all or nothing, to a queue in memory, on disk or in a database.
/// async fn push_all<B: Backend>(queue: &B, items: Vec<B::Item>) -> Result<(), B::Error> {
///     let mut tx = Backend::begin(queue, None);
///     for item in items {
///         tx.push(item, Wait::Forever).await?;
///     }
///     tx.commit().await.map(drop)
/// }
///
/// let db = Postgres::connect("postgres://app@localhost/app").await?;
/// let numbers: PgQueue<u32> = db.queue("numbers");
/// push_all(&numbers, vec![1, 2]).await?;
/// # Ok(()) }
/// ```
#[must_use = "a transaction that is dropped is aborted"]
pub struct OwnedTransaction<T> {
    queue: PgQueue<T>,
    bound: Arc<Mutex<Bound>>,
}

/// A transaction, and what an abort undoes of it.
pub(super) struct Bound {
    pub(super) tx: PgTransaction<'static>,
    pub(super) marks: Marks,
}

/// What is known of a transaction.
#[derive(Default)]
pub(super) struct Marks {
    /// The first items, which the pops of this queue have taken, and after which there is a mark.
    pub(super) marked: usize,
    /// It was locked by the user: what was done after the mark is unknown.
    used: bool,
    /// When the first item was taken.
    since: u64,
    /// An item was settled.
    pub(super) given_up: bool,
    /// Whether the run that uses it is cancelled, of runs of workers.
    pub(super) cancellation: Option<Cancellation>,
}

impl Bound {
    fn new(tx: PgTransaction<'static>) -> Self {
        let marks = Marks::default();
        Self { tx, marks }
    }

    /// The transaction, which a new one replaces.
    fn take(&mut self) -> Self {
        let mut new = PgTransaction::new(&self.tx.link.shared);
        new.of_worker = self.tx.of_worker;
        let mut new = Self::new(new);
        let shared = &self.tx.link.shared;
        let cancellation = self.marks.cancellation.as_ref();
        new.marks.cancellation = cancellation.map(|_| Cancellation::new(shared));
        mem::replace(self, new)
    }

    /// Gives back what was taken after the mark. Returns the statement that moves locked items to the tail after their rollback.
    fn release_others(&mut self) -> String {
        let mut others = PgTransaction::new(&self.tx.link.shared);
        others.taken = self.tx.taken.split_off(self.marks.marked); // released when it is dropped
        others.moves()
    }

    /// Keeps what was taken, and marks the place.
    fn mark(&mut self) {
        if self.tx.taken.len() > self.marks.marked && !self.marks.used {
            if self.marks.marked == 0 {
                let since = START.elapsed().as_micros();
                self.marks.since = u64::try_from(since).unwrap_or(u64::MAX);
            }
            if let Some(cancellation) = &mut self.marks.cancellation {
                let new = &self.tx.taken[self.marks.marked..];
                for taken in new {
                    cancellation.add(taken.record.ticket);
                }
                self.tx.link.shared.start_listening();
            }
            self.marks.marked = self.tx.taken.len();
            if self.tx.link.begun {
                self.tx.link.send(MARK);
            }
        }
    }

    /// Has the items of the queue tried again, after the backoff of the queue, or makes them dead letters; undoes all else.
    async fn fail(mut self, cause: &AbortCause) -> Result<()> {
        let moves = self.release_others();
        let tx = &mut self.tx;
        tx.staged.clear();
        let cancellation = self.marks.cancellation.as_ref();
        let is_cancelled = |taken: &Taken| {
            cancellation.is_some_and(|cancellation| cancellation.is_of(taken.record.ticket))
        };
        tx.taken
            .retain(|taken| taken.claim.is_none() || !is_cancelled(taken)); // it is a dead letter already
        match tx.taken.first().map(|taken| taken.claim) {
            Some(Some(_)) => tx.link.send_roll_back(&moves), // its connection may be dead
            Some(None) if tx.link.begun => {
                let undo = format!("{ROLL_BACK}; {moves}");
                tx.link.open().await?.run_all(&undo).await?;
            }
            _ => {
                tx.link.send_roll_back(&moves);
                return Ok(());
            }
        }
        let reason = match cause.reason {
            Reason::Panicked => "panicked",
            Reason::Failed => "failed",
            Reason::Retried => "retried",
            Reason::Expired => "expired",
            _ => "aborted",
        };
        for taken in tx.taken.iter_mut().filter(|taken| taken.delivered) {
            let backoff = taken.core.rules.backoff.unwrap_or(cause.backoff);
            let delay = backoff.delay(taken.record.deliveries());
            if is_cancelled(taken) {
                taken.ending = Ending::dead(&cause.error, "cancelled");
                continue;
            }
            let why = (Some(&*cause.error), reason);
            taken.retry_to(taken.core.rules.return_to, delay, why);
        }
        tx.leave(); // all that is unknown was undone
        tx.commit_in_place().await.map(drop)
    }
}

/// A pop that is under way. What it has done is undone if it is dropped, unless the user has locked the transaction before.
struct Popping<'t>(&'t mut Bound);

impl Drop for Popping<'_> {
    fn drop(&mut self) {
        if self.0.marks.used {
            return;
        }
        for taken in &mut self.0.tx.taken[self.0.marks.marked..] {
            taken.delivered = false; // to nobody
        }
        self.0.release_others();
        let tx = &mut self.0.tx;
        if self.0.marks.marked == 0 {
            tx.link.send_roll_back("");
        } else if tx.link.begun {
            tx.link.send(ROLL_BACK);
        }
        tx.leave();
    }
}

impl<T: 'static> OwnedTransaction<T> {
    pub(crate) fn new(queue: &PgQueue<T>, tx: PgTransaction<'static>) -> Self {
        Self::with(queue, tx, None)
    }

    fn with(
        queue: &PgQueue<T>,
        tx: PgTransaction<'static>,
        cancellation: Option<Cancellation>,
    ) -> Self {
        let mut bound = Bound::new(tx);
        bound.marks.cancellation = cancellation;
        Self {
            queue: queue.clone(),
            bound: Arc::new(Mutex::new(bound)),
        }
    }

    pub(super) async fn bound(&self) -> Result<OwnedMutexGuard<Bound>> {
        self.queue.core.db.shared.process().await?;
        Ok(Arc::clone(&self.bound).lock_owned().await)
    }

    async fn take(&self, max: usize, wait: Wait) -> Result<Vec<PgItem<T>>> {
        let mut bound = self.bound().await?;
        bound.tx.check()?;
        let popping = Popping(&mut bound);
        let items = popping.0.tx.take(&self.queue, max, wait).await?;
        popping.0.mark();
        mem::forget(popping);
        Ok(items)
    }

    /// Takes the next item of the queue: see [`PgTransaction::pop`].
    ///
    /// # Errors
    ///
    /// As for [`PgTransaction::pop`].
    pub async fn pop(&self) -> Result<Option<PgItem<T>>> {
        Ok(self.take(1, Wait::Never).await?.pop())
    }

    /// Takes the next item of the queue, or waits for one: see [`PgTransaction::pop_wait`].
    ///
    /// # Errors
    ///
    /// As for [`PgTransaction::pop`].
    pub async fn pop_wait(&self, timeout: Duration) -> Result<Option<PgItem<T>>> {
        Ok(self.take(1, Wait::For(timeout)).await?.pop())
    }

    /// Takes the next item of the queue, or waits for one until `deadline`: see [`PgTransaction::pop_deadline`].
    ///
    /// # Errors
    ///
    /// As for [`PgTransaction::pop`].
    pub async fn pop_deadline(&self, deadline: Instant) -> Result<Option<PgItem<T>>> {
        Ok(self.take(1, Wait::Until(deadline)).await?.pop())
    }

    /// Stages a push to the queue: see [`PgTransaction::push`].
    ///
    /// # Errors
    ///
    /// As for [`PgTransaction::push`].
    pub async fn push(&self, item: T) -> Result<()> {
        self.push_to(&self.queue, item).await
    }

    /// Stages a push to another queue of the database.
    ///
    /// # Errors
    ///
    /// As for [`PgTransaction::push`].
    pub async fn push_to<U: 'static>(&self, queue: &PgQueue<U>, item: U) -> Result<()> {
        self.bound().await?.tx.push(queue, item).await
    }

    /// Locks the transaction, for all its verbs and its [client](PgTransaction::client).
    ///
    /// # Errors
    ///
    /// As for [`Postgres::begin`](crate::Postgres::begin).
    pub async fn lock(&self) -> Result<RunGuard> {
        let mut bound = self.bound().await?;
        bound.marks.used = true;
        Ok(RunGuard(bound))
    }

    /// Returns the transaction.
    ///
    /// # Panics
    ///
    /// If it is [locked](Self::lock).
    #[track_caller]
    pub fn into_inner(self) -> PgTransaction<'static> {
        self.bound.try_lock().expect(LOCKED).take().tx
    }
}

/// Polls the future in the runtime of the database, if the thread has none.
async fn inside<F: Future>(core: &Core, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|context| {
        let runtime = core.db.shared.runtime.as_ref();
        let runtime = runtime.filter(|_| Handle::try_current().is_err());
        let _entered = runtime.map(Handle::enter);
        future.as_mut().poll(context)
    })
    .await
}

impl<T: Send + 'static> Backend for PgQueue<T> {
    type Item = T;
    type Error = Error;
    type Tx = OwnedTransaction<T>;

    fn begin(&self, worker: Option<Arc<str>>) -> OwnedTransaction<T> {
        let mut tx = PgTransaction::new(&self.core.db.shared);
        tx.of_worker = worker.is_some();
        let cancellation = worker.map(|_| Cancellation::new(&self.core.db.shared));
        OwnedTransaction::with(self, tx, cancellation)
    }

    /// Other processes may push at any time.
    fn close(&self) -> impl Future<Output = Result<bool>> + Send {
        ready(Ok(false))
    }

    fn is_closed(&self) -> bool {
        false
    }

    async fn left(&self) -> Result<u64> {
        let stats = inside(&self.core, self.stats()).await?;
        Ok(stats.ready + stats.delayed + stats.held)
    }

    fn instant(&self, since: u64) -> Instant {
        *START + Duration::from_micros(since)
    }

    /// Those of locked items keep a connection until they have ended.
    fn commits_wait(&self) -> bool {
        self.core.rules.term.is_some() && self.core.completions.is_none()
    }

    fn pool_ended(&self) -> impl Future<Output = ()> + Send {
        let released = self.core.release_prefetched();
        let ended = async {
            let written = self.core.write_completions();
            let all = async { tokio::join!(released, written) };
            drop(timeout(RELEASE, Box::pin(all)).await); // or in the background
        };
        inside(&self.core, ended)
    }
}

impl<T: Send + 'static> Holds for OwnedTransaction<T> {
    type Item = T;
    type Held<'t> = PgItem<T>;
    type View = Self;

    fn attempts(item: &PgItem<T>) -> u32 {
        item.attempts()
    }

    fn last_error(&self, item: &PgItem<T>) -> Option<Arc<str>> {
        item.error.clone()
    }

    fn view(&self) -> &Self {
        self
    }
}

impl<T: Send + 'static> Share for OwnedTransaction<T> {}

impl<T: Send + 'static> Tx for OwnedTransaction<T> {
    type Error = Error;
    type Refused = Error;

    async fn pop(&self, wait: Wait) -> Result<Option<PgItem<T>>> {
        let taken = inside(&self.queue.core, self.take(1, wait)).await;
        Ok(taken?.pop())
    }

    async fn pop_batch(&self, max: usize, wait: Wait) -> Result<Vec<PgItem<T>>> {
        inside(&self.queue.core, self.take(max, wait)).await
    }

    async fn push(&self, item: T, _: Wait) -> Result<()> {
        inside(&self.queue.core, self.push_to(&self.queue, item)).await
    }

    /// # Panics
    ///
    /// If the transaction is [locked](Self::lock).
    #[track_caller]
    fn settle(&self, item: PgItem<T>, settlement: Settlement) -> Result<()> {
        let mut bound = self.bound.try_lock().expect(LOCKED);
        match settlement {
            Settlement::RetryAfter(delay) => bound.tx.retry_after(item, delay)?,
            Settlement::Fail(error) => bound.tx.fail(item, error)?,
            _ => {
                let backoff = self.queue.core.rules.backoff;
                let delay =
                    backoff.map_or(Duration::ZERO, |backoff| backoff.delay(item.attempts()));
                bound.tx.retry_after(item, delay)?;
            }
        }
        bound.marks.given_up = true;
        Ok(())
    }

    async fn commit(&mut self) -> Result<Committed> {
        let mut bound = self.bound.lock().await;
        inside(&self.queue.core, bound.tx.commit_in_place()).await?;
        Ok(Committed::new(bound.take().marks.given_up))
    }

    fn can_commit_in_flight(&mut self) -> bool {
        let bound = self.bound.try_lock();
        bound.is_ok_and(|bound| bound.tx.ends_items_only())
    }

    async fn abort(&mut self, cause: AbortCause) -> Result<()> {
        let failed = self.bound.lock().await.take();
        inside(&self.queue.core, failed.fail(&cause)).await
    }

    fn cancelled(&self) -> Option<Cancelled> {
        let bound = self.bound.try_lock().ok()?;
        let mut told = bound.marks.cancellation.as_ref()?.subscribe();
        let is_so = |cancelled: &Vec<i64>| !cancelled.is_empty();
        Some(Box::pin(async move {
            if told.wait_for(is_so).await.is_err() {
                pending::<()>().await; // the run has ended
            }
        }))
    }

    fn deliveries(&mut self) -> (usize, u32) {
        let Ok(bound) = self.bound.try_lock() else {
            return (0, 0);
        };
        let taken = bound.tx.taken.iter().filter(|taken| taken.is_done());
        let attempts = taken.map(|taken| taken.record.deliveries());
        (bound.tx.held(), attempts.max().unwrap_or(0))
    }

    fn since(&self) -> u64 {
        self.bound.try_lock().map_or(0, |bound| bound.marks.since)
    }
}

requeue::debug_struct!([T] OwnedTransaction<T>, |owned| queue: owned.queue);
