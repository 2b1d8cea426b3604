//! Orders: which ready item is next.
//!
//! A [`Fifo`] queue takes items straight from its shards. In any other order whoever pops moves what the shards
//! have into a [`Sequence`], a sequential structure under a lock, and takes the next item out of that. All
//! else is as in any queue: pushes go to the shards, commits make them visible there, transactions hold
//! what they took, and an abort gives it back to the shards, whence it comes back to the sequence first.
//!
//! A new order is a type with an [`Engine`]: the metadata that lies beside each item in its slot, a [`Sequence`],
//! and a [`Registry`] if it has to know more of an item than its metadata says.

pub(crate) mod fair;
mod leased;
#[cfg(all(test, not(shuttle)))]
pub(crate) mod lifo;
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

pub use leased::{Leased, Unleased};

pub(crate) use registry::Registry;
pub(crate) use sequence::{Dequeued, Sequence, Shown, Visit, GLANCE, PART};
pub(crate) use sorted::Sorted;
pub(crate) use source::{Next, Source, Unsorted};

use crate::raw::{Entry, Shards, Stored};
use crate::wait::DueTimer;
use std::fmt::Debug;
use std::sync::Arc;

/// What decides which item of a [`Queue`](crate::Queue) is next: [`Fifo`], [`ByKey`](crate::ByKey) or
/// [`ByPriority`](crate::ByPriority), or one of them [`Leased`]. Sealed.
#[allow(private_bounds)] // sealed
pub trait Order<T>: Engine<T> {}

impl<T, O: Engine<T>> Order<T> for O {}

/// What an [`Order`] is made of.
pub(crate) trait Engine<T>: Sized {
    /// What a queue in this order is made with.
    type Settings: Clone;
    /// What the order knows an item by, wherever the item is: it lies in the item's slot.
    type Meta: Copy + Debug + Default + Send + Sync;
    /// Where items are taken from.
    type Source: Source<T, Self::Meta>;

    /// What copies an item that is leased; `None`, if items are not leased.
    const COPY: Option<fn(&T) -> T> = None;

    /// Whether pushes have to keep times for this order.
    fn is_timed(_settings: &Self::Settings) -> bool {
        false
    }

    /// Makes the source of a queue with these shards.
    fn source(
        settings: Self::Settings,
        shards: &Arc<ShardsOf<T, Self>>,
        due_timer: &Arc<DueTimer>,
    ) -> Self::Source;
}

/// An item of a queue in this order, as it lies in its slot.
pub(crate) type StoredOf<T, O> = Stored<T, <O as Engine<T>>::Meta>;
/// An item in this order that is in none of the shards.
pub(crate) type EntryOf<T, O> = Entry<StoredOf<T, O>>;
/// The shards of a queue in this order.
pub(crate) type ShardsOf<T, O> = Shards<StoredOf<T, O>>;

/// The order of a plain [`Queue`](crate::Queue): first in, first out, as well as can be told without slowing
/// anybody down.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fifo;

impl Unleased for Fifo {}

impl<T> Engine<T> for Fifo {
    type Settings = ();
    type Meta = ();
    type Source = Unsorted;

    fn source((): (), _: &Arc<ShardsOf<T, Self>>, _: &Arc<DueTimer>) -> Unsorted {
        Unsorted
    }
}

/// What is known of an item on its way in: since when it is in the queue, 0 if that is not kept, and what its
/// order knows it by.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PushMeta<M> {
    pub(crate) since: u64,
    pub(crate) meta: M,
}

/// What is known of an item on its way into a queue of this order.
pub(crate) type PushMetaOf<T, O> = PushMeta<<O as Engine<T>>::Meta>;
