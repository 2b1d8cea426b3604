//! Items that are removed where they are.

use super::DurableQueue;
use crate::batch::{Batch, Change, Run};
use crate::error::StoreError;
use crate::log::Durability;
use crate::order::{EntryOf, Order};
use requeue::Queued;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

/// Items that nobody holds, ready or not. What a call removes is one commit, as that of a pop: a crash undoes all of it or nothing.
impl<T: Send + 'static, O: Order<T>> DurableQueue<T, O> {
    /// Removes the items for which `keep` returns `false`, whether ready, delayed by a retry, or scheduled, and returns
    /// their number: see [`requeue::Queue::retain`], which says how it examines them. Items that are not in memory are read from
    /// the disk.
    ///
    /// Each removed item is dropped at once, and its removal written when all items have been examined: so the others, and what
    /// waits for room, see it earlier than a crash would.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// let jobs = store.queue("jobs")?;
    /// jobs.push_batch([1, 2, 3])?;
    /// assert_eq!(jobs.retain(|job, queued| job % 2 == 1 || queued.attempts > 0)?, 1);
    /// assert_eq!(jobs.pop_batch(9)?, [1, 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`StoreError::Poisoned`] if a write failed before: nothing is removed. If it fails now, the removed items are back when the
    /// store is opened again. Or an item could not be read: it stays, and the others were examined.
    ///
    /// # Panics
    ///
    /// If `keep` or the codec panics: the items that were not examined stay. If the destructor of an item panics: those after it
    /// stay, except for up to 31 that were examined with it. The removal of the others is written in either case.
    pub fn retain(&self, mut keep: impl FnMut(&T, Queued) -> bool) -> Result<usize, StoreError> {
        let shared = &self.shared;
        self.remove(
            shared.store.durability,
            None,
            |entry, queued| match &entry.item {
                Some(item) => Ok(keep(item, queued)),
                None => Ok(keep(&shared.read(entry.id)?, queued)),
            },
        )
    }

    /// Removes all items that nobody holds, whether ready, delayed or scheduled, and returns their number, as a
    /// [`retain`](Self::retain) that keeps nothing. None is read from the disk.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// let jobs = store.queue("jobs")?;
    /// jobs.push_batch([1, 2, 3])?;
    /// assert_eq!(jobs.clear_all()?, 3);
    /// assert!(jobs.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`StoreError::Poisoned`], as for [`retain`](Self::retain).
    ///
    /// # Panics
    ///
    /// If the destructor of an item panics, as for [`retain`](Self::retain).
    #[doc(alias = "purge")]
    pub fn clear_all(&self) -> Result<usize, StoreError> {
        self.remove(self.shared.store.durability, None, |_, _| Ok(false))
    }

    /// [Closes](Self::close) the queue, and removes the items that are delayed or scheduled, so that pops need not wait for
    /// their times; see [`requeue::Queue::close_now`]. Returns how many items were removed, also if the queue was closed before.
    /// Both are one synced commit.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// use std::time::Duration;
    ///
    /// let jobs = store.queue("jobs")?;
    /// jobs.push_batch([1, 2])?;
    /// let tx = jobs.begin_owned();
    /// tx.retry_after(tx.pop()?, Duration::from_secs(3600))?;
    /// tx.commit()?;
    /// assert_eq!(jobs.close_now()?, 1);
    /// assert_eq!(jobs.pop_blocking()?, 2);
    /// assert!(jobs.pop_blocking().unwrap_err().is_closed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`StoreError::Poisoned`], as for [`retain`](Self::retain): the queue is closed in this process.
    ///
    /// # Panics
    ///
    /// If the destructor of an item panics, as for [`retain`](Self::retain).
    pub fn close_now(&self) -> Result<usize, StoreError> {
        let closed = self.ram.close();
        let close = closed.then(|| Change::Close(self.shared.id, true));
        self.remove(Durability::Synced, close, |_, queued| {
            Ok(queued.due.is_none())
        })
    }

    /// Removes items in memory, then on the disk, together with a change.
    fn remove(
        &self,
        durability: Durability,
        with: Option<Change>,
        mut keep: impl FnMut(&EntryOf<T, O>, Queued) -> Result<bool, StoreError>,
    ) -> Result<usize, StoreError> {
        let shared = &self.shared;
        if let Some(error) = shared.log().failure() {
            return Err(error);
        }
        let (mut gone, mut failed, mut panicked) = (Vec::new(), Ok(()), None);
        // A panic of `keep` would keep items that it has given up: after it nothing is examined, and so they are gone.
        let keep = |entry: &EntryOf<T, O>, queued: Queued| {
            if panicked.is_some() {
                return true;
            }
            let kept = catch_unwind(AssertUnwindSafe(|| keep(entry, queued)));
            let kept = kept.unwrap_or_else(|panic| {
                panicked = Some(panic);
                Ok(true)
            });
            let kept = kept.unwrap_or_else(|error| {
                failed = Err(error);
                true
            });
            if !kept {
                gone.push(entry.id);
            }
            kept
        };
        // So could one of a destructor, after which the items are gone too.
        let removed = catch_unwind(AssertUnwindSafe(|| self.ram.retain(keep)));
        let count = gone.len();
        gone.sort_unstable();
        let mut batch = Batch::of(with);
        Run::add_each(&mut batch.removes, shared.id, gone.into_iter());
        let written = if batch.is_empty() {
            Ok(())
        } else {
            shared.log().commit(&mut [batch], durability)
        };
        if let Some(panic) = panicked.or(removed.err()) {
            resume_unwind(panic);
        }
        written?;
        failed.map(|()| count)
    }
}
