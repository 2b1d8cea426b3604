//! Batches of pushes: one transaction each.

use super::Port;
use crate::core::side::{admitted, Closed};
use crate::order::Fit;
use crate::raw::{Label, Open};
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
        let items = match side.begin_batch(seat, items) {
            Ok(items) => items,
            Err(refused) => return Err(PushError::Closed(refused.into_inner().collect())),
        };
        if side.shared().is_labelled() {
            let since = side.shared().stamp();
            for item in items {
                // Where there is no limit there is always a label.
                let label = side.shared().label_since(&item, since);
                seat.stage_labelled(item, label.unwrap_or(Label::NONE));
            }
        } else {
            seat.stage_all(items);
        }
        Ok(Self::commit_batch(tx))
    }

    /// Pushes items that are counted and labelled.
    fn push_labelled(
        &mut self,
        labels: Vec<Label>,
        items: Vec<T>,
    ) -> Result<usize, PushError<Vec<T>>> {
        let mut tx = Open::new(self);
        let Self { seat, side, .. } = tx.get_mut();
        let mut labels = side.enrolled(labels);
        let items = side.begin_batch(seat, items)?;
        for (item, label) in items.into_iter().zip(&mut labels) {
            seat.stage_labelled(item, label);
        }
        drop(labels);
        Ok(Self::commit_batch(tx))
    }

    /// Commits what was staged, and says how many items that were.
    fn commit_batch(mut tx: Open<'_, Self>) -> usize {
        let count = tx.get_mut().seat.staged();
        if count > 0 {
            let port = tx.close();
            let outcome = port.commit();
            port.wake_for(outcome);
        }
        count
    }

    /// Pushes a batch when there is room; without a timeout waits for ever.
    pub(crate) fn push_batch(
        &mut self,
        items: Vec<T>,
        timeout: Option<Duration>,
    ) -> Result<usize, PushError<Vec<T>>> {
        self.settle();
        if self.is_too_long(&items) {
            return Err(self.too_long(items));
        }
        let side = &self.side;
        let attempt = || side.admit_items(&items);
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
    pub(crate) fn is_too_long(&self, items: &[T]) -> bool {
        let shared = self.side.shared();
        let limit = shared.room().map(|room| room.capacity.limit());
        limit.is_some_and(|limit| items.len() > limit) || shared.fit(items) == Fit::Never
    }

    /// What to say of a batch that can never fit.
    pub(crate) fn too_long(&self, items: Vec<T>) -> PushError<Vec<T>> {
        if self.side.word().is_closed() {
            PushError::Closed(items)
        } else {
            PushError::Full(items)
        }
    }

    /// Polls for room for a batch.
    pub(crate) fn poll_admit_batch(
        &mut self,
        items: &[T],
        waiter: &Waiter<'_>,
    ) -> Poll<Result<Vec<Label>, Closed>> {
        let side = &self.side;
        side.poll_room(Kind::Several, waiter, || side.admit_items(items))
    }

    /// Pushes a batch after [`Port::poll_admit_batch`] was ready.
    pub(crate) fn push_admitted_batch(
        &mut self,
        admission: Result<Vec<Label>, Closed>,
        items: Vec<T>,
    ) -> Result<usize, PushError<Vec<T>>> {
        let (labels, items) = admitted(Some(admission), items)?;
        if self.side.shared().is_labelled() {
            return self.push_labelled(labels, items);
        }
        self.push_all(items.into_iter())
    }
}
