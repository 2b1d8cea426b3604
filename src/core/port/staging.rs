//! What a transaction stages and holds.

use super::Port;
use crate::core::shared::Shared;
use crate::core::side::{Admission, Side};
use crate::order::{KnownOf, Order, StoredOf};
use crate::raw::{Access, Grip, HeldItems};
use crate::{PopError, PushError};
use std::time::Duration;

impl<T, O: Order<T>> Port<T, O> {
    /// Stages an item.
    #[inline]
    #[track_caller]
    pub(crate) fn stage(&self, item: T) -> Result<(), PushError<T>> {
        if !self.side.is_plain() {
            return self.stage_hindered(item);
        }
        self.side.stage(&self.seat.access(), item)
    }

    /// Stages an item where user code may run meanwhile, to which the transaction is not to be had.
    #[inline(never)]
    #[track_caller]
    fn stage_hindered(&self, item: T) -> Result<(), PushError<T>> {
        let loan = self.seat.lend();
        let admitted = self.side.admit_staged_item(&loan, &item);
        self.side.stage_if(&loan, admitted, item)
    }

    /// Stages an item with what it is registered as.
    #[track_caller]
    pub(crate) fn stage_as(
        &self,
        item: T,
        register: impl FnOnce(&Shared<T, O>) -> KnownOf<T, O>,
    ) -> Result<(), PushError<T>> {
        let loan = self.seat.lend();
        let admitted = self.side.admit_staged_as(&loan, register);
        self.side.stage_if(&loan, admitted, item)
    }

    /// Stages an item when there is room, as `admit` finds; without a timeout waits for ever.
    #[track_caller]
    pub(crate) fn stage_waiting(
        &self,
        item: T,
        timeout: Option<Duration>,
        admit: impl Fn(&Side<T, O>, &Access<'_, StoredOf<T, O>>, &T) -> Admission<KnownOf<T, O>>,
    ) -> Result<(), PushError<T>> {
        let loan = self.seat.lend();
        let side = &self.side;
        let attempt = || admit(side, &loan, &item);
        let admitted = side.wait_to_stage(&loan, timeout, attempt);
        side.stage_if(&loan, admitted, item)
    }

    /// Holds one item more.
    #[inline]
    #[track_caller]
    pub(crate) fn hold(&self) -> Result<Grip<'_, StoredOf<T, O>>, PopError> {
        let access = self.seat.access();
        if self.side.word().hinders_pop() {
            self.seat.assert_not_lent();
            self.side.give_way();
            return self.side.hold(&access);
        }
        access.hold().ok_or_else(|| self.side.nothing_held())
    }

    /// Holds one item more when there is one; without a timeout waits for ever.
    #[track_caller]
    pub(crate) fn hold_waiting(
        &self,
        timeout: Option<Duration>,
    ) -> Result<Grip<'_, StoredOf<T, O>>, PopError> {
        let loan = self.seat.lend();
        let attempt = || self.side.hold_unless_waiting(&loan);
        let result = self.side.wait_for_item(timeout, attempt);
        result.unwrap_or(Err(PopError::Empty))
    }

    /// Holds up to `max` items more, once there are `min`, or the time is over, or nothing can come.
    #[track_caller]
    pub(crate) fn hold_batch_waiting(
        &self,
        min: usize,
        max: usize,
        timeout: Duration,
    ) -> HeldItems<'_, StoredOf<T, O>> {
        let mut batch = self.seat.batch();
        self.side.wait_for_item(Some(timeout), || {
            let left = max - batch.len();
            let more = self.side.hold_batch(&mut batch, left);
            let enough = batch.len() >= min.min(max);
            (enough || more == 0 && self.side.is_at_its_end(batch.access())).then_some(())
        });
        batch.into_items()
    }
}
