//! Commits: the changes are written, then the transaction takes effect in memory.

mod all;

pub use all::{commit_all, commit_all_with, Transactions};

use crate::batch::{Batch, Run};
use crate::error::StoreError;
use crate::handle::HandleState;
use crate::log::Durability;
use crate::order::{Order, RamTaken, RamTx};
use crate::queue::shared::Shared;
use crate::transaction::{Core, Local};
use crate::{Fifo, Transaction};
use parking_lot::{Condvar, Mutex};
use std::fmt;
use std::future::Future;
use std::iter::FusedIterator;
use std::mem;
use std::pin::Pin;
use std::slice;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// The items that a committed transaction held, by value, in the order of the pops.
///
/// Dropping it drops the remaining items. Nothing goes back to the queue.
pub struct Taken<'h, T: Send + 'static, O: Order<T> = Fifo> {
    /// `None` only while it is dropped.
    ram: Option<RamTaken<T, O>>,
    /// The handle that gets the state for its next transaction.
    home: Option<Home<'h, T, O>>,
}

type Home<'h, T, O> = (&'h mut HandleState<T, O>, Box<Local<T, O>>);

impl<'h, T: Send + 'static, O: Order<T>> Transaction<'h, T, O> {
    fn split(self) -> (RamTx<T, O>, Option<Home<'h, T, O>>) {
        let (Core { ram, local }, home) = self.into_parts();
        (ram, home.map(|home| (home, local)))
    }
}

impl<'h, T: Send + 'static, O: Order<T>> Taken<'h, T, O> {
    fn new(ram: RamTaken<T, O>, home: Option<Home<'h, T, O>>) -> Self {
        let ram = Some(ram);
        Self { ram, home }
    }
}

impl<T: Send + 'static, O: Order<T>> Iterator for Taken<'_, T, O> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        let item = self.ram.as_mut()?.next()?.into_item();
        Some(item.expect("an item is read from the disk when it is popped"))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = self.ram.as_ref().map_or(0, ExactSizeIterator::len);
        (len, Some(len))
    }
}

impl<T: Send + 'static, O: Order<T>> ExactSizeIterator for Taken<'_, T, O> {}
impl<T: Send + 'static, O: Order<T>> FusedIterator for Taken<'_, T, O> {}

impl<T: Send + 'static, O: Order<T>> Drop for Taken<'_, T, O> {
    fn drop(&mut self) {
        if let (Some(ram), Some((home, local))) = (self.ram.take(), self.home.take()) {
            *home = HandleState::Rests(Core::resume(local, ram.begin_owned()));
        }
    }
}

impl<T: Send + 'static, O: Order<T>> fmt::Debug for Taken<'_, T, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Taken").field("len", &self.len()).finish()
    }
}

/// The end of a transaction in memory.
impl<T: Send + 'static, O: Order<T>> Core<T, O> {
    /// Makes the removals of the held items part of the batch, and ensures that the commit in memory cannot fail.
    pub(crate) fn prepare(&mut self) -> Result<&mut Batch, StoreError> {
        let Self { ram, local } = self;
        let Local { shared, batch, .. } = &mut **local;
        let batch = batch.get_mut();
        if batch.is_empty() && ram.held() == 0 {
            // Not prepared: if it does not commit after all, its next items must be leased.
            return Ok(batch);
        }
        ram.prepare()?;
        if shared.budget.is_some() {
            for mut item in ram.items() {
                shared.load(&mut item)?; // again, if it could not be read when it was popped
            }
        }
        let ids = ram.items().map(|item| item.id);
        Run::add_each(&mut batch.removes, shared.id, ids);
        Ok(batch)
    }

    /// Prepares and writes the commit.
    fn write(&mut self, durability: Durability) -> Result<(), StoreError> {
        self.prepare()?;
        if self.has_changes() {
            let Local { shared, batch, .. } = &mut *self.local;
            let batch = batch.get_mut();
            let tickets = shared.tickets_of(batch);
            shared.log().commit(slice::from_mut(batch), durability)?;
            shared.exchange_tickets(tickets);
        }
        Ok(())
    }

    /// Aborts what could not be written.
    fn give_up(&mut self, error: StoreError) -> StoreError {
        self.blame(&error);
        self.rollback();
        error
    }
}

