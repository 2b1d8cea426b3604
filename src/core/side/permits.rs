//! The permits of a handle and its transaction.

use super::Side;
use crate::bound::{Capacity, Purse, Took};
use crate::core::shared::Room;
use crate::order::{Order, StoredOf};
use crate::raw::Access;
use crate::sync::step;

impl<T, O: Order<T>> Side<T, O> {
    #[inline]
    pub(super) fn room(&self) -> Option<(&Purse, &Room)> {
        Some((self.purse.as_ref()?, self.shared.room()?))
    }

    /// Whether the queue neither has a bound nor keeps times.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.plain
    }

    #[inline]
    pub(crate) fn is_bounded(&self) -> bool {
        self.purse.is_some()
    }

    /// Gives permits back, and wakes those who wait for them.
    #[inline]
    pub(crate) fn give_back(&self, count: usize) {
        if let Some((purse, room)) = self.room() {
            let spread = purse.give(&room.capacity, count);
            step!("permits.frees-unsaid", room.freed(spread));
        }
    }

    /// Takes up to `want` permits; all of them if there is no limit.
    pub(super) fn take(&self, want: usize) -> usize {
        self.take_by(Purse::take, want)
    }

    /// Takes `want` permits, or none.
    pub(super) fn take_all(&self, want: usize) -> usize {
        self.take_by(Purse::take_all, want)
    }

    fn take_by(&self, take: impl Fn(&Purse, &Capacity, usize) -> Took, want: usize) -> usize {
        let Some((purse, room)) = self.room() else {
            return want;
        };
        let took = take(purse, &room.capacity, want);
        room.freed(took.spread);
        took.got
    }

    /// Takes one permit, if there is one.
    #[inline]
    pub(super) fn take_one(&self) -> bool {
        let Some((purse, room)) = self.room() else {
            return true;
        };
        let spread = purse.take_one(&room.capacity);
        if let Some(spread @ 1..) = spread {
            room.freed(spread);
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

    /// Gives the permit of an item back that has left for good, unless the transaction needs it for what it
    /// has staged.
    pub(super) fn release_permit(&self, access: &Access<'_, StoredOf<T, O>>) {
        if access.staged() > access.held() + self.extra.get() && self.is_bounded() {
            self.extra.set(self.extra.get() + 1);
        } else {
            self.give_back(1);
        }
    }

    /// Gives back what the transaction need not have any more, since it holds more than before.
    pub(super) fn release(&self, access: &Access<'_, StoredOf<T, O>>) {
        if self.is_bounded() && self.extra.get() > 0 {
            let needed = access.staged().saturating_sub(access.held());
            let excess = self.extra.get().saturating_sub(needed);
            self.extra.set(self.extra.get() - excess);
            self.give_back(excess);
        }
    }
}
