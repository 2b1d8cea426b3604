//! Batch pushes: each is one transaction.

use super::admit::{admitted, Admission, Refusal};
use super::local::{CellOf, Local};
use super::put::Put;
use super::shared::Shared;
use super::wait;
use crate::order::{Order, PushMeta, PushMetaOf, StoredOf};
use crate::raw::{Open, Stager, Stored};
use crate::sync::{defer_with, Defer};
use crate::time::Wait;
use crate::wait::{WaitKind, WakeTarget};
use crate::PushError;
use std::collections::VecDeque;
use std::iter;
use std::mem;
use std::ops::DerefMut;
use std::sync::Arc;
use std::task::Poll;
use std::vec;

/// The metadata of the items of a batch that are yet to be staged.
type BatchMeta<T, O> = VecDeque<PushMetaOf<T, O>>;

/// Registers the nth item of a batch, and returns its metadata without its time; `None`: there is no room for it.
pub(crate) trait RegisterNth<T, O: Order<T>>:
    Fn(&Shared<T, O>, usize, &T) -> Option<O::Meta>
{
}

impl<T, O: Order<T>, F: Fn(&Shared<T, O>, usize, &T) -> Option<O::Meta>> RegisterNth<T, O> for F {}

/// Batches without a transaction of the caller.
impl<T, O: Order<T>> CellOf<T, O> {
    /// Pushes items now: all or none.
    pub(crate) fn push_batch_now(
        &mut self,
        items: impl IntoIterator<Item = T>,
    ) -> Result<usize, PushError<Vec<T>>> {
        if self.settled().may_find_full {
            let items = items.into_iter().collect();
            return self.push_batch(items, Wait::Never, Shared::register_nth);
        }
        self.push_all(items.into_iter())
    }

    /// Pushes items of an unknown number to a queue without limits.
    fn push_all(&mut self, items: impl Iterator<Item = T>) -> Result<usize, PushError<Vec<T>>> {
        if self.get_mut().shared().registers() {
            let shared = Arc::clone(self.get_mut().shared());
            let since = shared.stamp();
            // Without limits the registration always succeeds.
            let register = |item: &T| shared.register_since(item, since).unwrap_or_default();
            return self.push_each(items, register);
        }
        let Some(mut tx) = self.begin_batch() else {
            return Err(PushError::Closed(items.collect()));
        };
        tx.cell_mut().get_mut().stage_all(items);
        Ok(Self::end_batch(tx))
    }

    /// Begins the transaction of a batch, unless the queue is closed.
    fn begin_batch(&mut self) -> Option<Open<'_, Local<T, O>>> {
        let mut tx = Open::new(self);
        let local = tx.cell_mut().get_mut();
        local.endpoint.begin_staging();
        if local.ready.fenced_word().is_closed() {
            let _: PushError<()> = local.refuse(());
            return None;
        }
        Some(tx)
    }

    /// Commits the staged items, and returns their number.
    fn end_batch(mut tx: Open<'_, Local<T, O>>) -> usize {
        let count = tx.cell_mut().get_mut().staged();
        if count > 0 {
            tx.close().commit_and_wake();
        }
        count
    }

    /// Pushes the batch if there is room for it now; otherwise leaves it where it is.
    pub(crate) fn push_batch_unless_full(
        &mut self,
        batch: &mut Option<Vec<T>>,
        register: &impl RegisterNth<T, O>,
    ) -> Option<Result<usize, PushError<Vec<T>>>> {
        let items = batch.take().expect(wait::DONE);
        let Some(admission) = self.settled().admit_items(&items, register) else {
            *batch = Some(items);
            return None;
        };
        Some(self.push_admitted(Some(admission), items))
    }

    /// Pushes items with the metadata of their registration.
    fn push_each(
        &mut self,
        items: impl Iterator<Item = T>,
        mut register: impl FnMut(&T) -> PushMetaOf<T, O>,
    ) -> Result<usize, PushError<Vec<T>>> {
        let Some(mut tx) = self.begin_batch() else {
            return Err(PushError::Closed(items.collect()));
        };
        let local = tx.cell_mut().get_mut();
        for item in items {
            let meta = register(&item);
            local.stage_registered(item, meta);
        }
        Ok(Self::end_batch(tx))
    }

    /// Pushes a batch, waiting for room at most for `timeout`; without one, indefinitely. `register` registers the nth
    /// item.
    pub(crate) fn push_batch(
        &mut self,
        items: Vec<T>,
        wait: Wait,
        register: impl RegisterNth<T, O>,
    ) -> Result<usize, PushError<Vec<T>>> {
        let mut local = self.settled();
        let worth = local.is_worth_waiting(&items);
        let admission = wait::for_room(&mut local, WaitKind::Several, worth, wait, |local| {
            local.admit_items(&items, &register)
        });
        if admission.is_none() {
            local.stop_waiting();
        }
        self.push_admitted(admission, items)
    }

    /// Polls for room, and then takes the batch and pushes it.
    #[track_caller]
    pub(crate) fn poll_batch(
        &mut self,
        waiting: &mut Option<Vec<T>>,
        wake_target: &WakeTarget<'_>,
        register: impl RegisterNth<T, O>,
    ) -> Poll<Result<usize, PushError<Vec<T>>>> {
        let items = waiting.take().expect(wait::DONE);
        let mut local = self.get_mut();
        let worth = local.is_worth_waiting(&items);
        let poll = wait::poll_room(&mut local, WaitKind::Several, worth, wake_target, |local| {
            local.admit_items(&items, &register)
        });
        let Poll::Ready(admitted) = poll else {
            *waiting = Some(items);
            return Poll::Pending;
        };
        // Ends the borrow of the future, which the batch's transaction would take for a forgotten one.
        self.end_waiting();
        Poll::Ready(self.push_admitted(Some(admitted), items))
    }

    /// Pushes a batch if it was admitted.
    fn push_admitted(
        &mut self,
        admission: Admission<Vec<PushMetaOf<T, O>>>,
        items: Vec<T>,
    ) -> Result<usize, PushError<Vec<T>>> {
        let (metas, items) = admitted(admission, items)?;
        let shared = Arc::clone(self.get_mut().shared());
        if !shared.registers() {
            return self.push_all(items.into_iter());
        }
        let mut metas = unregistering(&shared, metas);
        let register = |_: &T| metas.pop_front().expect("each item is registered");
        self.push_each(items.into_iter(), register)
    }
}

