//! A handle's side towards those who wait: its permits, and its places in the lines.
//!
//! All fields may be used by shared reference from any thread, because a future that waits for a
//! transaction may run on another thread than the transaction. Whoever uses them has them alone.

use crate::capacity::Purse;
use crate::raw::{Access, Batch, Seat};
use crate::shared::{Room, Shared};
use crate::sync::{thread, Count};
use crate::wait::{block, spin, Deadline, Kind, Line, Place};
use crate::{PopError, PushError};
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

/// How often a pop that waits for nobody lets a waiter go first that was woken in vain before.
const COURTESY: usize = 32;

/// A push was refused because the queue is closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Closed;

/// What one handle has at a queue, its seat aside.
pub(crate) struct Side<T> {
    shared: Arc<Shared<T>>,
    /// Only of bounded queues.
    purse: Option<Purse>,
    /// Permits of the open transaction beyond those of the items that it holds.
    extra: Count,
    /// Permits that are kept for a push: those that a batch has so far while it waits for the others,
    /// or that of a sink that is ready.
    gathered: Count,
    /// Where it waits for an item, and where for room: at one of them at a time.
    item_place: Place,
    room_place: Place,
}

impl<T> Side<T> {
    pub(crate) fn new(shared: Arc<Shared<T>>) -> Self {
        let purse = shared.room().map(|room| Purse::new(&room.capacity));
        Self {
            shared,
            purse,
            extra: Count::default(),
            gathered: Count::default(),
            item_place: Place::default(),
            room_place: Place::default(),
        }
    }

    #[inline]
    pub(crate) fn shared(&self) -> &Shared<T> {
        &self.shared
    }

    /// Leaves the lines, and gives back what was gathered for a batch that will not be pushed.
    pub(crate) fn leave_lines(&self) {
        self.item_place.leave(self.shared.ready());
        if let Some(room) = self.shared.room() {
            self.give_back(self.gathered.take());
            self.room_place.leave(&room.line);
        }
    }
}

/// Permits.
impl<T> Side<T> {
    #[inline]
    fn room(&self) -> Option<(&Purse, &Room)> {
        Some((self.purse.as_ref()?, self.shared.room()?))
    }

    #[inline]
    pub(crate) fn is_bounded(&self) -> bool {
        self.purse.is_some()
    }

    /// Gives permits back, and wakes those who wait for them.
    #[inline]
    pub(crate) fn give_back(&self, count: usize) {
        if let Some((purse, room)) = self.room() {
            purse.give(count);
            room.line.published(count);
        }
    }

    /// Takes up to `want` permits; all of them if there is no limit.
    fn take(&self, want: usize) -> usize {
        let Some((purse, room)) = self.room() else {
            return want;
        };
        let took = purse.take(&room.capacity, want);
        room.line.published(took.spread);
        took.got
    }

    /// Takes one permit, if there is one.
    #[inline]
    fn take_one(&self) -> bool {
        let Some((purse, room)) = self.room() else {
            return true;
        };
        let spread = purse.take_one(&room.capacity);
        if let Some(spread @ 1..) = spread {
            room.line.published(spread);
        }
        spread.is_some()
    }

    /// Ends the account of a transaction: gives back what it has beyond the permits of items that are
    /// ready now, out of those of `freed` items and its own.
    #[inline]
    pub(crate) fn end_transaction(&self, freed: usize, published: usize) {
        if self.is_bounded() {
            self.end_account(freed, published);
        }
    }

    #[inline(never)]
    fn end_account(&self, freed: usize, published: usize) {
        self.give_back((freed + self.extra.take()).saturating_sub(published));
    }

    /// Gives back what the transaction need not have any more, since it holds more than before.
    fn release(&self, access: &Access<'_, T>) {
        if self.is_bounded() && self.extra.get() > 0 {
            let needed = access.staged().saturating_sub(access.held());
            let excess = self.extra.get().saturating_sub(needed);
            self.extra.set(self.extra.get() - excess);
            self.give_back(excess);
        }
    }
}

