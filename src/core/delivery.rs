//! Deliveries that own their item: how they begin and how they end.
//!
//! A delivery has its item, and shares an [`Origin`] with all others that one handle has begun: so it needs no handle, and its
//! end may come on any thread, and after the handle. It counts as a held item from before its item is claimed until the
//! item was put somewhere else.

mod begin;

use super::access::Access;
use super::failed::Settlement;
use super::local::Local;
use super::origin::Origin;
use super::pool::CheckedOut;
use super::shared::Shared;
use super::take::{IntoHold, Target};
use crate::order::{Order, StoredOf};
use crate::policy::failed::Failed;
use crate::policy::lease::{Lease, WatchOf};
use crate::policy::limit::{HeldTokens, Token};
use crate::policy::retry::Disposition;
use crate::policy::Policies;
use crate::raw::{Away, Ending, Fresh, HeldPosition, Purpose, Stored, Vacant};
use crate::sync::{lock, swallow_panic};
use crate::{DeliveryId, Expired, Reason};
use std::mem;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// An item that is out for delivery. Dropping it is a failed delivery.
pub(crate) struct Delivered<T, O: Order<T>>(Option<Open<T, O>>);

/// The lease of a delivery.
pub(crate) type LeaseOf<T, O> = Lease<StoredOf<T, O>>;

struct Open<T, O: Order<T>> {
    away: Away<StoredOf<T, O>>,
    origin: Arc<Origin<T, O>>,
    /// The number of deliveries that its handle has begun before.
    number: u64,
    /// `None` in a queue without the options that need it, so that a delivery is small.
    notes: Option<Box<Notes>>,
}

/// What the options keep of a delivery.
#[derive(Default)]
struct Notes {
    token: Token,
    since: u64,
    /// How long the item was in the queue, if the times of pushes are kept.
    waited: Option<Duration>,
}

const OPEN: &str = "the delivery is open until it is consumed";

impl<T, O: Order<T>> Delivered<T, O> {
    #[inline(always)] // the take
    fn new(away: Away<StoredOf<T, O>>, origin: &Arc<Origin<T, O>>) -> Self {
        Self(Some(Open {
            away,
            origin: Arc::clone(origin),
            number: origin.outstanding.counters().taken_before(),
            notes: None,
        }))
    }

    #[inline]
    fn open(&self) -> &Open<T, O> {
        self.0.as_ref().expect(OPEN)
    }

    #[inline]
    pub(crate) fn item(&self) -> &T {
        &self.open().away.item.item
    }

    #[inline]
    pub(crate) fn item_mut(&mut self) -> &mut T {
        &mut self.0.as_mut().expect(OPEN).away.item.item
    }

    pub(crate) fn attempts(&self) -> u32 {
        self.open().away.delivery().attempts
    }

    pub(crate) fn id(&self) -> DeliveryId {
        let open = self.open();
        DeliveryId::new(open.origin.outstanding.number(), open.number)
    }

    /// Its queue, and the time stamp by which the item is known there.
    #[cfg(feature = "broker")]
    pub(crate) fn known(&self) -> (&Shared<T, O>, u64) {
        let open = self.open();
        (&open.origin.shared, open.away.delivery().since)
    }

    pub(crate) fn waited(&self) -> Option<Duration> {
        self.open().notes.as_ref()?.waited
    }

    /// Makes the lease last for this time from now on.
    pub(crate) fn extend(&self, time: Duration) -> Result<(), Expired> {
        let open = self.open();
        let Some(watch) = open.leases() else {
            return Ok(());
        };
        let until = open.origin.shared.time.after(time);
        lock(&watch.reclaimable).extend(open.position(), until)
    }

    /// Ends the lease, if the item is leased. [`Expired`] if it was reclaimed: then the delivery has ended. The copy of the
    /// item is dropped by the caller, when the delivery has ended.
    pub(crate) fn end_lease(&mut self) -> Result<Option<LeaseOf<T, O>>, Expired> {
        let open = self.0.take().ok_or(Expired)?;
        let Ok(lease) = open.end_lease() else {
            open.forget();
            return Err(Expired);
        };
        self.0 = Some(open);
        Ok(lease)
    }

