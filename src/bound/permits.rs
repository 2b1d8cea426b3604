//! The permits of a handle and its transaction.

use super::{RecordOwner, Room};
use crate::sync::step;
use std::mem;
use std::sync::Arc;

/// The permits of a handle; not counted in an unbounded queue.
pub(crate) struct Permits {
    /// `None` if the queue is unbounded.
    bounded: Option<Bounded>,
    /// Permits of the open transaction beyond those of the items that it holds. Wraps to less than none when some of these are kept.
    extra: usize,
    /// Permits reserved for a push: those that a waiting batch has gathered so far, or that of a sink
    /// that is ready.
    gathered: usize,
}

/// A handle's part in the room of a bounded queue.
struct Bounded {
    owner: RecordOwner,
    room: Arc<Room>,
}

impl Bounded {
    /// Takes up to `want` permits, fewer only if none was free at some point during the call.
    fn take(&mut self, want: usize) -> usize {
        // Where others wait, what is taken ahead would only be revoked.
        let ahead = self.room.wait_queue.word().waiting() == 0;
        let got = self.owner.take(&self.room.capacity, want, ahead);
        self.wake_unsaid();
        got
    }

    /// Takes `want` permits or none.
    fn take_all(&mut self, want: usize) -> bool {
        let takes = self.owner.take_all(&self.room.capacity, want);
        self.wake_unsaid();
        takes
    }

    /// Wakes waiters for permits that they may have missed. Returns true.
    #[inline(never)]
    fn wake_unsaid(&mut self) -> bool {
        self.room.freed(self.owner.unsaid());
        true
    }
}

impl Permits {
    pub(crate) fn new(room: Option<&Arc<Room>>) -> Self {
        let bounded = room.map(|room| Bounded {
            owner: RecordOwner::new(&room.capacity),
            room: Arc::clone(room),
        });
        Self {
            bounded,
            extra: 0,
            gathered: 0,
        }
    }

    #[inline]
    pub(crate) fn is_bounded(&self) -> bool {
        self.bounded.is_some()
    }

    /// Releases permits, and wakes their waiters.
    #[inline]
    pub(crate) fn give_back(&mut self, count: usize) {
        if !self.put_back(count) {
            self.notify_freed(count);
        }
    }

    /// Releases permits; returns whether that is all, since nobody waits for them. Otherwise
    /// [`notify_freed`](Self::notify_freed) must follow.
    #[inline]
    pub(crate) fn put_back(&mut self, count: usize) -> bool {
        let Some(Bounded { owner, room }) = &mut self.bounded else {
            return true;
        };
        owner.put_back(count);
        !owner.is_due() && room.wait_queue.needs_no_notify()
    }

    /// Wakes the waiters for permits that were put back.
    #[cold]
    #[inline(never)]
    pub(crate) fn notify_freed(&mut self, count: usize) {
        if let Some(Bounded { owner, room }) = &mut self.bounded {
            let count = owner.tidy(&room.capacity, count);
            step!("permits.frees-unsaid", room.freed(count));
        }
    }

    /// Releases the gathered permits.
    pub(crate) fn give_back_gathered(&mut self) {
        let gathered = mem::take(&mut self.gathered);
        self.give_back(gathered);
    }

    /// Takes one permit; returns whether there was one.
    #[inline]
    fn take_one(&mut self) -> bool {
        let bounded = self.bounded.as_mut();
        bounded.map_or(true, |bounded| bounded.take(1) == 1)
    }

    /// Takes a permit for a push without a transaction, without a search.
    #[inline]
    pub(crate) fn take_ahead(&mut self) -> bool {
        let bounded = self.bounded.as_mut();
        bounded.is_some_and(|bounded| bounded.owner.take_ahead(1) || !bounded.wake_unsaid())
    }

    /// Takes a permit for a push without a transaction; a gathered one, if there is one.
    pub(crate) fn take_gathered_or_one(&mut self) -> bool {
        if let Some(left) = self.gathered.checked_sub(1) {
            self.gathered = left;
            return true;
        }
        self.take_one()
    }

