//! The keys of items, where they are [unique](crate::policy::unique).

use super::ttl::FIRST;
use super::Shared;
use crate::core::weights::Known;
use crate::order::{Order, PlaceOf, PushMeta, PushMetaOf, Registry, Terms};
use crate::policy::failed::Cause;
use crate::policy::records::Tracked;
use crate::policy::retry::Disposition;
use crate::policy::unique::{Ended, Key, Next, Staging, Unique};
use crate::raw::{DeliveryMeta, Entry, Stored};
use crate::sync::{defer, step, swallow_panic};
use crate::PushError;
use std::mem;
use std::sync::Arc;

impl<T, O: Order<T>> Shared<T, O> {
    /// Calls `call` with the key of an item, if keys are unique. Its `Eq` is user code, whose panics are caught.
    #[inline]
    pub(super) fn with_key<R>(
        &self,
        since: u64,
        call: impl FnOnce(&Unique<T, O::Meta>, &Key) -> R,
    ) -> Option<R> {
        let unique = self.unique()?;
        self.with_key_of(unique, since, call)
    }

    #[inline(never)] // most queues have no such keys
    fn with_key_of<R>(
        &self,
        unique: &Unique<T, O::Meta>,
        since: u64,
        call: impl FnOnce(&Unique<T, O::Meta>, &Key) -> R,
    ) -> Option<R> {
        let key = self.records()?.key(since)?;
        let mut called = None;
        swallow_panic(|| called = Some(call(unique, &key)));
        called
    }

    /// Takes the key of an item, if keys are unique. If that is not possible, the item is withdrawn. Runs user code.
    #[cold]
    #[inline(never)]
    pub(super) fn reserve(
        &self,
        item: &T,
        recorded: PushMetaOf<T, O>,
        known: &Known,
        staging: Option<&Arc<Staging>>,
    ) -> Result<(), PushError<()>> {
        let Some((unique, key)) = self.unique().zip(known.1.as_ref()) else {
            return Ok(());
        };
        // Also if a clock or the comparison of keys panics.
        let added = defer(|| {
            self.withdraw(recorded);
        });
        let now = unique.now(&self.time);
        let reserved = unique.reserve(key, recorded.since, staging, now);
        reserved.map_err(|of| PushError::Duplicate((), of))?;
        unique.confirm(item, key, recorded.since)?;
        added.cancel();
        Ok(())
    }

    /// An item was taken, or is about to be removed: if it was replaced, that is done now, and the old value is dropped.
    #[inline]
    pub(crate) fn taken(&self, since: u64, item: &mut T) {
        let value = self.with_key(since, |unique, key| unique.set_held(key, since, true));
        if let Some(value) = value.flatten() {
            let old = mem::replace(item, value);
            swallow_panic(|| drop(old));
        }
    }

    /// The holder of an item gives it up for this cause, so that others may take it in a moment. Returns where it goes: there, unless
    /// it is discarded.
    pub(crate) fn returning(&self, to: Disposition, since: u64, cause: &Cause) -> Disposition {
        let release = |item: &mut Tracked| {
            item.is_held = false;
            item.error = cause.error.clone().or_else(|| item.error.take());
            item.is_discarded
        };
        if to == Disposition::Death {
            return to;
        }
        if self.tracked(since, release) == Some(true) {
            return Disposition::Discard;
        }
        let unhold = |unique: &Unique<_, _>, key: &_| drop(unique.set_held(key, since, false));
        step!("unique.returns-unsaid", self.with_key(since, unhold));
        to
    }

    /// A held item is about to be committed.
    #[inline]
    pub(crate) fn committing(&self, since: u64) {
        self.with_key(since, |unique, key| self.free(unique, key, since, true));
    }

    /// The item with this key is forgotten.
    pub(super) fn forget_key(&self, key: Key, since: u64) {
        swallow_panic(|| {
            if let Some(unique) = self.unique() {
                self.free(unique, &key, since, false);
            }
            drop(key); // user code
        });
    }

    /// Frees the key of an item. After a commit its window begins, if there is one. If another item follows it, that one is pushed.
    pub(super) fn free(&self, unique: &Unique<T, O::Meta>, key: &Key, since: u64, committed: bool) {
        let until = committed.then(|| unique.until(&self.time)).flatten();
        self.end_key(unique.free(key, since, until));
    }

    /// As [`enter`](Shared::enter), for an item that was elsewhere: it takes its key over from whatever has it.
    pub(super) fn enter_restored(
        &self,
        item: &T,
        stamp: u64,
        place: PlaceOf<T, O>,
        terms: (&Known, Option<&Terms>),
    ) -> Result<PushMetaOf<T, O>, PushError<()>> {
        let Some((unique, key)) = self.unique().zip(terms.0 .1.as_ref()) else {
            return self.enter(item, stamp, place, terms, None);
        };
        let register = || self.registry().register(item, place);
        let entered = self.record(stamp, terms, register)?;
        self.end_key(unique.take_over(key, entered.since));
        Ok(entered)
    }

    /// What followed an item whose key it has no longer is pushed.
    fn end_key(&self, (left, next): Ended<T, O::Meta>) {
        if let Some(next) = next {
            let delivery = DeliveryMeta::after(0, next.since);
            let Next { item, meta, .. } = next;
            let item = Stored { item, meta };
            self.shards.put_at_tail(Entry { item, delivery });
            self.failures.delayed.count_released(1);
            self.ready.notify(1);
            self.plan_end(FIRST);
        }
        drop(left); // user code
    }

    /// Keeps an item, which has a permit, to be pushed when the held one with its key is gone for good. Until then it counts as
    /// delayed. `Err`: there is no such item any more, or it is followed already.
    ///
    /// A close makes no difference: the queue is not drained while an item is held, and then this one counts.
    pub(crate) fn follow(
        &self,
        item: T,
        stamp: u64,
        known: &Known,
        place: PlaceOf<T, O>,
    ) -> Result<Result<(), PushError<T>>, T> {
        let register = || self.registry().register(&item, place);
        let recorded = match self.record(stamp, (known, None), register) {
            Ok(recorded) => recorded,
            Err(refusal) => return Ok(Err(refusal.of(item))),
        };
        let (PushMeta { since, meta }, delayed) = (recorded, &self.failures.delayed);
        delayed.count_coming(1);
        // Also if the comparison of keys panics.
        let coming = defer(|| {
            delayed.count_released(1);
            self.withdraw(recorded);
            self.notify_end(0);
        });
        let Some((unique, key)) = self.unique().zip(known.1.as_ref()) else {
            return Err(item);
        };
        let next = Next {
            key: key.clone(),
            since,
            meta,
            item,
        };
        if let Some(next) = unique.follow(next) {
            return Err(next.item);
        }
        coming.cancel();
        self.shards.count_restored(1);
        Ok(Ok(()))
    }
}
