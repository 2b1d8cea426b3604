//! The limits on the start of deliveries, by the gate: tokens, which permit to take items.

use super::Policies;
use crate::order::Order;
use crate::rate::Start;
use crate::raw::HeldPosition;
use crate::sync::{step, swallow_panic};
use crate::time::NEVER;
use std::mem;
use std::time::{Duration, Instant};

/// What the gate has counted for an item. Dropping it may run user code: the destructor of a pace.
#[derive(Default)]
pub(crate) struct Token {
    start: Option<Start>,
    /// Whether the item is counted as held.
    counted: bool,
}

impl Token {
    /// The rest of the token of an item that the gate has counted out.
    pub(crate) fn counted_out(mut self) -> Self {
        self.counted = false;
        self
    }

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

impl<T, O: Order<T>> Policies<T, O> {
    /// Acquires a token to take one item, which will be held if `holds`; `None`: the gate is shut, or nothing is ready.
    /// The caller [uses](Self::use_token) it or [undoes](Self::undo) it.
    ///
    /// A token is undone only if another thread was faster after an item seemed to be ready. So the waiters woken for
    /// it do not wake each other for ever.
    pub(crate) fn acquire_token(
        &self,
        holds: bool,
        is_empty: impl FnOnce() -> bool,
    ) -> Option<Token> {
        if self.gate.is_open() {
            return Some(Token::default());
        }
        if let Some(until) = self.paused_until() {
            self.due_timer.plan(until);
            return None;
        }
        if !self.gate.has_room() || is_empty() {
            return None;
        }
        let start = self.gate.start(&self.time);
        let start = start.map_err(|next| self.due_timer.plan(next)).ok()?;
        let counts = holds && self.gate.is_limited();
        let counted = counts && self.gate.count_in();
        let token = Token { start, counted };
        if counts && !counted {
            self.undo(token);
            return None;
        }
        Some(token)
    }

    /// The item of a token was taken. If there is a pace, the next waiter has to learn the time of the next start. An item
    /// that is committed at once does not count against `max_held`, so a waiter may go on.
    pub(crate) fn use_token(&self, token: &Token) {
        let more = token.start.is_some() || !token.counted && self.gate.is_limited();
        self.ready().notify(usize::from(more));
    }

    /// Undoes a token whose item was not taken.
    pub(crate) fn undo(&self, token: Token) {
        if !token.is_some() {
            return;
        }
        self.gate.count_out(usize::from(token.counted));
        if let Some(start) = token.start {
            let now = self.now_if_known();
            swallow_panic(|| match now {
                Some(now) => self.gate.cancel(start, now),
                None => start.spend(),
            });
        }
        // Others may have been refused meanwhile.
        self.ready().notify(1);
    }

    /// Until when the queue is paused, if it is; [`NEVER`]: until it is resumed. Resumes it if the time has passed.
    pub(crate) fn paused_until(&self) -> Option<u64> {
        let until = self.gate.paused_until()?;
        let now = if until == NEVER { 0 } else { self.time.now() };
        if now < until {
            return Some(until);
        }
        self.resume(now);
        None
    }

    /// Pauses the queue for a time. One waiter takes up the plan to end it.
    pub(crate) fn pause_for(&self, duration: Duration) {
        let until = self.time.after(duration);
        self.gate.pause_until(until);
        self.due_timer.plan(until);
        self.due_timer.call_backup();
        step!("gate.pauses-unsaid", self.ready().notify(1));
    }

    /// Ends a pause whose time has passed at `now`, at [`NEVER`] any.
    pub(crate) fn resume(&self, now: u64) {
        self.gate.resume(now);
        self.ready().wake_all_waiting();
    }

    #[cfg(feature = "rate")]
    pub(crate) fn set_pace(&self, pace: crate::Pace) {
        // Registered before it is the pace, until after another one is, so that no change of its interval is missed.
        pace.join(&self.due_timer);
        let old = self.gate.set_pace(pace);
        old.leave(&self.due_timer);
        self.ready().wake_all_waiting();
    }

    /// Records that counted items are no longer held.
    pub(super) fn count_out(&self, items: usize) {
        self.gate.count_out(items);
        self.ready().notify(items);
    }

    /// Refunds the rate-limit slots of items that were not committed. The pace and the clock are user code, whose
    /// panics are caught, each for itself: no slot is lost by that of another one.
    fn refund_starts(&self, starts: impl Iterator<Item = Start>) {
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
        self.ready().notify(count);
    }

    /// The time; `None` if the clock panics. Then slots are spent instead of refunded, so that a limiter of items in
    /// flight can grant them again, and a rate limit is kept.
    fn now_if_known(&self) -> Option<Instant> {
        let mut now = None;
        swallow_panic(|| now = Some(self.time.clock_now()));
        now
    }
}

/// The tokens of the items that one transaction has taken.
#[derive(Default)]
pub(crate) struct HeldTokens {
    /// The starts of held items, in the order of their positions; the last one was not returned.
    starts: Vec<(HeldPosition, Option<Start>)>,
    /// How many held items the gate counts.
    counted: usize,
    /// That of the peeked item, which is not in the transaction's hold.
    pub(super) peeked: Token,
}

impl HeldTokens {
    /// That of a single item, which is in no hold.
    pub(crate) fn of(peeked: Token) -> Self {
        Self {
            peeked,
            ..Self::default()
        }
    }

    /// Keeps the token of the item that is held before `position`.
    pub(super) fn keep(&mut self, Token { start, counted }: Token, position: HeldPosition) {
        self.counted += usize::from(counted);
        self.starts.extend(start.map(|it| (position, Some(it))));
    }

    /// Records that the peeked item is held before `position`.
    pub(super) fn hold_peeked(&mut self, position: HeldPosition) {
        let peeked = mem::take(&mut self.peeked);
        self.keep(peeked, position);
    }

    /// Returns the token of the item that was held before `position`, and was not committed.
    pub(super) fn return_one<T, O: Order<T>>(
        &mut self,
        policies: &Policies<T, O>,
        position: HeldPosition,
    ) {
        let counted = self.counted.min(1);
        self.counted -= counted;
        let found = self.starts.binary_search_by_key(&position, |start| start.0);
        let start = found.ok().and_then(|at| self.starts[at].1.take());
        while let Some((_, None)) = self.starts.last() {
            self.starts.pop();
        }
        policies.refund_starts(start.into_iter());
        policies.count_out(counted);
    }

    /// Forgets that the gate has counted these items: it has counted them out already.
    pub(super) fn forget_counted(&mut self, items: usize) {
        self.counted = self.counted.saturating_sub(items);
    }

    /// Returns all tokens at the end of a transaction that did not commit, or spends them if it did.
    pub(crate) fn end<T, O: Order<T>>(&mut self, policies: &Policies<T, O>, committed: bool) {
        let Self {
            starts,
            counted,
            peeked,
        } = mem::take(self);
        let starts = starts.into_iter().filter_map(|start| start.1);
        let starts = starts.chain(peeked.start);
        let counted = counted + usize::from(peeked.counted);
        if committed {
            policies.count_out(counted);
            for start in starts {
                swallow_panic(|| start.spend()); // user code
            }
        } else {
            // This wakes waiters: the items are back already.
            policies.refund_starts(starts);
            policies.count_out(counted);
        }
    }
}