/// Guards the metadata of registered items: those left when it is dropped are unregistered.
fn unregistering<T, O: Order<T>>(
    shared: &Shared<T, O>,
    metas: Vec<PushMetaOf<T, O>>,
) -> Defer<BatchMeta<T, O>, impl FnMut(&mut BatchMeta<T, O>) + '_> {
    defer_with(metas.into(), |metas| {
        for PushMeta { meta, .. } in metas.drain(..) {
            shared.unregister(meta);
        }
    })
}

impl<T, O: Order<T>> Local<T, O> {
    /// Takes permits for a batch, in addition to the staged items, and registers its items if the queue does that.
    fn admit_items(
        &mut self,
        items: &[T],
        register: &impl RegisterNth<T, O>,
    ) -> Admission<Vec<PushMetaOf<T, O>>> {
        let is_refusing = self.is_refusing(Put::Stage);
        if is_refusing || !self.fits(items) {
            self.give_back_gathered();
            let closed = is_refusing.then_some(Refusal::Closed);
            return Some(Err(closed.unwrap_or(Refusal::Full)));
        }
        if !self.take_permits_for(items.len()) {
            // Possibly some were freed since expired leases were taken back.
            if !self.shared.reclaim() || !self.take_permits_for(items.len()) {
                return None;
            }
        }
        let mut local = defer_with(self, |local| local.release());
        let Some(metas) = local.register_all(items, register) else {
            return Some(Err(Refusal::Full));
        };
        local.cancel();
        Some(Ok(metas))
    }

    /// Takes permits for a batch: all or none. Only the first waiter of the wait queue gathers them as they become
    /// free; the other waiters take none.
    fn take_permits_for(&mut self, items: usize) -> bool {
        let Some(room) = self.shared.room() else {
            return true;
        };
        let waits = self.room_waiter.is_taken();
        let gathers = waits && self.room_waiter.is_first(&room.wait_queue);
        let missing = self.permits.missing(self.staged() + items, self.held());
        if waits && !gathers || missing > room.capacity.limit() {
            return false;
        }
        self.permits.take_for_batch(missing, gathers)
    }

    pub(super) fn give_back_gathered(&mut self) {
        self.permits.give_back_gathered();
    }

    fn register_all(
        &mut self,
        items: &[T],
        register: &impl RegisterNth<T, O>,
    ) -> Option<Vec<PushMetaOf<T, O>>> {
        if !self.shared.registers() {
            return Some(Vec::new());
        }
        let since = self.shared.stamp();
        let mut metas = unregistering(&self.shared, Vec::with_capacity(items.len()));
        for (nth, item) in items.iter().enumerate() {
            let meta = register(&self.shared, nth, item)?;
            metas.push_back(PushMeta { since, meta });
        }
        Some(mem::take(&mut *metas).into())
    }
}