    #[inline]
    fn into_open(mut self) -> Open<T, O> {
        let open = self.0.take().expect(OPEN);
        mem::forget(self); // saves a call that finds it empty
        open
    }

    /// Commits, and returns the item.
    #[inline]
    pub(crate) fn ack(self) -> T {
        self.into_parts().0
    }

    /// Commits, and returns the item and its lease, unless it was reclaimed.
    #[inline]
    pub(crate) fn try_ack(self) -> Result<(T, Option<LeaseOf<T, O>>), Expired> {
        let open = self.into_open();
        let Ok(lease) = open.end_lease() else {
            open.forget();
            return Err(Expired);
        };
        Ok((open.into_parts().0, lease))
    }

    /// The item, and the commit of its delivery, which is still to come.
    #[inline]
    pub(crate) fn into_parts(self) -> (T, Acking<T, O>) {
        self.into_open().into_parts()
    }

    /// Ends the delivery without a commit.
    pub(crate) fn end(&mut self, settlement: &Settlement) {
        let lease = self.end_lease();
        if let Some(open) = self.0.take() {
            open.end(settlement);
        }
        drop(lease); // user code
    }
}

impl<T, O: Order<T>> Drop for Delivered<T, O> {
    #[inline]
    fn drop(&mut self) {
        if self.0.is_some() {
            let reason = if thread::panicking() {
                Reason::Panicked
            } else {
                Reason::Aborted
            };
            self.end(&Settlement::Failed(reason.into()));
        }
    }
}

/// A delivery whose item has left it. Its drop is the commit; until then it counts as open.
pub(crate) struct Acking<T, O: Order<T>> {
    origin: Arc<Origin<T, O>>,
    meta: O::Meta,
    notes: Option<Box<Notes>>,
}

impl<T, O: Order<T>> Acking<T, O> {
    /// Ends the delivery. Without a time stamp nothing is kept beside the item.
    #[inline(always)] // the ack
    fn end(&self, since: Option<u64>) {
        let shared = &self.origin.shared;
        if let Some(since) = since {
            shared.committing(since);
        }
        self.origin.outstanding.count_ended(Ending::Committed);
        shared.give_back(since.map_or(1, |since| shared.forget(since)));
        shared.notify_end(0);
        // After the waiters were notified, as in the commit of a transaction. Nothing here panics.
        shared.retire(self.meta);
    }

    #[cold]
    #[inline(never)]
    fn end_noted(&self, notes: Box<Notes>) {
        let shared = &self.origin.shared;
        self.end(Some(notes.since));
        end_token(shared, Some(notes), true);
    }
}

impl<T, O: Order<T>> Drop for Acking<T, O> {
    #[inline]
    fn drop(&mut self) {
        match self.notes.take() {
            None => self.end(None),
            Some(notes) => self.end_noted(notes),
        }
    }
}

fn end_token<T, O: Order<T>>(shared: &Shared<T, O>, notes: Option<Box<Notes>>, committed: bool) {
    if let Some(notes) = notes {
        HeldTokens::of(notes.token).end(shared, committed);
    }
}

impl<T, O: Order<T>> Open<T, O> {
    /// The leases of its handle's deliveries, if items are leased.
    #[inline]
    fn leases(&self) -> Option<&Arc<WatchOf<T, O>>> {
        let watch = self.origin.watch.as_ref();
        watch.filter(|_| Policies::<T, O>::RECLAIMS)
    }

    /// Leases the item from this instant until `end` or later, if the items of the queue are leased.
    #[inline(always)] // the take
    fn lease(&self, now: Instant, end: u64) {
        let Some(watch) = self.leases() else {
            return;
        };
        let shared = &self.origin.shared;
        let (stored, delivery) = (&self.away.item, self.away.delivery());
        if shared.lease(watch, stored, delivery, self.position(), (now, end)) {
            shared.planned();
        }
    }

    /// See [`Delivered::end_lease`].
    #[inline(always)] // the ack
    fn end_lease(&self) -> Result<Option<LeaseOf<T, O>>, Expired> {
        let Some(watch) = self.leases() else {
            return Ok(None);
        };
        lock(&watch.reclaimable).end(self.position())
    }

