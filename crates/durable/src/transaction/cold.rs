//! A transaction of a queue with pages: its pushes that stay on the disk, and its pops, which have pages read.

use super::Local;
use crate::batch::Run;
use crate::call::Caller;
use crate::error::{PushError, StoreError};
use crate::order::{EntryOf, Order, Place};
use crate::queue::pages::Pages;
use parking_lot::Mutex;
use requeue::{Transaction, Wait};
use std::sync::Arc;

/// What a transaction has of the pages.
pub(crate) struct Cold<T: Send + 'static, O: Order<T>> {
    pages: Arc<Pages<T, O>>,
    /// The pushes that have no entries in memory. All pushes of a transaction are where the first one is.
    runs: Mutex<Vec<Run>>,
}

const NEVER: Caller = Caller::Thread(Wait::Never);

/// A transaction in memory.
type Ram<'r, T, O> = Transaction<'r, EntryOf<T, O>, <O as crate::order::Engine<T>>::Ram>;

impl<T: Send + 'static, O: Order<T>> Cold<T, O> {
    pub(super) fn new(pages: Arc<Pages<T, O>>) -> Self {
        let runs = Mutex::default();
        Self { pages, runs }
    }
}

impl<T: Send + 'static, O: Order<T>> Local<T, O> {
    /// How many pushes have no entries in memory.
    pub(crate) fn count_cold(&self) -> usize {
        let count = |cold: &Cold<T, O>| cold.runs.lock().iter().map(|run| run.len()).sum();
        self.cold.as_ref().map_or(0, count)
    }

    /// Keeps pushed items, which take so many bytes, on the disk only, if the memory has no room for them.
    pub(super) fn keep_on_disk(
        &self,
        run: Run,
        bytes: usize,
        ram: &Ram<'_, T, O>,
    ) -> Result<bool, PushError<()>> {
        let Some(Cold { pages, runs }) = &self.cold else {
            return Ok(false);
        };
        let mut runs = runs.lock();
        if runs.is_empty() && (ram.staged() > 0 || !pages.admit(bytes)) {
            return Ok(false);
        }
        if pages.is_closed() && ram.held() == 0 {
            if runs.is_empty() {
                pages.forget(&[]);
            }
            return Err(PushError::Closed(()));
        }
        runs.push(run);
        Ok(true)
    }

    /// Before the rows are written.
    pub(crate) fn register_cold(&mut self) {
        if let Some(Cold { pages, runs }) = &mut self.cold {
            let runs = runs.get_mut();
            if !runs.is_empty() {
                pages.register(runs);
            }
        }
    }

    /// The rows are written, or are in the log at least.
    pub(crate) fn conclude_cold(&mut self) {
        if let Some(Cold { pages, runs }) = &mut self.cold {
            let runs = runs.get_mut();
            if !runs.is_empty() {
                pages.conclude(runs);
                runs.clear();
            }
        }
    }

    /// The rows are not to be written.
    pub(crate) fn forget_cold(&mut self) {
        if let Some(Cold { pages, runs }) = &mut self.cold {
            let runs = runs.get_mut();
            if !runs.is_empty() {
                pages.forget(runs);
                runs.clear();
            }
        }
    }

    /// Before a pop of one item, or of `[min, max]`.
    pub(crate) fn begin_pop(&self, ram: &Ram<'_, T, O>, caller: Caller, batch: &[usize]) -> Caller {
        let Some(Cold { pages, runs }) = &self.cold else {
            return caller;
        };
        let (min, max) = (batch.first(), batch.last());
        pages.stock(min.copied().unwrap_or(1), max.copied().unwrap_or(1));
        let last = runs.lock().last().map(|run| run.end() - 1);
        match last.filter(|_| caller != NEVER && ram.held() + ram.staged() == 0) {
            Some(last) if !self.expose(last, ram) => NEVER,
            _ => caller,
        }
    }

    /// In memory a closed queue keeps no transaction waiting for what it has staged itself. So before a pop that waits, if all of
    /// that is on the disk, its last item goes to memory. Returns `false` if the queue is closed already: then nothing is to be
    /// waited for.
    fn expose(&self, last: u64, ram: &Ram<'_, T, O>) -> bool {
        let Self { shared, cold, .. } = self;
        let bytes = self.batch().bytes_of(shared.key(last)).map(<[u8]>::to_vec);
        let bytes = bytes.unwrap_or_default();
        let item = shared.codec.decode(&bytes);
        let item = item.expect("a codec decodes what it has encoded");
        let entry = shared.entry(last, item, bytes.len());
        let place = Place::default().numbered(last);
        let is_open = ram.push_to(place, entry, Wait::Never).is_ok();
        if let Some(Cold { pages, runs }) = cold.as_ref().filter(|_| is_open) {
            let mut runs = runs.lock();
            if runs.last_mut().is_some_and(Run::shorten) {
                runs.pop();
            }
            if runs.is_empty() {
                pages.forget(&[]);
            }
        }
        is_open
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
