//! The policies of one handle's transaction: what they keep of its deliveries, and their part in each step of these.

use super::failed::Failed;
use super::lease::{Lease, LeaseTable, WatchOf};
use super::limit::{HeldTokens, Token};
use super::Policies;
use crate::order::{EntryOf, Order, Registry, RegistryOf, StoredOf};
use crate::raw::{
    DeliveryMeta, Endpoint, Fresh, HeldPosition, ItemRef, Unborrowed, Vacant, VacantList,
};
use crate::sync::{lock, MutexGuard};
use crate::Expired;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

/// Preallocated memory for an item whose delivery fails.
pub(crate) type Envelope<T, O> = Vacant<Failed<StoredOf<T, O>>>;

/// Flag: items are leased, events are observed, or something is kept of each item until it is gone for good.
const ALWAYS: u8 = 1;
/// Flag: the transaction has tokens of a rate limit, or items that count against `max_held`.
const HAS_TOKENS: u8 = 1 << 1;
/// Flag: there are more envelopes than are kept for the next transaction.
const HAS_MANY_ENVELOPES: u8 = 1 << 2;
/// Flag: the transaction has retried or failed an item itself.
const HAS_GIVEN_UP: u8 = 1 << 3;

/// Flag: the transaction has staged scheduled items.
const SCHEDULES: u8 = 1 << 4;

/// What the options leave of a transaction that has ended, for the caller to drop, if anything: its destructors are user code.
pub(crate) type Remains<T, O> = Option<LeaseTable<StoredOf<T, O>>>;

/// What the policies keep of the deliveries of one handle's transaction.
pub(crate) struct Deliveries<T, O: Order<T>> {
    /// What the end of a transaction involves besides shards and permits, as flags: 0 if nothing.
    flags: u8,
    /// Preallocated, for held items whose delivery may fail.
    envelopes: VacantList<Failed<StoredOf<T, O>>>,
    tokens: HeldTokens,
    /// `None` if the handle is not watched.
    watch: Option<Arc<WatchOf<T, O>>>,
}

impl<T, O: Order<T>> Deliveries<T, O> {
    /// Those of a new handle with this name, if any, and with these counters.
    pub(crate) fn new(policies: &Policies<T, O>, name: Option<Arc<str>>, counters: usize) -> Self {
        let listens = Policies::<T, O>::RECLAIMS || policies.is_observed();
        let registers =
            <RegistryOf<T, O> as Registry<T, O::Meta>>::RECORDS || policies.records().is_some();
        let is_watched = name.is_some() || policies.timed || listens;
        Self {
            flags: if listens || registers { ALWAYS } else { 0 },
            envelopes: VacantList::new(),
            tokens: HeldTokens::default(),
            watch: is_watched.then(|| policies.watches.add(counters, name)),
        }
    }

    /// Whether the transaction is visible to others.
    #[inline]
    pub(crate) fn are_watched(&self) -> bool {
        self.watch.is_some()
    }

    /// Whether a commit involves more than the shards and the permits.
    #[inline]
    pub(crate) fn are_guarded(&self) -> bool {
        self.flags != 0
    }

    fn have_tokens(&self) -> bool {
        self.flags & HAS_TOKENS != 0
    }

    /// Whether the transaction has retried or failed an item itself.
    #[cfg(feature = "workers")]
    #[inline]
    pub(crate) fn has_given_up(&self) -> bool {
        self.flags & HAS_GIVEN_UP != 0
    }

    /// Records that the transaction retries or fails an item itself.
    pub(crate) fn give_up(&mut self) {
        self.flags |= HAS_GIVEN_UP;
    }

    /// Whether the transaction has staged scheduled items.
    #[inline]
    pub(crate) fn are_scheduling(&self) -> bool {
        self.flags & SCHEDULES != 0
    }

    /// Records that the transaction has staged scheduled items; returns whether these are the first.
    pub(crate) fn begin_scheduling(&mut self) -> bool {
        let is_first = !self.are_scheduling();
        self.flags |= SCHEDULES;
        is_first
    }

