//! Admission of pushes: the queue is open, and there is a permit for each item.

use super::access::Put;
use super::local::Local;
use super::shared::Shared;
use super::weights::{Known, Weights};
use crate::bound::Room;
use crate::order::{Order, PlaceOf, PushMetaOf, Terms};
use crate::policy::unique::Staging;
use crate::sync::defer_with;
use crate::{DuplicateOf, PushError};
use std::sync::Arc;

/// The result of an admission check. `None`: there is no room now, but waiting may help. An error: it would not.
pub(super) type Admission<L> = Option<Result<L, PushError<()>>>;

/// The terms of a push, if it has some. Without any it is `()`, so that most pushes have no code for them.
pub(crate) trait AnyTerms: Copy {
    fn terms(&self) -> Option<&Terms>;
}

impl AnyTerms for () {
    #[inline]
    fn terms(&self) -> Option<&Terms> {
        None
    }
}

impl AnyTerms for Terms {
    #[inline]
    fn terms(&self) -> Option<&Terms> {
        Some(self)
    }
}

/// Where a load goes, or its first item, and its terms.
pub(crate) type To<T, O, W = Terms> = (PlaceOf<T, O>, W);

/// What one call pushes: an item, or a batch, of which all items are pushed or none.
pub(crate) trait Load<T, O: Order<T>>: Sized {
    /// The metadata of the registered items.
    type Metas;
    /// The result of the push.
    type Pushed;
    /// Whether the first waiter gathers permits as they become free.
    const GATHERS: bool;

    fn as_slice(&self) -> &[T];

    /// Replaces or follows the other item with its key, if [it may](is_single) and that is the rule of the queue;
    /// otherwise it is refused. `Err`: another attempt is needed.
    fn supersede(
        self,
        _local: &mut Local<T, O>,
        _known: &Known,
        _place: PlaceOf<T, O>,
    ) -> Result<Result<Self::Pushed, PushError<Self>>, Self> {
        Err(self)
    }

    /// Pushes the items if that depends on nobody else.
    #[inline]
    fn put_at_once(
        self,
        _local: &mut Local<T, O>,
        _put: Put,
    ) -> Result<Result<Self::Pushed, PushError<Self>>, Self> {
        Err(self)
    }

    /// Takes the permits for all items, or none.
    fn take_permits(&self, local: &mut Local<T, O>, weights: &Weights, put: Put) -> bool;

    /// Returns the permits of items that are not pushed after all.
    fn return_permits(local: &mut Local<T, O>, put: Put);

    /// Registers the items, the first of them for this place and with these terms: all of them, or none.
    fn enter(
        &self,
        shared: &Shared<T, O>,
        to: To<T, O, Option<&Terms>>,
        weights: &Weights,
        staging: Option<&Arc<Staging>>,
    ) -> Result<Self::Metas, PushError<()>>;

    /// Stores the admitted items.
    fn store(
        self,
        local: &mut Local<T, O>,
        metas: Self::Metas,
        put: Put,
    ) -> Result<Self::Pushed, PushError<Self>>;

    /// The items with their metadata.
    fn registered(self, metas: Self::Metas) -> impl Iterator<Item = (T, PushMetaOf<T, O>)>;

    /// Withdraws items that are not pushed after all.
    fn withdraw(metas: Self::Metas, shared: &Shared<T, O>);

    /// The result of a push of so many items.
    fn pushed(count: usize) -> Self::Pushed;
}

/// Whether the load is one item that is pushed at once, so that it may replace or follow another one with its key.
pub(super) fn is_single<T, O: Order<T>, L: Load<T, O>>(put: Put, terms: Option<&Terms>) -> bool {
    let is_at_once =
        |terms: &Terms| terms.when().is_none() && (put == Put::Publish || terms.supersedes);
    !L::GATHERS && terms.map_or(put == Put::Publish, is_at_once)
}

impl<T, O: Order<T>> Local<T, O> {
    /// Takes permits, and registers the items. If a key is at its limit, or the registration panics, the permits are
    /// released.
    pub(super) fn admit<L: Load<T, O>, W: AnyTerms>(
        &mut self,
        load: &L,
        weights: &Weights,
        put: Put,
        to: To<T, O, W>,
    ) -> Admission<L::Metas> {
        if self.may_refuse {
            return self.admit_checked(load, weights, put, to);
        }
        if self.is_refusing(put) {
            return Some(Err(PushError::Closed(())));
        }
        let to = (to.0, to.1.terms());
        Some(load.enter(&self.shared, to, weights, None))
    }