/// Admission of pushes. `None`: there is no room.
impl<T> Side<T> {
    /// Takes a permit for a push without a transaction, the reserved one if there is one.
    #[inline]
    pub(crate) fn admit(&self) -> Option<Result<(), Closed>> {
        if self.shared.word().is_closed() {
            return Some(Err(Closed));
        }
        if let Some(left) = self.gathered.get().checked_sub(1) {
            self.gathered.set(left);
            return Some(Ok(()));
        }
        self.take_one().then_some(Ok(()))
    }

    /// Keeps an admission for the next push.
    #[cfg(feature = "stream")]
    pub(crate) fn reserve(&self) {
        if self.is_bounded() {
            self.gathered.set(self.gathered.get() + 1);
        }
    }

    /// Sees to it that the transaction may stage one item more.
    pub(crate) fn admit_staged(&self, access: &Access<'_, T>) -> Option<Result<(), Closed>> {
        if self.shared.word().is_closed() {
            return Some(Err(Closed));
        }
        if self.is_bounded() && access.staged() >= access.held() + self.extra.get() {
            if !self.take_one() {
                return None;
            }
            self.extra.set(self.extra.get() + 1);
        }
        Some(Ok(()))
    }

    /// Takes permits for a batch: all, or none unless it waits and is the first in the line, where it
    /// gathers them.
    pub(crate) fn admit_batch(&self, len: usize) -> Option<Result<(), Closed>> {
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
        admitted: Option<Result<(), Closed>>,
        item: T,
    ) -> Result<(), PushError<T>> {
        match admitted {
            Some(Ok(())) => self.stage(access, item),
            Some(Err(Closed)) => Err(PushError::Closed(item)),
            None => Err(PushError::Full(item)),
        }
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

/// Pops.
impl<T> Side<T> {
    /// Pops an item, committed at once.
    #[inline]
    pub(crate) fn pop(&self, seat: &mut Seat<T>) -> Result<T, PopError> {
        if self.shared.word().is_drained() {
            return Err(PopError::Closed);
        }
        let Some(item) = seat.pop() else {
            return Err(self.shared.why_empty());
        };
        self.give_back(1);
        Ok(item)
    }

    /// Pops up to `max` items, committed at once.
    pub(crate) fn pop_batch(&self, seat: &mut Seat<T>, max: usize, items: &mut Vec<T>) -> usize {
        if self.shared.word().is_drained() {
            return 0;
        }
        let count = seat.pop_batch(max, items);
        self.give_back(count);
        count
    }

    /// Holds one item more.
    pub(crate) fn hold<'t>(&self, access: &Access<'t, T>) -> Result<(&'t mut T, u32), PopError> {
        if self.is_over() {
            return Err(self.shared.why_empty());
        }
        let held = access.hold().ok_or_else(|| self.nothing_held())?;
        self.release(access);
        Ok(held)
    }

    /// Holds up to `max` items more in a batch.
    pub(crate) fn hold_batch(
        &self,
        access: &Access<'_, T>,
        batch: &mut Batch<'_, T>,
        max: usize,
    ) -> usize {
        if self.is_over() || max == 0 {
            return 0;
        }
        let count = batch.hold(max);
        if count == 0 {
            self.nothing_held();
        }
        self.release(access);
        count
    }

    /// Holds one item more. `None` if it is worth waiting: not if the queue is closed and this
    /// transaction has work, or it would wait for one that waits for it.
    pub(crate) fn hold_unless_waiting<'t>(
        &self,
        access: &Access<'t, T>,
    ) -> Option<Result<(&'t mut T, u32), PopError>> {
        let closed = self.shared.word().is_closed();
        match self.hold(access) {
            Err(PopError::Empty) if closed && has_work(access) => Some(Err(PopError::Empty)),
            Err(PopError::Empty) => None,
            other => Some(other),
        }
    }

    /// Whether nothing can come that a transaction may wait for, after it found nothing.
    pub(crate) fn is_at_its_end(&self, access: &Access<'_, T>) -> bool {
        let closed = self.shared.word().is_closed();
        closed && (has_work(access) || self.shared.why_empty().is_closed())
    }

