//! Enqueuing: an item or a batch is admitted (`admit`), registered and stored, and waiters are notified.

pub(crate) use super::access::Put;
use super::admit::Admission;
pub(crate) use super::admit::Load;
use super::local::{CellOf, Local};
use super::shared::Shared;
use super::wait::DONE;
use super::weights::Weights;
use crate::order::{Order, PlaceOf, PushMeta, PushMetaOf};
use crate::raw::Stored;
use crate::time::Wait;
use crate::wait::WakeTarget;
use crate::PushError;
use std::slice;
use std::task::Poll;

/// The fast pushes of one item, each with its one slow function.
impl<T, O: Order<T>> CellOf<T, O> {
    #[inline(always)] // the push
    pub(crate) fn push(&mut self, item: T) -> Result<(), PushError<T>> {
        if Shared::<T, O>::SORTS || self.is_unsettled() || !self.get_mut().takes_push() {
            return self.push_slowly(item);
        }
        self.get_mut().publish(item)
    }

    #[inline(never)]
    pub(crate) fn push_slowly(&mut self, item: T) -> Result<(), PushError<T>> {
        self.settled().put(item, Put::Publish, Default::default())
    }

    /// Stages an item if nothing else has to be done: no barrier passed, no memory allocated, no permit searched for.
    #[inline(always)] // the push of a transaction
    pub(crate) fn stage_at_once(&self, item: T) -> Result<(), T> {
        let meta = O::Meta::default();
        let staged = self.stage_next(
            Stored { item, meta },
            |local| local.takes_staged_at_once(),
            |local| local.ready.is_surely_open(),
        );
        staged.map_err(Stored::into_item)
    }

    /// Stages an item.
    #[inline(never)]
    #[track_caller]
    pub(crate) fn stage(&self, item: T) -> Result<(), PushError<T>> {
        let mut local = self.borrow();
        if !local.takes_staged() {
            return local.put(item, Put::Stage, Default::default());
        }
        let meta = O::Meta::default();
        local.store_staged(Stored { item, meta })
    }
}

/// Pushes of an item or a batch.
impl<T, O: Order<T>> Local<T, O> {
    /// Pushes if there is room.
    pub(crate) fn put<L: Load<T, O>>(
        &mut self,
        load: L,
        put: Put,
        place: PlaceOf<T, O>,
    ) -> Result<L::Pushed, PushError<L>> {
        if self.may_find_full && self.shared.weighs() {
            return self.put_weighed(load, put, place);
        }
        self.put_with(load, &Weights::default(), put, place)
    }

    #[cold]
    #[inline(never)]
    fn put_weighed<L: Load<T, O>>(
        &mut self,
        load: L,
        put: Put,
        place: PlaceOf<T, O>,
    ) -> Result<L::Pushed, PushError<L>> {
        let weights = self.shared.weigh(load.as_slice());
        self.put_with(load, &weights, put, place)
    }

    #[inline(always)] // the push of an order: without weights nothing of them is left
    fn put_with<L: Load<T, O>>(
        &mut self,
        load: L,
        weights: &Weights,
        put: Put,
        place: PlaceOf<T, O>,
    ) -> Result<L::Pushed, PushError<L>> {
        let admission = self.admit(&load, weights, put, place);
        self.store_admitted(admission, load, weights, put)
    }

    /// As [`Local::put`], when there is room.
    #[inline]
    pub(crate) fn put_waiting<L: Load<T, O>>(
        &mut self,
        load: L,
        put: Put,
        wait: Wait,
        place: PlaceOf<T, O>,
    ) -> Result<L::Pushed, PushError<L>> {
        let load = match load.put_at_once(self, put) {
            Ok(pushed) => return pushed,
            Err(load) => load,
        };
        if wait.is_over(&self.shared.time) {
            return self.put(load, put, place);
        }
        let weights = self.shared.weigh(load.as_slice());
        let room = self.worthwhile_room(&load, &weights);
        let gathers = weights.gather(L::GATHERS);
        let admission = self.wait_for_room(gathers, room, wait, |local| {
            local.admit_waiting(&load, &weights, put, place)
        });
        self.store_admitted(admission, load, &weights, put)
    }

    /// As [`Local::put`], unless waiting for room may help: then the load stays where it is.
    pub(crate) fn put_unless_full<L: Load<T, O>>(
        &mut self,
        load: &mut Option<L>,
        weights: &Weights,
        place: PlaceOf<T, O>,
    ) -> Option<Result<L::Pushed, PushError<L>>> {
        let put = Put::Publish;
        let admission = self.admit(load.as_ref().expect(DONE), weights, put, place)?;
        let load = load.take().expect(DONE);
        Some(self.store_admitted(Some(admission), load, weights, put))
    }