    /// The item was reclaimed, and whoever did it has counted that.
    #[cold]
    #[inline(never)]
    fn forget(self) {
        let token = self.notes.map_or_else(Token::default, |notes| notes.token);
        HeldTokens::of(token.counted_out()).end(&self.origin.shared, false);
    }

    #[inline]
    fn into_parts(self) -> (T, Acking<T, O>) {
        let Self { origin, notes, .. } = self;
        let Stored { item, meta } = self.away.item;
        (
            item,
            Acking {
                origin,
                meta,
                notes,
            },
        )
    }

    /// Where its lease is among them.
    #[allow(clippy::cast_possible_truncation)] // compared for equality among open deliveries
    fn position(&self) -> HeldPosition {
        HeldPosition::nth(self.number as usize)
    }

    /// Where the item goes, and the time, if it is delayed. A clock is user code: if it panics, the item is not delayed.
    fn disposition(&self, settlement: &Settlement) -> (Disposition, u64) {
        let shared = &self.origin.shared;
        let disposition = settlement.disposition(&shared.failures, self.away.delivery());
        let mut now = None;
        if let Disposition::Delay(_) = disposition {
            swallow_panic(|| now = Some(shared.time.now()));
            return now.map_or((Disposition::Head, 0), |now| (disposition, now));
        }
        (disposition, 0)
    }

    /// Puts the item where it belongs, and counts the end afterwards: so a thread that asks sees it there, or the delivery open.
    #[inline(never)]
    fn end(self, settlement: &Settlement) {
        let cause = settlement.cause();
        let (disposition, now) = self.disposition(settlement);
        let Self {
            mut away,
            origin,
            notes,
            ..
        } = self;
        let shared = &origin.shared;
        let disposition = shared.returning(disposition, away.delivery().since, &cause);
        let (mut permits, mut retried) = (0, 0);
        let published = match disposition {
            Disposition::Head => {
                match settlement {
                    Settlement::Released => away.uncount(),
                    _ => retried = 1,
                }
                origin.outstanding.put_back(away);
                1
            }
            elsewhere => {
                let failed = Failed::new(away.into_entry(), &cause);
                permits = shared.put_elsewhere(elsewhere, now, failed, Vacant::new);
                0
            }
        };
        origin.outstanding.count_ended(Ending::Aborted);
        if disposition.is_end() {
            shared.give_back(permits);
        }
        // Before waiters are woken, who may need it.
        end_token(shared, notes, false);
        shared.notify_end(published);
        // User code, both.
        shared.emit_retried(cause.reason, retried);
        if disposition.is_end() {
            shared.drop_excess_letters();
        }
    }
}

/// Moves into a transaction.
impl<T, O: Order<T>> Delivered<T, O> {
    /// A handle for a transaction of its own.
    pub(crate) fn make_handle(&self) -> CheckedOut<T, O> {
        let shared = Arc::clone(&self.open().origin.shared);
        CheckedOut::new(Box::new(Local::in_cell(shared, None)), None)
    }

    /// Moves the item into the transaction of this handle, which holds nothing else.
    pub(crate) fn move_to(mut self, local: &mut Local<T, O>, lease: Option<LeaseOf<T, O>>) {
        local.endpoint.expect(Purpose::Hold);
        local.endpoint.counters().count_taken(1);
        let Open {
            away,
            origin,
            notes,
            ..
        } = self.0.take().expect(OPEN);
        let mut fresh = Fresh::default();
        local.accept(Purpose::Hold, away.into_entry());
        // Afterwards: a thread that asks sees one of them open.
        origin.outstanding.count_ended(Ending::Moved);
        // The delivery was recorded when the item was taken.
        local.endpoint.skip_fresh(&mut fresh);
        let token = notes.map_or_else(Token::default, |notes| notes.token);
        IntoHold(&mut fresh).record(local, 1, token);
        let Access {
            shared, endpoint, ..
        } = &mut local.access;
        let deliveries = &local.deliveries;
        if lease.is_some_and(|lease| deliveries.moved(shared, endpoint, lease)) {
            shared.planned();
        }
    }
}
