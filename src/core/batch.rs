//! Batches: all of their items are pushed, or none. One that is published is a transaction of its own.

use super::access::Put;
use super::admit::{Load, To};
use super::local::Local;
use super::shared::Shared;
use super::weights::Weights;
use crate::order::{Order, Place, PushMetaOf, Terms};
use crate::policy::unique::{Stage, Staging};
use crate::sync::defer_with;
use crate::time::Wait;
use crate::PushError;
use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

impl<T, O: Order<T>> Load<T, O> for Vec<T> {
    /// Empty if the queue registers no items.
    type Metas = VecDeque<PushMetaOf<T, O>>;
    type Pushed = usize;
    const GATHERS: bool = true;

    fn as_slice(&self) -> &[T] {
        self
    }

    fn take_permits(&self, local: &mut Local<T, O>, weights: &Weights, _: Put) -> bool {
        local.take_together(weights.total().unwrap_or(self.len()))
    }

    fn return_permits(local: &mut Local<T, O>, _: Put) {
        local.release();
    }

    fn enter(
        &self,
        shared: &Shared<T, O>,
        (place, terms): To<T, O, Option<&Terms>>,
        weights: &Weights,
        staging: Option<&Arc<Staging>>,
    ) -> Result<Self::Metas, PushError<()>> {
        if !shared.registers() {
            return Ok(VecDeque::new());
        }
        let mut stamp = shared.stamp();
        let own = shared.unique().is_some() && staging.is_none();
        let own = own.then(|| Arc::new(Staging::new()));
        let staging = staging.or(own.as_ref());
        let metas = VecDeque::with_capacity(self.len());
        // Also if the registration of a further item panics.
        let mut metas = defer_with(metas, |metas| Self::withdraw(mem::take(metas), shared));
        for (nth, item) in self.iter().enumerate() {
            let (place, terms) = (place.nth(nth), terms.map(|terms| terms.nth(nth)));
            let known = (weights.nth(nth), terms.as_ref());
            let meta = shared.enter(item, stamp, place, known, staging)?;
            if terms.map_or(true, |terms| terms.deadline == 0) {
                stamp = meta.since; // those after it are known to be taken
            }
            metas.push_back(meta);
        }
        if let Some(own) = own {
            own.wake(Some(Stage::Committed));
        }
        Ok(mem::take(&mut *metas))
    }

    fn store(
        self,
        local: &mut Local<T, O>,
        mut metas: Self::Metas,
        put: Put,
    ) -> Result<usize, PushError<Self>> {
        let register = |_: &_, _: &_| metas.pop_front().expect("each item is registered");
        let stored = local.store_all(self.into_iter(), put, register);
        Self::withdraw(metas, &local.shared);
        stored
    }

    fn registered(self, mut metas: Self::Metas) -> impl Iterator<Item = (T, PushMetaOf<T, O>)> {
        let items = self.into_iter();
        items.map(move |item| (item, metas.pop_front().unwrap_or_default()))
    }

    fn withdraw(metas: Self::Metas, shared: &Shared<T, O>) {
        for meta in metas {
            shared.withdraw(meta);
        }
    }

    fn pushed(count: usize) -> usize {
        count
    }
}

impl<T, O: Order<T>> Local<T, O> {
    /// Takes permits for items that are pushed together: all, or none.
    ///
    /// Only the first waiter of the wait queue gathers permits as they become free: pushes of one item would always be faster
    /// than a batch that keeps none. The other waiters take none: two that gather could each hold what the other needs.
    pub(super) fn take_together(&mut self, permits: usize) -> bool {
        let Some(room) = self.access.shared.room() else {
            return true;
        };
        let waits = self.room_waiter.is_taken();
        let gathers = waits && self.room_waiter.is_first(&room.wait_queue);
        let (staged, held) = self.loads();
        let missing = self.permits.missing(staged.saturating_add(permits), held);
        if missing == 0 {
            return true;
        }
        if waits && !gathers || missing > room.capacity.limit() {
            return false;
        }
        self.permits.take_for_batch(missing, gathers)
    }

    /// Pushes items of an unknown number. They are collected first only if there may be no room for all of them.
    #[inline]
    pub(crate) fn push_batch(
        &mut self,
        items: impl IntoIterator<Item = T>,
        put: Put,
        wait: Wait,
    ) -> Result<usize, PushError<Vec<T>>> {
        if self.may_refuse {
            let items: Vec<_> = items.into_iter().collect();
            return self.put_waiting(items, put, wait, (Default::default(), ()));
        }
        let since = self.shared.stamp();
        let register = |shared: &Shared<T, O>, item: &T| {
            // Without limits the registration always succeeds.
            let known = (Weights::None.nth(0), None);
            let entered = shared.enter(item, since, Default::default(), known, None);
            entered.unwrap_or_default()
        };
        self.store_all(items.into_iter(), put, register)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use crate::Queue;

    #[test]
    fn a_batch_that_pushes_nothing_acquires_no_shard() {
        let queue = Queue::unbounded();
        let mut handle = queue.handle();
        let shards = || queue.shared().shards().count();
        let without_shards = shards();
        assert_eq!(handle.push_batch([]), Ok(0));
        queue.close();
        assert!(handle.push_batch([1]).unwrap_err().is_closed());
        assert_eq!(shards(), without_shards);
    }
}