    /// The time stamp of when the transaction took its first item; 0 if it is not watched.
    #[cfg(feature = "workers")]
    pub(crate) fn since(&self) -> u64 {
        self.watch.as_ref().map_or(0, |watch| watch.since())
    }

    /// Records that the transaction holds something from now on.
    pub(crate) fn begin(&self, policies: &Policies<T, O>) {
        if let Some(watch) = &self.watch {
            watch.begin(policies.time.stamp());
        }
    }

    /// Takes a preallocated envelope, or a new one.
    pub(crate) fn envelope(&mut self) -> Envelope<T, O> {
        self.envelopes.pop().unwrap_or_else(Vacant::new)
    }

    /// Allocates an envelope for each held item, so that an abort allocates nothing.
    fn preallocate_envelopes(&mut self, policies: &Policies<T, O>, held: usize) {
        if policies.failures.has_rules() {
            self.envelopes.fill(held);
            if self.envelopes.is_long() {
                self.flags |= HAS_MANY_ENVELOPES;
            }
        }
    }

    /// Frees the envelopes of a large transaction, of which a few are kept for the next one.
    pub(crate) fn free_envelopes(&mut self) {
        self.envelopes.shorten();
        self.flags &= !HAS_MANY_ENVELOPES;
    }
}

/// The steps of a delivery.
impl<T, O: Order<T>> Deliveries<T, O> {
    /// The fresh items, the last `count` of the held ones, were taken; `count` is 1 if there is a token. Returns whether
    /// something is due earlier than before.
    pub(crate) fn taken(
        &mut self,
        policies: &Policies<T, O>,
        source: &O::Source,
        endpoint: &Endpoint<StoredOf<T, O>>,
        fresh: &mut Fresh,
        count: usize,
        token: Token,
    ) -> bool {
        if token.is_some() {
            let mut first = *fresh;
            endpoint.next_fresh(&mut first);
            self.tokens.keep(token, first.position());
            self.flags |= HAS_TOKENS;
        }
        self.preallocate_envelopes(policies, endpoint.held());
        let mut earlier = false;
        if self.are_watched() {
            if endpoint.held() == count {
                self.begin(policies);
            }
            if Policies::<T, O>::RECLAIMS || policies.is_observed() {
                while let Some((stored, delivery)) = endpoint.next_fresh(fresh) {
                    earlier |= self.record(policies, source, stored, delivery, fresh.position());
                }
            }
        }
        earlier
    }

    /// Records an item that the transaction has taken, and holds before `position`. Returns whether something is due
    /// earlier than before.
    fn record(
        &self,
        policies: &Policies<T, O>,
        source: &O::Source,
        stored: &StoredOf<T, O>,
        delivery: DeliveryMeta,
        position: HeldPosition,
    ) -> bool {
        let Some(watch) = &self.watch else {
            return false;
        };
        if policies.is_observed() {
            policies.emit_delivered(source, stored, delivery);
        }
        if !Policies::<T, O>::RECLAIMS {
            return false;
        }
        let now = policies.time.clock_now();
        let term = (now, policies.term_after(now));
        policies.lease(watch, stored, delivery, position, term)
    }

    /// An item was taken for a peek.
    pub(crate) fn peeked(&mut self, token: Token) {
        if token.is_some() {
            self.tokens.peeked = token;
            self.flags |= HAS_TOKENS;
        }
    }

    /// The peeked item was put back.
    pub(crate) fn put_back_peeked(&mut self, policies: &Policies<T, O>) {
        policies.undo(mem::take(&mut self.tokens.peeked));
    }

    /// The peeked item was taken. Returns whether something is due earlier than before.
    pub(crate) fn taken_peeked(
        &mut self,
        policies: &Policies<T, O>,
        source: &O::Source,
        endpoint: &Endpoint<StoredOf<T, O>>,
        item: &ItemRef<'_, StoredOf<T, O>>,
    ) -> bool {
        let position = endpoint.end_of_hold();
        self.tokens.hold_peeked(position);
        self.preallocate_envelopes(policies, endpoint.held());
        if endpoint.held() == 1 {
            self.begin(policies);
        }
        let delivery = endpoint.delivery_before(position);
        self.record(policies, source, item, delivery, position)
    }

