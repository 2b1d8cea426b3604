//! Admission of pushes: a permit, and a queue that is not closed.

use super::{admitted, Admission, Closed, Side};
use crate::core::shared::{Permit, Shared};
use crate::order::Fit;
use crate::raw::{Access, Label, Seat};
use crate::wait::{Kind, Waiter};
use crate::PushError;
use std::collections::VecDeque;
use std::mem;
use std::slice;
use std::task::Poll;
use std::time::Duration;

/// Labels of items that are yet to be staged, and are struck if that does not happen.
pub(crate) struct Enrolled<'s, T> {
    side: &'s Side<T>,
    labels: VecDeque<Label>,
}

impl<T> Iterator for Enrolled<'_, T> {
    type Item = Label;

    fn next(&mut self) -> Option<Label> {
        self.labels.pop_front()
    }
}

impl<T> Drop for Enrolled<'_, T> {
    fn drop(&mut self) {
        for label in self.labels.drain(..) {
            self.side.shared.strike(label.order);
        }
    }
}

impl<T> Side<T> {
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

    /// Takes a permit for an item that is pushed without a transaction, and labels it.
    pub(crate) fn admit_item(&self, item: &T) -> Admission<Label> {
        if !self.has_place_for(slice::from_ref(item)) {
            return None;
        }
        self.admit_with(|| self.shared.label(item))
    }

    /// Whether the discipline has room for some items. It is not asked if the queue is closed.
    fn has_place_for(&self, items: &[T]) -> bool {
        self.word().is_closed() || self.fits(items)
    }

    /// Whether the discipline has room for some items.
    fn fits(&self, items: &[T]) -> bool {
        self.shared.fit(items) == Fit::Now
    }

    /// Takes a permit for an item that is pushed without a transaction, with the label that it is given.
    pub(crate) fn admit_as(&self, label: impl FnOnce(&Shared<T>) -> Label) -> Admission<Label> {
        self.admit_with(|| Some(label(&self.shared)))
    }

    /// Takes a permit, and makes a label. If there is none, or its making panics, the permit goes back.
    fn admit_with(&self, label: impl FnOnce() -> Option<Label>) -> Admission<Label> {
        if let Err(closed) = self.admit()? {
            return Some(Err(closed));
        }
        let permit = Permit(|| self.give_back(1));
        let label = label()?;
        mem::forget(permit);
        Some(Ok(label))
    }

    /// Keeps an admission for the next push.
    #[cfg(feature = "stream")]
    pub(crate) fn reserve(&self) {
        if self.is_bounded() {
            self.gathered.set(self.gathered.get() + 1);
        }
    }

    /// Sees to it that the transaction may stage one item more.
    fn admit_staged(&self, access: &Access<'_, T>) -> Admission {
        if self.is_refusing(access) {
            return Some(Err(Closed));
        }
        self.has_one_more(access).then_some(Ok(()))
    }

    /// Whether the transaction may stage nothing more: the queue is closed, and it holds nothing. Or all that
    /// it held was taken away since, and the others were told the end.
    fn is_refusing(&self, access: &Access<'_, T>) -> bool {
        let word = self.word();
        word.is_closed() && (access.held() == 0 || word.is_drained())
    }

    /// As [`Side::admit_staged`], and labels the item.
    pub(crate) fn admit_staged_item(&self, access: &Access<'_, T>, item: &T) -> Admission<Label> {
        if !self.is_refusing(access) && !self.fits(slice::from_ref(item)) {
            return None;
        }
        self.admit_staged_with(access, || self.shared.label(item))
    }

    /// As [`Side::admit_staged`], with the label that the item is given.
    pub(crate) fn admit_staged_as(
        &self,
        access: &Access<'_, T>,
        label: impl FnOnce(&Shared<T>) -> Label,
    ) -> Admission<Label> {
        self.admit_staged_with(access, || Some(label(&self.shared)))
    }

