//! What is decided for each item by its time stamp: whether its time to live is over, and what is kept beside it.

use super::records::{Records, Weigh};
use super::ttl::Ttl;
use super::unique::Unique;
use crate::bound::Room;
use crate::order::{Order, ShardsOf, StoredOf};
use crate::raw::Outstanding;
use crate::sync::Mutex;
use std::sync::Arc;

/// What is decided for each item.
pub(crate) struct Tracking<T, O: Order<T>> {
    /// How long items live, if not for ever.
    lives: Option<Lives<T, O>>,
    /// What is kept beside each item, if anything.
    records: Option<Records>,
    /// Says the weight of an item, if it is not 1.
    weigh: Option<Weigh<T>>,
    /// The keys that are taken, if keys are unique.
    unique: Option<Unique<T, O::Meta>>,
    /// The room of the queue, if it outlives it.
    room: Option<Arc<Room>>,
}

/// What is left in a queue gives its permits back, if others use them too.
impl<T, O: Order<T>> Drop for Tracking<T, O> {
    fn drop(&mut self) {
        if let (Some(room), Some(records)) = (&self.room, &self.records) {
            room.give_back(records.weight());
        }
    }
}

/// How long the items of a queue live.
pub(crate) struct Lives<T, O: Order<T>> {
    pub(crate) ttl: Ttl,
    /// Held by the sweep that takes something, which writes the counters.
    pub(crate) sweeping: Mutex<()>,
    /// The counters of what sweeps have taken.
    pub(crate) swept: Outstanding<StoredOf<T, O>>,
}

impl<T, O: Order<T>> Tracking<T, O> {
    /// `None` if nothing is decided for each item.
    pub(super) fn new(
        ttl: Option<Ttl>,
        has_records: bool,
        weigh: Option<Weigh<T>>,
        unique: Option<Unique<T, O::Meta>>,
        room: Option<&Arc<Room>>,
        shards: &Arc<ShardsOf<T, O>>,
    ) -> Option<Box<Self>> {
        let lives = ttl.map(|ttl| Lives {
            ttl,
            sweeping: Mutex::new(()),
            swept: Outstanding::new(shards),
        });
        let tracks = lives.is_some() || has_records;
        tracks.then(|| {
            Box::new(Self {
                lives,
                records: has_records.then(Records::new),
                weigh,
                unique,
                room: room.filter(|room| room.is_shared).cloned(),
            })
        })
    }
}

impl<T, O: Order<T>> super::Policies<T, O> {
    /// Whether each item is looked at when it is taken.
    #[inline]
    pub(crate) fn tracks(&self) -> bool {
        cfg!(feature = "broker") && self.tracking.is_some()
    }

    /// How long items live, if not for ever.
    #[inline]
    pub(crate) fn lives(&self) -> Option<&Lives<T, O>> {
        let tracking = self.tracking.as_deref();
        tracking.filter(|_| self.tracks())?.lives.as_ref()
    }

    #[inline]
    pub(crate) fn expires(&self) -> bool {
        self.lives().is_some()
    }

    /// Whether items may have times to live of their own.
    #[cfg(feature = "broker")]
    pub(crate) fn has_deadlines(&self) -> bool {
        self.lives().is_some_and(|lives| lives.ttl.is_max)
    }

    /// The time stamp of the push of an item with this time stamp.
    pub(crate) fn pushed_at(&self, since: u64) -> u64 {
        let records = self.records();
        let pushed = records.and_then(|records| records.get(since, |record| record.pushed));
        pushed.unwrap_or(since)
    }

    /// The weight of an item that is known: how many permits it has.
    pub(crate) fn weight_of(&self, since: u64) -> usize {
        let records = self.records();
        let weight = records.and_then(|records| records.get(since, |record| record.weight));
        weight.unwrap_or(1)
    }

    pub(crate) fn weigher(&self) -> Option<&Weigh<T>> {
        let tracking = self.tracking.as_deref();
        tracking.filter(|_| self.tracks())?.weigh.as_ref()
    }

    /// Whether items have weights.
    pub(crate) fn weighs(&self) -> bool {
        self.weigher().is_some()
    }

    /// The keys that are taken, if keys are unique.
    #[inline]
    pub(crate) fn unique(&self) -> Option<&Unique<T, O::Meta>> {
        let tracking = self.tracking.as_deref();
        tracking.filter(|_| self.tracks())?.unique.as_ref()
    }

    /// Whether an open queue may refuse an item for what it is: it is too heavy, or a duplicate.
    pub(crate) fn refuses_some(&self) -> bool {
        self.weighs() || self.unique().is_some()
    }

    /// What is kept beside each item, if anything.
    #[inline]
    pub(crate) fn records(&self) -> Option<&Records> {
        let tracking = self.tracking.as_deref();
        tracking.filter(|_| self.tracks())?.records.as_ref()
    }
}
