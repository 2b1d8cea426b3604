//! Pops without a transaction.

use super::Port;
use crate::order::Order;
use crate::raw::Stored;
use crate::wait::Waiter;
use crate::PopError;
use std::task::Poll;
use std::time::Duration;

impl<T, O: Order<T>> Port<T, O> {
    #[inline(always)]
    #[allow(clippy::inline_always)] // the pop
    pub(crate) fn pop(&mut self) -> Result<T, PopError> {
        if self.is_hindered() {
            return self.pop_hindered();
        }
        self.seat
            .pop()
            .map(Stored::into_item)
            .ok_or(PopError::Empty)
    }

    /// Whether a pop cannot go the short way.
    #[inline]
    fn is_hindered(&mut self) -> bool {
        self.seat.is_unsettled() || self.side.word().hinders_pop()
    }

    /// Pops from a queue that is bounded or closed, or while a waiter is served, or after something
    /// was forgotten.
    #[inline(never)]
    fn pop_hindered(&mut self) -> Result<T, PopError> {
        self.settle();
        self.side.give_way();
        self.side.pop(&mut self.seat)
    }

    #[inline]
    pub(crate) fn pop_batch(&mut self, max: usize, items: &mut Vec<T>) -> usize {
        if self.is_hindered() {
            self.settle();
            self.side.give_way();
        }
        self.side.pop_batch(&mut self.seat, max, items)
    }

    /// Pops when there is something; without a timeout waits for ever.
    pub(crate) fn pop_waiting(&mut self, timeout: Option<Duration>) -> Result<T, PopError> {
        self.settle();
        let (side, seat) = (&self.side, &mut self.seat);
        let result = side.wait_for_item(timeout, || unless_empty(side.pop(seat)));
        result.unwrap_or(Err(PopError::Empty))
    }

    /// Polls for an item.
    pub(crate) fn poll_pop(&mut self, waiter: &Waiter<'_>) -> Poll<Result<T, PopError>> {
        let (side, seat) = (&self.side, &mut self.seat);
        side.poll_item(waiter, || unless_empty(side.pop(seat)))
    }

    /// Pops until there are `min` items, or the time is over, or nothing can come.
    pub(crate) fn pop_batch_waiting(
        &mut self,
        min: usize,
        max: usize,
        timeout: Duration,
        items: &mut Vec<T>,
    ) -> usize {
        self.settle();
        let (side, seat) = (&self.side, &mut self.seat);
        let mut count = 0;
        side.wait_for_item(Some(timeout), || {
            let more = side.pop_batch(seat, max - count, items);
            count += more;
            let enough = count >= min.min(max);
            (enough || more == 0 && side.shared().why_empty().is_closed()).then_some(())
        });
        count
    }
}

/// `None` if it is worth waiting.
fn unless_empty<R>(result: Result<R, PopError>) -> Option<Result<R, PopError>> {
    match result {
        Err(PopError::Empty) => None,
        other => Some(other),
    }
}
