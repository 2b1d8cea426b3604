//! Opens a queue.

use super::{Builder, Settings};
use crate::batch::Change;
use crate::codec::Codec;
use crate::entry::Budget;
use crate::error::StoreError;
use crate::order::{Engine, Order, RamBuilder, RamQueue};
use crate::queue::letters::Letters;
use crate::queue::recover::{recover, Found};
use crate::queue::shared::Shared;
use crate::queue::DurableQueue;
use requeue::SystemClock;
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
        let mut settings = self.settings;
        let store = Arc::clone(&settings.store.inner);
        let open = store.enter(&settings.name)?;
        let id = store.queue(&settings.name, O::TAG)?;
        // What earlier handles of the queue have committed, and not waited for.
        store.log.settle()?;
        let found = Found::read(&store, id)?;
        let shared = Arc::new(Shared::<T, O> {
            _open: open,
            store,
            name: Arc::clone(&settings.name),
            id,
            codec: Arc::new(self.codec),
            key_of: self.key_of,
            budget: settings.memory.map(Budget::new),
            max_attempts: settings.max_attempts,
            backoff: settings.backoff,
            clock: settings
                .clock
                .clone()
                .unwrap_or_else(|| Arc::new(SystemClock)),
            letters: Letters::new(found.letters.clone(), settings.letters.take()),
        });
        if settings.reopened && shared.is_closed_on_disk() {
            shared.write(Change::Close(id, false))?;
        }
        let on_undecodable = settings.on_undecodable;
        let ram = recover(&shared, &found, on_undecodable, |items, most| {
            settings.build(&shared, (self.ram)(most), items)
        })?;
        Ok(DurableQueue::new(shared, ram))
    }
}

/// Sets what was chosen.
fn set<B, V>(builder: B, value: Option<V>, set: impl FnOnce(B, V) -> B) -> B {
    match value {
        Some(value) => set(builder, value),
        None => builder,
    }
}

impl<T: Send + 'static> Settings<T> {
    /// The queue in memory, with room for `items` items.
    fn build<O: Engine<T>>(
        self,
        shared: &Arc<Shared<T, O>>,
        ram: RamBuilder<T, O>,
        items: usize,
    ) -> RamQueue<T, O> {
        let dead = Arc::clone(shared);
        let builder = ram
            .name(self.name)
            .pace(self.pace)
            .max_dead_letters(0)
            .on_dead_overflow(move |letter| dead.bury(letter));
        let capacity = self.capacity.map(|capacity| capacity.max(items));
        let builder = set(builder, capacity, RamBuilder::<T, O>::capacity);
        let builder = set(builder, self.max_attempts, RamBuilder::<T, O>::max_attempts);
        let builder = set(builder, self.backoff, RamBuilder::<T, O>::backoff);
        let builder = set(builder, self.clock, RamBuilder::<T, O>::clock);
        let builder = set(builder, self.max_held, RamBuilder::<T, O>::max_held);
        let builder = set(builder, self.timestamps.then_some(()), |builder, ()| {
            builder.timestamps()
        });
        let builder = set(builder, self.paused.then_some(()), |builder, ()| {
            builder.paused()
        });
        builder.build()
    }
}
