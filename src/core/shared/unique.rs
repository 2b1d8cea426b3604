//! The keys of items, where they are [unique](crate::policy::unique).

use super::ttl::FIRST;
use super::Shared;
use crate::order::{Order, PlaceOf, PushMeta, Registry};
use crate::policy::unique::{Key, Next, OnDuplicate, Staging, Unique};
use crate::raw::{DeliveryMeta, Entry, Stored};
use crate::sync::{defer, swallow_panic};
use crate::{DuplicateOf, PushError};
use std::mem;
use std::sync::Arc;
use std::task::{Poll, Waker};

impl<T, O: Order<T>> Shared<T, O> {
    /// Whether keys are unique.
    #[inline]
    pub(crate) fn is_unique(&self) -> bool {
        self.unique().is_some()
    }

    /// The time, if windows need it: a clock is user code.
    fn window_time(&self) -> u64 {
        let windows = self.unique().is_some_and(|unique| unique.window > 0);
        if windows {
            self.time.now()
        } else {
            0
        }
    }

    /// What the other item with the key of one of these is, if there is any that one of them must not follow. Runs user code.
    pub(crate) fn taken_by(
        &self,
        items: &[T],
        follows: bool,
        staging: Option<&Arc<Staging>>,
    ) -> Option<DuplicateOf> {
        let (unique, now) = (self.unique()?, self.window_time());
        let taken_by = |item| unique.taken_by(&unique.key(item), follows, staging, now);
        items.iter().find_map(taken_by)
    }

    /// Polls for the end of a transaction that has staged an item with the key of one of these. Runs user code.
    pub(crate) fn poll_staged(&self, items: &[T], waker: &Waker) -> Poll<()> {
        let Some(unique) = self.unique() else {
            return Poll::Ready(());
        };
        let mut keys = items.iter().map(|item| unique.key(item));
        if keys.any(|key| unique.await_staged(&key, waker)) {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    }

    /// Takes a key for an item that is about to be pushed, or staged.
    pub(super) fn reserve(
        &self,
        key: &Key,
        since: u64,
        staging: Option<&Arc<Staging>>,
    ) -> Result<(), PushError<()>> {
        let Some(unique) = self.unique() else {
            return Ok(());
        };
        let reserved = unique.reserve(key, since, staging, self.window_time());
        reserved.map_err(|of| PushError::Duplicate((), of))
    }

    /// Calls `call` with the key of an item, if keys are unique. Its `Eq` is user code, whose panics are caught.
    #[inline]
    fn with_key<R>(
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

    /// An item was taken, or is about to be removed: if it was replaced, that is done now, and the old value is dropped.
    #[inline]
    pub(crate) fn taken(&self, since: u64, item: &mut T) {
        let value = self.with_key(since, |unique, key| unique.set_held(key, since, true));
        if let Some(value) = value.flatten() {
            let old = mem::replace(item, value);
            swallow_panic(|| drop(old));
        }
    }

    /// A held item is about to be put back.
    #[inline]
    pub(crate) fn returning(&self, since: u64) {
        self.with_key(since, |unique, key| {
            unique.set_held(key, since, false);
        });
    }

    /// A held item is about to be committed.
    #[inline]
    pub(crate) fn committing(&self, since: u64) {
        self.with_key(since, |unique, key| self.free(unique, key, since, true));
    }

    /// The time stamp of an item was another one.
    pub(super) fn restamped(&self, before: u64, since: u64) {
        self.with_key(since, |unique, key| unique.restamp(key, before, since));
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
    fn free(&self, unique: &Unique<T, O::Meta>, key: &Key, since: u64, committed: bool) {
        let mut until = None;
        if committed && unique.window > 0 {
            // Without a time there is no window.
            swallow_panic(|| until = Some(self.time.now().saturating_add(unique.window)));
        }
        let (left, next) = unique.free(key, since, until);
        if let Some(Next { since, meta, item }) = next {
            let (item, delivery) = (Stored { item, meta }, DeliveryMeta::after(0, since));
            self.shards.put_at_tail(Entry { item, delivery });
            self.failures.delayed.count_released(1);
            self.ready.notify(1);
            self.plan_end(FIRST);
        }
        drop(left); // user code
    }

    /// What becomes of pushes of items whose keys others have.
    pub(crate) fn on_duplicate(&self) -> OnDuplicate {
        self.unique()
            .map_or(OnDuplicate::Refuse, |unique| unique.rule)
    }

    /// Replaces the other item with the key of this one; an error with what that is if it cannot be replaced.
    pub(crate) fn replace(&self, item: T) -> Result<(), (T, Option<DuplicateOf>)> {
        let Some(unique) = self.unique() else {
            return Err((item, None));
        };
        let (key, now) = (unique.key(&item), self.window_time());
        let old = unique.replace(&key, item, now)?;
        swallow_panic(|| drop(old));
        Ok(())
    }

    /// Keeps an item, which has a permit, to be pushed when the held one with its key is gone for good. Until then it counts as
    /// delayed. `Err`: there is no such item any more, or it is followed already.
    ///
    /// A close makes no difference: the queue is not drained while an item is held, and then this one counts.
    pub(crate) fn follow(
        &self,
        item: T,
        place: PlaceOf<T, O>,
    ) -> Result<Result<(), PushError<T>>, T> {
        let register = || self.registry().register(&item, place);
        let (known, key) = match self.record(&item, self.stamp(), register) {
            Ok(recorded) => recorded,
            Err(refusal) => return Ok(Err(refusal.of(item))),
        };
        let (PushMeta { since, meta }, delayed) = (known, &self.failures.delayed);
        delayed.count_coming(1);
        // Also if the comparison of keys panics.
        let coming = defer(|| {
            delayed.count_released(1);
            self.withdraw(known);
            self.notify_end(0);
        });
        let Some((unique, key)) = self.unique().zip(key) else {
            return Err(item);
        };
        if let Some(next) = unique.follow(&key, Next { since, meta, item }) {
            return Err(next.item);
        }
        coming.cancel();
        self.shards.count_restored(1);
        Ok(Ok(()))
    }
}
