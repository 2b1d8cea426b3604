//! Another order, with leases.

use super::{Engine, EntryOf, RamBuilder, Staging};
use crate::format::OrderTag;
use requeue::Leased;
use std::time::Duration;

/// The settings of a queue that leases its items.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeaseSettings<S> {
    pub(crate) inner: S,
    pub(crate) term: Duration,
}

/// An [`Order`](crate::Order) without leases, which a queue can [add](crate::Builder::leased). Sealed.
///
/// ```
/// use requeue_durable::{DurableQueue, Leased, Unleased};
/// use std::time::Instant;
///
/// /// Takes back what a worker holds, whatever the order is.
/// fn take_back<O: Unleased<u32>>(jobs: &DurableQueue<u32, Leased<O>>, worker: &str) -> usize {
///     jobs.recover(worker, Instant::now())
/// }
/// ```
#[allow(private_bounds)] // sealed
pub trait Unleased<T: Clone>:
    Engine<
    T,
    Ram: requeue::Unleased,
    Staging: Staging<EntryOf<T, Self>, Leased<<Self as Engine<T>>::Ram>>,
>
{
}

impl<T: Clone, O> Unleased<T> for O where
    O: Engine<
        T,
        Ram: requeue::Unleased,
        Staging: Staging<EntryOf<T, O>, Leased<<O as Engine<T>>::Ram>>,
    >
{
}

impl<T: Clone + Send + 'static, O: Unleased<T>> Engine<T> for Leased<O> {
    type Key = O::Key;
    type Ram = Leased<O::Ram>;
    type Staging = O::Staging;
    type Settings = LeaseSettings<O::Settings>;
    const TAG: OrderTag = O::TAG;

    fn key(settings: &Self::Settings, item: &T) -> O::Key {
        O::key(&settings.inner, item)
    }

    fn with_room<'k>(
        settings: &Self::Settings,
        keys: impl Iterator<Item = &'k O::Key>,
    ) -> Self::Settings {
        LeaseSettings {
            inner: O::with_room(&settings.inner, keys),
            term: settings.term,
        }
    }

    fn builder(settings: &Self::Settings) -> RamBuilder<T, Self> {
        O::builder(&settings.inner).leased(settings.term)
    }
}
