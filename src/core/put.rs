//! Enqueuing: an item or a batch is admitted (`admit`), registered and stored, and waiters are notified.

pub(crate) use super::access::Put;
use super::admit::{is_single, Admission, AnyTerms};
pub(crate) use super::admit::{Load, To};
use super::local::{CellOf, Local};
use super::shared::Shared;
use super::wait::DONE;
use super::weights::{Known, Weights};
use crate::order::{Order, PlaceOf, PushMeta, PushMetaOf, Terms};
use crate::policy::unique::{OnDuplicate, Staging, Unique};
use crate::raw::Stored;
use crate::sync::defer_with;
use crate::time::Wait;
use crate::wait::{block, WakeTarget};
use crate::{DuplicateOf, PushError};
use std::iter;
use std::slice;
use std::sync::Arc;
use std::task::{Poll, Waker};

/// The fast pushes of one item, each with its one slow function.
impl<T, O: Order<T>> CellOf<T, O> {
    #[inline(always)] // the push
    pub(crate) fn push(&mut self, item: T) -> Result<(), PushError<T>> {
        if Shared::<T, O>::REGISTERS || self.is_unsettled() || !self.get_mut().takes_push() {
            return self.push_slowly(item);
        }
        self.get_mut().publish(item)
    }

    #[inline(never)]
    pub(crate) fn push_slowly(&mut self, item: T) -> Result<(), PushError<T>> {
        self.settled()
            .put(item, Put::Publish, (Default::default(), ()))
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
            return local.put(item, Put::Stage, (Default::default(), ()));
        }
        let meta = O::Meta::default();
        local.store_staged(Stored { item, meta })
    }
}

/// Pushes of an item or a batch.
impl<T, O: Order<T>> Local<T, O> {
    /// Pushes if there is room.
    pub(crate) fn put<L: Load<T, O>, W: AnyTerms>(
        &mut self,
        load: L,
        put: Put,
        (place, terms): To<T, O, W>,
    ) -> Result<L::Pushed, PushError<L>> {
        if self.may_refuse {
            return self.put_checked(load, put, (place, terms));
        }
        if self.is_refusing(put) {
            return Err(PushError::Closed(load));
        }
        let to = (place, terms.terms());
        match load.enter(&self.shared, to, &Weights::None, None) {
            Ok(metas) => self.store_by(load, metas, put, to.1),
            Err(refusal) => Err(refusal.of(load)),
        }
    }

    #[inline(never)] // apart from the orders without bounds, which need no registers for it
    fn put_checked<L: Load<T, O>, W: AnyTerms>(
        &mut self,
        load: L,
        put: Put,
        to: To<T, O, W>,
    ) -> Result<L::Pushed, PushError<L>> {
        let weights = self.shared.weigh(load.as_slice());
        match self.admit_checked(&load, &weights, put, to) {
            Some(Ok(metas)) => self.store(load, metas, &weights, put, to.1),
            refused => self.put_refused(refused, load, &weights, put, Wait::Never, to),
        }
    }

    /// As [`Local::put`], when there is room.
    #[inline]
    pub(crate) fn put_waiting<L: Load<T, O>, W: AnyTerms>(
        &mut self,
        load: L,
        put: Put,
        wait: Wait,
        to: To<T, O, W>,
    ) -> Result<L::Pushed, PushError<L>> {
        if to.1.terms().is_some() {
            return self.put_unless_at_once(load, put, wait, to);
        }
        match load.put_at_once(self, put) {
            Ok(pushed) => pushed,
            Err(load) => self.put_unless_at_once(load, put, wait, to),
        }
    }

    #[inline(never)] // out of the push at once, which needs no registers for it
    fn put_unless_at_once<L: Load<T, O>, W: AnyTerms>(
        &mut self,
        load: L,
        put: Put,
        wait: Wait,
        to: To<T, O, W>,
    ) -> Result<L::Pushed, PushError<L>> {
        if wait.is_over(&self.shared.time) {
            return self.put(load, put, to);
        }
        let (mut wait, mut weights) = (wait, Weights::None);
        if self.shared.tracks() {
            weights = self.shared.weigh(load.as_slice());
            // It may wait several times.
            let end = wait.deadline(self.shared.time.clock_now());
            wait = end.map_or(Wait::Forever, Wait::Until);
        }
        match self.admit_within(wait, &load, &weights, put, to) {
            Some(Ok(metas)) => self.store(load, metas, &weights, put, to.1),
            refused => self.put_refused(refused, load, &weights, put, wait, to),
        }
    }

