//! Batches of pushes: one transaction each.

use super::Port;
use crate::raw::Open;
use crate::side::{admitted, Closed};
use crate::wait::{Kind, Waiter};
use crate::PushError;
use std::task::Poll;
use std::time::Duration;

impl<T> Port<T> {
    /// Pushes items that are not counted yet, where there is no limit.
    pub(crate) fn push_all(
        &mut self,
        items: impl Iterator<Item = T>,
    ) -> Result<usize, PushError<Vec<T>>> {
        let mut tx = Open::new(self);
        let Self { seat, side, .. } = tx.get_mut();
        match side.begin_batch(seat, items) {
            Ok(items) => match side.shared().stamp() {
                0 => seat.stage_all(items),
                since => seat.stage_all_at(items, since),
            },
            Err(refused) => return Err(PushError::Closed(refused.into_inner().collect())),
        }
        let count = seat.staged();
        if count > 0 {
            let port = tx.close();
            let outcome = port.commit();
            port.wake_for(outcome);
        }
        Ok(count)
    }

    /// Pushes a batch when there is room; without a timeout waits for ever.
    pub(crate) fn push_batch(
        &mut self,
        items: Vec<T>,
        timeout: Option<Duration>,
    ) -> Result<usize, PushError<Vec<T>>> {
        self.settle();
        if self.is_too_long(items.len()) {
            return Err(self.too_long(items));
        }
        let side = &self.side;
        let attempt = || side.admit_batch(items.len());
        let admission = side.wait_for_room(Kind::Several, timeout, attempt);
        if let Some(admission) = admission {
            return self.push_admitted_batch(admission, items);
        }
        self.side.leave_lines();
        Err(PushError::Full(items))
    }

    pub(crate) fn is_bounded(&self) -> bool {
        self.side.is_bounded()
    }

    /// Whether a batch can never fit.
    pub(crate) fn is_too_long(&self, len: usize) -> bool {
        let room = self.side.shared().room();
        room.is_some_and(|room| len > room.capacity.limit())
    }

    /// What to say of a batch that can never fit.
    pub(crate) fn too_long(&self, items: Vec<T>) -> PushError<Vec<T>> {
        if self.side.shared().word().is_closed() {
            PushError::Closed(items)
        } else {
            PushError::Full(items)
        }
    }

    /// Polls for room for a batch.
    pub(crate) fn poll_admit_batch(
        &mut self,
        len: usize,
        waiter: &Waiter<'_>,
    ) -> Poll<Result<(), Closed>> {
        let side = &self.side;
        side.poll_room(Kind::Several, waiter, || side.admit_batch(len))
    }

    /// Pushes a batch after [`Port::poll_admit_batch`] was ready.
    pub(crate) fn push_admitted_batch(
        &mut self,
        admission: Result<(), Closed>,
        items: Vec<T>,
    ) -> Result<usize, PushError<Vec<T>>> {
        let items = admitted(Some(admission), items)?;
        self.push_all(items.into_iter())
    }
}
