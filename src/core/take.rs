//! The way of items out of the queue: the gate gives leave, the source gives items, the target has them, and it is
//! noted what follows from that.

use super::local::{address_of, Local};
use super::permits::Permits;
use super::shared::{Shared, Token};
use super::tokens::PEEKED;
use crate::order::{EntryOf, Next, Order, StoredOf};
use crate::raw::{Endpoint, Fresh, Purpose, Stored};
use crate::sync::defer_with;

/// Where taken items go.
pub(super) trait Target<T, O: Order<T>> {
    /// Whether they are the transaction's, and not committed at once.
    const HOLDS: bool;
    /// Takes up to `most` items of the shards.
    fn fill(&mut self, endpoint: &mut Endpoint<StoredOf<T, O>>, most: usize) -> usize;
    /// Takes the next item of the order: true if there is one.
    fn take_next(&mut self, shared: &Shared<T, O>, endpoint: &mut Endpoint<StoredOf<T, O>>)
        -> bool;
    /// Notes what follows from the last `count` items: of one, if there is a debt.
    fn record(&mut self, local: &mut Local<T, O>, count: usize, token: Token);
}

/// Takes one item, committed at once.
impl<T, O: Order<T>> Target<T, O> for Option<T> {
    const HOLDS: bool = false;

    #[inline]
    fn fill(&mut self, endpoint: &mut Endpoint<StoredOf<T, O>>, _: usize) -> usize {
        *self = endpoint.pop().map(Stored::into_item);
        usize::from(self.is_some())
    }

    fn take_next(
        &mut self,
        shared: &Shared<T, O>,
        endpoint: &mut Endpoint<StoredOf<T, O>>,
    ) -> bool {
        *self = shared.pop_next();
        if self.is_some() {
            endpoint.count_popped();
        }
        self.is_some()
    }

    fn record(&mut self, _: &mut Local<T, O>, _: usize, token: Token) {
        token.spend();
    }
}

/// Takes any number, committed at once.
impl<T, O: Order<T>> Target<T, O> for Vec<T> {
    const HOLDS: bool = false;

    fn fill(&mut self, endpoint: &mut Endpoint<StoredOf<T, O>>, most: usize) -> usize {
        endpoint.pop_batch(most, self)
    }

    fn take_next(
        &mut self,
        shared: &Shared<T, O>,
        endpoint: &mut Endpoint<StoredOf<T, O>>,
    ) -> bool {
        self.reserve(1);
        let mut item = None;
        let taken = Target::<T, O>::take_next(&mut item, shared, endpoint);
        self.extend(item);
        taken
    }

    fn record(&mut self, _: &mut Local<T, O>, _: usize, token: Token) {
        token.spend();
    }
}

/// Holds items.
pub(super) struct IntoHold<'f>(pub(super) &'f mut Fresh);

impl<T, O: Order<T>> Target<T, O> for IntoHold<'_> {
    const HOLDS: bool = true;

    fn fill(&mut self, endpoint: &mut Endpoint<StoredOf<T, O>>, most: usize) -> usize {
        if most == 1 {
            return usize::from(endpoint.hold());
        }
        endpoint.hold_batch(most)
    }

    fn take_next(
        &mut self,
        shared: &Shared<T, O>,
        endpoint: &mut Endpoint<StoredOf<T, O>>,
    ) -> bool {
        accept_next(shared, endpoint, Purpose::Hold)
    }

    fn record(&mut self, local: &mut Local<T, O>, count: usize, token: Token) {
        if token.is_some() {
            local.keep_tokens(*self.0, token);
        }
        local.preallocate_envelopes();
        if local.is_watched() {
            local.record_fresh(self.0, count);
        }
    }
}

/// Takes an item to look at it.
pub(super) struct IntoPeek;

impl<T, O: Order<T>> Target<T, O> for IntoPeek {
    const HOLDS: bool = true;

    fn fill(&mut self, endpoint: &mut Endpoint<StoredOf<T, O>>, _: usize) -> usize {
        usize::from(endpoint.peek())
    }

    fn take_next(
        &mut self,
        shared: &Shared<T, O>,
        endpoint: &mut Endpoint<StoredOf<T, O>>,
    ) -> bool {
        accept_next(shared, endpoint, Purpose::Peek)
    }

    fn record(&mut self, local: &mut Local<T, O>, _: usize, token: Token) {
        local.keep_token(token, PEEKED);
    }
}

/// Takes the next item of the order into the endpoint: true if there is one.
fn accept_next<T, O: Order<T>>(
    shared: &Shared<T, O>,
    endpoint: &mut Endpoint<StoredOf<T, O>>,
    purpose: Purpose,
) -> bool {
    loop {
        match expect_next(shared, endpoint, purpose) {
            Next::Item(entry) => {
                endpoint.accept(purpose, entry);
                return true;
            }
            Next::Nothing => return false,
            // The clock is asked between the attempts, since it is user code.
            Next::Due => shared.release_due(),
        }
    }
}

