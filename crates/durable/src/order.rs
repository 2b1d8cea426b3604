//! The orders of durable queues: those of `requeue`, over entries.

use crate::entry::Entry;
use crate::format::OrderTag;
use requeue::priority::PriorityError;
use requeue::{ByKey, ByPriority, Fifo, Leased, Prioritized, PushError};
use std::collections::HashMap;
use std::fmt::{self, Debug};
use std::future::Future;
use std::hash::Hash;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The order of a [`DurableQueue`](crate::DurableQueue): an order of `requeue`. Sealed.
#[allow(private_bounds)] // sealed
pub trait Order<T>: Engine<T> {}

impl<T, O: Engine<T>> Order<T> for O {}

/// An item of a queue in memory.
pub(crate) type EntryOf<T, O> = Entry<T, <O as Engine<T>>::Key>;
/// A queue in memory.
pub(crate) type RamQueue<T, O> = requeue::Queue<EntryOf<T, O>, <O as Engine<T>>::Ram>;
/// Its transactions.
pub(crate) type RamTx<T, O> = requeue::OwnedTransaction<EntryOf<T, O>, <O as Engine<T>>::Ram>;
/// What they took.
pub(crate) type RamTaken<T, O> = requeue::OwnedTaken<EntryOf<T, O>, <O as Engine<T>>::Ram>;
/// What a push in memory returns.
pub(crate) type Staged<T, O> = Result<Option<requeue::Ticket>, PushError<EntryOf<T, O>>>;
/// The same for many items.
pub(crate) type StagedBatch<T, O> = Result<Vec<requeue::Ticket>, PushError<Vec<EntryOf<T, O>>>>;

/// How long a call waits: not at all, for a time, or without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Never,
    For(Duration),
    Forever,
}

/// The priority and the due time of a push.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) priority: u16,
    pub(crate) due: Option<Instant>,
}

/// The implementation of an [`Order`].
pub(crate) trait Engine<T>: Sized + 'static {
    /// The keys of items, `()` if they have none.
    type Key: Clone + Send + Sync + 'static;
    /// The order in memory.
    type Ram: requeue::Order<Entry<T, Self::Key>>;
    /// What the order is made of.
    type Settings: Clone + Send + Sync + 'static;

    const TAG: OrderTag;

    /// Whether items have tickets.
    const HAS_TICKETS: bool = false;

    fn key(settings: &Self::Settings, item: &T) -> Self::Key;
    /// The settings with limits that leave room for items with these keys.
    fn with_room<'k>(
        settings: &Self::Settings,
        _keys: impl Iterator<Item = &'k Self::Key>,
    ) -> Self::Settings {
        settings.clone()
    }
    /// Takes items back from a worker, if they are leased.
    fn recover(_: &RamQueue<T, Self>, _worker: &str, _before: Instant) -> usize {
        0
    }
    /// A builder of the queue in memory.
    fn builder(settings: &Self::Settings) -> requeue::Builder<Entry<T, Self::Key>, Self::Ram>;
    fn stage(
        tx: &RamTx<T, Self>,
        entry: EntryOf<T, Self>,
        place: Option<Place>,
        wait: Wait,
    ) -> Staged<T, Self>;
    fn stage_batch(
        tx: &RamTx<T, Self>,
        entries: Vec<EntryOf<T, Self>>,
        place: Option<Place>,
        wait: Wait,
    ) -> StagedBatch<T, Self>;
    fn stage_async(
        tx: &RamTx<T, Self>,
        entry: EntryOf<T, Self>,
        place: Option<Place>,
    ) -> impl Future<Output = Staged<T, Self>> + Send + '_
    where
        T: Send;
    fn stage_batch_async(
        tx: &RamTx<T, Self>,
        entries: Vec<EntryOf<T, Self>>,
        place: Option<Place>,
    ) -> impl Future<Output = StagedBatch<T, Self>> + Send + '_
    where
        T: Send;
}

/// The settings of a queue that is fair by key.
pub(crate) struct FairSettings<K, T> {
    pub(crate) by: Arc<dyn Fn(&T) -> K + Send + Sync>,
    pub(crate) weigh: Option<Arc<Weigh<K>>>,
    pub(crate) limit: Option<usize>,
    pub(crate) serial: bool,
}

/// The weight of a key.
type Weigh<K> = dyn Fn(&K) -> u32 + Send + Sync;

impl<K, T> Clone for FairSettings<K, T> {
    fn clone(&self) -> Self {
        Self {
            by: Arc::clone(&self.by),
            weigh: self.weigh.clone(),
            limit: self.limit,
            serial: self.serial,
        }
    }
}

impl<K, T> Debug for FairSettings<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FairSettings").finish_non_exhaustive()
    }
}

impl<K: Hash + Eq + 'static, T> FairSettings<K, T> {
    fn with_room<'k>(&self, keys: impl Iterator<Item = &'k K>) -> Self {
        let mut settings = self.clone();
        if let Some(limit) = &mut settings.limit {
            let mut counts = HashMap::new();
            keys.for_each(|key| *counts.entry(key).or_insert(0) += 1);
            *limit = counts.into_values().fold(*limit, usize::max);
        }
        settings
    }
}

