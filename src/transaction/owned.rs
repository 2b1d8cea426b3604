//! Transactions that own their handle.

use super::commit_all::sealed::Member;
use super::taken::OwnedTaken;
use super::Transaction;
use crate::core::end::Ended;
use crate::core::failed::Settlement;
use crate::core::pool::{CheckedOut, Home};
use crate::core::{CellOf, Local};
use crate::item::Items;
use crate::order::Order;
use crate::policy::failed::Cause;
use crate::raw::{Owner, Party};
use crate::sync::defer_with;
#[cfg(feature = "workers")]
use crate::{sync::swallow_panic, Taken};
use crate::{Backoff, Expired, Fifo, PushError, Reason, Unleased};
use std::fmt;
use std::time::Duration;

/// A [`Transaction`] that owns its handle: it may be stored, sent to another thread, and committed or aborted there,
/// like the ack or nack of a message broker's delivery.
///
/// It is made by [`Queue::begin_owned`](crate::Queue::begin_owned), which takes a handle out of a pool of the queue,
/// or by [`Handle::begin_owned`](crate::Handle::begin_owned). It dereferences to a `Transaction`, whose methods by
/// `&self` it has, in all forms of waiting.
///
/// Dropping it aborts: held items go back to the head of the queue in their order, staged ones are dropped.
///
/// If it is leaked by [`std::mem::forget`], its items stay held as long as the queue lives, as if a handle with an
/// open transaction were forgotten. Only a queue that [leases](crate::Builder::leased) its items delivers them again,
/// when their lease expires or by [`Queue::recover`](crate::Queue::recover).
///
/// # Example
///
/// Deliveries that are acknowledged by id, in any order and by any thread:
///
/// ```
/// use std::collections::HashMap;
///
/// let queue = requeue::Queue::unbounded();
/// queue.push("a")?;
/// queue.push("b")?;
/// let mut deliveries = HashMap::new();
/// for _ in 0..2 {
///     let delivery = queue.begin_owned();
///     delivery.pop()?;
///     deliveries.insert(delivery.id(), delivery);
/// }
/// let ids: Vec<_> = queue.held().iter().map(|held| held.id).collect();
///
/// let acked = deliveries.remove(&ids[0]).unwrap();
/// std::thread::spawn(|| assert_eq!(acked.commit().next(), Some("a"))).join().unwrap();
/// drop(deliveries); // the connection is gone
/// assert_eq!(queue.pop()?, "b");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a transaction that is dropped aborts"]
pub struct OwnedTransaction<T, O: Order<T> = Fifo> {
    /// `None` only after the end of the transaction.
    opened: Option<Opened<T, O>>,
}

struct Opened<T, O: Order<T>> {
    tx: Transaction<'static, T, O>,
    owner: Owner<Local<T, O>>,
    pool: Home<T, O>,
}

const OPEN: &str = "the transaction is open until its end";

impl<T, O: Order<T>> OwnedTransaction<T, O> {
    pub(crate) fn begin(cell: CheckedOut<T, O>) -> Self {
        let (cell, pool) = cell.into_parts();
        let (owner, open) = Owner::begin(cell);
        let tx = Transaction::new(open);
        let opened = Some(Opened { tx, owner, pool });
        Self { opened }
    }

    /// Ends the borrow of the handle without an abort.
    fn close(&mut self) -> CheckedOut<T, O> {
        let Opened { tx, owner, pool } = self.opened.take().expect(OPEN);
        CheckedOut::new(owner.close(tx.open), pool)
    }

    pub(crate) fn tx_mut(&mut self) -> &mut Transaction<'static, T, O> {
        &mut self.opened.as_mut().expect(OPEN).tx
    }

    pub(crate) fn cell(&mut self) -> &mut CellOf<T, O> {
        self.tx_mut().open.cell_mut()
    }
}

/// The ends of transactions of workers, which begin the next one.
#[cfg(feature = "workers")]
impl<T, O: Order<T>> OwnedTransaction<T, O> {
    /// Its runs have items that are out for delivery, which stand for held ones.
    pub(crate) fn vouch(&mut self) {
        self.cell().get_mut().vouch();
    }

    /// Commits without the items, and begins the next transaction. If a lease is over, the transaction stays open.
    ///
    /// Once it is committed, nothing panics: what wakers and destructors do is caught.
    #[inline(always)] // the commit of a worker
    pub(crate) fn commit_in_place(&mut self) -> Result<bool, Expired> {
        self.close_leases()?;
        let cell = self.cell();
        let deliveries = cell.get_mut().deliveries();
        let given_up = deliveries.has_given_up();
        let (taken, remains) = if deliveries.are_guarded() {
            cell.commit()
        } else {
            (cell.commit_unguarded(), None)
        };
        swallow_panic(|| {
            let _taken = Taken::new(cell, taken);
            drop(remains);
        });
        Ok(given_up)
    }