    /// As [`Local::admit`], where the queue may have no room, or a duplicate.
    #[inline(never)]
    pub(super) fn admit_checked<L: Load<T, O>, W: AnyTerms>(
        &mut self,
        load: &L,
        weights: &Weights,
        put: Put,
        to: To<T, O, W>,
    ) -> Admission<L::Metas> {
        let staging = self.staging(put);
        // The keys are checked first, so that no permit is taken that others could use meanwhile. Nobody waits for a key, so a
        // push to a full one is refused for good, and the permits that a waiting batch has gathered go back.
        let refusal = if self.is_refusing(put) {
            Some(PushError::Closed(()))
        } else if weights.total().is_some() && self.are_too_heavy(weights) {
            Some(PushError::TooHeavy(()))
        } else if let Some(of) = self.duplicate_of(
            weights,
            || is_single::<T, O, L>(put, to.1.terms()),
            staging.as_ref(),
        ) {
            Some(PushError::Duplicate((), of))
        } else {
            (!self.fits(load.as_slice())).then_some(PushError::Full(()))
        };
        if let Some(refusal) = refusal {
            self.permits.give_back_gathered();
            return Some(Err(refusal));
        }
        // The second time, permits may have been freed by items that were reclaimed.
        let takes = load.take_permits(self, weights, put)
            || self.shared.reclaim() && load.take_permits(self, weights, put);
        if !takes {
            let refusal = self.shared.unique()?.refusal(load.as_slice())?;
            self.permits.give_back_gathered();
            return Some(Err(refusal));
        }
        let local = defer_with(self, |local| L::return_permits(local, put));
        let to = (to.0, to.1.terms());
        match load.enter(&local.shared, to, weights, staging.as_ref()) {
            Ok(metas) => {
                local.cancel();
                Some(Ok(metas))
            }
            Err(refusal) => Some(Err(refusal)),
        }
    }

    /// What the other item with the key of one of these is. Only where there may be no room or place for them, of which a
    /// duplicate needs none: otherwise their keys are checked when they are taken.
    fn duplicate_of(
        &self,
        weights: &Weights,
        follows: impl FnOnce() -> bool,
        staging: Option<&Arc<Staging>>,
    ) -> Option<DuplicateOf> {
        let unique = self.shared.unique()?;
        self.shared.reclaim();
        if !self.permits.is_bounded() && !self.shared.is_limited() {
            return None;
        }
        let (follows, now) = (follows(), unique.now(&self.shared.time));
        let mut keys = weights.keys();
        keys.find_map(|key| unique.duplicate_of(key, follows, staging, now))
    }

    /// What the keys of the items that it stages have in common, if they are unique.
    #[inline]
    fn staging(&mut self, put: Put) -> Option<Arc<Staging>> {
        (put == Put::Stage && self.is_unique()).then(|| self.make_staging())
    }

    #[inline(never)]
    fn make_staging(&mut self) -> Arc<Staging> {
        let at_need = self.at_need.get_or_insert_with(Box::default);
        let staging = at_need.keys.get_or_insert_with(|| Arc::new(Staging::new()));
        Arc::clone(staging)
    }

    /// As [`Local::admit`], except that on a closed queue a lack of room is final: possibly only transactions that wait like
    /// this one could make room.
    pub(super) fn admit_waiting<L: Load<T, O>, W: AnyTerms>(
        &mut self,
        load: &L,
        weights: &Weights,
        put: Put,
        to: To<T, O, W>,
    ) -> Admission<L::Metas> {
        let closed = self.word().is_closed();
        let admission = self.admit(load, weights, put, to);
        admission.or_else(|| closed.then_some(Err(PushError::Full(()))))
    }

    /// The room that is worth waiting for: none if these items need none, or would not fit beside this transaction's staged ones
    /// in an otherwise empty queue, nor if their keys are at their limits now. A waiter already in the wait queue checks the
    /// keys when it is woken.
    pub(crate) fn worthwhile_room<L: Load<T, O>>(
        &self,
        load: &L,
        weights: &Weights,
    ) -> Option<Arc<Room>> {
        let (items, (staged, _)) = (load.as_slice(), self.loads());
        let more = weights.total().unwrap_or(items.len());
        let needed = staged.saturating_add(more);
        let fits = |room: &&Arc<Room>| more > 0 && needed <= room.capacity.limit();
        let room = self.shared.room().filter(fits);
        let is_worthwhile = |_: &_| self.room_waiter.is_taken() || self.fits(items);
        room.filter(is_worthwhile).cloned()
    }

    /// Whether one of these items would not fit even into an empty queue.
    fn are_too_heavy(&self, weights: &Weights) -> bool {
        let room = self.shared.room();
        room.is_some_and(|room| weights.exceed(room.capacity.limit()))
    }
}
