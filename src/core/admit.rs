//! Admission of pushes: the queue is open, and there is a permit for each item.

use super::access::Put;
use super::local::Local;
use super::refusal::{Admission, Refusal};
use super::shared::Shared;
use crate::order::{Order, PlaceOf};
use crate::sync::defer_with;
use crate::wait::WaitKind;
use crate::PushError;

/// What one call pushes: an item, or a batch, of which all items are pushed or none.
pub(crate) trait Load<T, O: Order<T>>: Sized {
    /// The metadata of the registered items.
    type Metas;
    /// The result of the push.
    type Pushed;
    const KIND: WaitKind;

    fn as_slice(&self) -> &[T];

    /// Takes the permits for all items, or none.
    fn take_permits(&self, local: &mut Local<T, O>, put: Put) -> bool;

    /// Returns the permits of items that are not pushed after all.
    fn return_permits(local: &mut Local<T, O>, put: Put);

    /// Registers the items, the first of them for this place; `None`: one has no room, and none is registered.
    fn register(&self, shared: &Shared<T, O>, place: PlaceOf<T, O>) -> Option<Self::Metas>;

    /// Stores the admitted items.
    fn store(
        self,
        local: &mut Local<T, O>,
        metas: Self::Metas,
        put: Put,
    ) -> Result<Self::Pushed, PushError<Self>>;
}

impl<T, O: Order<T>> Local<T, O> {
    /// Takes permits, and registers the items. If a key is at its limit, or the registration panics, the permits are
    /// released.
    #[inline]
    pub(super) fn admit<L: Load<T, O>>(
        &mut self,
        load: &L,
        put: Put,
        place: PlaceOf<T, O>,
    ) -> Admission<L::Metas> {
        let is_refusing = self.is_refusing(put);
        // The keys are checked first, so that no permit is taken that others could use meanwhile. Nobody waits for a key, so a
        // push to a full one is refused for good, and the permits that a waiting batch has gathered go back.
        if is_refusing || self.may_find_full && !self.fits(load.as_slice()) {
            self.permits.give_back_gathered();
            let closed = is_refusing.then_some(Refusal::Closed);
            return Some(Err(closed.unwrap_or(Refusal::Full)));
        }
        if self.may_find_full {
            // The second time, permits may have been freed by leases that were taken back.
            let takes = load.take_permits(self, put)
                || self.shared.reclaim() && load.take_permits(self, put);
            if !takes {
                return None;
            }
        }
        let local = defer_with(self, |local| L::return_permits(local, put));
        let Some(metas) = load.register(&local.shared, place) else {
            return Some(Err(Refusal::Full));
        };
        local.cancel();
        Some(Ok(metas))
    }

    /// The result of `admit`, except that on a closed queue a lack of room is final: possibly only transactions that
    /// wait like this one could make room.
    pub(super) fn unless_waiting<L>(
        &mut self,
        admit: impl FnOnce(&mut Self) -> Admission<L>,
    ) -> Admission<L> {
        let closed = self.word().is_closed();
        admit(self).or_else(|| closed.then_some(Err(Refusal::Full)))
    }

    /// Whether waiting for room may help: not if these items would not fit beside this transaction's staged ones in
    /// an otherwise empty queue, nor if their keys are at their limits now. A waiter already in the wait queue checks the keys when it is woken.
    pub(crate) fn is_worth_waiting(&self, items: &[T]) -> bool {
        let Some(room) = self.shared.room() else {
            return false;
        };
        let can_fit = self.staged() + items.len() <= room.capacity.limit();
        can_fit && (self.room_waiter.is_taken() || self.fits(items))
    }
}