    /// Admits a load when there is room.
    #[inline(always)] // the push that waits: as `put`
    fn admit_within<L: Load<T, O>, W: AnyTerms>(
        &mut self,
        wait: Wait,
        load: &L,
        weights: &Weights,
        put: Put,
        to: To<T, O, W>,
    ) -> Admission<L::Metas> {
        let room = self.worthwhile_room(load, weights);
        let gathers = weights.gather(L::GATHERS);
        self.wait_for_room(gathers, room, wait, |local| {
            local.admit_waiting(load, weights, put, to)
        })
    }

    /// Follows an attempt that was refused: waits for a key that is only staged, and tries again where the item may replace or
    /// follow another one.
    #[cold]
    #[inline(never)]
    fn put_refused<L: Load<T, O>, W: AnyTerms>(
        &mut self,
        mut admission: Admission<L::Metas>,
        mut load: L,
        weights: &Weights,
        put: Put,
        wait: Wait,
        to: To<T, O, W>,
    ) -> Result<L::Pushed, PushError<L>> {
        loop {
            if self.awaits_staged(admission.as_ref()) && !wait.is_over(&self.shared.time) {
                block(wait, &self.shared.time, |wake_target| {
                    self.poll_staged(weights, wake_target.waker)
                });
            } else {
                match self.settle(admission, load, weights, put, to) {
                    Ok(pushed) => return pushed,
                    Err(again) => load = again,
                }
            }
            admission = self.admit_within(wait, &load, weights, put, to);
        }
    }

    /// Polls for the end of a transaction that has staged an item with one of these keys. Runs user code.
    fn poll_staged(&self, weights: &Weights, waker: &Waker) -> Poll<()> {
        let awaits =
            |unique: &Unique<_, _>| weights.keys().any(|key| unique.await_staged(key, waker));
        match self.shared.unique() {
            Some(unique) if awaits(unique) => Poll::Pending,
            _ => Poll::Ready(()),
        }
    }

    /// Whether a push waits for the end of another transaction, which has staged an item with its key. Not if this one has
    /// staged any: two could wait for each other.
    fn awaits_staged<M>(&self, admission: Option<&Result<M, PushError<()>>>) -> bool {
        matches!(
            admission,
            Some(Err(PushError::Duplicate((), DuplicateOf::Staged)))
        ) && self.staged() == 0
    }

    /// As [`Local::put`], unless waiting for room may help: then the load stays where it is.
    pub(crate) fn put_unless_full<L: Load<T, O>>(
        &mut self,
        load: &mut Option<L>,
        weights: &Weights,
        to: To<T, O>,
    ) -> Option<Result<L::Pushed, PushError<L>>> {
        let put = Put::Publish;
        loop {
            let admission = self.admit(load.as_ref().expect(DONE), weights, put, to);
            if admission.is_none() || self.awaits_staged(admission.as_ref()) {
                return None;
            }
            let taken = load.take().expect(DONE);
            match self.settle(admission, taken, weights, put, to) {
                Ok(pushed) => return Some(pushed),
                Err(again) => *load = Some(again),
            }
        }
    }