/// The settings of a queue that leases its items.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeaseSettings<S> {
    pub(crate) inner: S,
    pub(crate) term: Duration,
}

fn fifo<T: Send>(stickiness: Option<u32>) -> requeue::Builder<Entry<T, ()>> {
    let builder = requeue::Queue::builder();
    match stickiness {
        Some(items) => builder.stickiness(items),
        None => builder,
    }
}

fn fair<K: Hash + Eq + Clone + Send + Sync + 'static, T: Send + 'static>(
    settings: &FairSettings<K, T>,
) -> requeue::Builder<Entry<T, K>, ByKey<K, Entry<T, K>>> {
    let mut builder = requeue::Queue::builder().fair_by(|entry: &Entry<T, K>| entry.key.clone());
    if let Some(weigh) = settings.weigh.clone() {
        builder = builder.weight(move |key| weigh(key));
    }
    if let Some(limit) = settings.limit {
        builder = builder.key_capacity(limit);
    }
    if settings.serial {
        builder = builder.serial();
    }
    builder
}

fn by_priority<T: Send>(age_after: Option<Duration>) -> requeue::Builder<Entry<T, ()>, ByPriority> {
    let builder = requeue::Queue::builder().by_priority();
    match age_after {
        Some(step) => builder.age_after(step),
        None => builder,
    }
}

/// The pushes of an order without places.
macro_rules! plain {
    () => {
        fn stage(
            tx: &RamTx<T, Self>,
            entry: EntryOf<T, Self>,
            _: Option<Place>,
            wait: Wait,
        ) -> Staged<T, Self> {
            match wait {
                Wait::Never => tx.push(entry),
                Wait::For(timeout) => tx.push_timeout(entry, timeout),
                Wait::Forever => tx.push_blocking(entry),
            }
            .map(|()| None)
        }

        fn stage_batch(
            tx: &RamTx<T, Self>,
            entries: Vec<EntryOf<T, Self>>,
            _: Option<Place>,
            wait: Wait,
        ) -> StagedBatch<T, Self> {
            match wait {
                Wait::Never => tx.push_batch(entries),
                Wait::For(timeout) => tx.push_batch_timeout(entries, timeout),
                Wait::Forever => tx.push_batch_blocking(entries),
            }
            .map(|_| Vec::new())
        }

        fn stage_async(
            tx: &RamTx<T, Self>,
            entry: EntryOf<T, Self>,
            _: Option<Place>,
        ) -> impl Future<Output = Staged<T, Self>> + Send + '_
        where
            T: Send,
        {
            let staging = tx.push_async(entry);
            async { staging.await.map(|()| None) }
        }

        fn stage_batch_async(
            tx: &RamTx<T, Self>,
            entries: Vec<EntryOf<T, Self>>,
            _: Option<Place>,
        ) -> impl Future<Output = StagedBatch<T, Self>> + Send + '_
        where
            T: Send,
        {
            let staging = tx.push_batch_async(entries);
            async { staging.await.map(|_| Vec::new()) }
        }
    };
}

/// The pushes of an order by priority.
macro_rules! prioritized {
    () => {
        fn stage(
            tx: &RamTx<T, Self>,
            entry: EntryOf<T, Self>,
            place: Option<Place>,
            wait: Wait,
        ) -> Staged<T, Self> {
            let to = view(tx, place);
            let staged = match wait {
                Wait::Never => to.push(entry),
                Wait::For(timeout) => to.push_timeout(entry, timeout),
                Wait::Forever => to.push_blocking(entry),
            };
            staged.map(Some).map_err(in_range)
        }

        fn stage_batch(
            tx: &RamTx<T, Self>,
            entries: Vec<EntryOf<T, Self>>,
            place: Option<Place>,
            wait: Wait,
        ) -> StagedBatch<T, Self> {
            let to = view(tx, place);
            let staged = match wait {
                Wait::Never => to.push_batch(entries),
                Wait::For(timeout) => to.push_batch_timeout(entries, timeout),
                Wait::Forever => to.push_batch_blocking(entries),
            };
            staged.map_err(in_range)
        }

        fn stage_async(
            tx: &RamTx<T, Self>,
            entry: EntryOf<T, Self>,
            place: Option<Place>,
        ) -> impl Future<Output = Staged<T, Self>> + Send + '_
        where
            T: Send,
        {
            let staging = view(tx, place).push_async(entry);
            async { staging.await.map(Some).map_err(in_range) }
        }

        fn stage_batch_async(
            tx: &RamTx<T, Self>,
            entries: Vec<EntryOf<T, Self>>,
            place: Option<Place>,
        ) -> impl Future<Output = StagedBatch<T, Self>> + Send + '_
        where
            T: Send,
        {
            let staging = view(tx, place).push_batch_async(entries);
            async { staging.await.map_err(in_range) }
        }
    };
}

/// The default priority.
pub(crate) const DEFAULT_PRIORITY: u16 = 5_000;

