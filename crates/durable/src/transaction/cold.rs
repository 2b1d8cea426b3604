//! A transaction of a queue with pages: its pushes that stay on the disk, and its pops, which have pages read.

use super::Local;
use crate::batch::Run;
use crate::error::StoreError;
use crate::format::level::Level;
use crate::format::Layout;
use crate::order::{EntryOf, Order};
use crate::queue::pages::{ColdPushes, Pages};
use parking_lot::Mutex;
use requeue::Transaction;
use std::mem;
use std::sync::Arc;

/// What a transaction has of the pages.
pub(crate) struct Cold<T: Send + 'static, O: Order<T>> {
    pages: Arc<Pages<T, O>>,
    /// The pushes that stay on the disk: in memory entries without items are staged, for their room and for others to see. All
    /// pushes of a transaction are where the first one is.
    staged: Mutex<ColdPushes>,
}

/// A transaction in memory.
type Ram<'r, T, O> = Transaction<'r, EntryOf<T, O>, <O as crate::order::Engine<T>>::Ram>;

impl<T: Send + 'static, O: Order<T>> Cold<T, O> {
    pub(super) fn new(pages: Arc<Pages<T, O>>) -> Self {
        let staged = Mutex::default();
        Self { pages, staged }
    }
}

impl<T: Send + 'static, O: Order<T>> Local<T, O> {
    /// Whether pushed items, which take so many bytes, stay on the disk, since the memory has no room for them.
    pub(super) fn admit_cold(
        &self,
        bytes: usize,
        levels_by_key: impl Iterator<Item = Level>,
        ram: &Ram<'_, T, O>,
    ) -> bool {
        let Some(Cold { pages, staged }) = &self.cold else {
            return false;
        };
        let is_first = staged.lock().runs.is_empty();
        let may_be_hot = || self.at_once && pages.have_read(bytes, levels_by_key);
        !is_first || ram.staged() == 0 && !may_be_hot() && pages.admit(bytes)
    }

    /// Items that stay on the disk are staged.
    pub(super) fn add_cold(&self, runs: Vec<Run>) {
        if let Some(Cold { staged, .. }) = &self.cold {
            staged.lock().runs.extend(runs);
        }
    }

    /// They are not staged after all.
    pub(super) fn refuse_cold(&self) {
        if let Some(Cold { pages, staged }) = &self.cold {
            if staged.lock().runs.is_empty() {
                pages.forget(&[]);
            }
        }
    }

    /// Before the rows are written.
    pub(crate) fn register(&mut self) {
        let (shared, batch) = (&self.shared, self.batch.get_mut());
        let is_cold = |cold: &mut Cold<T, O>| !cold.staged.get_mut().runs.is_empty();
        let is_cold = self.cold.as_mut().is_some_and(is_cold);
        for run in &mut batch.pushes {
            run.layout = match is_cold {
                _ if !shared.writes_chunks(run.first) => Layout::Alone,
                true => Layout::Cold,
                false => Layout::Hot,
            };
        }
        let Some(Cold { pages, staged }) = &mut self.cold else {
            return;
        };
        if !is_cold {
            return pages.mark(&batch.pushes);
        }
        let staged = staged.get_mut();
        batch.keys.iter_mut().for_each(|key| key.is_cold = true);
        staged.keys = batch.keys.iter().map(|key| key.row).collect();
        staged.due = batch.due(|id| shared.is_scheduled(id));
        pages.register(&staged.runs);
    }

    /// The rows are written, or are in the log at least; returns whether there are any.
    pub(crate) fn conclude_cold(&mut self) -> bool {
        let Some(Cold { pages, staged }) = &mut self.cold else {
            return false;
        };
        let staged = mem::take(staged.get_mut());
        let is_cold = !staged.runs.is_empty();
        if is_cold {
            pages.conclude(&staged);
        }
        is_cold
    }

    /// The rows are not to be written.
    pub(crate) fn forget_cold(&mut self) {
        if let Some(Cold { pages, staged }) = &mut self.cold {
            let staged = mem::take(staged.get_mut());
            if !staged.runs.is_empty() {
                pages.forget(&staged.runs);
            }
        }
    }

    /// Before a pop of one item, or of `[min, max]`.
    pub(crate) fn begin_pop(&self, batch: &[usize]) {
        if let Some(Cold { pages, .. }) = &self.cold {
            let (min, max) = (batch.first(), batch.last());
            pages.stock(min.copied().unwrap_or(1), max.copied().unwrap_or(1));
        }
    }

    /// How many pages were read so far.
    pub(crate) fn pages_read(&self) -> u64 {
        self.cold.as_ref().map_or(0, |cold| cold.pages.pages_read())
    }

    /// After a pop that took nothing: whether another one may find something, since pages were read after this number of them.
    pub(crate) fn has_more(&self, before: u64) -> bool {
        let Some(Cold { pages, .. }) = &self.cold else {
            return false;
        };
        pages.stock(1, 1);
        pages.pages_read() > before
    }

    /// After a pop of so many items.
    #[inline]
    pub(crate) fn end_pop(&self, count: usize) -> Result<(), StoreError> {
        match &self.cold {
            Some(Cold { pages, .. }) if count == 0 => pages.failure().map_or(Ok(()), Err),
            Some(Cold { pages, .. }) => {
                pages.took(count);
                Ok(())
            }
            None => Ok(()),
        }
    }
}
