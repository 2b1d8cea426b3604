//! Admission of pushes: a permit, and a queue that is not closed.

use super::{admitted, Admission, Closed, Side};
use crate::core::shared::Shared;
use crate::order::{Fit, Known, KnownOf, Order, StoredOf};
use crate::raw::{Access, Seat, Stored};
use crate::sync::{defer, defer_with, Defer};
use crate::wait::{Kind, Waiter};
use crate::PushError;
use std::collections::VecDeque;
use std::mem;
use std::slice;
use std::task::Poll;
use std::time::Duration;

/// What is known of the items of a batch.
type AllKnown<T, O> = VecDeque<KnownOf<T, O>>;

impl<T, O: Order<T>> Side<T, O> {
    /// Takes a permit for a push without a transaction, the reserved one if there is one.
    #[inline]
    pub(crate) fn admit(&self) -> Admission {
        if self.word().is_closed() {
            return Some(Err(Closed));
        }
        if let Some(left) = self.gathered.get().checked_sub(1) {
            self.gathered.set(left);
            return Some(Ok(()));
        }
        self.take_one().then_some(Ok(()))
    }

    /// Takes a permit for an item that is pushed without a transaction, and registers it.
    pub(crate) fn admit_item(&self, item: &T) -> Admission<KnownOf<T, O>> {
        if !self.has_place_for(slice::from_ref(item)) {
            return None;
        }
        self.admit_with(|| self.shared.register(item))
    }

    /// Whether the order has room for some items. It is not asked if the queue is closed.
    fn has_place_for(&self, items: &[T]) -> bool {
        self.word().is_closed() || self.fits(items)
    }

    /// Whether the order has room for some items.
    fn fits(&self, items: &[T]) -> bool {
        self.shared.fit(items) == Fit::Now
    }

    /// Takes a permit for an item that is pushed without a transaction, with what it is registered as.
    pub(crate) fn admit_as(
        &self,
        register: impl FnOnce(&Shared<T, O>) -> KnownOf<T, O>,
    ) -> Admission<KnownOf<T, O>> {
        self.admit_with(|| Some(register(&self.shared)))
    }

    /// Takes a permit, and registers an item. If there is no room for it, or that panics, the permit goes back.
    fn admit_with(
        &self,
        register: impl FnOnce() -> Option<KnownOf<T, O>>,
    ) -> Admission<KnownOf<T, O>> {
        if let Err(closed) = self.admit()? {
            return Some(Err(closed));
        }
        let permit = defer(|| self.give_back(1));
        let known = register()?;
        permit.cancel();
        Some(Ok(known))
    }

    /// Keeps an admission for the next push.
    #[cfg(feature = "stream")]
    pub(crate) fn reserve(&self) {
        if self.is_bounded() {
            self.gathered.set(self.gathered.get() + 1);
        }
    }

    /// Sees to it that the transaction may stage one item more.
    fn admit_staged(&self, access: &Access<'_, StoredOf<T, O>>) -> Admission {
        if self.is_refusing(access) {
            return Some(Err(Closed));
        }
        self.has_one_more(access).then_some(Ok(()))
    }

    /// Whether the transaction may stage nothing more: the queue is closed, and it holds nothing. Or all that
    /// it held was taken away since, and the others were told the end.
    fn is_refusing(&self, access: &Access<'_, StoredOf<T, O>>) -> bool {
        let word = self.word();
        word.is_closed() && (access.held() == 0 || word.is_drained())
    }

    /// As [`Side::admit_staged`], and registers the item.
    pub(crate) fn admit_staged_item(
        &self,
        access: &Access<'_, StoredOf<T, O>>,
        item: &T,
    ) -> Admission<KnownOf<T, O>> {
        if !self.is_refusing(access) && !self.fits(slice::from_ref(item)) {
            return None;
        }
        self.admit_staged_with(access, || self.shared.register(item))
    }

