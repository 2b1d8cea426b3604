//! Opens a queue.

use super::{Builder, Settings};
use crate::batch::Change;
use crate::codec::{Codec, OnUndecodable};
use crate::error::StoreError;
use crate::format::{FIRST_VERSION, WITH_CHUNKS, WITH_GONE, WITH_TIMES};
use crate::order::{Order, RamBuilder};
use crate::queue::letters::Letters;
use crate::queue::recover::Found;
use crate::queue::shared::Shared;
use crate::queue::times::Times;
use crate::queue::windows::Windows;
use crate::queue::DurableQueue;
use parking_lot::Mutex;
use requeue::{AfterTtl, OnDuplicate};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

impl<T: Send + 'static, O: Order<T>, C> Builder<T, O, C> {
    /// Opens the queue, or creates it. All its items are read and checked, or with [pages](Self::memory) the first of them.
    ///
    /// # Errors
    ///
    /// [`StoreError::InUse`] if the queue is open, [`OtherOrder`](StoreError::OtherOrder) if it was made with another order,
    /// [`Damaged`](StoreError::Damaged), [`Codec`](StoreError::Codec) if an item cannot be decoded and
    /// [`on_undecodable`](Self::on_undecodable) says so, [`NoRoom`](StoreError::NoRoom) if its [budget](Self::budget) has not
    /// enough for them, or [`Poisoned`](StoreError::Poisoned).
    pub fn build(self) -> Result<DurableQueue<T, O>, StoreError>
    where
        C: Codec<T>,
    {
        let may_have_pages = self.settings.may_have_pages();
        let Settings { store, name, .. } = self.settings;
        let store = Arc::clone(&store.inner);
        let open = store.enter(&name)?;
        let id = store.queue(&name, O::TAG)?;
        // What earlier handles of the queue have committed, and not waited for.
        store.log.settle()?;
        let found = Found::read(&store, id)?;
        let (max_attempts, backoff, clock) = self.ram.kept();
        let after_ttl = self.settings.has_ttl.then_some(self.settings.after_ttl);
        let (unique_for, mut besides) = (self.settings.unique_for, self.settings.besides);
        let has_pages = besides.settle(may_have_pages, store.memory.as_ref(), unique_for);
        store.log.disk().upgrade(needed(has_pages, after_ttl))?;
        let shared = Arc::new(Shared::<T, O> {
            in_chunks: has_pages || besides.budget.is_none() && store.log.disk().is_of(WITH_CHUNKS),
            _open: open,
            times: Times::new(clock, &store),
            store,
            name,
            id,
            codec: Arc::new(self.codec),
            key_of: self.key_of,
            besides,
            has_pages,
            pages: OnceLock::new(),
            unique_for,
            windows: Windows::default(),
            max_attempts,
            backoff,
            after_ttl,
            timed_out: AtomicU64::new(0),
            letters: Letters::new(found.letters.clone(), self.settings.letters),
            supersedes: self.settings.on_duplicate != OnDuplicate::Refuse,
            pushing: Mutex::default(),
        });
        if self.settings.reopened && shared.is_closed_on_disk() {
            shared.write(Change::Close(id, false))?;
        }
        let ram = shared.attend(self.ram);
        let (ram, pages) = shared.recover(&found, self.settings.on_undecodable, ram)?;
        Ok(DurableQueue::new(shared, ram, pages))
    }
}

/// The version of the format that has all that a queue may write.
fn needed(has_pages: bool, after_ttl: Option<AfterTtl>) -> u32 {
    match after_ttl {
        _ if has_pages => WITH_GONE,
        Some(_) => WITH_TIMES,
        None => FIRST_VERSION,
    }
}

impl<T> Settings<T> {
    /// Whether an item may be decoded after the queue was opened.
    fn may_have_pages(&self) -> bool {
        self.on_undecodable != OnUndecodable::Refuse && !self.is_in_memory
    }
}

impl<T: Send + 'static, O: Order<T>> Shared<T, O> {
    /// Has the queue in memory say what becomes of its items.
    fn attend(self: &Arc<Self>, ram: RamBuilder<T, O>) -> RamBuilder<T, O> {
        let [dead, superseding] = [Arc::clone(self), Arc::clone(self)];
        let ram = ram.name(Arc::clone(&self.name));
        let ram = self.besides.set(ram).max_dead_letters(0);
        let ram = ram.on_expired(AfterTtl::DeadLetter);
        let ram = ram.drops_expired(self.after_ttl == Some(AfterTtl::Drop));
        let ram = ram.on_dead_overflow(move |letter| dead.bury(letter));
        let ram = ram.on_supersede(Arc::new(move |replaced, entry| {
            superseding.superseding(replaced, entry);
        }));
        if self.besides.has_keys {
            let pushing = Arc::clone(self);
            ram.on_reserve(Arc::new(move |entry| {
                let pages = pushing.pages();
                pages.map_or(Ok(()), |pages| pages.confirm(entry))
            }))
        } else {
            ram
        }
    }
}