impl<'h, T: Send + 'static, O: Order<T>> Transaction<'h, T, O> {
    /// Commits: everything it pushed and popped is on the disk, or nothing. Waits as the [durability](crate::Durability) of the
    /// store asks.
    ///
    /// Returns the items it held, by value.
    ///
    /// # Errors
    ///
    /// The transaction was aborted: its items are back at the head.
    ///
    /// - [`StoreError::DiskFull`] if it pushes, and the disk has less room than is
    ///   [reserved](crate::StoreOptions::reserve).
    /// - [`StoreError::Expired`] if the lease of an item expired.
    /// - [`StoreError::Poisoned`] if a write failed, now or before. If now, it is unknown whether the commit is on the disk.
    pub fn commit(self) -> Result<Taken<'h, T, O>, StoreError> {
        let durability = self.core().local.shared.store.durability;
        self.commit_with(durability)
    }

    /// Commits as [`commit`](Self::commit) does, with a durability of its own.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// use requeue_durable::Durability;
    /// use std::time::Duration;
    ///
    /// let hits = store.queue("hits")?;
    /// let mut handle = hits.handle();
    /// let tx = handle.begin();
    /// tx.push(1)?;
    /// tx.commit_with(Durability::Buffered { at_most: Duration::from_secs(1) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`commit`](Self::commit).
    pub fn commit_with(mut self, durability: Durability) -> Result<Taken<'h, T, O>, StoreError> {
        let core = self.core_mut();
        if let Err(error) = core.write(durability) {
            core.blame(&error);
            return Err(error);
        }
        Ok(self.conclude())
    }

    /// Commits in memory what was prepared.
    fn conclude(self) -> Taken<'h, T, O> {
        let (ram, home) = self.split();
        Taken::new(conclude::<T, O>(ram), home)
    }

    /// Commits in a task. The commit begins at the first poll, and is synced whatever the durability of the store is.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future before its first poll aborts. Dropping it later does not cancel the commit, and the next use of the
    /// handle waits for it.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// # futures::executor::block_on(async {
    /// let jobs = store.queue("jobs")?;
    /// let mut handle = jobs.handle();
    /// let tx = handle.begin();
    /// tx.push(1)?;
    /// tx.commit_async().await?;
    /// assert_eq!(jobs.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn commit_async(self) -> CommitAsync<'h, T, O> {
        CommitAsync {
            state: CommitState::Begins(self),
        }
    }
}

/// Commits in memory what was prepared.
fn conclude<T: Send + 'static, O: Order<T>>(ram: RamTx<T, O>) -> RamTaken<T, O> {
    let taken = ram.try_commit();
    taken.unwrap_or_else(|_| unreachable!("the transaction was prepared"))
}

/// The future of [`Transaction::commit_async`].
#[must_use = "futures do nothing unless they are polled"]
pub struct CommitAsync<'h, T: Send + 'static, O: Order<T> = Fifo> {
    state: CommitState<'h, T, O>,
}

enum CommitState<'h, T: Send + 'static, O: Order<T>> {
    Begins(Transaction<'h, T, O>),
    Waits(Arc<PendingCommit<T, O>>, Option<Waiting<'h, T, O>>),
    Ended,
}

/// A handle that an asynchronous commit will give its state to.
type Waiting<'h, T, O> = (&'h mut HandleState<T, O>, Arc<Shared<T, O>>);

/// What an asynchronous commit leaves for its future, or for the next use of the handle.
/// It does not keep the store open, since the log drops its reference after waking the waiter.
pub(crate) struct PendingCommit<T: Send + 'static, O: Order<T>> {
    state: Mutex<LimboState<T, O>>,
    ended: Condvar,
}

struct LimboState<T: Send + 'static, O: Order<T>> {
    end: Option<Ended<T, O>>,
    waker: Option<Waker>,
}

type Ended<T, O> = Result<RamTaken<T, O>, (StoreError, Core<T, O>)>;

