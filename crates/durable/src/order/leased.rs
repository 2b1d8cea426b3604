//! Another order, with leases.

use super::{Engine, EntryOf, RamBuilder, Staging};
use crate::format::OrderTag;
use requeue::{Leased, Unleased};
use std::time::Duration;

/// The settings of a queue that leases its items.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeaseSettings<S> {
    pub(crate) inner: S,
    pub(crate) term: Duration,
}

/// An order whose items can be leased.
pub(crate) trait Leasable<T: Clone>:
    Engine<T, Ram: Unleased, Staging: Staging<EntryOf<T, Self>, Leased<<Self as Engine<T>>::Ram>>>
{
}

impl<T: Clone, O> Leasable<T> for O where
    O: Engine<T, Ram: Unleased, Staging: Staging<EntryOf<T, O>, Leased<<O as Engine<T>>::Ram>>>
{
}

impl<T: Clone + Send + 'static, O: Leasable<T>> Engine<T> for Leased<O> {
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