    /// Reserves a permit for the next push.
    #[cfg(feature = "stream")]
    pub(crate) fn gather_one(&mut self) {
        self.gathered += usize::from(self.is_bounded());
    }

    /// Makes sure that the transaction has a permit for one more staged item, without a search; returns whether it
    /// has.
    #[inline]
    pub(crate) fn ensure_ahead(&mut self, staged: usize, held: usize) -> bool {
        self.ensure_by(staged, held, Self::take_ahead)
    }

    /// As [`ensure_ahead`](Self::ensure_ahead), which has to follow if it has none: this wakes nobody.
    #[inline]
    pub(crate) fn ensure_unsaid(&mut self, staged: usize, held: usize) -> bool {
        self.ensure_by(staged, held, |permits| {
            let bounded = permits.bounded.as_mut();
            bounded.is_some_and(|bounded| bounded.owner.take_ahead(1))
        })
    }

    /// Makes sure that the transaction has a permit for one more staged item; returns whether it has.
    pub(crate) fn ensure_permit(&mut self, staged: usize, held: usize) -> bool {
        self.ensure_by(staged, held, Self::take_one)
    }

    #[inline]
    fn ensure_by(
        &mut self,
        staged: usize,
        held: usize,
        take: impl FnOnce(&mut Self) -> bool,
    ) -> bool {
        if self.is_bounded() && staged >= held + self.extra {
            if !take(self) {
                return false;
            }
            self.extra += 1;
        }
        true
    }

    /// How many more permits the transaction needs for `staged` items.
    pub(crate) fn missing(&self, staged: usize, held: usize) -> usize {
        staged.saturating_sub(held + self.extra)
    }

    /// Takes permits for a batch: all or none, or as many as are free if it `gathers` them. Returns true if it has all;
    /// they then belong to the transaction.
    pub(crate) fn take_for_batch(&mut self, len: usize, gathers: bool) -> bool {
        let Some(bounded) = &mut self.bounded else {
            return true;
        };
        let missing = len.saturating_sub(self.gathered);
        if gathers {
            self.gathered += bounded.take(missing);
        } else if bounded.take_all(missing) {
            self.gathered += missing;
        }
        if let Some(rest) = self.gathered.checked_sub(len) {
            self.gathered = rest;
            self.extra += len;
            return true;
        }
        if !gathers {
            self.give_back_gathered();
        }
        false
    }

    /// Settles the permits at the end of a transaction: releases its own and those of `freed` items, except for those
    /// of the `published` items.
    #[inline]
    pub(crate) fn end(&mut self, freed: usize, published: usize) {
        if self.is_bounded() {
            let own = freed.wrapping_add(mem::take(&mut self.extra));
            let spare = own.saturating_sub(published);
            if spare > 0 {
                self.give_back(spare);
            }
        }
    }

    /// Keeps so many of the transaction's permits, and of its items' which it frees, from being released when it commits. It has to
    /// commit at once, and publishes nothing.
    pub(crate) fn keep(&mut self, count: usize) {
        if self.is_bounded() {
            self.extra = self.extra.wrapping_sub(count);
        }
    }

    /// Releases the permits of an item that is gone for good, except for those that the transaction needs for staged items.
    pub(crate) fn release_gone(&mut self, permits: usize, staged: usize, held: usize) {
        if self.is_bounded() {
            let kept = self.missing(staged, held).min(permits);
            self.extra += kept;
            self.give_back(permits - kept);
        }
    }

    /// Whether the transaction has permits of its own, which the items that it takes make superfluous.
    #[inline]
    pub(crate) fn has_extra(&self) -> bool {
        self.extra > 0
    }

    /// Releases the permits that the transaction no longer needs since it holds more items than before.
    #[inline]
    pub(crate) fn release(&mut self, staged: usize, held: usize) {
        let excess = self.extra.saturating_sub(staged.saturating_sub(held));
        self.extra -= excess;
        self.give_back(excess);
    }

    /// Releases the record of the handle.
    pub(crate) fn leave(&mut self) {
        if let Some(Bounded { owner, room }) = self.bounded.take() {
            owner.leave(&room.capacity);
        }
    }
}
