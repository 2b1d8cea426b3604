//! Admission of pushes: a permit, and a queue that is not closed.

use super::{admitted, Admission, Closed, Side};
use crate::raw::{Access, Seat};
use crate::PushError;
use std::mem;

impl<T> Side<T> {
    /// Takes a permit for a push without a transaction, the reserved one if there is one.
    #[inline]
    pub(crate) fn admit(&self) -> Admission {
        if self.shared.word().is_closed() {
            return Some(Err(Closed));
        }
        if let Some(left) = self.gathered.get().checked_sub(1) {
            self.gathered.set(left);
            return Some(Ok(()));
        }
        self.take_one().then_some(Ok(()))
    }

    /// The time to keep for a push that was admitted; if the clock panics, its permit is given back.
    pub(crate) fn stamp_admitted(&self) -> u64 {
        /// The permit of a push that may yet fail.
        struct Permit<'s, T>(&'s Side<T>);
        impl<T> Drop for Permit<'_, T> {
            fn drop(&mut self) {
                self.0.give_back(1);
            }
        }
        let permit = Permit(self);
        let since = self.shared.stamp();
        mem::forget(permit);
        since
    }

    /// Keeps an admission for the next push.
    #[cfg(feature = "stream")]
    pub(crate) fn reserve(&self) {
        if self.is_bounded() {
            self.gathered.set(self.gathered.get() + 1);
        }
    }

    /// Sees to it that the transaction may stage one item more.
    pub(crate) fn admit_staged(&self, access: &Access<'_, T>) -> Admission {
        if self.shared.word().is_closed() {
            return Some(Err(Closed));
        }
        self.has_one_more(access).then_some(Ok(()))
    }

    /// Whether the transaction has a permit, or gets one, for one item more than it has staged.
    pub(super) fn has_one_more(&self, access: &Access<'_, T>) -> bool {
        if self.is_bounded() && access.staged() >= access.held() + self.extra.get() {
            if !self.take_one() {
                return false;
            }
            self.extra.set(self.extra.get() + 1);
        }
        true
    }

    /// Takes permits for a batch: all, or none unless it waits and is the first in the line, where it
    /// gathers them.
    pub(crate) fn admit_batch(&self, len: usize) -> Admission {
        if self.shared.word().is_closed() {
            self.give_back(self.gathered.take());
            return Some(Err(Closed));
        }
        let Some((_, room)) = self.room() else {
            return Some(Ok(()));
        };
        let waits = self.room_place.is_taken();
        if waits && !self.room_place.is_first(&room.line) {
            return None;
        }
        loop {
            let gathered = self.gathered.take();
            let missing = len.saturating_sub(gathered);
            if !waits && !room.capacity.has(missing) {
                self.give_back(gathered);
                return None;
            }
            let got = gathered + self.take(missing);
            if got >= len {
                self.gathered.set(got - len);
                self.extra.set(self.extra.get() + len);
                return Some(Ok(()));
            }
            if waits {
                self.gathered.set(got);
                return None;
            }
            // Others were faster; what is left may do yet.
            self.give_back(got);
        }
    }

    /// Stages an item for which there is a permit, unless the queue is closed.
    #[inline(always)]
    #[allow(clippy::inline_always)] // the push of a transaction
    pub(crate) fn stage(&self, access: &Access<'_, T>, item: T) -> Result<(), PushError<T>> {
        let staged = access.stage_if(item, || self.is_admitting());
        staged.map_err(|item| self.refuse(item))
    }

    /// Whether a push is not refused that has said that it is under way.
    #[inline]
    fn is_admitting(&self) -> bool {
        !self.shared.ready().look().is_closed()
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
        access: &Access<'_, T>,
        admission: Admission,
        item: T,
    ) -> Result<(), PushError<T>> {
        let item = admitted(admission, item)?;
        let since = self.shared.stamp();
        if since == 0 {
            return self.stage(access, item);
        }
        let staged = access.stage_if_at(item, since, || self.is_admitting());
        staged.map_err(|item| self.refuse(item))
    }

    /// Whether there would be room for one item more if the queue had nothing but this transaction.
    pub(crate) fn can_fit(&self, access: &Access<'_, T>) -> bool {
        let room = self.shared.room();
        room.map_or(true, |room| access.staged() < room.capacity.limit())
    }

    /// Begins to stage a batch, unless the queue is closed.
    pub(crate) fn begin_batch<I>(&self, seat: &mut Seat<T>, items: I) -> Result<I, PushError<I>> {
        if seat.begin_staging_if(|| self.is_admitting()) {
            Ok(items)
        } else {
            Err(self.refuse(items))
        }
    }
}
