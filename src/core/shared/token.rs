//! Tokens of the gate, which permit to take items.

use super::Shared;
use crate::order::Order;
use crate::rate::Start;
use crate::sync::swallow_panic;
use crate::Pace;
use std::mem;
use std::time::Instant;

/// A token to take one item. If it is dropped, no item was taken.
pub(crate) struct TokenGuard<'s, T, O: Order<T>> {
    shared: &'s Shared<T, O>,
    token: Token,
}

/// What the gate has counted for an item. Dropping it may run user code: the destructor of a pace.
#[derive(Default)]
pub(crate) struct Token {
    pub(crate) start: Option<Start>,
    /// Whether the item is counted as held.
    pub(crate) counted: bool,
}

impl Token {
    #[inline]
    pub(crate) fn is_some(&self) -> bool {
        self.start.is_some() || self.counted
    }

    /// Spends the token of an item that is committed at once.
    #[inline]
    pub(crate) fn spend(self) {
        if let Some(start) = self.start {
            swallow_panic(|| start.spend());
        }
    }
}

impl<T, O: Order<T>> Shared<T, O> {
    /// Acquires a token to take one item, which will be held if `holds`; `None`: the gate is shut, or nothing is ready.
    #[inline]
    pub(crate) fn acquire_token(&self, holds: bool) -> Option<TokenGuard<'_, T, O>> {
        if self.gate.is_open() {
            return Some(self.empty_token());
        }
        self.acquire_gated(holds)
    }

    fn empty_token(&self) -> TokenGuard<'_, T, O> {
        TokenGuard {
            shared: self,
            token: Token::default(),
        }
    }

    /// A token is undone only if another thread was faster after an item seemed to be ready. So the waiters woken for
    /// it do not wake each other for ever.
    fn acquire_gated(&self, holds: bool) -> Option<TokenGuard<'_, T, O>> {
        if self.gate.is_paused() || !self.gate.has_room() || self.is_empty() {
            return None;
        }
        let start = self.gate.start(&self.time);
        let start = start.map_err(|next| self.due_timer.plan(next)).ok()?;
        let mut token = self.empty_token();
        token.token.start = start;
        if holds && self.gate.is_limited() {
            token.token.counted = self.gate.count_in();
            if !token.token.counted {
                return None;
            }
        }
        Some(token)
    }

    /// Undoes a token whose item was not taken.
    pub(crate) fn undo(&self, Token { start, counted }: Token) {
        if start.is_none() && !counted {
            return;
        }
        self.gate.count_out(usize::from(counted));
        if let Some(start) = start {
            let now = self.now_if_known();
            swallow_panic(|| match now {
                Some(now) => self.gate.cancel(start, now),
                None => start.spend(),
            });
        }
        // Others may have been refused meanwhile.
        self.ready.notify(1);
    }

    pub(crate) fn pause(&self) {
        self.ready.slow_pops();
        self.gate.pause();
    }

    pub(crate) fn resume(&self) {
        self.gate.resume();
        self.ready.wake_all_waiting();
    }

    pub(crate) fn set_pace(&self, pace: Pace) {
        self.ready.slow_pops();
        pace.join(&self.ready);
        let old = self.gate.set_pace(pace);
        old.leave(&self.ready);
        self.ready.wake_all_waiting();
    }

    /// Records that counted items are no longer held.
    pub(crate) fn count_out(&self, items: usize) {
        self.gate.count_out(items);
        self.ready.notify(items);
    }

    /// Refunds the rate-limit slots of items that were not committed. The pace and the clock are user code, whose
    /// panics are caught, each for itself: no slot is lost by that of another one.
    pub(crate) fn refund_starts(&self, starts: impl Iterator<Item = Start>) {
        let mut starts = starts.peekable();
        if starts.peek().is_none() {
            return;
        }
        let (now, mut count) = (self.now_if_known(), 0);
        for start in starts {
            swallow_panic(|| match now {
                Some(now) => start.give_back(now),
                None => start.spend(),
            });
            count += 1;
        }
        self.ready.notify(count);
    }

    /// The time; `None` if the clock panics. Then slots are spent instead of refunded, so that a limiter of items in
    /// flight can grant them again, and a rate limit is kept.
    fn now_if_known(&self) -> Option<Instant> {
        let mut now = None;
        swallow_panic(|| now = Some(self.time.clock_now()));
        now
    }
}

impl<T, O: Order<T>> TokenGuard<'_, T, O> {
    /// Returns the token after the item was taken.
    ///
    /// If there is a pace, the next waiter has to learn the time of the next start. An item that is committed at once
    /// does not count against `max_held`, so a waiter may go on.
    pub(crate) fn into_token(mut self) -> Token {
        let (shared, token) = (self.shared, mem::take(&mut self.token));
        let more = token.start.is_some() || !token.counted && shared.gate.is_limited();
        shared.ready.notify(usize::from(more));
        token
    }
}

impl<T, O: Order<T>> Drop for TokenGuard<'_, T, O> {
    fn drop(&mut self) {
        self.shared.undo(mem::take(&mut self.token));
    }
}
