//! Batch pops that wait for a minimum of items.

use super::local::Local;
use super::take::{IntoHold, Target};
use crate::order::{Order, StoredOf};
use crate::raw::{Gathering, HeldItems};
use crate::time::{Time, Wait};
use crate::wait::WakeTarget;
use std::task::Poll;

/// The progress of a batch: how many items it wants and has taken, and until when a task waits for them.
#[derive(Clone, Copy)]
pub(crate) struct Batch {
    min: usize,
    max: usize,
    taken: usize,
    /// Without one, a task waits indefinitely.
    until: Option<u64>,
}

impl Batch {
    pub(crate) fn new(min: usize, max: usize) -> Self {
        Self {
            min: min.min(max),
            max,
            taken: 0,
            until: None,
        }
    }

    /// A task waits no longer than this, from now on.
    pub(crate) fn within(self, wait: Wait, time: &Time) -> Self {
        let until = wait.end(time);
        Self { until, ..self }
    }

    pub(crate) fn taken(&self) -> usize {
        self.taken
    }

    fn has_enough(&self) -> bool {
        self.taken >= self.min
    }

    /// Whether the time of a task that found too few items is over. Otherwise it is woken then.
    fn is_over(&self, time: &Time, wake_target: &WakeTarget<'_>) -> bool {
        let Some(until) = self.until else {
            return false;
        };
        let is_over = time.now() >= until;
        if !is_over {
            // At each poll: a task has one timer for all its waits, which may just have fired for another one.
            wake_target.wake_at(time, until);
        }
        is_over
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

    /// Takes items until the batch has its minimum, the timeout has passed, or waiting cannot help. Returns their number.
    fn fill<G: Target<T, O>>(&mut self, mut batch: Batch, wait: Wait, target: &mut G) -> usize {
        if batch.has_enough() {
            batch.taken = self.take(target, batch.max);
        } else {
            self.wait_for_item(wait, |local| local.take_for(&mut batch, target));
        }
        batch.taken
    }

    /// Takes the ready items, and polls for more until the batch has its minimum or its time is over. The caller then
    /// leaves the wait queue.
    fn poll_fill<G: Target<T, O>>(
        &mut self,
        wake_target: &WakeTarget<'_>,
        batch: &mut Batch,
        target: &mut G,
    ) -> Poll<()> {
        if batch.has_enough() {
            self.take_for(batch, target);
            return Poll::Ready(());
        }
        match self.poll_item(wake_target, |local| local.take_for(batch, target)) {
            // After the attempt: an item that has arrived takes precedence over the deadline.
            Poll::Pending if batch.is_over(&self.shared.time, wake_target) => Poll::Ready(()),
            poll => poll,
        }
    }

    /// Pops a batch.
    pub(crate) fn pop_batch_waiting(
        &mut self,
        batch: Batch,
        wait: Wait,
        items: &mut Vec<T>,
    ) -> usize {
        self.fill(batch, wait, items)
    }

    /// Polls for a batch.
    pub(crate) fn poll_pop_batch(
        &mut self,
        wake_target: &WakeTarget<'_>,
        batch: &mut Batch,
        items: &mut Vec<T>,
    ) -> Poll<()> {
        self.poll_fill(wake_target, batch, items)
    }
}

impl<'t, T, O: Order<T>> Gathering<'t, Local<T, O>> {
    /// Takes a batch into the hold.
    pub(crate) fn pop_batch_waiting(
        mut self,
        batch: Batch,
        wait: Wait,
    ) -> HeldItems<'t, StoredOf<T, O>> {
        let (local, fresh) = self.parts();
        local.fill(batch, wait, &mut IntoHold(fresh));
        self.into_items()
    }

    /// Polls for a batch to hold. The caller then gives the items out.
    pub(crate) fn poll_pop_batch(
        &mut self,
        wake_target: &WakeTarget<'_>,
        batch: &mut Batch,
    ) -> Poll<()> {
        let (local, fresh) = self.parts();
        local.poll_fill(wake_target, batch, &mut IntoHold(fresh))
    }
}
