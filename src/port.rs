//! A port: what a handle owns, a seat at the lanes and a side towards those who wait.
//!
//! Here the rules of waiting, capacity and closing meet the lanes, which know none of them.

use crate::raw::{HeldItems, Open, Party, Record, Seat, Session, Tails};
use crate::shared::Shared;
use crate::side::{Closed, Side};
use crate::wait::Kind;
use crate::{PopError, PushError};
use std::mem;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

/// One handle's access to a queue.
pub(crate) struct Port<T> {
    seat: Seat<T>,
    side: Side<T>,
    /// What the last commit over several queues did here.
    concluded: Outcome,
}

/// What a commit has done, and those are to be told of who wait.
#[derive(Clone, Copy, Default)]
pub(crate) struct Outcome {
    /// Items that are ready now.
    published: usize,
    /// Items that are the caller's now.
    pub(crate) freed: usize,
}

impl<T> Port<T> {
    pub(crate) fn new(shared: Arc<Shared<T>>) -> Self {
        Self {
            seat: Seat::new(Arc::clone(shared.lanes())),
            side: Side::new(shared),
            concluded: Outcome::default(),
        }
    }

    #[inline]
    pub(crate) fn side(&self) -> &Side<T> {
        &self.side
    }

    #[inline]
    pub(crate) fn seat(&self) -> &Seat<T> {
        &self.seat
    }

    /// Ends what a forgotten transaction or future left.
    #[inline]
    fn settle(&mut self) {
        if self.seat.is_unsettled() {
            self.settle_forgotten();
        }
    }

    #[cold]
    fn settle_forgotten(&mut self) {
        self.end_waiting();
        if self.seat.is_taken() {
            self.seat.drop_taken();
        }
        self.abort();
    }

    /// Begins the waiting of a future.
    pub(crate) fn begin_waiting(&mut self) {
        self.settle();
        self.seat.mark_lent();
    }

    /// Ends the waiting of a future.
    #[inline(never)]
    pub(crate) fn end_waiting(&mut self) {
        self.seat.end_loan();
        self.side.leave_lines();
    }

    /// Ends the waiting of a future that was forgotten.
    #[inline]
    pub(crate) fn end_forgotten(&mut self) {
        if self.seat.is_lent() {
            self.end_waiting();
        }
    }
}

/// Commits.
impl<T> Port<T> {
    /// Commits, all but the waking: that is [`Port::wake_for`].
    #[inline(always)]
    #[allow(clippy::inline_always)] // a few stores
    pub(crate) fn commit(&mut self) -> Outcome {
        self.end_forgotten();
        let (published, freed) = self.seat.commit();
        Outcome { published, freed }
    }

    /// What [`commit_together`](crate::raw::commit_together) did here.
    pub(crate) fn concluded(&mut self) -> Outcome {
        mem::take(&mut self.concluded)
    }

    /// Wakes those who wait for what the commit has published or freed.
    #[inline]
    pub(crate) fn wake_for(&self, outcome: Outcome) {
        self.side.end_transaction(outcome.freed, outcome.published);
        self.side.shared().ended(outcome.published);
    }

    /// Takes out the next committed item.
    #[inline]
    pub(crate) fn take_out(&mut self) -> Option<T> {
        self.seat.take_out()
    }

    /// Drops the committed items that were not taken out.
    #[inline]
    pub(crate) fn drop_taken(&mut self) {
        self.seat.drop_taken();
    }
}

/// Pushes without a transaction.
impl<T> Port<T> {
    #[inline]
    pub(crate) fn push(&mut self, item: T) -> Result<(), PushError<T>> {
        if self.seat.is_unsettled() || self.side.shared().word().hinders_push() {
            return self.push_hindered(item);
        }
        self.publish(item)
    }

    /// Pushes to a queue that is bounded or closed, or after something was forgotten.
    #[inline(never)]
    fn push_hindered(&mut self, item: T) -> Result<(), PushError<T>> {
        self.settle();
        let admitted = self.side.admit();
        self.push_if(admitted, item)
    }