    /// Whether the queue is closed and nothing is ready. A transaction that only tries seems to have
    /// work meanwhile; so it does not try then.
    fn is_over(&self) -> bool {
        let word = self.shared.word();
        word.is_drained() || word.is_closed() && self.shared.lanes().is_empty()
    }

    /// Why nothing was held, and if somebody may have seen the attempt, and wait for its end, a wake-up.
    #[cold]
    pub(crate) fn nothing_held(&self) -> PopError {
        self.shared.ended(0);
        self.shared.why_empty()
    }
}

/// Waiting.
impl<T> Side<T> {
    /// Lets a waiter go first that is being served, for a moment.
    #[inline]
    pub(crate) fn give_way(&self) {
        if self.shared.word().is_serving() {
            self.wait_a_moment();
        }
    }

    #[cold]
    fn wait_a_moment(&self) {
        for _ in 0..COURTESY {
            if !self.shared.word().is_serving() {
                return;
            }
            thread::yield_now();
        }
    }

    /// Polls for an item by way of `attempt`.
    pub(crate) fn poll_item<R>(
        &self,
        waker: &Waker,
        attempt: impl FnMut() -> Option<R>,
    ) -> Poll<R> {
        let shared = &self.shared;
        let spare =
            |served: usize| shared.word().is_closed() || shared.lanes().ready() > served as u64;
        self.item_place
            .poll(shared.ready(), Kind::One, waker, spare, attempt)
    }

    /// Polls for room by way of `attempt`.
    pub(crate) fn poll_room<R>(
        &self,
        kind: Kind,
        waker: &Waker,
        mut attempt: impl FnMut() -> Option<R>,
    ) -> Poll<R> {
        let Some(room) = self.shared.room() else {
            return attempt().map_or(Poll::Pending, Poll::Ready);
        };
        let spare = |served| self.shared.word().is_closed() || room.capacity.free() > served;
        self.room_place
            .poll(&room.line, kind, waker, spare, attempt)
    }

    /// Waits for an item. `None`: the time is over.
    pub(crate) fn wait_for_item<R>(
        &self,
        timeout: Option<Duration>,
        attempt: impl FnMut() -> Option<R>,
    ) -> Option<R> {
        let line = self.shared.ready();
        let result = wait(line, timeout, attempt, |waker, attempt| {
            self.poll_item(waker, attempt)
        });
        self.item_place.leave(line);
        result
    }

    /// Waits for room. `None`: the time is over.
    pub(crate) fn wait_for_room<R>(
        &self,
        kind: Kind,
        timeout: Option<Duration>,
        mut attempt: impl FnMut() -> Option<R>,
    ) -> Option<R> {
        let Some(room) = self.shared.room() else {
            return attempt();
        };
        let result = wait(&room.line, timeout, attempt, |waker, attempt| {
            self.poll_room(kind, waker, attempt)
        });
        self.room_place.leave(&room.line);
        result
    }
}

fn has_work<T>(access: &Access<'_, T>) -> bool {
    access.held() + access.staged() > 0
}

/// Waits in a line; without a timeout for ever. What arrives wins over the deadline.
fn wait<R, A: FnMut() -> Option<R>>(
    line: &Line,
    timeout: Option<Duration>,
    mut attempt: A,
    poll: impl Fn(&Waker, &mut A) -> Poll<R>,
) -> Option<R> {
    if timeout.is_some_and(|timeout| timeout.is_zero()) {
        return attempt();
    }
    let deadline = timeout.map_or(Deadline::NEVER, Deadline::after);
    spin(|| !line.word().is_serving(), &mut attempt)
        .or_else(|| block(deadline, |waker| poll(waker, &mut attempt)))
        .or_else(attempt)
}

impl<T> Drop for Side<T> {
    fn drop(&mut self) {
        self.leave_lines();
        if let Some((purse, room)) = self.room() {
            let spread = purse.leave(&room.capacity);
            room.line.published(spread);
        }
    }
}