    /// As [`Side::admit_staged`], with what the item is registered as.
    pub(crate) fn admit_staged_as(
        &self,
        access: &Access<'_, StoredOf<T, O>>,
        register: impl FnOnce(&Shared<T, O>) -> KnownOf<T, O>,
    ) -> Admission<KnownOf<T, O>> {
        self.admit_staged_with(access, || Some(register(&self.shared)))
    }

    /// As [`Side::admit_staged`], and registers an item.
    fn admit_staged_with(
        &self,
        access: &Access<'_, StoredOf<T, O>>,
        register: impl FnOnce() -> Option<KnownOf<T, O>>,
    ) -> Admission<KnownOf<T, O>> {
        if let Err(closed) = self.admit_staged(access)? {
            return Some(Err(closed));
        }
        let permit = defer(|| self.release(access));
        let known = register()?;
        permit.cancel();
        Some(Ok(known))
    }

    /// Whether the transaction has a permit, or gets one, for one item more than it has staged.
    pub(super) fn has_one_more(&self, access: &Access<'_, StoredOf<T, O>>) -> bool {
        if self.is_bounded() && access.staged() >= access.held() + self.extra.get() {
            if !self.take_one() {
                return false;
            }
            self.extra.set(self.extra.get() + 1);
        }
        true
    }

    /// Takes permits for a batch: all, or none unless it waits and is the first in the line, where it
    /// gathers them. Others that wait get none, unless the first may wait for something else.
    pub(crate) fn admit_batch(&self, len: usize) -> Admission {
        if self.word().is_closed() {
            self.give_back(self.gathered.take());
            return Some(Err(Closed));
        }
        let Some((_, room)) = self.room() else {
            return Some(Ok(()));
        };
        let waits = self.room_place.is_taken();
        let gathers = waits && self.room_place.is_first(&room.line);
        if waits && !gathers && !room.is_selective {
            return None;
        }
        let gathered = self.gathered.take();
        let missing = len.saturating_sub(gathered);
        let taken = if gathers {
            self.take(missing)
        } else {
            self.take_all(missing)
        };
        let got = gathered + taken;
        if got >= len {
            self.gathered.set(got - len);
            self.extra.set(self.extra.get() + len);
            return Some(Ok(()));
        }
        if gathers {
            self.gathered.set(got);
        } else {
            self.give_back(got);
        }
        None
    }

    /// As [`Side::admit_batch`], and registers the items, if need be.
    pub(crate) fn admit_items(&self, items: &[T]) -> Admission<Vec<KnownOf<T, O>>> {
        if !self.has_place_for(items) {
            self.give_back(self.gathered.take());
            return None;
        }
        if let Err(closed) = self.admit_batch(items.len())? {
            return Some(Err(closed));
        }
        let taken = if self.is_bounded() { items.len() } else { 0 };
        let permits = defer(|| {
            self.extra.set(self.extra.get() - taken);
            self.give_back(taken);
        });
        let known = self.register_all(items)?;
        permits.cancel();
        Some(Ok(known))
    }

    fn register_all(&self, items: &[T]) -> Option<Vec<KnownOf<T, O>>> {
        if !self.shared.registers() {
            return Some(Vec::new());
        }
        let since = self.shared.stamp();
        let mut known = self.registered(Vec::with_capacity(items.len()));
        for item in items {
            known.push_back(self.shared.register_since(item, since)?);
        }
        Some(mem::take(&mut *known).into())
    }

