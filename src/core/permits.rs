//! The permits of a handle and its transaction.

use super::shared::Room;
use crate::bound::{Capacity, PermitCache, Took};
use crate::sync::step;
use std::mem;

/// The permits of a handle; not counted in an unbounded queue.
pub(super) struct Permits {
    /// `None` if the queue is unbounded.
    cache: Option<PermitCache>,
    /// Permits of the open transaction beyond those of the items that it holds.
    extra: usize,
    /// Permits reserved for a push: those that a waiting batch has gathered so far, or that of a sink
    /// that is ready.
    gathered: usize,
}

impl Permits {
    pub(super) fn new(room: Option<&Room>) -> Self {
        Self {
            cache: room.map(|room| PermitCache::new(&room.capacity)),
            extra: 0,
            gathered: 0,
        }
    }

    #[inline]
    pub(super) fn is_bounded(&self) -> bool {
        self.cache.is_some()
    }

    /// Releases permits, and wakes their waiters.
    #[inline]
    pub(super) fn give_back(&self, room: Option<&Room>, count: usize) {
        if let (Some(cache), Some(room)) = (&self.cache, room) {
            let visible = cache.give(&room.capacity, count);
            step!("permits.frees-unsaid", room.freed(visible));
        }
    }

    /// Releases the gathered permits.
    pub(super) fn give_back_gathered(&mut self, room: &Room) {
        let gathered = mem::take(&mut self.gathered);
        self.give_back(Some(room), gathered);
    }

    fn take_by(
        &self,
        room: Option<&Room>,
        take: impl Fn(&PermitCache, &Capacity, usize) -> Took,
        want: usize,
    ) -> usize {
        let (Some(cache), Some(room)) = (&self.cache, room) else {
            return want;
        };
        let took = take(cache, &room.capacity, want);
        room.freed(took.visible);
        took.got
    }

    /// Takes one permit; returns whether there was one.
    #[inline]
    fn take_one(&self, room: Option<&Room>) -> bool {
        let (Some(cache), Some(room)) = (&self.cache, room) else {
            return true;
        };
        let visible = cache.take_one(&room.capacity);
        if let Some(visible @ 1..) = visible {
            room.freed(visible);
        }
        visible.is_some()
    }

    /// Takes a permit for a push without a transaction; a gathered one, if there is one.
    #[inline]
    pub(super) fn take_gathered_or_one(&mut self, room: Option<&Room>) -> bool {
        if let Some(left) = self.gathered.checked_sub(1) {
            self.gathered = left;
            return true;
        }
        self.take_one(room)
    }

    /// Reserves a permit for the next push.
    #[cfg(feature = "stream")]
    pub(super) fn gather_one(&mut self) {
        self.gathered += usize::from(self.is_bounded());
    }

    /// Makes sure that the transaction has a permit for one more staged item; returns whether it has.
    #[inline]
    pub(super) fn ensure_permit(
        &mut self,
        room: Option<&Room>,
        staged: usize,
        held: usize,
    ) -> bool {
        if self.is_bounded() && staged >= held + self.extra {
            if !self.take_one(room) {
                return false;
            }
            self.extra += 1;
        }
        true
    }

    /// How many more permits the transaction needs for `staged` items.
    pub(super) fn missing(&self, staged: usize, held: usize) -> usize {
        staged.saturating_sub(held + self.extra)
    }

    /// Takes permits for a batch: all or none, or as many as are free if it `gathers` them. Returns true if it has all;
    /// they then belong to the transaction.
    pub(super) fn take_for_batch(&mut self, room: &Room, len: usize, gathers: bool) -> bool {
        let gathered = mem::take(&mut self.gathered);
        let missing = len.saturating_sub(gathered);
        let take = if gathers {
            PermitCache::take
        } else {
            PermitCache::take_all
        };
        let got = gathered + self.take_by(Some(room), take, missing);
        if got >= len {
            self.gathered = got - len;
            self.extra += len;
            return true;
        }
        if gathers {
            self.gathered = got;
        } else {
            self.give_back(Some(room), got);
        }
        false
    }

    /// Settles the permits at the end of a transaction: releases its own and those of `freed` items, except for those
    /// of the `published` items.
    #[inline]
    pub(super) fn end(&mut self, room: Option<&Room>, freed: usize, published: usize) {
        if self.is_bounded() {
            self.end_bounded(room, freed, published);
        }
    }

    #[inline(never)]
    fn end_bounded(&mut self, room: Option<&Room>, freed: usize, published: usize) {
        let extra = mem::take(&mut self.extra);
        self.give_back(room, (freed + extra).saturating_sub(published));
    }

    /// Releases the permit of an item that is gone for good, unless the transaction needs it for a staged item.
    pub(super) fn release_one(&mut self, room: Option<&Room>, staged: usize, held: usize) {
        if staged > held + self.extra && self.is_bounded() {
            self.extra += 1;
        } else {
            self.give_back(room, 1);
        }
    }

    /// Releases the permits that the transaction no longer needs since it holds more items than before.
    #[inline]
    pub(super) fn release(&mut self, room: Option<&Room>, staged: usize, held: usize) {
        if self.is_bounded() && self.extra > 0 {
            let excess = self.extra.saturating_sub(staged.saturating_sub(held));
            self.extra -= excess;
            self.give_back(room, excess);
        }
    }

    /// Whether one more held item leaves nothing to [release](Self::release).
    #[inline]
    pub(super) fn has_no_extra(&self) -> bool {
        self.extra == 0
    }

    /// Releases all permits that the handle has cached.
    pub(super) fn release_all(&self, room: Option<&Room>) {
        if let (Some(cache), Some(room)) = (&self.cache, room) {
            room.freed(cache.leave(&room.capacity));
        }
    }
}
