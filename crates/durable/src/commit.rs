//! Commits: the changes are written, then the transaction takes effect in memory.

mod all;

pub(crate) use all::conclude_all;
pub use all::{commit_all, commit_all_with, Transactions};

use crate::batch::{Batch, Run};
use crate::call::{now, Caller};
use crate::error::StoreError;
use crate::handle::HandleState;
use crate::log::{Durability, Urgency};
use crate::oneshot::Oneshot;
use crate::order::{Order, RamTaken, RamTx};
use crate::store::StoreInner;
use crate::transaction::{Core, Local};
use crate::{Fifo, Transaction};
use requeue::backend::{Committed, Tx};
use std::future::Future;
use std::iter::FusedIterator;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;

/// The items that a committed transaction held, by value, in the order of the pops.
///
/// Dropping it drops the remaining items. Nothing goes back to the queue.
pub struct Taken<'h, T: Send + 'static, O: Order<T> = Fifo> {
    /// `None` only while it is dropped.
    ram: Option<RamTaken<T, O>>,
    /// The handle that gets the state for its next transaction.
    home: Option<Home<'h, T, O>>,
}

pub(crate) type Home<'h, T, O> = (&'h mut HandleState<T, O>, Box<Local<T, O>>);

impl<'h, T: Send + 'static, O: Order<T>> Transaction<'h, T, O> {
    pub(crate) fn split(self) -> (RamTx<T, O>, Option<Home<'h, T, O>>) {
        let (Core { ram, local }, home) = self.into_parts();
        (ram, home.map(|home| (home, local)))
    }
}

impl<'h, T: Send + 'static, O: Order<T>> Taken<'h, T, O> {
    pub(crate) fn new(ram: RamTaken<T, O>, home: Option<Home<'h, T, O>>) -> Self {
        let ram = Some(ram);
        Self { ram, home }
    }
}

impl<T: Send + 'static, O: Order<T>> Iterator for Taken<'_, T, O> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        let item = self.ram.as_mut()?.next()?.item;
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
            let ram = ram.begin_owned();
            *home = HandleState::Rests(Core { ram, local });
        }
    }
}

requeue::debug_struct!([T: Send + 'static, O: Order<T>] Taken<'_, T, O>, |it| len: it.len());

/// A transaction that commits, alone or with others: with the batch that it adds to the log.
pub(crate) trait Member: AsMut<Batch> {
    fn store(&self) -> &Arc<StoreInner>;

    /// Prepares the commit, once: the removals of the held items become part of the batch, and the commit in memory cannot
    /// fail. Returns whether the log has something to write, or to wait for that was written before.
    fn prepare(&mut self) -> Result<bool, StoreError>;

    /// What was prepared is in the log.
    fn conclude(&mut self);
}

/// Prepares and writes a commit.
pub(crate) fn write(
    members: &mut [&mut dyn Member],
    durability: Option<Durability>,
) -> Result<(), StoreError> {
    let Some(first) = members.first() else {
        return Ok(());
    };
    let store = Arc::clone(first.store());
    let mut has_changes = false;
    for member in &mut *members {
        assert!(
            Arc::ptr_eq(&store, member.store()),
            "transactions of different stores cannot commit as one"
        );
        has_changes |= member.prepare()?;
    }
    if has_changes {
        store
            .log
            .commit(members, durability.unwrap_or(store.durability))?;
        for member in members {
            member.conclude();
        }
    }
    Ok(())
}

impl<T: Send + 'static, O: Order<T>> AsMut<Batch> for Core<T, O> {
    fn as_mut(&mut self) -> &mut Batch {
        self.local.batch.get_mut()
    }
}

impl<T: Send + 'static, O: Order<T>> Member for Core<T, O> {
    fn store(&self) -> &Arc<StoreInner> {
        &self.local.shared.store
    }

    fn prepare(&mut self) -> Result<bool, StoreError> {
        self.remove_held()?;
        let local = &mut *self.local;
        let noted = mem::take(local.noted.get_mut());
        if noted {
            local.shared.await_letters(self.ram.died());
        }
        local.register();
        Ok(noted || !local.batch.get_mut().is_empty())
    }

    fn conclude(&mut self) {
        if self.local.conclude_cold() {
            self.ram.keep_room();
        }
    }
}

