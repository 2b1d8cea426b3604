//! What is decided for each item by its time stamp: whether its time to live is over, and what is kept beside it.
//!
//! In a queue with [records](crate::policy::records) an item is *known* from its registration until it is gone for good, or is a
//! dead letter.

use super::ttl::Lives;
use super::Shared;
use crate::order::{EntryOf, Order, PlaceOf, PushMeta, PushMetaOf, Registry, StoredOf};
use crate::policy::records::{Record, Records};
use crate::policy::ttl::Ttl;
use crate::policy::unique::{Key, Staging, Unique};
use crate::raw::{Entry, Shards, Stored};
use crate::sync::defer;
use crate::PushError;
use std::sync::Arc;

/// What a push needs of an item with a record: also its key, if keys are unique.
type Recorded<T, O> = (PushMetaOf<T, O>, Option<Key>);

/// What is decided for each item.
pub(crate) struct Tracking<T, O: Order<T>> {
    /// How long items live, if not for ever.
    pub(super) lives: Option<Lives<T, O>>,
    records: Option<Records>,
    /// The keys that are taken, if keys are unique.
    unique: Option<Unique<T, O::Meta>>,
}

impl<T, O: Order<T>> Tracking<T, O> {
    pub(super) fn new(
        ttl: Option<Ttl>,
        records: Option<Records>,
        unique: Option<Unique<T, O::Meta>>,
        shards: &Arc<Shards<StoredOf<T, O>>>,
    ) -> Self {
        let lives = ttl.map(|ttl| Lives::new(ttl, shards));
        Self {
            lives,
            records,
            unique,
        }
    }
}

impl<T, O: Order<T>> Shared<T, O> {
    /// Whether each item is looked at when it is taken.
    #[inline]
    pub(crate) fn tracks(&self) -> bool {
        cfg!(feature = "ttl") && self.tracking.is_some()
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
    pub(super) fn records(&self) -> Option<&Records> {
        let tracking = self.tracking.as_deref();
        tracking.filter(|_| self.tracks())?.records.as_ref()
    }

    /// The keys that are taken, if keys are unique.
    #[inline]
    pub(crate) fn unique(&self) -> Option<&Unique<T, O::Meta>> {
        let tracking = self.tracking.as_deref();
        tracking.filter(|_| self.tracks())?.unique.as_ref()
    }

    /// Registers an item that is about to be pushed to this place, at this time, or to be staged. May run user code.
    ///
    /// A caller that does not push it afterwards [withdraws](Shared::withdraw) it.
    #[inline]
    pub(crate) fn enter(
        &self,
        item: &T,
        stamp: u64,
        place: PlaceOf<T, O>,
        staging: Option<&Arc<Staging>>,
    ) -> Result<PushMetaOf<T, O>, PushError<()>> {
        let register = || self.registry().register(item, place);
        if self.records().is_some() {
            return self.enter_by(item, stamp, staging, register);
        }
        let meta = register().ok_or(PushError::Full(()))?;
        Ok(PushMeta { since: stamp, meta })
    }

    /// As [`enter`](Shared::enter), for an item that was in the queue before.
    pub(crate) fn enter_again(
        &self,
        Entry { item, delivery }: &EntryOf<T, O>,
        staging: Option<&Arc<Staging>>,
    ) -> Result<PushMetaOf<T, O>, PushError<()>> {
        let Stored { item, meta } = item;
        let stamp = if self.expires() {
            self.stamp()
        } else {
            delivery.since
        };
        self.enter_by(item, stamp, staging, || {
            self.registry().register_again(item, *meta)
        })
    }

    #[inline(never)]
    fn enter_by(
        &self,
        item: &T,
        stamp: u64,
        staging: Option<&Arc<Staging>>,
        register: impl FnOnce() -> Option<O::Meta>,
    ) -> Result<PushMetaOf<T, O>, PushError<()>> {
        let (known, key) = self.record(item, stamp, register)?;
        if let Some((unique, key)) = self.unique().zip(key) {
            // Last, so that a key is taken only by what is pushed, or refused because of a close.
            let added = defer(|| {
                self.withdraw(known);
            });
            let now = unique.now(&self.time);
            let reserved = unique.reserve(&key, known.since, staging, now);
            reserved.map_err(|of| PushError::Duplicate((), of))?;
            added.cancel();
        }
        Ok(known)
    }

    /// As [`enter`](Shared::enter), but does not take the key of the item, which is returned.
    pub(super) fn record(
        &self,
        item: &T,
        stamp: u64,
        register: impl FnOnce() -> Option<O::Meta>,
    ) -> Result<Recorded<T, O>, PushError<()>> {
        let key = self.unique().map(|unique| unique.key(item));
        let since = match self.records() {
            Some(records) => {
                let key = key.clone();
                records.add(stamp, Record { weight: 1, key })
            }
            None => stamp,
        };
        // Also if the registration panics.
        let added = defer(|| {
            self.forget(since);
        });
        let meta = register().ok_or(PushError::Full(()))?;
        added.cancel();
        Ok((PushMeta { since, meta }, key))
    }

    /// The time of an item begins again, at this time or the next one that is free. Returns its time stamp from now on.
    pub(super) fn restamp(&self, since: u64, stamp: u64) -> u64 {
        let records = self.records();
        let record = records.and_then(|records| records.remove(since));
        let Some((records, record)) = records.zip(record) else {
            return stamp;
        };
        let again = records.add(stamp, record);
        self.restamped(since, again);
        again
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
        let Some(Record { weight, key }) = records.remove(since) else {
            return 0;
        };
        if let Some(key) = key {
            self.forget_key(key, since);
        }
        weight
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