    /// Polls for room, and then takes the load and pushes it.
    #[track_caller]
    pub(crate) fn poll_put<L: Load<T, O>>(
        &mut self,
        load: &mut Option<L>,
        weights: &Weights,
        put: Put,
        wake_target: &WakeTarget<'_>,
        place: PlaceOf<T, O>,
    ) -> Poll<Result<L::Pushed, PushError<L>>> {
        let waiting = load.as_ref().expect(DONE);
        let gathers = weights.gather(L::GATHERS);
        let attempt = |local: &mut Self| local.admit_waiting(waiting, weights, put, place);
        let poll = match self.worthwhile_room(waiting, weights) {
            Some(room) => self
                .poll_room(&room, gathers, wake_target, attempt)
                .map(Some),
            None => Poll::Ready(attempt(self)),
        };
        poll.map(|admission| {
            let load = load.take().expect(DONE);
            self.store_admitted(admission, load, weights, put)
        })
    }

    /// Polls for room for an item that is yet unknown, and keeps the permit for [`Local::put`].
    #[cfg(feature = "stream")]
    pub(crate) fn poll_reserve(&mut self, wake_target: &WakeTarget<'_>) -> Poll<()> {
        let Some(room) = self.shared.room().cloned() else {
            return Poll::Ready(());
        };
        let attempt = |local: &mut Self| {
            if !local.word().is_closed() {
                let put = Put::Publish;
                let takes =
                    local.take_permit(put) || local.shared.reclaim() && local.take_permit(put);
                if !takes {
                    return None;
                }
                local.permits.gather_one();
            }
            Some(Ok::<_, PushError<()>>(()))
        };
        self.poll_room(&room, false, wake_target, attempt).map(drop)
    }

    /// Stores what was admitted.
    #[inline(always)] // as `put_with`
    fn store_admitted<L: Load<T, O>>(
        &mut self,
        admission: Admission<L::Metas>,
        load: L,
        weights: &Weights,
        put: Put,
    ) -> Result<L::Pushed, PushError<L>> {
        match admission.unwrap_or(Err(PushError::Full(()))) {
            Ok(metas) => match weights.total().filter(|_| self.weighs()) {
                None => load.store(self, metas, put),
                Some(total) => self.store_weighed(load, metas, total, put),
            },
            Err(refusal) => Err(refusal.of(load)),
        }
    }
}

impl<T, O: Order<T>> Load<T, O> for T {
    type Metas = PushMetaOf<T, O>;
    type Pushed = ();
    const GATHERS: bool = false;

    fn as_slice(&self) -> &[T] {
        slice::from_ref(self)
    }

    #[inline]
    fn put_at_once(self, local: &mut Local<T, O>, put: Put) -> Result<Result<(), PushError<T>>, T> {
        match put {
            _ if Shared::<T, O>::SORTS => Err(self),
            Put::Publish if local.takes_push() => Ok(local.publish(self)),
            Put::Stage if local.takes_staged() => {
                let meta = O::Meta::default();
                Ok(local.store_staged(Stored { item: self, meta }))
            }
            _ => Err(self),
        }
    }

    #[inline]
    fn take_permits(&self, local: &mut Local<T, O>, weights: &Weights, put: Put) -> bool {
        local.take_permits(weights.total(), put)
    }

    fn return_permits(local: &mut Local<T, O>, put: Put) {
        match put {
            Put::Publish if !local.weighs() => local.permits.give_back(1),
            _ => local.release(),
        }
    }

    #[inline(always)] // the push of an order
    fn enter(
        &self,
        shared: &Shared<T, O>,
        place: PlaceOf<T, O>,
        weights: &Weights,
    ) -> Result<PushMetaOf<T, O>, PushError<()>> {
        shared.enter(self, shared.stamp(), place, weights.nth(0))
    }

    #[inline(always)] // as above
    fn store(
        self,
        local: &mut Local<T, O>,
        PushMeta { since, meta }: PushMetaOf<T, O>,
        put: Put,
    ) -> Result<(), PushError<T>> {
        let stored = Stored { item: self, meta };
        if local.shared.timed {
            return local.store_timed(stored, since, put);
        }
        local.store_registered(stored, put)
    }
}
