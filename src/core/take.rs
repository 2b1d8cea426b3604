//! Dequeuing: the gate admits, the source supplies items, the target receives them, and the options record the
//! consequences.

use super::access::Access;
use super::local::Local;
use super::mode::{DRAINED, SLOW_POPS};
use super::shared::Shared;
use crate::order::{Order, Source, StoredOf};
use crate::policy::limit::Token;
use crate::policy::records::Tracked;
use crate::policy::retry::Disposition;
use crate::raw::{Away, Counters, Ending, Entry, Fresh, Purpose, Stored};
use crate::sync::{defer_with, planted, step};
use crate::Reason;
use std::mem;

/// The destination of dequeued items.
pub(super) trait Target<T, O: Order<T>> {
    /// Whether the transaction holds the items; otherwise they are committed at once.
    const HOLDS: bool;
    /// Takes up to `most` items from the shards.
    fn fill(&mut self, access: &mut Access<T, O>, most: usize) -> usize;
    /// Takes the next item of the order; returns whether there was one. Its permits are
    /// released, unless it is held.
    fn take_next(&mut self, access: &mut Access<T, O>) -> bool;
    /// Records the last `count` items; `count` is 1 if there is a token, which an item spends that is not held.
    fn record(&mut self, _: &mut Local<T, O>, _count: usize, token: Token) {
        token.spend();
    }
}

/// Takes one item, which is committed at once.
impl<T, O: Order<T>> Target<T, O> for Option<T> {
    const HOLDS: bool = false;

    #[inline]
    fn fill(&mut self, access: &mut Access<T, O>, _: usize) -> usize {
        *self = access.endpoint.pop().map(Stored::into_item);
        usize::from(self.is_some())
    }

    #[inline]
    fn take_next(&mut self, access: &mut Access<T, O>) -> bool {
        if access.shared.tracks() {
            *self = access.pop_alive();
            return self.is_some();
        }
        *self = access.shared.pop_next(&access.endpoint);
        if self.is_some() {
            access.endpoint.counters().count_popped(1);
            access.permits.give_back(1);
        }
        self.is_some()
    }
}

/// Takes any number of items, which are committed at once.
impl<T, O: Order<T>> Target<T, O> for Vec<T> {
    const HOLDS: bool = false;

    fn fill(&mut self, access: &mut Access<T, O>, most: usize) -> usize {
        access.endpoint.pop_batch(most, self)
    }

    fn take_next(&mut self, access: &mut Access<T, O>) -> bool {
        self.reserve(1);
        let mut item = None;
        let taken = Target::<T, O>::take_next(&mut item, access);
        self.extend(item);
        taken
    }
}

/// Holds items in the transaction.
pub(super) struct IntoHold<'f>(pub(super) &'f mut Fresh);

impl<T, O: Order<T>> Target<T, O> for IntoHold<'_> {
    const HOLDS: bool = true;

    fn fill(&mut self, access: &mut Access<T, O>, most: usize) -> usize {
        if most == 1 {
            return usize::from(access.endpoint.hold());
        }
        access.endpoint.hold_batch(most)
    }

    fn take_next(&mut self, access: &mut Access<T, O>) -> bool {
        accept_next(access, Purpose::Hold)
    }

    fn record(&mut self, local: &mut Local<T, O>, count: usize, token: Token) {
        let Local {
            access, deliveries, ..
        } = local;
        let Access {
            shared, endpoint, ..
        } = access;
        if deliveries.taken(shared, &shared.source, endpoint, self.0, count, token) {
            shared.planned();
        }
        endpoint.skip_fresh(self.0);
    }
}

/// Takes an item for a peek.
pub(super) struct IntoPeek;

impl<T, O: Order<T>> Target<T, O> for IntoPeek {
    const HOLDS: bool = true;

    fn fill(&mut self, access: &mut Access<T, O>, _: usize) -> usize {
        usize::from(access.endpoint.peek())
    }

    fn take_next(&mut self, access: &mut Access<T, O>) -> bool {
        accept_next(access, Purpose::Peek)
    }

    fn record(&mut self, local: &mut Local<T, O>, _: usize, token: Token) {
        local.deliveries.peeked(token);
    }
}

/// Takes the next item into the endpoint; returns whether there was one.
fn accept_next<T, O: Order<T>>(access: &mut Access<T, O>, purpose: Purpose) -> bool {
    access.endpoint.expect(purpose);
    let next = access.take_next(access.endpoint.counters());
    next.map(|away| access.accept(purpose, away.into_entry()))
        .is_some()
}

impl<T, O: Order<T>> Access<T, O> {
    /// Takes the next item of the order, counted by these counters.
    fn next_of_order(&self, counters: &Counters) -> Option<Away<StoredOf<T, O>>> {
        // Counted as taken beforehand; not any more if there is none, or if a comparison of keys panics.
        counters.count_taken(1);
        let uncount = defer_with(counters, |counters| counters.uncount_taken(1));
        let (source, mut number) = (&self.shared.source, 0);
        let entry = source.take(&self.endpoint, false, &mut number)?;
        uncount.cancel();
        Some(Away::ranked(entry, number))
    }

    /// Takes the next item of an order, or of any queue whose items have a time to live; counted by these counters.
    #[inline]
    pub(super) fn take_next(&mut self, counters: &Counters) -> Option<Away<StoredOf<T, O>>> {
        if self.shared.tracks() {
            return self.take_alive(counters);
        }
        self.next_of_order(counters)
    }