    /// Polls for room, and then takes the load and pushes it.
    #[track_caller]
    pub(crate) fn poll_put<L: Load<T, O>>(
        &mut self,
        load: &mut Option<L>,
        weights: &Weights,
        put: Put,
        wake_target: &WakeTarget<'_>,
        to: To<T, O>,
    ) -> Poll<Result<L::Pushed, PushError<L>>> {
        let gathers = weights.gather(L::GATHERS);
        loop {
            let waiting = load.as_ref().expect(DONE);
            let attempt = |local: &mut Self| local.admit_waiting(waiting, weights, put, to);
            let poll = match self.worthwhile_room(waiting, weights) {
                Some(room) => self
                    .poll_room(&room, gathers, wake_target, attempt)
                    .map(Some),
                None => Poll::Ready(attempt(self)),
            };
            let Poll::Ready(admission) = poll else {
                return Poll::Pending;
            };
            if !self.awaits_staged(admission.as_ref()) {
                let taken = load.take().expect(DONE);
                match self.settle(admission, taken, weights, put, to) {
                    Ok(pushed) => return Poll::Ready(pushed),
                    Err(again) => *load = Some(again),
                }
                continue;
            }
            if self.poll_staged(weights, wake_target.waker).is_pending() {
                return Poll::Pending;
            }
        }
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

    /// Stores what was admitted, or refuses it. `Err`: another attempt is needed.
    #[inline]
    fn settle<L: Load<T, O>, W: AnyTerms>(
        &mut self,
        admission: Admission<L::Metas>,
        load: L,
        weights: &Weights,
        put: Put,
        to: To<T, O, W>,
    ) -> Result<Result<L::Pushed, PushError<L>>, L> {
        let replaces = |unique: &Unique<_, _>| unique.rule != OnDuplicate::Refuse;
        match admission.unwrap_or(Err(PushError::Full(()))) {
            Ok(metas) => Ok(self.store(load, metas, weights, put, to.1)),
            Err(PushError::Duplicate(..))
                if is_single::<T, O, L>(put, to.1.terms())
                    && self.shared.unique().is_some_and(replaces) =>
            {
                load.supersede(self, weights.nth(0), to.0)
            }
            Err(refusal) => Ok(Err(refusal.of(load))),
        }
    }

    /// Stores what was admitted.
    #[inline(always)] // the push of an order: as `put`
    fn store<L: Load<T, O>, W: AnyTerms>(
        &mut self,
        load: L,
        metas: L::Metas,
        weights: &Weights,
        put: Put,
        terms: W,
    ) -> Result<L::Pushed, PushError<L>> {
        match weights.total().filter(|_| self.weighs()) {
            None => self.store_by(load, metas, put, terms.terms()),
            Some(total) => self.store_weighed(load, metas, total, put, terms),
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

    fn supersede(
        self,
        local: &mut Local<T, O>,
        known: &Known,
        place: PlaceOf<T, O>,
    ) -> Result<Result<(), PushError<T>>, T> {
        let Some((unique, key)) = local.shared.unique().zip(known.1.as_ref()) else {
            return Err(self);
        };
        let follows = unique.rule == OnDuplicate::Follow;
        let item = match unique.replace(key, self, unique.now(&local.shared.time)) {
            None => return Ok(Ok(())),
            Some((item, None)) => return Err(item),
            Some((item, Some(DuplicateOf::Held))) if follows => item,
            Some((item, Some(of))) => return Ok(Err(PushError::Duplicate(item, of))),
        };
        if !local.take_permit(Put::Publish) {
            return Err(item);
        }
        // Also if user code panics.
        let permit = defer_with(local, |local| local.permits.give_back(1));
        let followed = permit
            .shared
            .follow(item, permit.shared.stamp(), known, place);
        if let Ok(Ok(())) = followed {
            permit.cancel();
        }
        followed
    }

    #[inline]
    fn put_at_once(self, local: &mut Local<T, O>, put: Put) -> Result<Result<(), PushError<T>>, T> {
        match put {
            _ if Shared::<T, O>::REGISTERS => Err(self),
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
        (place, terms): To<T, O, Option<&Terms>>,
        weights: &Weights,
        staging: Option<&Arc<Staging>>,
    ) -> Result<PushMetaOf<T, O>, PushError<()>> {
        let terms = (weights.nth(0), terms);
        shared.enter(self, shared.stamp(), place, terms, staging)
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

    #[inline]
    fn registered(self, meta: PushMetaOf<T, O>) -> impl Iterator<Item = (T, PushMetaOf<T, O>)> {
        iter::once((self, meta))
    }

    fn withdraw(meta: PushMetaOf<T, O>, shared: &Shared<T, O>) {
        shared.withdraw(meta);
    }

    #[inline]
    fn pushed(_: usize) {}
}