/// A transaction with the place of its pushes.
fn view<T: Send, Ram: Prioritized<Entry<T, ()>>>(
    tx: &requeue::OwnedTransaction<Entry<T, ()>, Ram>,
    place: Option<Place>,
) -> requeue::priority::PushWith<&requeue::Transaction<'static, Entry<T, ()>, Ram>> {
    let place = place.unwrap_or(Place {
        priority: DEFAULT_PRIORITY,
        due: None,
    });
    let view = tx.priority(place.priority);
    match place.due {
        Some(due) => view.at(due),
        None => view,
    }
}

/// Priorities are checked before the push.
fn in_range<I: Send>(error: PriorityError<I>) -> PushError<I> {
    match error {
        PriorityError::Full(item) | PriorityError::OutOfRange(item) => PushError::Full(item),
        PriorityError::Closed(item) => PushError::Closed(item),
    }
}

impl<T: Send + 'static> Engine<T> for Fifo {
    type Key = ();
    type Ram = Fifo;
    type Settings = Option<u32>;
    const TAG: OrderTag = OrderTag::Fifo;

    fn key(_: &Self::Settings, _: &T) {}

    fn builder(settings: &Self::Settings) -> requeue::Builder<Entry<T, ()>> {
        fifo(*settings)
    }

    plain!();
}

impl<T, K> Engine<T> for ByKey<K, T>
where
    T: Send + 'static,
    K: Hash + Eq + Clone + Send + Sync + 'static,
{
    type Key = K;
    type Ram = ByKey<K, Entry<T, K>>;
    type Settings = FairSettings<K, T>;
    const TAG: OrderTag = OrderTag::ByKey;

    fn key(settings: &Self::Settings, item: &T) -> K {
        (settings.by)(item)
    }

    fn with_room<'k>(
        settings: &Self::Settings,
        keys: impl Iterator<Item = &'k K>,
    ) -> Self::Settings {
        settings.with_room(keys)
    }

    fn builder(settings: &Self::Settings) -> requeue::Builder<Entry<T, K>, Self::Ram> {
        fair(settings)
    }

    plain!();
}

impl<T: Send + 'static> Engine<T> for ByPriority {
    type Key = ();
    type Ram = ByPriority;
    type Settings = Option<Duration>;
    const TAG: OrderTag = OrderTag::ByPriority;
    const HAS_TICKETS: bool = true;

    fn key(_: &Self::Settings, _: &T) {}

    fn builder(settings: &Self::Settings) -> requeue::Builder<Entry<T, ()>, ByPriority> {
        by_priority(*settings)
    }

    prioritized!();
}

impl<T: Clone + Send + 'static> Engine<T> for Leased<Fifo> {
    type Key = ();
    type Ram = Leased<Fifo>;
    type Settings = LeaseSettings<Option<u32>>;
    const TAG: OrderTag = OrderTag::Fifo;

    fn recover(ram: &RamQueue<T, Self>, worker: &str, before: Instant) -> usize {
        ram.recover(worker, before)
    }

    fn key(_: &Self::Settings, _: &T) {}

    fn builder(settings: &Self::Settings) -> requeue::Builder<Entry<T, ()>, Self::Ram> {
        fifo(settings.inner).leased(settings.term)
    }

    plain!();
}

impl<T, K> Engine<T> for Leased<ByKey<K, T>>
where
    T: Clone + Send + 'static,
    K: Hash + Eq + Clone + Send + Sync + 'static,
{
    type Key = K;
    type Ram = Leased<ByKey<K, Entry<T, K>>>;
    type Settings = LeaseSettings<FairSettings<K, T>>;
    const TAG: OrderTag = OrderTag::ByKey;

    fn recover(ram: &RamQueue<T, Self>, worker: &str, before: Instant) -> usize {
        ram.recover(worker, before)
    }

    fn key(settings: &Self::Settings, item: &T) -> K {
        (settings.inner.by)(item)
    }

    fn with_room<'k>(
        settings: &Self::Settings,
        keys: impl Iterator<Item = &'k K>,
    ) -> Self::Settings {
        LeaseSettings {
            inner: settings.inner.with_room(keys),
            term: settings.term,
        }
    }

    fn builder(settings: &Self::Settings) -> requeue::Builder<Entry<T, K>, Self::Ram> {
        fair(&settings.inner).leased(settings.term)
    }

    plain!();
}

impl<T: Clone + Send + 'static> Engine<T> for Leased<ByPriority> {
    type Key = ();
    type Ram = Leased<ByPriority>;
    type Settings = LeaseSettings<Option<Duration>>;
    const TAG: OrderTag = OrderTag::ByPriority;

    fn recover(ram: &RamQueue<T, Self>, worker: &str, before: Instant) -> usize {
        ram.recover(worker, before)
    }
    const HAS_TICKETS: bool = true;

    fn key(_: &Self::Settings, _: &T) {}

    fn builder(settings: &Self::Settings) -> requeue::Builder<Entry<T, ()>, Self::Ram> {
        by_priority(settings.inner).leased(settings.term)
    }

    prioritized!();
}