    /// Takes the next item whose time to live is not over, and that is not discarded.
    #[cold]
    #[inline(never)]
    fn take_alive(&mut self, counters: &Counters) -> Option<Away<StoredOf<T, O>>> {
        // A clock is user code: before anything is taken.
        let over = self.shared.over();
        loop {
            let mut next = if Shared::<T, O>::SORTS {
                self.next_of_order(counters)?
            } else {
                counters.count_taken(1);
                self.endpoint.search_away(counters)?
            };
            let (delivery, mut ending) = (next.delivery(), Ending::TimedOut);
            if Shared::<T, O>::is_alive(delivery, over) || planted!("ttl.takes-all") {
                let hold = |item: &mut Tracked| {
                    item.is_held = !item.is_discarded;
                    item.is_discarded
                };
                if self.shared.tracked(delivery.since, hold) != Some(true) {
                    self.shared.taken(delivery.since, &mut next.item.item);
                    return Some(next);
                }
                ending = Ending::Committed;
            }
            let meta = next.item.meta;
            let gone = self
                .shared
                .drop_instead([next.into_entry()], counters, ending);
            self.shared.retire(meta);
            drop(gone);
        }
    }

    /// As [`take_alive`](Self::take_alive), for good.
    #[cold]
    #[inline(never)]
    fn pop_alive(&mut self) -> Option<T> {
        let counters = self.endpoint.counters();
        let Entry { item, delivery } = self.take_alive(counters)?.into_entry();
        self.shared.committing(delivery.since);
        let permits = self.shared.forget(delivery.since);
        self.permits.give_back(permits);
        self.shared.retire(item.meta);
        self.endpoint
            .counters()
            .count_elsewhere(Ending::Committed, 1);
        Some(item.item)
    }
}

impl<T, O: Order<T>> Local<T, O> {
    /// Takes up to `most` items, and returns how many.
    pub(super) fn take<G: Target<T, O>>(&mut self, target: &mut G, most: usize) -> usize {
        let slow_pops = Shared::<T, O>::SORTS || self.word().has(SLOW_POPS);
        if slow_pops {
            self.shared.release_due();
            if !Shared::<T, O>::SORTS {
                self.endpoint.go_to_head();
            }
        }
        if most == 0 || self.is_over(G::HOLDS) {
            return 0;
        }
        if slow_pops && !self.shared.gate.is_open() {
            return self.take_gated(target, most);
        }
        let count = self.access.take_from(target, most);
        if G::HOLDS && count > 0 && (slow_pops || self.deliveries.are_watched()) {
            target.record(self, count, Token::default());
        }
        count
    }

    /// Whether the queue is closed and nothing is ready. A transaction that attempts a pop counts as open meanwhile,
    /// so on a closed queue it attempts one only if it has just seen an item.
    fn is_over(&self, holds: bool) -> bool {
        let word = self.word();
        if !holds || !word.is_closed() {
            return word.has(DRAINED);
        }
        let sees_one = !Shared::<T, O>::SORTS && self.endpoint.sees_one();
        !sees_one && self.shared.is_empty()
    }

    /// Takes up to `most` items, each with a token of the gate.
    #[inline(never)]
    fn take_gated<G: Target<T, O>>(&mut self, target: &mut G, most: usize) -> usize {
        let mut count = 0;
        while count < most {
            let shared = &self.shared;
            let Some(token) = shared.acquire_token(G::HOLDS, || shared.is_empty()) else {
                break;
            };
            // Undoes the token if nothing is taken, also if user code panics.
            let mut taking = defer_with((&mut self.access, token), |(access, token)| {
                access.shared.undo(mem::take(token));
            });
            if taking.0.take_from(target, 1) == 0 {
                break;
            }
            let token = mem::take(&mut taking.1);
            drop(taking);
            self.shared.use_token(&token);
            target.record(self, 1, token);
            count += 1;
        }
        count
    }
}

impl<T, O: Order<T>> Access<T, O> {
    /// Takes up to `most` items from the shards or from the order. Permits are released before any further user code
    /// runs: a pace, a clock or a comparison of keys may panic.
    #[inline(always)] // the pop of an order
    fn take_from<G: Target<T, O>>(&mut self, target: &mut G, most: usize) -> usize {
        let mut count = 0;
        if Shared::<T, O>::SORTS || self.shared.tracks() {
            while count < most && target.take_next(self) {
                count += 1;
            }
        } else {
            count = target.fill(self, most);
            if !G::HOLDS {
                self.permits.give_back(count);
            }
        }
        if G::HOLDS {
            self.release();
            if count == 0 {
                // Another thread may have observed the attempt, and wait for its end.
                self.shared.notify_end(0);
            }
        } else if count > 0 {
            self.shared.popped();
        } else if self.shared.tracks() {
            self.shared.notify_end(0); // as above
        }
        count
    }

    /// Follows an attempt in vain: those that wait for the queue to be idle or drained may have observed it.
    #[inline]
    pub(super) fn attempted(&self) {
        step!("take.attempts-unsaid", self.shared.popped());
    }
}

impl<T, O: Order<T>> Local<T, O> {
    /// Puts the peeked item and its token back; returns whether there was one. The caller then notifies waiters.
    pub(crate) fn end_peek(&mut self) -> bool {
        if self.shared.tracks() {
            if let Some(peeked) = self.endpoint.peeked() {
                // If it is discarded, the next take drops it.
                let (head, cause) = (Disposition::Head, Reason::Retried.into());
                self.shared.returning(head, peeked.since, &cause);
            }
        }
        let is_back = self.endpoint.put_back();
        if is_back {
            self.deliveries.put_back_peeked(&self.access.shared);
        }
        is_back
    }
}
