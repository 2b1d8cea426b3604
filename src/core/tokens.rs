//! What a transaction owes the gate for what it has taken.

use super::local::{Local, HAS_TOKENS};
use super::shared::Token;
use crate::order::Order;
use crate::rate::Start;
use crate::sync::swallow_panic;
use std::mem;

/// Where an item seems to be that is looked at: it is in the transaction's hold only when it is held.
pub(super) const PEEKED: usize = 0;

/// The token of an item that a transaction has taken.
pub(super) struct HeldToken {
    /// Where the item is.
    item: usize,
    start: Start,
}

impl<T, O: Order<T>> Local<T, O> {
    /// Keeps what is owed for the item at an address, or for the one that is [looked at](PEEKED), until the
    /// transaction ends.
    pub(super) fn keep_token(&mut self, Token { start, counted }: Token, item: usize) {
        if start.is_some() || counted {
            self.tokens
                .extend(start.map(|start| HeldToken { item, start }));
            self.counted += usize::from(counted);
            self.guarded |= HAS_TOKENS;
        }
    }

    /// The item that was looked at is held, at this address.
    pub(super) fn move_token(&mut self, item: usize) {
        if let Some(owed) = self.tokens.last_mut().filter(|owed| owed.item == PEEKED) {
            owed.item = item;
        }
    }

    pub(super) fn has_tokens(&self) -> bool {
        self.guarded & HAS_TOKENS != 0
    }

    /// Pays for the item that was held at an address, and was not committed.
    pub(super) fn return_token(&mut self, item: usize) {
        if self.has_tokens() {
            let Token { start, counted } = self.take_token(item);
            self.shared.refund_starts(start.into_iter());
            self.shared.count_out(usize::from(counted));
        }
    }

    /// What is owed for one item, which is not any more.
    pub(super) fn take_token(&mut self, item: usize) -> Token {
        let counted = self.counted > 0;
        self.counted -= usize::from(counted);
        let place = self.tokens.iter().rposition(|owed| owed.item == item);
        Token {
            start: place.map(|place| self.tokens.remove(place).start),
            counted,
        }
    }

    /// Pays for all items at the end of a transaction that did not commit.
    pub(super) fn return_tokens(&mut self) {
        if self.has_tokens() {
            let owed = mem::take(&mut self.tokens);
            let starts = owed.into_iter().map(|owed| owed.start);
            self.shared.refund_starts(starts);
            self.clear_tokens();
        }
    }

    /// Pays for all items at the end of a transaction that has committed.
    pub(super) fn spend_tokens(&mut self) {
        if self.has_tokens() {
            self.clear_tokens();
            let owed = mem::take(&mut self.tokens);
            swallow_panic(|| drop(owed)); // user code, if the pace is gone otherwise
        }
    }

    fn clear_tokens(&mut self) {
        self.guarded &= !HAS_TOKENS;
        let counted = mem::take(&mut self.counted);
        self.shared.count_out(counted);
    }
}