/// Staging of items whose registration would do nothing, or has been done.
impl<T, O: Order<T>> Local<T, O> {
    /// Stages items, where the queue registers none.
    fn stage_all(&mut self, items: impl Iterator<Item = T>) {
        let mut items = items.fuse();
        while let Some(first) = items.next() {
            Self::stage_some(first, &mut items, &mut self.endpoint.stager());
        }
    }

    /// Stages an item, and further ones while the segment has slots.
    #[inline]
    fn stage_some(
        first: T,
        items: &mut impl Iterator<Item = T>,
        stager: &mut Stager<'_, StoredOf<T, O>>,
    ) {
        let meta = O::Meta::default();
        stager.stage(Stored { item: first, meta });
        while stager.has_room() {
            let Some(item) = items.next() else {
                break;
            };
            stager.stage(Stored { item, meta });
        }
    }

    /// Stages an item with the metadata of its registration.
    fn stage_registered(&mut self, item: T, PushMeta { since, meta }: PushMetaOf<T, O>) {
        if self.shared.timed {
            self.endpoint.note_time(since);
        }
        self.endpoint.stage(Stored { item, meta });
    }
}

/// Batches in a transaction: all of their items are staged, or none.
impl<T, O: Order<T>> Local<T, O> {
    /// Stages a batch, waiting for room at most for `timeout`; without one, indefinitely.
    pub(crate) fn stage_batch<C: DerefMut<Target = Self>>(
        user: &mut C,
        items: Vec<T>,
        wait: Wait,
        register: impl RegisterNth<T, O>,
    ) -> Result<usize, PushError<Vec<T>>> {
        if user.plain && !user.is_refusing(Put::Stage) {
            return user.stage_admitted(Some(Ok(Vec::new())), items);
        }
        let worth = user.is_worth_waiting(&items);
        let attempt =
            |user: &mut C| user.unless_waiting(|local| local.admit_items(&items, &register));
        let admission = wait::for_room(user, WaitKind::Several, worth, wait, attempt);
        user.stage_admitted(admission, items)
    }

    /// Polls for room, and then takes the batch and stages it.
    #[track_caller]
    pub(crate) fn poll_stage_batch<C: DerefMut<Target = Self>>(
        user: &mut C,
        waiting: &mut Option<Vec<T>>,
        wake_target: &WakeTarget<'_>,
        register: impl RegisterNth<T, O>,
    ) -> Poll<Result<usize, PushError<Vec<T>>>> {
        let items = waiting.take().expect(wait::DONE);
        let worth = user.is_worth_waiting(&items);
        let attempt =
            |user: &mut C| user.unless_waiting(|local| local.admit_items(&items, &register));
        let poll = wait::poll_room(user, WaitKind::Several, worth, wake_target, attempt);
        let Poll::Ready(admission) = poll else {
            *waiting = Some(items);
            return Poll::Pending;
        };
        Poll::Ready(user.stage_admitted(Some(admission), items))
    }

    /// Stages a batch if it was admitted. If the queue was closed meanwhile, the first item is refused, or none is.
    fn stage_admitted(
        &mut self,
        admission: Admission<Vec<PushMetaOf<T, O>>>,
        items: Vec<T>,
    ) -> Result<usize, PushError<Vec<T>>> {
        if !matches!(admission, Some(Ok(_))) {
            self.give_back_gathered();
        }
        let (metas, items) = admitted(admission, items)?;
        let count = items.len();
        let mut items = items.into_iter();
        let Some(first) = items.next() else {
            return Ok(0);
        };
        if !self.shared.registers() {
            self.stage_first(first, PushMeta::default(), &mut items)?;
            self.stage_all(items);
            return Ok(count);
        }
        let shared = Arc::clone(&self.shared);
        let mut metas = unregistering(&shared, metas);
        let mut next_meta = || metas.pop_front().expect("each item is registered");
        self.stage_first(first, next_meta(), &mut items)?;
        items.for_each(|item| self.stage_registered(item, next_meta()));
        Ok(count)
    }

    /// Stages the first item of a batch; the others come back with it if the queue is closed.
    fn stage_first(
        &mut self,
        first: T,
        meta: PushMetaOf<T, O>,
        others: &mut vec::IntoIter<T>,
    ) -> Result<(), PushError<Vec<T>>> {
        let staged = self.store(Some(Ok(meta)), first, Put::Stage);
        staged.map_err(|refused| {
            let all = iter::once(refused.into_inner()).chain(others);
            PushError::Closed(all.collect())
        })
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