impl<T: Send + 'static, O: Order<T>> Core<T, O> {
    /// Commits in memory what was prepared, and begins the next transaction.
    pub(crate) fn commit(&mut self) -> Committed {
        let committed = now(Tx::commit(&mut self.ram));
        self.local.failed = false;
        self.local.end(true);
        committed.unwrap_or_else(|_| unreachable!("the transaction was prepared"))
    }

    fn remove_held(&mut self) -> Result<(), StoreError> {
        let Self { ram, local } = self;
        let Local { shared, batch, .. } = &mut **local;
        let batch = batch.get_mut();
        if batch.is_empty() && ram.held() == 0 {
            // Not prepared: if it does not commit after all, its next items must be leased.
            return Ok(());
        }
        ram.prepare()?;
        if shared.may_leave_memory() {
            for mut item in ram.items() {
                shared.load(&mut item)?; // again, if it could not be read when it was popped
            }
        }
        let ids = ram.items().map(|item| item.id);
        Run::add_each(&mut batch.removes, shared.id, ids);
        if !shared.unique_for.is_zero() {
            shared.begin_windows(batch, ram.items().filter_map(|item| item.hash()));
        }
        Ok(())
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
        self.commit_as(None)
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
    pub fn commit_with(self, durability: Durability) -> Result<Taken<'h, T, O>, StoreError> {
        self.commit_as(Some(durability))
    }

    fn commit_as(mut self, durability: Option<Durability>) -> Result<Taken<'h, T, O>, StoreError> {
        write(&mut [self.core_mut()], durability)?;
        Ok(self.conclude())
    }

    pub(crate) async fn commit_by(self, caller: Caller) -> Result<Taken<'h, T, O>, StoreError> {
        match caller {
            Caller::Thread(_) => self.commit(),
            // In its box, so that the future of a thread, which is moved, is small.
            Caller::Task => self.commit_async().await,
        }
    }

    /// Commits in memory what was prepared.
    fn conclude(self) -> Taken<'h, T, O> {
        let (core, home) = self.into_parts();
        let (ram, local) = conclude(core);
        Taken::new(ram, home.map(|home| (home, local)))
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
        Box::pin(self.commit_in_task())
    }

    async fn commit_in_task(mut self) -> Result<Taken<'h, T, O>, StoreError> {
        if !self.core_mut().prepare()? {
            return Ok(self.conclude());
        }
        let (core, mut home) = self.into_parts();
        let pending = begin_commit(core, conclude);
        if let Some(home) = &mut home {
            **home = HandleState::Commits(Arc::clone(&pending));
        }
        match pending.receive().await {
            Ok((ram, local)) => {
                let home = home.map(|home| {
                    *home = HandleState::Vacant;
                    (home, local)
                });
                Ok(Taken::new(ram, home))
            }
            Err((error, mut core)) => {
                core.rollback(None);
                if let Some(home) = home {
                    *home = HandleState::Rests(core);
                }
                Err(error)
            }
        }
    }
}

/// Commits in memory what was prepared.
fn conclude<T: Send + 'static, O: Order<T>>(core: Core<T, O>) -> Concluded<T, O> {
    let Core { ram, mut local } = core;
    let taken = ram.try_commit();
    local.end(true);
    let taken = taken.unwrap_or_else(|_| unreachable!("the transaction was prepared"));
    (taken, local)
}

type Concluded<T, O> = (RamTaken<T, O>, Box<Local<T, O>>);

/// The future of [`Transaction::commit_async`].
pub type CommitAsync<'h, T, O = Fifo> =
    Pin<Box<dyn Future<Output = Result<Taken<'h, T, O>, StoreError>> + Send + 'h>>;

/// The state of the next transaction of a handle, when its commit has ended. Whoever receives it closes the store, if nothing
/// else does: the log drops its reference after waking the waiter.
pub(crate) type PendingCommit<T, O> = Pending<T, O, Concluded<T, O>>;

/// A commit that the log has: its result, or why it failed and what is to be rolled back.
type Pending<T, O, R> = Arc<Oneshot<Result<R, (StoreError, Core<T, O>)>>>;

/// Hands the batch of a transaction to the log, which calls `conclude` when it is on the disk.
pub(crate) fn begin_commit<T: Send + 'static, O: Order<T>, R: Send + 'static>(
    mut core: Core<T, O>,
    conclude: impl FnOnce(Core<T, O>) -> R + Send + 'static,
) -> Pending<T, O, R> {
    let shared = Arc::clone(&core.local.shared);
    let mut batch = mem::take(core.as_mut());
    let pending = Oneshot::new();
    let at_end = Arc::clone(&pending);
    let then = Box::new(move |written: Result<(), StoreError>| {
        at_end.send(match written {
            Ok(()) => {
                core.conclude();
                Ok(conclude(core))
            }
            Err(error) => Err((error, core)),
        });
    });
    shared.log().add_then(&mut batch, Urgency::Sync, then);
    pending
}

#[cfg(test)]
mod tests;
