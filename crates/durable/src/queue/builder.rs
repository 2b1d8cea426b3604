//! The builder of queues.

use super::bury::{Letters, Limit};
use super::letters::DeadLetter;
use super::recover::{recover, Found};
use super::shared::Shared;
use super::DurableQueue;
use crate::batch::Change;
use crate::codec::{Codec, Postcard};
use crate::entry::Budget;
use crate::error::StoreError;
use crate::order::{Engine, FairSettings, LeaseSettings, Order, RamQueue};
use crate::store::Store;
use parking_lot::Mutex;
use requeue::{Backoff, ByKey, ByPriority, Clock, Fifo, Leased, Pace, SystemClock};
use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

/// The settings of a [`DurableQueue`], from [`Store::builder`].
///
/// What is not about the disk means the same as in [`requeue::Builder`]. The settings are not stored: another process may
/// choose others, except the order.
#[must_use = "a builder does nothing until `build` is called"]
pub struct Builder<T, O: Order<T> = Fifo, C = Postcard> {
    store: Store,
    name: Arc<str>,
    codec: C,
    order: O::Settings,
    letters: Option<Limit<T>>,
    settings: Settings,
}

/// The settings that are the same in all orders.
struct Settings {
    capacity: Option<usize>,
    memory: Option<usize>,
    max_attempts: Option<u32>,
    backoff: Option<Backoff>,
    clock: Option<Arc<dyn Clock>>,
    timestamps: bool,
    pace: Pace,
    max_held: Option<usize>,
    paused: bool,
    reopened: bool,
}

impl<T: Send + 'static> Builder<T> {
    pub(crate) fn new(store: Store, name: &str) -> Self {
        Self {
            store,
            name: name.into(),
            codec: Postcard,
            order: None,
            letters: None,
            settings: Settings {
                capacity: None,
                memory: None,
                max_attempts: None,
                backoff: None,
                clock: None,
                timestamps: false,
                pace: Pace::unlimited(),
                max_held: None,
                paused: false,
                reopened: false,
            },
        }
    }
}

impl<T: Send + 'static, C> Builder<T, Fifo, C> {
    /// Makes the queue fair by key: keys take turns. The key of an item must not change, and the key of an item that is
    /// read from the disk is computed again.
    pub fn fair_by<K: Hash + Eq + Clone + Send + Sync + 'static>(
        self,
        key: impl Fn(&T) -> K + Send + Sync + 'static,
    ) -> Builder<T, ByKey<K, T>, C> {
        self.by(|_| FairSettings {
            by: Arc::new(key),
            weigh: None,
            limit: None,
            serial: false,
        })
    }

    /// See [`requeue::Builder::stickiness`].
    pub fn stickiness(mut self, items: u32) -> Self {
        self.order = Some(items);
        self
    }

    /// Orders the items by priority and due time.
    pub fn by_priority(self) -> Builder<T, ByPriority, C> {
        self.by(|_| None)
    }
}

impl<T: Send + 'static, K: Hash + Eq + Clone + Send + Sync + 'static, C>
    Builder<T, ByKey<K, T>, C>
{
    /// See [`requeue::Builder::weight`].
    pub fn weight(mut self, weigh: impl Fn(&K) -> u32 + Send + Sync + 'static) -> Self {
        self.order.weigh = Some(Arc::new(weigh));
        self
    }

    /// See [`requeue::Builder::key_capacity`]. A key that has more items on the disk keeps them.
    ///
    /// # Panics
    ///
    /// If `limit` is 0.
    #[track_caller]
    pub fn key_capacity(mut self, limit: usize) -> Self {
        assert!(limit > 0, "key_capacity is 0: no key could have an item");
        self.order.limit = Some(limit);
        self
    }

    /// See [`requeue::Builder::serial`].
    pub fn serial(mut self) -> Self {
        self.order.serial = true;
        self
    }
}

