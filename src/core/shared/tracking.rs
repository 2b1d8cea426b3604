//! What is decided for each item by its time stamp: whether its time to live is over, and what is kept beside it.
//!
//! In a queue with [records](crate::policy::records) an item is *known* from its registration until it is gone for good, or is a
//! dead letter.

use super::ttl::Lives;
use super::Shared;
use crate::bound::Room;
use crate::core::weights::Weights;
use crate::order::{EntryOf, Order, PlaceOf, PushMeta, PushMetaOf, Registry, StoredOf};
use crate::policy::records::{Record, Records, Weigh};
use crate::policy::ttl::Ttl;
use crate::raw::{Entry, Shards, Stored};
use crate::sync::defer;
use crate::PushError;
use std::slice;
use std::sync::Arc;

/// What is decided for each item.
pub(crate) struct Tracking<T, O: Order<T>> {
    /// How long items live, if not for ever.
    pub(super) lives: Option<Lives<T, O>>,
    records: Option<Records>,
    /// Says the weight of an item, if it is not 1.
    weigh: Option<Weigh<T>>,
    room: Option<Arc<Room>>,
}

/// What is left in a queue gives its permits back, if others use them too.
impl<T, O: Order<T>> Drop for Tracking<T, O> {
    fn drop(&mut self) {
        let room = self.room.as_ref().filter(|room| room.is_shared);
        if let Some((room, records)) = room.zip(self.records.as_ref()) {
            room.give_back(records.weight());
        }
    }
}

impl<T, O: Order<T>> Tracking<T, O> {
    pub(super) fn new(
        ttl: Option<Ttl>,
        keeps_records: bool,
        weigh: Option<Weigh<T>>,
        room: Option<Arc<Room>>,
        shards: &Arc<Shards<StoredOf<T, O>>>,
    ) -> Self {
        let lives = ttl.map(|ttl| Lives::new(ttl, shards));
        Self {
            lives,
            records: keeps_records.then(Records::new),
            weigh,
            room,
        }
    }
}

impl<T, O: Order<T>> Shared<T, O> {
    /// Whether each item is looked at when it is taken.
    #[inline]
    pub(crate) fn tracks(&self) -> bool {
        cfg!(feature = "broker") && self.tracking.is_some()
    }

    /// Whether items have a time to live.
    #[inline]
    pub(crate) fn expires(&self) -> bool {
        self.lives().is_some()
    }

    #[inline]
    pub(super) fn lives(&self) -> Option<&Lives<T, O>> {
        let tracking = self.tracking.as_deref();
        tracking.filter(|_| self.tracks())?.lives.as_ref()
    }

    #[inline]
    fn records(&self) -> Option<&Records> {
        let tracking = self.tracking.as_deref();
        tracking.filter(|_| self.tracks())?.records.as_ref()
    }

    fn weigher(&self) -> Option<&Weigh<T>> {
        let tracking = self.tracking.as_deref();
        tracking.filter(|_| self.tracks())?.weigh.as_ref()
    }

    /// Whether items have weights.
    pub(crate) fn weighs(&self) -> bool {
        self.weigher().is_some()
    }

    /// The weights of items that are about to be pushed. May run user code.
    #[inline]
    pub(crate) fn weigh(&self, items: &[T]) -> Weights {
        let weigh = self.weigher();
        weigh.map_or_else(Weights::default, |weigh| Weights::by(weigh, items))
    }

    /// The weight of an item that is known: how many permits it has.
    pub(crate) fn weight_of(&self, since: u64) -> usize {
        let records = self.records();
        records.map_or(1, |records| records.weight_of(since))
    }

    /// The weight of all items that are known; 1 for each where they have none.
    #[cfg(feature = "broker")]
    pub(crate) fn weight(&self) -> usize {
        let left = || usize::try_from(self.left()).unwrap_or(usize::MAX);
        let records = self.records().filter(|_| self.weighs());
        records.map_or_else(left, Records::weight)
    }

    /// Registers an item of this weight that is about to be pushed to this place, at this time. May run user code.
    ///
    /// A caller that does not push it afterwards [withdraws](Shared::withdraw) it.
    #[inline(always)] // the push of an order
    pub(crate) fn enter(
        &self,
        item: &T,
        stamp: u64,
        place: PlaceOf<T, O>,
        weight: usize,
    ) -> Result<PushMetaOf<T, O>, PushError<()>> {
        self.enter_by(stamp, weight, || self.registry().register(item, place))
    }

    /// As [`enter`](Shared::enter), for an item that was in the queue before.
    pub(crate) fn enter_again(
        &self,
        Entry { item, delivery }: &EntryOf<T, O>,
    ) -> Result<PushMetaOf<T, O>, PushError<()>> {
        let Stored { item, meta } = item;
        let stamp = if self.expires() {
            self.stamp()
        } else {
            delivery.since
        };
        let weight = self.weigh(slice::from_ref(item)).nth(0);
        self.enter_by(stamp, weight, || {
            self.registry().register_again(item, *meta)
        })
    }

    #[inline(always)] // as above
    fn enter_by(
        &self,
        stamp: u64,
        weight: usize,
        register: impl FnOnce() -> Option<O::Meta>,
    ) -> Result<PushMetaOf<T, O>, PushError<()>> {
        let since = match self.records() {
            Some(records) => records.add(stamp, Record { weight }),
            None => stamp,
        };
        // Also if the registration panics.
        let added = defer(|| {
            self.forget(since);
        });
        let meta = register().ok_or(PushError::Full(()))?;
        added.cancel();
        Ok(PushMeta { since, meta })
    }

    /// The time of an item begins again, at this time or the next one that is free. Returns its time stamp from now on.
    pub(super) fn restamp(&self, since: u64, stamp: u64) -> u64 {
        let records = self.records();
        let record = records.and_then(|records| records.remove(since));
        let again = records.zip(record);
        again.map_or(stamp, |(records, record)| records.add(stamp, record))
    }

    /// Follows [`enter`](Shared::enter), for an item that is not pushed after all, or was never delivered. Returns how many
    /// permits it had.
    pub(crate) fn withdraw(&self, PushMeta { since, meta }: PushMetaOf<T, O>) -> usize {
        self.unregister(meta);
        self.forget(since)
    }

    /// Forgets an item that is gone for good. Returns how many permits it had.
    #[inline]
    pub(crate) fn forget(&self, since: u64) -> usize {
        let Some(records) = self.records() else {
            return 1;
        };
        records.remove(since).map_or(0, |record| record.weight)
    }

    /// Forgets items that are gone for good. Returns how many permits they had.
    pub(super) fn forget_all<'e>(
        &self,
        entries: impl ExactSizeIterator<Item = &'e EntryOf<T, O>>,
    ) -> usize
    where
        T: 'e,
        O: 'e,
    {
        if self.records().is_none() {
            return entries.len();
        }
        entries.map(|entry| self.forget(entry.delivery.since)).sum()
    }
}