    /// Pushes if there is a permit.
    #[inline]
    fn push_if(
        &mut self,
        admitted: Option<Result<(), Closed>>,
        item: T,
    ) -> Result<(), PushError<T>> {
        match admitted {
            Some(Ok(())) => self.publish(item),
            Some(Err(Closed)) => Err(PushError::Closed(item)),
            None => Err(PushError::Full(item)),
        }
    }

    #[inline]
    fn publish(&mut self, item: T) -> Result<(), PushError<T>> {
        self.seat.push(item);
        if self.side.shared().ready().is_quiet() {
            return Ok(());
        }
        self.tell()
    }

    /// Wakes for the item just pushed. If the queue was closed meanwhile, takes it back, unless
    /// somebody will find it.
    ///
    /// An item that is at the head may have come after the last pop; one behind another item has not,
    /// since that one is still to be popped. Whoever pops it finds ours: there is a full barrier
    /// between our publication and our look at the head, and in [`Line::seal`](crate::wait::Line::seal)
    /// between that pop and the look that says Closed.
    #[cold]
    #[inline(never)]
    fn tell(&mut self) -> Result<(), PushError<T>> {
        if !self.side.shared().ready().tell(1).is_closed() {
            return Ok(());
        }
        let Some(item) = self.seat.retract() else {
            return Ok(());
        };
        self.side.give_back(1);
        self.side.shared().ended(0);
        Err(PushError::Closed(item))
    }

    /// Pushes when there is room; without a timeout waits for ever.
    pub(crate) fn push_waiting(
        &mut self,
        item: T,
        timeout: Option<Duration>,
    ) -> Result<(), PushError<T>> {
        self.settle();
        let side = &self.side;
        let admitted = side.wait_for_room(Kind::One, timeout, || side.admit());
        self.push_if(admitted, item)
    }

    /// Polls for room for one item.
    pub(crate) fn poll_admit(&mut self, waker: &Waker) -> Poll<Result<(), Closed>> {
        let side = &self.side;
        side.poll_room(Kind::One, waker, || side.admit())
    }

    /// Pushes what a reservation was made for, or tries to without one.
    #[cfg(feature = "stream")]
    pub(crate) fn push_reserved(&mut self, item: T) -> Result<(), PushError<T>> {
        let admitted = self.side.admit();
        self.push_if(admitted, item)
    }

    /// Pushes after [`Port::poll_admit`] was ready.
    pub(crate) fn push_admitted(
        &mut self,
        admitted: Result<(), Closed>,
        item: T,
    ) -> Result<(), PushError<T>> {
        self.push_if(Some(admitted), item)
    }
}