impl<T: Send + 'static, C> Builder<T, ByPriority, C> {
    /// See [`requeue::Builder::age_after`].
    ///
    /// # Panics
    ///
    /// If `step` is zero.
    #[track_caller]
    pub fn age_after(mut self, step: Duration) -> Self {
        assert!(
            !step.is_zero(),
            "step of ageing is zero: all items would be the most urgent at once"
        );
        self.order = Some(step);
        self
    }
}

impl<T: Send + 'static, O: Order<T>, C> Builder<T, O, C> {
    fn by<P: Order<T>>(self, order: impl FnOnce(O::Settings) -> P::Settings) -> Builder<T, P, C> {
        Builder {
            store: self.store,
            name: self.name,
            codec: self.codec,
            order: order(self.order),
            letters: self.letters,
            settings: self.settings,
        }
    }

    /// Sets how items become bytes. The default is [`Postcard`].
    pub fn codec<D: Codec<T>>(self, codec: D) -> Builder<T, O, D> {
        Builder {
            store: self.store,
            name: self.name,
            codec,
            order: self.order,
            letters: self.letters,
            settings: self.settings,
        }
    }

    /// Leases items: a transaction holds an item for at most `term`; see [`requeue::Builder::leased`]. A commit after that
    /// fails with [`StoreError::Expired`].
    ///
    /// # Panics
    ///
    /// If `term` is zero.
    #[track_caller]
    pub fn leased(self, term: Duration) -> Builder<T, Leased<O>, C>
    where
        Leased<O>: Engine<T, Settings = LeaseSettings<O::Settings>>,
    {
        assert!(!term.is_zero(), "lease of zero: it would expire at once");
        self.by(|inner| LeaseSettings { inner, term })
    }

    /// Sets the maximum number of items, in memory and on the disk. The default is unlimited. A queue that has more on the
    /// disk keeps them.
    ///
    /// # Panics
    ///
    /// If `capacity` is 0.
    #[track_caller]
    pub fn capacity(mut self, capacity: usize) -> Self {
        assert!(capacity > 0, "capacity is 0: the queue could take no item");
        self.settings.capacity = Some(capacity);
        self
    }

    /// Sets how many bytes, as encoded, the items of the queue take in memory. Further ones stay on the disk and are read
    /// when they are popped; in memory each takes some 50 bytes nevertheless. The default is unlimited.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// let pages = store.builder("pages").memory(1 << 20).build()?;
    /// pages.push_batch((0..32).map(|_| vec![0_u8; 100_000]))?; // three times as much
    /// assert_eq!(pages.pop()?.len(), 100_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn memory(mut self, bytes: usize) -> Self {
        self.settings.memory = Some(bytes);
        self
    }

    /// Sets how often an item is delivered before it becomes a [dead letter](DurableQueue::dead_letters), over all processes:
    /// each delivery is noted on the disk, without a wait. So an item that kills the process that holds it becomes a dead
    /// letter too. The default is unlimited, and deliveries are counted for each process.
    ///
    /// # Panics
    ///
    /// If `attempts` is 0.
    #[track_caller]
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        assert!(
            attempts > 0,
            "max_attempts is 0: no item could be delivered (1 delivers each item once)"
        );
        self.settings.max_attempts = Some(attempts);
        self
    }

    /// Sets how many [dead letters](DurableQueue::dead_letters) the queue keeps. Of more, the oldest ones are handed to
    /// `overflow`, by a thread of the store, once their removal is on the disk. The default is unlimited.
    ///
    /// If the process dies between the removal and the call, `overflow` does not get them.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = requeue_durable::Store::open(directory.path())?;
    /// use std::sync::mpsc::channel;
    ///
    /// let (send, oldest) = channel();
    /// let jobs = store
    ///     .builder("jobs")
    ///     .max_attempts(1)
    ///     .max_dead_letters(1, move |letter| send.send(letter.item).unwrap())
    ///     .build()?;
    /// jobs.push_batch([1, 2])?;
    /// let mut delivery = jobs.begin_owned();
    /// delivery.pop_batch(2)?;
    /// delivery.fail_all("no good")?;
    /// assert_eq!((oldest.recv()?, jobs.dead_letters().len()), (1, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn max_dead_letters(
        mut self,
        most: usize,
        overflow: impl Fn(DeadLetter<T>) + Send + Sync + 'static,
    ) -> Self {
        let overflow = Arc::new(overflow);
        self.letters = Some(Limit { most, overflow });
        self
    }

    /// See [`requeue::Builder::backoff`]. The delays are written without a wait, and go on in the next process.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.settings.backoff = Some(backoff);
        self
    }

    /// See [`requeue::Builder::clock`].
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.settings.clock = Some(Arc::new(clock));
        self
    }

    /// See [`requeue::Builder::timestamps`].
    pub fn timestamps(mut self) -> Self {
        self.settings.timestamps = true;
        self
    }

    /// See [`requeue::Builder::pace`].
    pub fn pace(mut self, pace: Pace) -> Self {
        self.settings.pace = pace;
        self
    }

    /// See [`requeue::Builder::max_held`].
    ///
    /// # Panics
    ///
    /// If `items` is 0.
    #[track_caller]
    pub fn max_held(mut self, items: usize) -> Self {
        assert!(items > 0, "max_held is 0: no item could be taken");
        self.settings.max_held = Some(items);
        self
    }

    /// See [`requeue::Builder::paused`].
    pub fn paused(mut self) -> Self {
        self.settings.paused = true;
        self
    }

    /// Opens the queue again if it was [closed](DurableQueue::close). By default it stays closed.
    pub fn reopened(mut self) -> Self {
        self.settings.reopened = true;
        self
    }

    /// Opens the queue, or creates it. All its items are read and checked.
    ///
    /// # Errors
    ///
    /// [`StoreError::InUse`] if the queue is open, [`OtherOrder`](StoreError::OtherOrder) if it was made with another order,
    /// [`Damaged`](StoreError::Damaged), [`Codec`](StoreError::Codec) if an item cannot be decoded, or
    /// [`Poisoned`](StoreError::Poisoned).
    pub fn build(self) -> Result<DurableQueue<T, O>, StoreError>
    where
        C: Codec<T>,
    {
        let store = Arc::clone(&self.store.inner);
        let id = store.enter(&self.name, O::TAG)?;
        let leave = Leave(Some((&self.store, &self.name)));
        // What earlier handles of the queue have committed, and not waited for.
        store.log.flush()?;
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
            tickets: O::HAS_TICKETS.then(|| Mutex::new(HashMap::new())),
        });
        leave.cancel();
        if settings.reopened {
            shared.reopen()?;
        }
        let (pace, paused) = (settings.pace.clone(), settings.paused);
        let ram = recover(&shared, &found, |keys, items| {
            settings.build(&shared, keys, items)
        })?;
        ram.set_pace(pace);
        if paused {
            ram.pause();
        }
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
    /// The queue in memory, with room for `items` items, neither paused nor rate limited.
    fn build<T: Send + 'static, O: Engine<T>>(
        self,
        shared: &Arc<Shared<T, O>>,
        order: &O::Settings,
        items: usize,
    ) -> RamQueue<T, O> {
        let mut builder = O::builder(order)
            .name(Arc::clone(&shared.name))
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
        builder.build()
    }
}

impl<T: Send + 'static, O: Engine<T>> Shared<T, O> {
    fn reopen(&self) -> Result<(), StoreError> {
        let closed = self
            .log()
            .disk()
            .books()
            .queues
            .get(&self.id)
            .is_some_and(|row| row.closed);
        if closed {
            self.write(Change::Close(self.id, false))?;
        }
        Ok(())
    }
}

impl<T, O: Order<T>, C> fmt::Debug for Builder<T, O, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