/// The next item of the order, counted as taken before it is.
fn expect_next<T, O: Order<T>>(
    shared: &Shared<T, O>,
    endpoint: &mut Endpoint<StoredOf<T, O>>,
    purpose: Purpose,
) -> Next<EntryOf<T, O>> {
    endpoint.expect(purpose);
    // Also if the comparison of keys panics.
    let endpoint = defer_with(endpoint, |endpoint| endpoint.uncount_taken(1));
    let next = shared.try_next();
    if let Next::Item(_) = next {
        endpoint.cancel();
    }
    next
}

impl<T, O: Order<T>> Local<T, O> {
    /// Takes up to `most` items.
    pub(super) fn take<G: Target<T, O>>(&mut self, target: &mut G, most: usize) -> usize {
        let slow_pops = self.word().slows_pops();
        if slow_pops {
            self.prepare_slow_pop();
        }
        if most == 0 || self.is_over(G::HOLDS) {
            return 0;
        }
        if slow_pops && !self.shared.gate.is_open() {
            return self.take_gated(target, most);
        }
        let count = Self::take_from(
            &self.shared,
            &mut self.endpoint,
            &mut self.permits,
            target,
            most,
        );
        if slow_pops && count > 0 {
            target.record(self, count, Token::default());
        }
        count
    }

    /// Does what a pop has to do first where there is more than the shards.
    #[cold]
    fn prepare_slow_pop(&mut self) {
        self.shared.release_due();
        if !Shared::<T, O>::SORTS {
            self.endpoint.go_to_head();
        }
    }

    /// Whether the queue is closed and nothing is ready. A transaction that only tries seems to have
    /// work meanwhile; so it does not try then, unless it has just seen an item.
    fn is_over(&self, holds: bool) -> bool {
        let word = self.word();
        if !holds || !word.is_closed() {
            return word.is_drained();
        }
        let sees_one = !Shared::<T, O>::SORTS && self.endpoint.sees_one();
        !sees_one && self.shared.is_empty()
    }

    /// Takes up to `most` items, each with the leave of the gate.
    fn take_gated<G: Target<T, O>>(&mut self, target: &mut G, most: usize) -> usize {
        let mut count = 0;
        while count < most {
            let Some(guard) = self.shared.acquire_token(G::HOLDS) else {
                break;
            };
            let (endpoint, permits) = (&mut self.endpoint, &mut self.permits);
            if Self::take_from(&self.shared, endpoint, permits, target, 1) == 0 {
                break;
            }
            let token = guard.into_token();
            target.record(self, 1, token);
            count += 1;
        }
        count
    }

    /// Takes up to `most` items of the shards or of the order. Permits are given back before anything else is asked
    /// for: a pace, a clock or the comparison of keys may panic.
    #[inline]
    fn take_from<G: Target<T, O>>(
        shared: &Shared<T, O>,
        endpoint: &mut Endpoint<StoredOf<T, O>>,
        permits: &mut Permits,
        target: &mut G,
        most: usize,
    ) -> usize {
        let mut count = 0;
        if Shared::<T, O>::SORTS {
            while count < most && target.take_next(shared, endpoint) {
                count += 1;
                if !G::HOLDS {
                    permits.give_back(shared.room(), 1);
                }
            }
        } else {
            count = target.fill(endpoint, most);
            if !G::HOLDS {
                permits.give_back(shared.room(), count);
            }
        }
        if G::HOLDS {
            permits.release(shared.room(), endpoint.staged(), endpoint.held());
            if count == 0 {
                // Somebody may have seen the attempt, and wait for its end.
                shared.notify_end(0);
            }
        } else if count > 0 {
            shared.popped();
        }
        count
    }
}

impl<T, O: Order<T>> Local<T, O> {
    /// Whether the transaction holds or has staged something.
    pub(crate) fn has_work(&self) -> bool {
        self.held() + self.staged() > 0
    }

    /// Puts the item back that was looked at, with what is owed for it. Others are still to be told: true if there
    /// was one.
    pub(crate) fn end_look(&mut self) -> bool {
        let is_back = self.endpoint.put_back();
        if is_back && self.has_tokens() {
            let token = self.take_token(PEEKED);
            self.shared.undo(token);
        }
        is_back
    }

    /// Keeps what is owed for the first of the fresh items.
    fn keep_tokens(&mut self, mut fresh: Fresh, token: Token) {
        if let Some((stored, _)) = self.endpoint.next_fresh(&mut fresh) {
            let address = address_of(&stored.item);
            self.keep_token(token, address);
        }
    }

    /// Notes the fresh items, the last `count` of those that are held.
    fn record_fresh(&mut self, fresh: &mut Fresh, count: usize) {
        if self.held() == count {
            self.record_begin();
        }
        if !Shared::<T, O>::LEASES && !self.shared.is_observed() {
            return;
        }
        while let Some((stored, delivery)) = self.endpoint.next_fresh(fresh) {
            self.record(stored, delivery);
        }
    }
}
