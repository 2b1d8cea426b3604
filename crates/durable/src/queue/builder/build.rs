//! Opens a queue.

use super::{Builder, Settings};
use crate::batch::Change;
use crate::codec::Codec;
use crate::entry::Budget;
use crate::error::StoreError;
use crate::order::{Engine, Order, RamQueue, Staging};
use crate::queue::letters::Letters;
use crate::queue::recover::{recover, Found};
use crate::queue::shared::Shared;
use crate::queue::DurableQueue;
use crate::store::Store;
use parking_lot::Mutex;
use requeue::SystemClock;
use std::collections::HashMap;
use std::sync::Arc;

impl<T: Send + 'static, O: Order<T>, C> Builder<T, O, C> {
    /// Opens the queue, or creates it. All its items are read and checked.
    ///
    /// # Errors
    ///
    /// [`StoreError::InUse`] if the queue is open, [`OtherOrder`](StoreError::OtherOrder) if it was made with another order,
    /// [`Damaged`](StoreError::Damaged), [`Codec`](StoreError::Codec) if an item cannot be decoded and
    /// [`on_undecodable`](Self::on_undecodable) says so, or
    /// [`Poisoned`](StoreError::Poisoned).
    pub fn build(self) -> Result<DurableQueue<T, O>, StoreError>
    where
        C: Codec<T>,
    {
        let store = Arc::clone(&self.store.inner);
        let id = store.enter(&self.name, O::TAG)?;
        let leave = Leave(Some((&self.store, &self.name)));
        // What earlier handles of the queue have committed, and not waited for.
        store.log.settle()?;
        let found = Found::read(&store, id)?;
        let settings = self.settings;
        let shared = Arc::new(Shared::<T, O> {
            store: Arc::clone(&store),
            name: Arc::clone(&self.name),
            id,
            codec: Arc::new(self.codec),
            settings: self.order,
            budget: settings.memory.map(Budget::new),
            max_attempts: settings.max_attempts,
            backoff: settings.backoff,
            clock: settings
                .clock
                .clone()
                .unwrap_or_else(|| Arc::new(SystemClock)),
            letters: Letters::new(found.letters.clone(), self.letters),
            tickets: O::Staging::HAS_TICKETS.then(|| Mutex::new(HashMap::new())),
        });
        leave.cancel();
        if settings.reopened && shared.is_closed_on_disk() {
            shared.write(Change::Close(id, false))?;
        }
        let on_undecodable = settings.on_undecodable;
        let ram = recover(&shared, &found, on_undecodable, |keys, items| {
            settings.build(&shared, keys, items)
        })?;
        Ok(DurableQueue::new(shared, ram))
    }
}

/// Leaves the queue if it is not opened after all.
struct Leave<'b>(Option<(&'b Store, &'b str)>);

impl Leave<'_> {
    fn cancel(mut self) {
        self.0 = None;
    }
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        if let Some((store, name)) = self.0 {
            store.inner.leave(name);
        }
    }
}

impl Settings {
    /// The queue in memory, with room for `items` items.
    fn build<T: Send + 'static, O: Engine<T>>(
        self,
        shared: &Arc<Shared<T, O>>,
        order: &O::Settings,
        items: usize,
    ) -> RamQueue<T, O> {
        let mut builder = O::builder(order)
            .name(Arc::clone(&shared.name))
            .pace(self.pace)
            .max_dead_letters(0);
        let dead = Arc::clone(shared);
        builder = builder.on_dead_overflow(move |letter| dead.bury(letter));
        if let Some(capacity) = self.capacity {
            builder = builder.capacity(capacity.max(items));
        }
        if let Some(attempts) = self.max_attempts {
            builder = builder.max_attempts(attempts);
        }
        if let Some(backoff) = self.backoff {
            builder = builder.backoff(backoff);
        }
        if let Some(clock) = self.clock {
            builder = builder.clock(clock);
        }
        if self.timestamps {
            builder = builder.timestamps();
        }
        if let Some(items) = self.max_held {
            builder = builder.max_held(items);
        }
        if self.paused {
            builder = builder.paused();
        }
        builder.build()
    }
}
