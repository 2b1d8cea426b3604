//! Orders, which decide which ready item is next.
//!
//! A [`Fifo`] queue dequeues directly from its shards. In any other order a pop moves the items of the shards
//! into a [`Sequence`], a sequential data structure under a lock, and takes the next item from that. Everything
//! else is the same in all orders: pushes go to the shards, commits make them visible there, transactions hold
//! the items they took, and an abort returns them to the shards, from where they re-enter the sequence first.
//!
//! A new order is a type that implements [`Engine`]: the metadata stored beside each item in its slot, a
//! [`Sequence`], and a [`Registry`] if it needs to know more about items than their metadata.

mod chunks;
pub(crate) mod fair;
mod leased;
mod lifo;
mod lists;
#[cfg(all(loom, test))]
mod models;
mod partition;
pub(crate) mod priority;
mod registry;
mod sequence;
mod sorted;
mod source;
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) mod tests;
mod ticket;

pub use leased::{Leased, Unleased};
pub use lifo::Lifo;
pub use registry::StorePlace;
pub use ticket::Ticket;

pub(crate) use registry::{Place, Registry, Terms, When};
pub(crate) use sequence::{Dequeued, Due, Sequence, Shown, PART, SCAN_STEP};
pub(crate) use sorted::{Sorted, Visit};
pub(crate) use source::{Source, Unsorted};

use crate::raw::{Entry, Shards, Stored};
use std::fmt::Debug;
use std::sync::Arc;

/// The order of a [`Queue`](crate::Queue), which decides which item is next: [`Fifo`], [`Lifo`], [`ByKey`](crate::ByKey)
/// or [`ByPriority`](crate::ByPriority), or one of them [`Leased`]. Sealed.
#[allow(private_bounds)] // sealed
pub trait Order<T>: Engine<T> {}

impl<T, O: Engine<T>> Order<T> for O {}

/// The implementation of an [`Order`].
pub(crate) trait Engine<T>: Sized {
    /// The configuration of a queue in this order.
    type Settings: Clone;
    /// The metadata of an item, stored beside it in its slot.
    type Meta: Copy + Debug + Default + Send + Sync;
    /// Where items are taken from.
    type Source: Source<T, Self::Meta>;

    /// Copies an item when it is leased; `None` if items are not leased.
    const COPY: Option<fn(&T) -> T> = None;

    /// Whether this order needs the timestamps of pushes.
    fn is_timed(_settings: &Self::Settings) -> bool {
        false
    }

    /// Raises a limit of items of one key, for a queue that has so many already.
    fn make_room(_settings: &mut Self::Settings, _of_one_key: usize) {}

    /// Creates the source of a queue with these shards.
    fn source(settings: Self::Settings, shards: &Arc<ShardsOf<T, Self>>) -> Self::Source;
}

/// An item of a queue in this order, as stored in its slot.
pub(crate) type StoredOf<T, O> = Stored<T, <O as Engine<T>>::Meta>;
/// An item in this order outside of the shards.
pub(crate) type EntryOf<T, O> = Entry<StoredOf<T, O>>;
/// The shards of a queue in this order.
pub(crate) type ShardsOf<T, O> = Shards<StoredOf<T, O>>;

/// The default order of a [`Queue`](crate::Queue): first in, first out, as far as possible without slowing
/// down any thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fifo; // for another order: `Queue::builder().by_priority()`, `.fair_by(key)`, or `.lifo()`

impl Unleased for Fifo {}

impl<T> Engine<T> for Fifo {
    type Settings = ();
    type Meta = ();
    type Source = Unsorted;

    fn source((): (), _: &Arc<ShardsOf<T, Self>>) -> Unsorted {
        Unsorted
    }
}

/// The metadata of an item that is being pushed: the timestamp of its push, 0 if that is not kept, and the metadata
/// of its order.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PushMeta<M> {
    pub(crate) since: u64,
    pub(crate) meta: M,
}

/// The metadata of an item that is being pushed to a queue of this order.
pub(crate) type PushMetaOf<T, O> = PushMeta<<O as Engine<T>>::Meta>;

/// The options of a push to a queue of this order.
pub(crate) type PlaceOf<T, O> = <RegistryOf<T, O> as Registry<T, <O as Engine<T>>::Meta>>::Place;
/// The registry of a queue of this order.
pub(crate) type RegistryOf<T, O> =
    <<O as Engine<T>>::Source as Source<T, <O as Engine<T>>::Meta>>::Registry;
