//! Items that are removed where they are.

use super::DurableQueue;
use crate::batch::{Batch, Change, Run};
use crate::error::StoreError;
use crate::log::chunks::Known;
use crate::log::Durability;
use crate::order::Order;
use crate::queue::pages::{Pages, Snapshot};
use requeue::Queued;
use std::any::Any;
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
        let durability = shared.store.durability;
        self.remove(durability, None, ColdPart::Items, |id, item, queued| {
            Ok(match item {
                Some(item) => keep(item, queued),
                None => keep(&shared.read(id)?, queued),
            })
        })
    }

    /// Removes all items that nobody holds, whether ready, delayed or scheduled, and returns their number, as a
    /// [`retain`](Self::retain) that keeps nothing. None is decoded, unless items are [unique](crate::Builder::unique_by).
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
        let durability = self.shared.store.durability;
        self.remove(durability, None, ColdPart::Rows, |_, _, _| Ok(false))
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
        let close = || Change::Close(self.shared.id, true);
        let (with, cold) = (closed.then(close), ColdPart::Scheduled);
        let removed = self.remove(Durability::Synced, with, cold, |_, _, queued| {
            Ok(queued.due.is_none())
        });
        if removed.is_err() && closed {
            self.shared.write(close())?; // also if not all could be read
        }
        removed
    }

    /// Pops and drops the items that are ready, as [`clear`](Self::clear) says.
    pub(super) fn remove_ready(&self) -> Result<usize, StoreError> {
        let durability = self.shared.store.durability;
        self.remove(durability, None, ColdPart::Rows, |_, _, queued| {
            Ok(queued.due.is_some())
        })
    }

    /// Removes items in memory, then on the disk, together with a change. `keep` gets the number of an item, and the item if it is
    /// in memory or its row has been read.
    fn remove(
        &self,
        durability: Durability,
        with: Option<Change>,
        cold: ColdPart,
        keep: impl FnMut(u64, Option<&T>, Queued) -> Result<bool, StoreError>,
    ) -> Result<usize, StoreError> {
        let shared = &self.shared;
        if let Some(error) = shared.log().failure() {
            return Err(error);
        }
        let mut examined = Examined {
            keep,
            gone: Vec::new(),
            failed: Ok(()),
            panicked: None,
        };
        // What was on the disk only is examined there, and not again if it is in memory meanwhile.
        let (rows, moved, skipped) = examined.cold_part(self.pages.as_deref(), cold)?;
        // A destructor could panic, and the items are gone then too.
        let removed = catch_unwind(AssertUnwindSafe(|| {
            self.ram.retain(|entry, queued| {
                let visited = self.pages.as_ref().zip(rows.as_ref());
                if visited.is_some_and(|(pages, rows)| pages.had(rows, entry.id)) {
                    return moved.binary_search(&entry.id).is_err() || examined.gives_up(entry.id);
                }
                examined.keeps(entry.id, entry.item.as_ref(), queued)
            })
        }));
        let Examined {
            gone,
            failed,
            panicked,
            ..
        } = examined;
        let count = gone.len();
        let written = self.write_removal(gone, with, durability);
        if let Some(pages) = &self.pages {
            pages.removed(&skipped);
        }
        if let Some(panic) = panicked.or(removed.err()) {
            resume_unwind(panic);
        }
        written?;
        failed.map(|()| count)
    }

    fn write_removal(
        &self,
        mut gone: Vec<u64>,
        with: Option<Change>,
        durability: Durability,
    ) -> Result<(), StoreError> {
        gone.sort_unstable();
        let mut batch = Batch::of(with);
        Run::add_each(&mut batch.removes, self.shared.id, gone.into_iter());
        if batch.is_empty() {
            return Ok(());
        }
        self.shared.log().commit(&mut [batch], durability)
    }
}

/// What becomes of the items that are on the disk only.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ColdPart {
    /// Those that are scheduled are examined without being read.
    Scheduled,
    /// They are examined without being read.
    Rows,
    Items,
}

/// The items that were on the disk only, those of the removed ones that came into memory meanwhile, and the rows of the others.
type OfColdPart = (Option<Snapshot>, Vec<u64>, Vec<Run>);

/// What a removal has examined so far.
struct Examined<K> {
    keep: K,
    gone: Vec<u64>,
    failed: Result<(), StoreError>,
    panicked: Option<Box<dyn Any + Send>>,
}

impl<K> Examined<K> {
    /// Whether an item is kept. A panic of `keep` would keep items that it has given up: after it nothing is examined, and so they
    /// are gone.
    fn keeps<T>(&mut self, id: u64, item: Option<&T>, queued: Queued) -> bool
    where
        K: FnMut(u64, Option<&T>, Queued) -> Result<bool, StoreError>,
    {
        if self.panicked.is_some() {
            return true;
        }
        let kept = catch_unwind(AssertUnwindSafe(|| (self.keep)(id, item, queued)));
        let kept = kept.unwrap_or_else(|panic| {
            self.panicked = Some(panic);
            Ok(true)
        });
        let kept = kept.unwrap_or_else(|error| {
            self.failed = Err(error);
            true
        });
        kept || self.gives_up(id)
    }

    /// Returns `false`: an item is not kept.
    fn gives_up(&mut self, id: u64) -> bool {
        self.gone.push(id);
        false
    }

    /// Examines the items that are on the disk only.
    fn cold_part<T: Send + 'static, O: Order<T>>(
        &mut self,
        pages: Option<&Pages<T, O>>,
        how: ColdPart,
    ) -> Result<OfColdPart, StoreError>
    where
        K: FnMut(u64, Option<&T>, Queued) -> Result<bool, StoreError>,
    {
        let Some(pages) = pages else {
            return Ok(OfColdPart::default());
        };
        let Some(mut rows) = pages.snapshot((how == ColdPart::Scheduled).then_some(0))? else {
            return Ok(OfColdPart::default());
        };
        let (mut chunks, mut keys) = (Vec::<Known>::new(), Vec::new());
        pages.visit(&mut rows, |stored| {
            let item = match how {
                ColdPart::Items => pages.decode(&stored).map(Some),
                _ => Ok(None),
            };
            match item {
                Ok(item) => {
                    let mut queued = Queued::default();
                    queued.due = pages.due(&stored);
                    let kept = self.keeps(stored.at.id, item.as_ref(), queued);
                    keys.extend((!kept).then(|| pages.key_of(&stored)).flatten());
                    let chunk = stored.chunk.filter(|_| !kept);
                    let is_new = |chunk: &Known| chunks.last().is_none_or(|it| it.0 != chunk.0);
                    chunks.extend(chunk.filter(is_new));
                    let dropped = catch_unwind(AssertUnwindSafe(|| drop(item)));
                    self.panicked = self.panicked.take().or(dropped.err());
                }
                Err(error) => self.failed = Err(error),
            }
            Ok(())
        })?;
        self.gone.sort_unstable();
        let (moved, skipped) = pages.give_up(&self.gone, keys, chunks);
        self.gone = skipped
            .iter()
            .flat_map(|run| run.keys())
            .map(|key| key.id)
            .collect();
        Ok((Some(rows), moved, skipped))
    }
}
