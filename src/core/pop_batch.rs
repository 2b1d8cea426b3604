//! Batch pops that wait for a minimum of items.

use super::local::Local;
use super::take::{IntoHold, Target};
use super::wait;
use crate::order::{Order, StoredOf};
use crate::raw::{Gathering, HeldItems};
use crate::wait::WakeTarget;
use std::task::Poll;
use std::time::Duration;

/// The progress of a batch: how many items it wants and has taken.
#[derive(Clone, Copy)]
pub(crate) struct Batch {
    min: usize,
    max: usize,
    taken: usize,
}

impl Batch {
    pub(crate) fn new(min: usize, max: usize) -> Self {
        Self {
            min: min.min(max),
            max,
            taken: 0,
        }
    }

    pub(crate) fn taken(&self) -> usize {
        self.taken
    }

    fn has_enough(&self) -> bool {
        self.taken >= self.min
    }
}

impl<T, O: Order<T>> Local<T, O> {
    /// Takes the ready items for the batch. `None`: waiting for more may help.
    fn take_for<G: Target<T, O>>(&mut self, batch: &mut Batch, target: &mut G) -> Option<()> {
        let more = self.take(target, batch.max - batch.taken);
        batch.taken += more;
        (batch.has_enough() || more == 0 && self.is_exhausted()).then_some(())
    }

    /// Whether waiting cannot help, after nothing was found: the queue is drained, or it is closed and this transaction
    /// has work, for whose end others may wait.
    fn is_exhausted(&self) -> bool {
        let closed = self.word().is_closed();
        closed && (self.has_work() || self.shared.why_empty().is_closed())
    }

    /// Pops until the batch has its minimum, the timeout has passed, or waiting cannot help.
    pub(crate) fn pop_batch_waiting(
        mut self: &mut Self,
        mut batch: Batch,
        timeout: Option<Duration>,
        items: &mut Vec<T>,
    ) -> usize {
        if batch.has_enough() {
            self.take_for(&mut batch, items);
            return batch.taken;
        }
        wait::for_item(&mut self, timeout, |local| {
            local.take_for(&mut batch, items)
        });
        batch.taken
    }

    /// Pops the ready items, and polls for more until the batch has its minimum.
    pub(crate) fn poll_pop_batch(
        mut self: &mut Self,
        wake_target: &WakeTarget<'_>,
        batch: &mut Batch,
        items: &mut Vec<T>,
    ) -> Poll<()> {
        if batch.has_enough() {
            return self
                .take_for(batch, items)
                .map_or(Poll::Pending, Poll::Ready);
        }
        wait::poll_item(&mut self, wake_target, |local| local.take_for(batch, items))
    }
}

impl<'t, T, O: Order<T>> Gathering<'t, Local<T, O>> {
    fn hold_for(&mut self, batch: &mut Batch) -> Option<()> {
        let (local, fresh) = self.parts();
        local.take_for(batch, &mut IntoHold(fresh))
    }

    /// Takes items into the hold until the batch has its minimum, the timeout has passed, or waiting cannot help.
    pub(crate) fn pop_batch_waiting(
        mut self,
        mut batch: Batch,
        timeout: Option<Duration>,
    ) -> HeldItems<'t, StoredOf<T, O>> {
        if batch.has_enough() {
            self.hold_for(&mut batch);
        } else {
            wait::for_item(&mut self, timeout, |user| user.hold_for(&mut batch));
        }
        self.give_out()
    }

    /// Takes the ready items into the hold, and polls for more until the batch has its minimum.
    pub(crate) fn poll_pop_batch(
        &mut self,
        wake_target: &WakeTarget<'_>,
        batch: &mut Batch,
    ) -> Poll<HeldItems<'t, StoredOf<T, O>>> {
        if !batch.has_enough() {
            let poll = wait::poll_item(self, wake_target, |user| user.hold_for(batch));
            return poll.map(|()| self.give_out());
        }
        self.hold_for(batch);
        Poll::Ready(self.give_out())
    }
}
