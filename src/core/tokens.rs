//! The gate's tokens for the items that a transaction has taken.

use super::local::{Local, HAS_TOKENS};
use super::shared::Token;
use crate::order::Order;
use crate::policy::held::HeldTable;
use crate::rate::Start;
use crate::raw::HeldPosition;
use crate::sync::swallow_panic;
use std::mem;

/// The tokens of one transaction.
pub(super) struct HeldTokens {
    /// The starts of held items.
    starts: HeldTable<Start>,
    /// That of the peeked item, which is not in the transaction's hold.
    peeked: Option<Start>,
    /// How many items the gate counts as held, the peeked one included.
    counted: usize,
}

impl HeldTokens {
    pub(super) fn new() -> Self {
        Self {
            starts: HeldTable::new(),
            peeked: None,
            counted: 0,
        }
    }

    /// Keeps the start of the item before `position`; without one, of the peeked item.
    fn keep(&mut self, position: Option<HeldPosition>, start: Start) {
        match position {
            Some(position) => self.starts.add(position, start),
            None => self.peeked = Some(start),
        }
    }

    fn take_starts(&mut self) -> impl Iterator<Item = Start> {
        self.starts.take().chain(self.peeked.take())
    }
}

impl<T, O: Order<T>> Local<T, O> {
    /// Keeps the token of the item before `position`, or without one of the peeked item, until the transaction ends.
    pub(super) fn keep_token(
        &mut self,
        Token { start, counted }: Token,
        position: Option<HeldPosition>,
    ) {
        if start.is_some() || counted {
            if let Some(start) = start {
                self.tokens.keep(position, start);
            }
            self.tokens.counted += usize::from(counted);
            self.guarded |= HAS_TOKENS;
        }
    }

    /// Records that the peeked item is now held, as the last one.
    pub(super) fn hold_token(&mut self) {
        if let Some(start) = self.tokens.peeked.take() {
            self.tokens.keep(Some(self.endpoint.end_of_hold()), start);
        }
    }

    pub(super) fn has_tokens(&self) -> bool {
        self.guarded & HAS_TOKENS != 0
    }

    /// Returns the token of the item that was held before `position`, and was not committed.
    pub(super) fn return_token(&mut self, position: HeldPosition) {
        if self.has_tokens() {
            let Token { start, counted } = self.take_token(Some(position));
            self.shared.refund_starts(start.into_iter());
            self.shared.count_out(usize::from(counted));
        }
    }

    /// Removes the token of the item that was held before `position`, or without one of the peeked item.
    pub(super) fn take_token(&mut self, position: Option<HeldPosition>) -> Token {
        let tokens = &mut self.tokens;
        let counted = tokens.counted > 0;
        tokens.counted -= usize::from(counted);
        let start = match position {
            Some(position) => tokens.starts.remove(position),
            None => tokens.peeked.take(),
        };
        Token { start, counted }
    }

    /// Forgets that the gate has counted these items: it has counted them out already.
    pub(super) fn forget_counted(&mut self, items: usize) {
        self.tokens.counted = self.tokens.counted.saturating_sub(items);
    }

    /// Returns all tokens at the end of a transaction that did not commit.
    pub(super) fn return_tokens(&mut self) {
        if self.has_tokens() {
            let starts = self.tokens.take_starts();
            self.shared.refund_starts(starts);
            self.clear_tokens();
        }
    }

    /// Spends all tokens at the end of a transaction that has committed.
    pub(super) fn spend_tokens(&mut self) {
        if self.has_tokens() {
            self.clear_tokens();
            for start in self.tokens.take_starts() {
                swallow_panic(|| start.spend()); // user code
            }
        }
    }

    fn clear_tokens(&mut self) {
        self.guarded &= !HAS_TOKENS;
        let counted = mem::take(&mut self.tokens.counted);
        self.shared.count_out(counted);
    }
}