    /// The item that was held before `position` has left the transaction.
    pub(crate) fn left(&mut self, policies: &Policies<T, O>, position: HeldPosition) {
        if self.have_tokens() {
            self.tokens.return_one(policies, position);
        }
    }

    /// The transaction aborts. Items that were reclaimed leave the hold. Returns what is left, like [`Remains`].
    pub(crate) fn aborting(
        &mut self,
        endpoint: &mut Endpoint<StoredOf<T, O>>,
        unborrowed: &Unborrowed<'_>,
    ) -> Option<impl Sized> {
        self.flags &= !(HAS_GIVEN_UP | SCHEDULES);
        let leases = mem::take(&mut *self.leases()?);
        let lost = leases.lost();
        let lost: Vec<_> = lost
            .map(|position| endpoint.remove_before(position, unborrowed))
            .collect();
        // The gate has counted them out when they were reclaimed.
        self.tokens.forget_counted(lost.len());
        Some((leases, lost))
    }

    /// The transaction has committed.
    pub(crate) fn committed(&mut self, policies: &Policies<T, O>) -> Remains<T, O> {
        self.end_tokens(policies, true);
        self.free_envelopes();
        self.flags &= !(HAS_GIVEN_UP | SCHEDULES);
        self.leases().map(|mut leases| mem::take(&mut *leases))
    }

    /// The items of the transaction are committed, or were given back.
    pub(crate) fn end_tokens(&mut self, policies: &Policies<T, O>, committed: bool) {
        if self.have_tokens() {
            self.flags &= !HAS_TOKENS;
            self.tokens.end(policies, committed);
        }
    }

    /// A transaction that held something has ended.
    #[inline] // the abort
    pub(crate) fn ended(&self, policies: &Policies<T, O>) {
        if let Some(watch) = &self.watch {
            policies.emit_released(watch);
        }
    }

    /// The handle is dropped.
    pub(crate) fn leave(&self, policies: &Policies<T, O>) {
        if let Some(watch) = &self.watch {
            policies.watches.remove(watch.counters);
        }
    }
}

/// The leases of the transaction.
impl<T, O: Order<T>> Deliveries<T, O> {
    fn leases(&self) -> Option<MutexGuard<'_, LeaseTable<StoredOf<T, O>>>> {
        let watch = self.watch.as_deref();
        let watch = watch.filter(|_| Policies::<T, O>::RECLAIMS);
        watch.map(|watch| lock(&watch.reclaimable))
    }

    /// Extends all leases by a full term from now on.
    pub(crate) fn renew(&self, policies: &Policies<T, O>) -> Result<(), Expired> {
        let term = Duration::from_nanos(policies.lease);
        let until = Policies::<T, O>::RECLAIMS.then(|| policies.time.after(term));
        let leases = self.leases().zip(until);
        leases.map_or(Ok(()), |(mut leases, until)| leases.renew(until))
    }

    /// Prevents items of the transaction from being reclaimed from now on; an error if any was.
    pub(crate) fn close_leases(&self) -> Result<(), Expired> {
        self.leases().map_or(Ok(()), |mut leases| leases.close())
    }

    /// The newest held item was leased to a delivery. Returns whether something is due earlier than before.
    pub(crate) fn moved(
        &self,
        policies: &Policies<T, O>,
        endpoint: &Endpoint<StoredOf<T, O>>,
        lease: Lease<StoredOf<T, O>>,
    ) -> bool {
        let watch = self.watch.as_ref();
        watch.is_some_and(|watch| policies.move_lease(watch, lease, endpoint.end_of_hold()))
    }

    /// The item before `position` leaves the transaction; returns the copy of its lease. [`Expired`] if it was
    /// reclaimed before: then it stays.
    pub(crate) fn leaving(&self, position: HeldPosition) -> Result<Option<EntryOf<T, O>>, Expired> {
        self.leases()
            .map_or(Ok(None), |mut leases| leases.remove(position))
    }
}