impl<T: Send + 'static, O: Order<T>> PendingCommit<T, O> {
    /// Hands a batch to the log. The transaction ends when it is on the disk.
    fn begin(mut core: Core<T, O>, waker: Waker) -> Arc<Self> {
        let shared = Arc::clone(&core.local.shared);
        let mut batch = mem::take(core.local.batch.get_mut());
        let pending_commit = Arc::new(Self {
            state: Mutex::new(LimboState {
                end: None,
                waker: Some(waker),
            }),
            ended: Condvar::new(),
        });
        let at_end = Arc::clone(&pending_commit);
        let tickets = shared.tickets_of(&mut batch);
        let then = Box::new(move |written: Result<(), StoreError>| {
            at_end.end(match written {
                Ok(()) => {
                    core.local.shared.exchange_tickets(tickets);
                    drop(core.local);
                    Ok(conclude::<T, O>(core.ram))
                }
                Err(error) => Err((core.give_up(error), core)),
            });
        });
        if let Err((error, then)) = shared.log().commit_then(&mut batch, then) {
            then(Err(error));
        }
        pending_commit
    }

    fn end(&self, end: Ended<T, O>) {
        let mut state = self.state.lock();
        state.end = Some(end);
        let waker = state.waker.take();
        self.ended.notify_all();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The end, if it is there; otherwise the waker is called then. Wakers are code of users, so not under the lock.
    fn poll(&self, waker: &Waker) -> Option<Ended<T, O>> {
        let waker = waker.clone();
        let mut state = self.state.lock();
        let end = state.end.take();
        let unused = match end {
            Some(_) => Some(waker),
            None => state.waker.replace(waker),
        };
        drop(state);
        drop(unused);
        end
    }

    /// Waits for the end, drops what the transaction held, and returns the state for the next one.
    pub(crate) fn wait(&self, shared: &Arc<Shared<T, O>>) -> Core<T, O> {
        let mut state = self.state.lock();
        let end = loop {
            match state.end.take() {
                Some(end) => break end,
                None => self.ended.wait(&mut state),
            }
        };
        drop(state);
        match end {
            Ok(taken) => Core::resume(Local::new(shared), taken.begin_owned()),
            Err((_, core)) => core,
        }
    }
}

impl<'h, T: Send + 'static, O: Order<T>> Future for CommitAsync<'h, T, O> {
    type Output = Result<Taken<'h, T, O>, StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let state = std::mem::replace(&mut self.state, CommitState::Ended);
        let (pending_commit, home) = match state {
            CommitState::Begins(mut tx) => {
                let core = tx.core_mut();
                if let Err(error) = core.prepare() {
                    core.blame(&error);
                    return Poll::Ready(Err(error));
                }
                if !core.has_changes() {
                    return Poll::Ready(Ok(tx.conclude()));
                }
                let (core, home) = tx.into_parts();
                let shared = Arc::clone(&core.local.shared);
                let pending_commit = PendingCommit::begin(core, context.waker().clone());
                let home = home.map(|home| {
                    *home = HandleState::Commits(Arc::clone(&pending_commit), Arc::clone(&shared));
                    (home, shared)
                });
                (pending_commit, home)
            }
            CommitState::Waits(pending_commit, home) => (pending_commit, home),
            CommitState::Ended => panic!("the future was polled after it had ended"),
        };
        let Some(end) = pending_commit.poll(context.waker()) else {
            self.state = CommitState::Waits(pending_commit, home);
            return Poll::Pending;
        };
        Poll::Ready(match end {
            Ok(ram) => {
                let home = home.map(|(home, shared)| {
                    *home = HandleState::Vacant;
                    (home, Local::new(&shared))
                });
                Ok(Taken::new(ram, home))
            }
            Err((error, core)) => {
                if let Some((home, _)) = home {
                    *home = HandleState::Rests(core);
                }
                Err(error)
            }
        })
    }
}

/// It has no pinned fields.
impl<T: Send + 'static, O: Order<T>> Unpin for CommitAsync<'_, T, O> {}

impl<T: Send + 'static, O: Order<T>> fmt::Debug for CommitAsync<'_, T, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommitAsync").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