    /// What is known of items that are yet to be staged: unregistered if they are not.
    pub(crate) fn registered(
        &self,
        known: Vec<KnownOf<T, O>>,
    ) -> Defer<AllKnown<T, O>, impl FnMut(&mut AllKnown<T, O>) + '_> {
        defer_with(known.into(), |known| {
            for known in known.drain(..) {
                self.shared.unregister(known.meta);
            }
        })
    }

    /// Stages an item for which there is a permit, unless the queue is closed and the transaction holds
    /// nothing.
    #[inline(always)]
    #[allow(clippy::inline_always)] // the push of a transaction
    #[track_caller]
    pub(crate) fn stage(
        &self,
        access: &Access<'_, StoredOf<T, O>>,
        item: T,
    ) -> Result<(), PushError<T>> {
        let meta = O::Meta::default();
        let staged = access.stage_if(Stored { item, meta }, || self.is_admitting());
        staged.or_else(|stored| self.stage_after_close(access, stored))
    }

    /// Whether a push is not refused that has said that it is under way.
    #[inline]
    fn is_admitting(&self) -> bool {
        !self.ready.look().is_closed()
    }

    /// Stages an item although the queue is closed, if the transaction holds something: then nobody says
    /// `Closed` before it has ended, or has at least given all back and says that it stages.
    #[cold]
    fn stage_after_close(
        &self,
        access: &Access<'_, StoredOf<T, O>>,
        stored: StoredOf<T, O>,
    ) -> Result<(), PushError<T>> {
        let refuses = self.is_refusing(access);
        let staged = access.stage_if(stored, || !refuses);
        staged.map_err(|stored| self.refuse(stored.item))
    }

    /// Refuses what the queue was closed for. Somebody may have seen a transaction that only seemed to
    /// have work, and wait for its end.
    #[cold]
    fn refuse<I>(&self, items: I) -> PushError<I> {
        self.shared.ended(0);
        PushError::Closed(items)
    }

    /// Stages an item if it was admitted.
    pub(crate) fn stage_if(
        &self,
        access: &Access<'_, StoredOf<T, O>>,
        admission: Admission<KnownOf<T, O>>,
        item: T,
    ) -> Result<(), PushError<T>> {
        let (Known { since, meta }, item) = admitted(admission, item)?;
        if !self.shared.registers() {
            return self.stage(access, item);
        }
        let holds = access.held() > 0;
        let admit = || holds || self.is_admitting();
        let staged = access.stage_since_if(Stored { item, meta }, since, admit);
        staged.map_err(|stored| {
            self.shared.unregister(meta);
            self.refuse(stored.item)
        })
    }

    /// As [`Side::wait_for_room`], for a transaction, by way of `admit`.
    pub(crate) fn wait_to_stage(
        &self,
        access: &Access<'_, StoredOf<T, O>>,
        timeout: Option<Duration>,
        admit: impl Fn() -> Admission<KnownOf<T, O>>,
    ) -> Admission<KnownOf<T, O>> {
        let timeout = if self.can_fit(access) {
            timeout
        } else {
            Some(Duration::ZERO)
        };
        let admitted = self.wait_for_room(Kind::One, timeout, || self.admit_unless_waiting(&admit));
        admitted.flatten()
    }

    /// Polls for room for an item of a transaction, as `admit` finds it.
    pub(crate) fn poll_to_stage(
        &self,
        access: &Access<'_, StoredOf<T, O>>,
        waiter: &Waiter<'_>,
        admit: impl Fn() -> Admission<KnownOf<T, O>>,
    ) -> Poll<Admission<KnownOf<T, O>>> {
        if !self.can_fit(access) {
            return Poll::Ready(admit());
        }
        self.poll_room(Kind::One, waiter, || self.admit_unless_waiting(&admit))
    }

    /// What `admit` says; `None` if it is worth waiting for room: not after the close, when it may be that only
    /// transactions like this one would make some.
    fn admit_unless_waiting(
        &self,
        admit: impl Fn() -> Admission<KnownOf<T, O>>,
    ) -> Option<Admission<KnownOf<T, O>>> {
        let closed = self.word().is_closed();
        let admission = admit();
        (closed || admission.is_some()).then_some(admission)
    }

    /// Whether there would be room for one item more if the queue had nothing but this transaction.
    fn can_fit(&self, access: &Access<'_, StoredOf<T, O>>) -> bool {
        let room = self.shared.room();
        room.map_or(true, |room| access.staged() < room.capacity.limit())
    }

    /// Begins to stage a batch, unless the queue is closed.
    pub(crate) fn begin_batch<I>(
        &self,
        seat: &mut Seat<StoredOf<T, O>>,
        items: I,
    ) -> Result<I, PushError<I>> {
        if seat.begin_staging_if(|| self.is_admitting()) {
            Ok(items)
        } else {
            Err(self.refuse(items))
        }
    }
}
