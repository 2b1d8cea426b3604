//! Items that are known: from their registration until they are gone for good, or are dead letters.

use super::Shared;
use crate::core::weights::{Known, Weights};
use crate::order::{EntryOf, Order, PlaceOf, PushMeta, PushMetaOf, Registry, Terms, Ticket};
use crate::policy::records::Record;
use crate::policy::unique::Staging;
use crate::raw::{Entry, Stored};
use crate::sync::defer;
use crate::PushError;
use std::mem::ManuallyDrop;
use std::slice;
use std::sync::Arc;

impl<T, O: Order<T>> Shared<T, O> {
    /// The weights and keys of items that are about to be pushed. May run user code.
    #[inline]
    pub(crate) fn weigh(&self, items: &[T]) -> Weights {
        let (weigh, key_of) = (self.weigher(), self.unique().map(|unique| &unique.key_of));
        let key = |item| ManuallyDrop::new(key_of.map(|key| key(item)));
        let known = |item| Known(weigh.map(|weigh| weigh(item)), key(item));
        match items {
            _ if weigh.is_none() && key_of.is_none() => Weights::None,
            [item] => Weights::One(known(item)),
            _ => Weights::Each(items.iter().map(known).collect()),
        }
    }

    /// The weight of all items that are known; 1 for each where they have none.
    #[cfg(feature = "broker")]
    pub(crate) fn weight(&self) -> usize {
        match self.records().filter(|_| self.weighs()) {
            Some(records) => records.weight(),
            None => usize::try_from(self.left()).unwrap_or(usize::MAX),
        }
    }

    /// Registers an item, with what is known of it and its terms, that is about to be pushed to this place, at this time, or to be
    /// staged; one with a deadline is stamped as if it had been pushed so much earlier. May run user code.
    ///
    /// A caller that does not push it afterwards [withdraws](Shared::withdraw) it.
    #[inline(always)] // the push of an order
    pub(crate) fn enter(
        &self,
        item: &T,
        stamp: u64,
        place: PlaceOf<T, O>,
        terms: (&Known, Option<&Terms>),
        staging: Option<&Arc<Staging>>,
    ) -> Result<PushMetaOf<T, O>, PushError<()>> {
        let register = || self.registry().register(item, place);
        if stamp > 0 {
            return self.enter_timed(item, stamp, terms, staging, register);
        }
        // Without times nothing is kept.
        let meta = register().ok_or(PushError::Full(()))?;
        Ok(PushMeta { since: 0, meta })
    }

    #[inline(never)] // apart from the items without times, which most queues have
    fn enter_timed(
        &self,
        item: &T,
        stamp: u64,
        terms: (&Known, Option<&Terms>),
        staging: Option<&Arc<Staging>>,
        register: impl FnOnce() -> Option<O::Meta>,
    ) -> Result<PushMetaOf<T, O>, PushError<()>> {
        let known = self.record(stamp, terms, register)?;
        // Last, so that a key is taken only by what is pushed, or refused because of a close.
        self.reserve(item, known, terms.0, staging)?;
        Ok(known)
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
        let weights = self.weigh(slice::from_ref(item));
        let register = || self.registry().register_again(item, *meta);
        self.enter_timed(item, stamp, (weights.nth(0), None), staging, register)
    }

    /// As [`enter`](Shared::enter), for an item whose key is not taken.
    pub(super) fn record(
        &self,
        stamp: u64,
        terms: (&Known, Option<&Terms>),
        register: impl FnOnce() -> Option<O::Meta>,
    ) -> Result<PushMetaOf<T, O>, PushError<()>> {
        let since = self.track(stamp, terms);
        // Also if the registration panics.
        let tracked = defer(|| {
            self.forget(since);
        });
        let meta = register().ok_or(PushError::Full(()))?;
        tracked.cancel();
        Ok(PushMeta { since, meta })
    }

    /// Makes the record of an item that was pushed then, if there are records. Returns its time stamp.
    fn track(&self, pushed: u64, (known, terms): (&Known, Option<&Terms>)) -> u64 {
        let Some(records) = self.records() else {
            return pushed;
        };
        let ticket = || terms.and_then(|terms| terms.ticket);
        let ticket = || ticket().unwrap_or_else(|| Ticket::first_of(1));
        let ticket = records.tickets.as_ref().map(|_| ticket());
        let deadline = terms.map_or(0, |terms| terms.deadline);
        let lives = self.lives().filter(|_| deadline > 0);
        let stamp = lives.map_or(pushed, |lives| lives.ttl.begin(deadline).min(pushed));
        records.add(
            stamp,
            Record {
                pushed,
                weight: known.0.unwrap_or(1),
                key: Option::clone(&known.1),
                ticket,
            },
        )
    }

    /// The time of an item that was scheduled begins at this time. Returns its time stamp from now on.
    pub(super) fn restamp(&self, since: u64, stamp: u64) -> u64 {
        let records = self.records();
        let record = records.and_then(|records| records.remove(since));
        let Some((records, record)) = records.zip(record) else {
            return stamp;
        };
        let begin = stamp - (record.pushed - since).min(stamp);
        let pushed = stamp;
        let again = records.add(begin, Record { pushed, ..record });
        self.with_key(again, |unique, key| unique.restamp(key, since, again));
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
        let Some(Record { weight, key, .. }) = records.forget(since) else {
            return 1;
        };
        if let Some(key) = key {
            self.forget_key(key, since);
        }
        weight
    }
}
