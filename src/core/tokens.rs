//! The gate's tokens for the items that a transaction has taken.

use super::local::{Local, HAS_TOKENS};
use super::shared::Token;
use crate::order::Order;
use crate::rate::Start;
use crate::sync::swallow_panic;
use std::mem;

/// The address of a peeked item, which is not in the transaction's hold.
pub(super) const PEEKED: usize = 0;

/// The token of an item that a transaction has taken.
pub(super) struct HeldToken {
    /// The address of the item.
    item: usize,
    start: Start,
}

impl<T, O: Order<T>> Local<T, O> {
    /// Keeps the token of the item at an address, or of the [peeked](PEEKED) one, until the transaction ends.
    pub(super) fn keep_token(&mut self, Token { start, counted }: Token, item: usize) {
        if start.is_some() || counted {
            self.tokens
                .extend(start.map(|start| HeldToken { item, start }));
            self.counted += usize::from(counted);
            self.guarded |= HAS_TOKENS;
        }
    }

    /// Records that the peeked item is now held, at this address.
    pub(super) fn move_token(&mut self, item: usize) {
        if let Some(token) = self.tokens.last_mut().filter(|token| token.item == PEEKED) {
            token.item = item;
        }
    }

    pub(super) fn has_tokens(&self) -> bool {
        self.guarded & HAS_TOKENS != 0
    }

    /// Returns the token of the item that was held at an address, and was not committed.
    pub(super) fn return_token(&mut self, item: usize) {
        if self.has_tokens() {
            let Token { start, counted } = self.take_token(item);
            self.shared.refund_starts(start.into_iter());
            self.shared.count_out(usize::from(counted));
        }
    }

    /// Removes the token of one item.
    pub(super) fn take_token(&mut self, item: usize) -> Token {
        let counted = self.counted > 0;
        self.counted -= usize::from(counted);
        let index = self.tokens.iter().rposition(|token| token.item == item);
        Token {
            start: index.map(|index| self.tokens.remove(index).start),
            counted,
        }
    }

    /// Returns all tokens at the end of a transaction that did not commit.
    pub(super) fn return_tokens(&mut self) {
        if self.has_tokens() {
            let tokens = mem::take(&mut self.tokens);
            let starts = tokens.into_iter().map(|token| token.start);
            self.shared.refund_starts(starts);
            self.clear_tokens();
        }
    }

    /// Spends all tokens at the end of a transaction that has committed.
    pub(super) fn spend_tokens(&mut self) {
        if self.has_tokens() {
            self.clear_tokens();
            for token in mem::take(&mut self.tokens) {
                swallow_panic(|| token.start.spend()); // user code
            }
        }
    }

    fn clear_tokens(&mut self) {
        self.guarded &= !HAS_TOKENS;
        let counted = mem::take(&mut self.counted);
        self.shared.count_out(counted);
    }
}