    #[doc(hidden)]
    pub fn has_given_up(&mut self) -> bool {
        self.cell().get_mut().deliveries().has_given_up()
    }

    /// Commits by a function that cannot fail, together with others, and begins the next transaction. The lease tables were
    /// closed.
    #[doc(hidden)]
    pub fn commit_by(&mut self, commit: impl FnOnce(Self) -> OwnedTaken<T, O>) {
        let mut taken = commit(Self {
            opened: self.opened.take(),
        });
        swallow_panic(|| taken.by_ref().for_each(drop));
        *self = taken.begin_owned();
    }

    /// Aborts for a cause, and begins the next transaction.
    #[cold]
    pub(crate) fn abort_in_place(&mut self, cause: &Cause) {
        swallow_panic(|| self.cell().abort_for(cause));
    }
}

impl<T, O: Order<T>> OwnedTransaction<T, O> {
    /// All items that the transaction holds, in the order of the pops: see [`Transaction::items`].
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.handle().push_batch([1, 2])?;
    /// let mut delivery = queue.begin_owned();
    /// delivery.pop_batch(2);
    /// for mut item in delivery.items() {
    ///     *item *= 10;
    /// }
    /// assert!(delivery.commit().eq([10, 20]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn items(&mut self) -> Items<'_, T, O> {
        Items::new(self.cell().held_items())
    }

    /// [Gives all held items back](Transaction::retry_after), to be delivered again after `delay`. Those of a FIFO queue
    /// come back in the order of the pops. Staged items are not affected: [`commit`](Self::commit) publishes them.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let clock = requeue::ManualClock::new();
    /// let queue = requeue::Queue::builder().clock(clock.clone()).build();
    /// queue.handle().push_batch([1, 2])?;
    /// let mut delivery = queue.begin_owned();
    /// delivery.pop_batch(2);
    /// delivery.retry_all_after(Duration::from_secs(60))?;
    /// assert_eq!((delivery.held(), queue.len()), (0, 0));
    /// clock.advance(Duration::from_secs(60));
    /// assert_eq!(queue.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PushError::Full`] as for [`Transaction::retry_after`]: earlier items have been given back, that one and later ones are still held.
    #[doc(alias("nack", "delay"))]
    pub fn retry_all_after(&mut self, delay: Duration) -> Result<(), PushError<()>> {
        self.cell().release_all(&Settlement::After(delay))
    }

    /// [Fails all held items](Transaction::fail): they become [dead letters](crate::Queue::dead_letters) with this
    /// error. Staged items are not affected: [`commit`](Self::commit) publishes them.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push("seven")?;
    /// let mut delivery = queue.begin_owned();
    /// delivery.pop()?;
    /// delivery.fail_all("not a number")?;
    /// let letter = queue.dead_letters().next().unwrap();
    /// assert_eq!((letter.item, letter.error()), ("seven", Some("not a number")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PushError::Full`] as for [`Transaction::fail`]: earlier items have been failed, that one and later ones are still held.
    ///
    /// # Panics
    ///
    /// If `error` panics when it is formatted. All items are still held then.
    pub fn fail_all(&mut self, error: impl fmt::Display) -> Result<(), PushError<()>> {
        self.cell().release_all(&Settlement::fail(error))
    }

    /// Commits: the pushes become visible all at once, the pops final. The handle goes back to its pool, or is
    /// dropped, together with the returned value.
    ///
    /// As [`Transaction::commit`] otherwise.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push("job")?;
    /// let delivery = queue.begin_owned();
    /// delivery.pop()?;
    /// assert!(delivery.commit().eq(["job"]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("ack", "acknowledge"))]
    pub fn commit(self) -> OwnedTaken<T, O>
    where
        O: Unleased,
    {
        self.conclude()
    }

    /// Commits, unless the queue [leases](crate::Builder::leased) its items and an item of this transaction was taken
    /// back.
    ///
    /// ```
    /// let queue = requeue::Queue::builder().leased(std::time::Duration::from_secs(60)).build();
    /// queue.push("job")?;
    /// let delivery = queue.begin_owned();
    /// delivery.pop()?;
    /// assert_eq!(delivery.try_commit()?.next(), Some("job"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Transaction::try_commit`].
    #[doc(alias("ack", "acknowledge"))]
    pub fn try_commit(mut self) -> Result<OwnedTaken<T, O>, Expired> {
        self.close_leases()?;
        Ok(self.conclude())
    }

    /// Commits, when nothing can be taken back any more.
    #[inline]
    fn conclude(self) -> OwnedTaken<T, O> {
        let (taken, _remains) = self.end_by(CellOf::commit);
        taken
    }

    fn end_by(
        mut self,
        end: impl FnOnce(&mut CellOf<T, O>) -> Ended<T, O>,
    ) -> (OwnedTaken<T, O>, impl Sized) {
        let mut cell = self.close();
        let (taken, remains) = end(&mut cell);
        (OwnedTaken::new(cell, taken), remains)
    }

    /// Prepares the commit: from here on [`try_commit`](Self::try_commit) and [`try_commit_all()`](crate::try_commit_all()) cannot fail. What has to be
    /// written elsewhere before the transaction takes effect is written between the two.
    ///
    /// The transaction can still be aborted. Without [leases](crate::Builder::leased) this does nothing.
    ///
    /// ```
    /// let queue = requeue::Queue::builder().leased(std::time::Duration::from_secs(60)).build();
    /// queue.push("job")?;
    /// let mut delivery = queue.begin_owned();
    /// let job = delivery.pop()?.to_string();
    /// delivery.prepare()?;
    /// println!("done: {job}"); // recorded before the job is gone
    /// assert!(delivery.try_commit().is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Expired`] if an item of this transaction was taken back: it cannot be committed.
    pub fn prepare(&mut self) -> Result<(), Expired> {
        self.close_leases()
    }

    /// Aborts, and begins the next transaction with the same handle.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push(1)?;
    /// let mut delivery = queue.begin_owned();
    /// delivery.pop()?;
    /// delivery.rollback();
    /// assert_eq!(*delivery.pop()?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the destructor of a staged item panics. The transaction is aborted then, and the next one has begun.
    #[doc(alias = "nack")]
    pub fn rollback(&mut self) {
        self.roll_back(CellOf::abort);
    }

    /// As [`rollback`](Self::rollback), for a delivery that failed: a dead letter keeps the reason and the error, and the
    /// items are delayed by `backoff`, unless their queue has [one](crate::Builder::backoff).
    ///
    /// ```
    /// use requeue::{Backoff, Reason};
    /// use std::time::Duration;
    ///
    /// let queue = requeue::Queue::builder().max_attempts(1).build();
    /// queue.push(1)?;
    /// let mut delivery = queue.begin_owned();
    /// delivery.pop()?;
    /// delivery.rollback_with(Reason::Aborted, "no answer", Backoff::fixed(Duration::from_secs(1)));
    /// assert_eq!(queue.dead_letters().next().unwrap().error(), Some("no answer"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// As for [`rollback`](Self::rollback).
    pub fn rollback_with(&mut self, reason: Reason, error: impl fmt::Display, backoff: Backoff) {
        let cause = Cause {
            reason,
            error: Some(error.to_string().into()),
            backoff: Some(backoff),
        };
        self.roll_back(|cell| cell.abort_for(&cause));
    }

    fn roll_back(&mut self, abort: impl FnOnce(&mut CellOf<T, O>)) {
        // Nothing is held or staged afterwards, also if user code panics.
        let mut cell = defer_with(self.cell(), |cell| _ = cell.settled());
        abort(&mut cell);
    }

    /// Aborts: held items go back to the head of the queue, in their order; staged ones are dropped.
    ///
    /// ```
    /// let queue = requeue::Queue::unbounded();
    /// queue.push(1)?;
    /// let delivery = queue.begin_owned();
    /// delivery.pop()?;
    /// delivery.abort();
    /// assert_eq!(queue.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("nack", "reject"))]
    pub fn abort(self) {
        drop(self);
    }
}

impl<T, O: Order<T> + Unleased> Unleased for OwnedTransaction<T, O> {}

impl<T, O: Order<T>> Member for OwnedTransaction<T, O> {
    type Taken = OwnedTaken<T, O>;

    fn close_leases(&mut self) -> Result<(), Expired> {
        self.tx_mut().close_leases()
    }

    fn party(&mut self) -> &mut dyn Party {
        let cell = self.cell();
        cell.end_forgotten();
        cell
    }

    fn into_taken(self) -> (Self::Taken, impl Sized) {
        self.end_by(CellOf::end_concluded)
    }
}

deref! {
    [T, O: Order<T>] OwnedTransaction<T, O> => Transaction<'static, T, O>,
    |owned| &owned.opened.as_ref().expect(OPEN).tx
}

impl<T, O: Order<T>> Drop for OwnedTransaction<T, O> {
    fn drop(&mut self) {
        if self.opened.is_some() {
            self.close().abort();
        }
    }
}

impl<T, O: Order<T>> fmt::Debug for OwnedTransaction<T, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnedTransaction").field(&**self).finish()
    }
}
