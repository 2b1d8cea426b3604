//! A transaction of a queue with pages: its pushes that stay on the disk, and its pops, which have pages read.

use super::Local;
use crate::batch::Run;
use crate::error::StoreError;
use crate::format::level::Level;
use crate::format::UniqueRow;
use crate::order::{EntryOf, Order, Place};
use crate::queue::pages::Pages;
use parking_lot::Mutex;
use requeue::Transaction;
use std::mem;
use std::sync::Arc;

/// What a transaction has of the pages.
pub(crate) struct Cold<T: Send + 'static, O: Order<T>> {
    pages: Arc<Pages<T, O>>,
    staged: Mutex<Staged<EntryOf<T, O>>>,
}

/// The pushes that stay on the disk: in memory entries without items are staged, for their room and for others to see. All pushes
/// of a transaction are where the first one is.
struct Staged<E> {
    runs: Vec<Run>,
    /// Their unique keys.
    keys: Vec<UniqueRow>,
    /// Those that are in no page, since they have due times: they come into memory when the transaction is committed.
    later: Vec<(E, Place)>,
}

impl<E> Default for Staged<E> {
    fn default() -> Self {
        Self {
            runs: Vec::new(),
            keys: Vec::new(),
            later: Vec::new(),
        }
    }
}

impl<E> Staged<E> {
    fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.later.is_empty()
    }
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
        let is_first = staged.lock().is_empty();
        let may_be_hot = || self.at_once && pages.have_read(bytes, levels_by_key);
        !is_first || ram.staged() == 0 && !may_be_hot() && pages.admit(bytes)
    }

    /// Items that stay on the disk are staged.
    pub(super) fn add_cold(&self, runs: Vec<Run>, later: Vec<EntryOf<T, O>>, place: Option<Place>) {
        let Some(Cold { staged, .. }) = &self.cold else {
            return;
        };
        let mut staged = staged.lock();
        let paged = runs.into_iter();
        let paged = paged.filter(|run| self.shared.is_paged(run.first));
        staged.runs.extend(paged);
        let later = later.into_iter();
        let placed = later.map(|entry| (entry, place.unwrap_or_default()));
        staged.later.extend(placed);
    }

    /// They are not staged after all.
    pub(super) fn refuse_cold(&self) {
        if let Some(Cold { pages, staged }) = &self.cold {
            if staged.lock().is_empty() {
                pages.forget(&[]);
            }
        }
    }

    /// Before the rows are written.
    pub(crate) fn register_cold(&mut self) {
        if let Some(Cold { pages, staged }) = &mut self.cold {
            let (staged, batch) = (staged.get_mut(), self.batch.get_mut());
            if staged.is_empty() {
                return pages.mark(&batch.pushes);
            }
            for run in &mut batch.pushes {
                run.in_chunks = self.shared.is_paged(run.first);
            }
            for key in &mut batch.keys {
                key.is_cold = self.shared.is_paged(key.row.item.id);
            }
            let cold = batch.keys.iter().filter(|key| key.is_cold);
            staged.keys = cold.map(|key| key.row).collect();
            pages.register(&staged.runs);
        }
    }

    /// The rows are written, or are in the log at least; returns whether there are any.
    pub(crate) fn conclude_cold(&mut self) -> bool {
        let Some(Cold { pages, staged }) = &mut self.cold else {
            return false;
        };
        let staged = mem::take(staged.get_mut());
        let is_cold = !staged.is_empty();
        if is_cold {
            pages.restore(staged.later);
            pages.conclude(&staged.runs, &staged.keys);
        }
        is_cold
    }

    /// The rows are not to be written.
    pub(crate) fn forget_cold(&mut self) {
        if let Some(Cold { pages, staged }) = &mut self.cold {
            let staged = mem::take(staged.get_mut());
            if !staged.is_empty() {
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
