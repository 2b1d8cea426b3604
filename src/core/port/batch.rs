//! Batches of pushes: one transaction each.

use super::Port;
use crate::core::side::{admitted, Closed};
use crate::order::{Fit, Known, KnownOf, Order};
use crate::raw::{Open, Stored};
use crate::wait::{Kind, Waiter};
use crate::PushError;
use std::iter;
use std::task::Poll;
use std::time::Duration;

impl<T, O: Order<T>> Port<T, O> {
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
        if side.shared().registers() {
            let since = side.shared().stamp();
            for item in items {
                // Where there is no limit an item is always registered.
                let known = side.shared().register_since(&item, since);
                let meta = known.map(|known| known.meta).unwrap_or_default();
                seat.stage_since(Stored { item, meta }, since);
            }
        } else {
            let meta = O::Meta::default();
            seat.stage_all(items.map(|item| Stored { item, meta }));
        }
        Ok(Self::commit_batch(tx))
    }

    /// Pushes items that are counted and registered.
    fn push_registered(
        &mut self,
        known: Vec<KnownOf<T, O>>,
        items: Vec<T>,
    ) -> Result<usize, PushError<Vec<T>>> {
        let mut tx = Open::new(self);
        let Self { seat, side, .. } = tx.get_mut();
        let mut registered = side.registered(known);
        let items = side.begin_batch(seat, items)?;
        let known = iter::from_fn(|| registered.pop_front());
        for (item, Known { since, meta }) in items.into_iter().zip(known) {
            seat.stage_since(Stored { item, meta }, since);
        }
        drop(registered);
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
    ) -> Poll<Result<Vec<KnownOf<T, O>>, Closed>> {
        let side = &self.side;
        side.poll_room(Kind::Several, waiter, || side.admit_items(items))
    }

    /// Pushes a batch after [`Port::poll_admit_batch`] was ready.
    pub(crate) fn push_admitted_batch(
        &mut self,
        admission: Result<Vec<KnownOf<T, O>>, Closed>,
        items: Vec<T>,
    ) -> Result<usize, PushError<Vec<T>>> {
        let (known, items) = admitted(Some(admission), items)?;
        if self.side.shared().registers() {
            return self.push_registered(known, items);
        }
        self.push_all(items.into_iter())
    }
}