    /// As [`Side::admit_staged`], and makes a label.
    fn admit_staged_with(
        &self,
        access: &Access<'_, T>,
        label: impl FnOnce() -> Option<Label>,
    ) -> Admission<Label> {
        if let Err(closed) = self.admit_staged(access)? {
            return Some(Err(closed));
        }
        let permit = Permit(|| self.release(access));
        let label = label()?;
        mem::forget(permit);
        Some(Ok(label))
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

    /// As [`Side::admit_batch`], and labels the items, if they have labels.
    pub(crate) fn admit_items(&self, items: &[T]) -> Admission<Vec<Label>> {
        if !self.has_place_for(items) {
            self.give_back(self.gathered.take());
            return None;
        }
        if let Err(closed) = self.admit_batch(items.len())? {
            return Some(Err(closed));
        }
        let taken = if self.is_bounded() { items.len() } else { 0 };
        let permits = Permit(|| {
            self.extra.set(self.extra.get() - taken);
            self.give_back(taken);
        });
        let labels = self.label_all(items)?;
        mem::forget(permits);
        Some(Ok(labels))
    }

    fn label_all(&self, items: &[T]) -> Option<Vec<Label>> {
        if !self.shared.is_labelled() {
            return Some(Vec::new());
        }
        let since = self.shared.stamp();
        let mut labels = self.enrolled(Vec::with_capacity(items.len()));
        for item in items {
            labels
                .labels
                .push_back(self.shared.label_since(item, since)?);
        }
        Some(mem::take(&mut labels.labels).into())
    }

    /// Labels of items that are yet to be staged.
    pub(crate) fn enrolled(&self, labels: Vec<Label>) -> Enrolled<'_, T> {
        Enrolled {
            side: self,
            labels: labels.into(),
        }
    }

    /// Stages an item for which there is a permit, unless the queue is closed and the transaction holds
    /// nothing.
    #[inline(always)]
    #[allow(clippy::inline_always)] // the push of a transaction
    #[track_caller]
    pub(crate) fn stage(&self, access: &Access<'_, T>, item: T) -> Result<(), PushError<T>> {
        let staged = access.stage_if(item, || self.is_admitting());
        staged.or_else(|item| self.stage_after_close(access, item))
    }

    /// Whether a push is not refused that has said that it is under way.
    #[inline]
    fn is_admitting(&self) -> bool {
        !self.ready.look().is_closed()
    }

    /// Stages an item although the queue is closed, if the transaction holds something: then nobody says
    /// `Closed` before it has ended, or has at least given all back and says that it stages.
    #[cold]
    fn stage_after_close(&self, access: &Access<'_, T>, item: T) -> Result<(), PushError<T>> {
        let refuses = self.is_refusing(access);
        let staged = access.stage_if(item, || !refuses);
        staged.map_err(|item| self.refuse(item))
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
        admission: Admission<Label>,
        item: T,
    ) -> Result<(), PushError<T>> {
        let (label, item) = admitted(admission, item)?;
        if !self.shared.is_labelled() {
            return self.stage(access, item);
        }
        let holds = access.held() > 0;
        let staged = access.stage_labelled_if(item, label, || holds || self.is_admitting());
        staged.map_err(|item| {
            self.shared.strike(label.order);
            self.refuse(item)
        })
    }

    /// As [`Side::wait_for_room`], for a transaction, by way of `admit`.
    pub(crate) fn wait_to_stage(
        &self,
        access: &Access<'_, T>,
        timeout: Option<Duration>,
        admit: impl Fn() -> Admission<Label>,
    ) -> Admission<Label> {
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
        access: &Access<'_, T>,
        waiter: &Waiter<'_>,
        admit: impl Fn() -> Admission<Label>,
    ) -> Poll<Admission<Label>> {
        if !self.can_fit(access) {
            return Poll::Ready(admit());
        }
        self.poll_room(Kind::One, waiter, || self.admit_unless_waiting(&admit))
    }

    /// What `admit` says; `None` if it is worth waiting for room: not after the close, when it may be that only
    /// transactions like this one would make some.
    fn admit_unless_waiting(
        &self,
        admit: impl Fn() -> Admission<Label>,
    ) -> Option<Admission<Label>> {
        let closed = self.word().is_closed();
        let admission = admit();
        (closed || admission.is_some()).then_some(admission)
    }

    /// Whether there would be room for one item more if the queue had nothing but this transaction.
    fn can_fit(&self, access: &Access<'_, T>) -> bool {
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