/// Batches of pushes.
impl<T> Port<T> {
    /// Pushes items that are not counted yet, where there is no limit.
    pub(crate) fn push_all(
        &mut self,
        items: impl Iterator<Item = T>,
    ) -> Result<usize, PushError<Vec<T>>> {
        let mut tx = Open::new(self);
        let Self { seat, side, .. } = tx.get_mut();
        match side.begin_batch(seat, items) {
            Ok(items) => seat.stage_all(items),
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
        let admitted = side.wait_for_room(Kind::Several, timeout, attempt);
        if let Some(admitted) = admitted {
            return self.push_admitted_batch(admitted, items);
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
        waker: &Waker,
    ) -> Poll<Result<(), Closed>> {
        let side = &self.side;
        side.poll_room(Kind::Several, waker, || side.admit_batch(len))
    }

    /// Pushes a batch after [`Port::poll_admit_batch`] was ready.
    pub(crate) fn push_admitted_batch(
        &mut self,
        admitted: Result<(), Closed>,
        items: Vec<T>,
    ) -> Result<usize, PushError<Vec<T>>> {
        match admitted {
            Ok(()) => self.push_all(items.into_iter()),
            Err(Closed) => Err(PushError::Closed(items)),
        }
    }
}

/// Pops without a transaction.
impl<T> Port<T> {
    #[inline]
    pub(crate) fn pop(&mut self) -> Result<T, PopError> {
        if self.is_hindered() {
            return self.pop_hindered();
        }
        self.seat.pop().ok_or(PopError::Empty)
    }

    /// Whether a pop cannot go the short way.
    #[inline]
    fn is_hindered(&mut self) -> bool {
        self.seat.is_unsettled() || self.side.shared().word().hinders_pop()
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
    pub(crate) fn poll_pop(&mut self, waker: &Waker) -> Poll<Result<T, PopError>> {
        let (side, seat) = (&self.side, &mut self.seat);
        side.poll_item(waker, || unless_empty(side.pop(seat)))
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

/// What a transaction does.
impl<T> Port<T> {
    /// Stages an item.
    #[inline]
    pub(crate) fn stage(&self, item: T) -> Result<(), PushError<T>> {
        if self.side.is_bounded() {
            return self.stage_bounded(item);
        }
        self.side.stage(&self.seat.access(), item)
    }

    #[inline(never)]
    fn stage_bounded(&self, item: T) -> Result<(), PushError<T>> {
        let access = self.seat.access();
        let admitted = self.side.admit_staged(&access);
        self.side.stage_if(&access, admitted, item)
    }

    /// Stages an item when there is room; without a timeout waits for ever.
    pub(crate) fn stage_waiting(
        &self,
        item: T,
        timeout: Option<Duration>,
    ) -> Result<(), PushError<T>> {
        let access = self.seat.access();
        self.seat.assert_not_lent();
        let side = &self.side;
        let timeout = if side.can_fit(&access) {
            timeout
        } else {
            Some(Duration::ZERO)
        };
        let attempt = || side.admit_staged(&access);
        let admitted = side.wait_for_room(Kind::One, timeout, attempt);
        side.stage_if(&access, admitted, item)
    }

    /// Holds one item more.
    #[inline]
    pub(crate) fn hold(&self) -> Result<(&mut T, u32), PopError> {
        let access = self.seat.access();
        if self.side.shared().word().hinders_pop() {
            self.seat.assert_not_lent();
            self.side.give_way();
            return self.side.hold(&access);
        }
        access.hold().ok_or_else(|| self.side.nothing_held())
    }

    /// Holds one item more when there is one; without a timeout waits for ever.
    pub(crate) fn hold_waiting(
        &self,
        timeout: Option<Duration>,
    ) -> Result<(&mut T, u32), PopError> {
        let access = self.seat.access();
        self.seat.assert_not_lent();
        let attempt = || self.side.hold_unless_waiting(&access);
        let result = self.side.wait_for_item(timeout, attempt);
        result.unwrap_or(Err(PopError::Empty))
    }

    /// Holds up to `max` items more, once there are `min`, or the time is over, or nothing can come.
    pub(crate) fn hold_batch_waiting(
        &self,
        min: usize,
        max: usize,
        timeout: Duration,
    ) -> HeldItems<'_, T> {
        let access = self.seat.access();
        self.seat.assert_not_lent();
        let mut batch = self.seat.batch();
        self.side.wait_for_item(Some(timeout), || {
            let left = max - batch.len();
            let more = self.side.hold_batch(&access, &mut batch, left);
            let enough = batch.len() >= min.min(max);
            (enough || more == 0 && self.side.is_at_its_end(&access)).then_some(())
        });
        batch.into_items()
    }
}

/// `None` if it is worth waiting.
pub(crate) fn unless_empty<R>(result: Result<R, PopError>) -> Option<Result<R, PopError>> {
    match result {
        Err(PopError::Empty) => None,
        other => Some(other),
    }
}

impl<T> Session for Port<T> {
    #[inline]
    fn begin(&mut self) {
        self.settle();
    }

    fn abort(&mut self) {
        self.end_forgotten();
        let held = self.seat.give_back();
        self.seat.end_staging();
        self.side.end_transaction(0, 0);
        self.side.shared().ended(held);
        self.seat.drop_staged();
    }
}

impl<T> Party for Port<T> {
    fn collect(&mut self, tails: &mut Tails) {
        self.seat.collect(tails);
    }

    fn announce(&mut self, record: Record) {
        Party::announce(&mut self.seat, record);
    }

    fn conclude(&mut self) {
        self.concluded = Outcome {
            published: self.seat.staged(),
            freed: self.seat.held(),
        };
        self.seat.conclude();
    }
}

impl<T> Drop for Port<T> {
    fn drop(&mut self) {
        self.settle();
    }
}
