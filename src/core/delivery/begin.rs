//! How deliveries begin.

use super::Delivered;
use crate::core::access::Access;
use crate::core::local::{CellOf, Local};
use crate::core::origin::Origin;
use crate::core::shared::Shared;
use crate::core::staged::Quiet;
use crate::core::take::Target;
use crate::order::Order;
use crate::policy::limit::Token;
use crate::policy::Policies;
use crate::time::{Wait, NEVER};
use crate::PopError;
use std::sync::Arc;
use std::time::Instant;

/// Takes an item out for delivery.
struct IntoDelivery<'d, T, O: Order<T>> {
    origin: &'d Arc<Origin<T, O>>,
    delivered: &'d mut Option<Delivered<T, O>>,
}

impl<T, O: Order<T>> Target<T, O> for IntoDelivery<'_, T, O> {
    const HOLDS: bool = true;

    fn fill(&mut self, access: &mut Access<T, O>, _: usize) -> usize {
        let away = access.endpoint.take_away(&self.origin.outstanding, true);
        *self.delivered = away.map(|away| Delivered::new(away, self.origin));
        usize::from(self.delivered.is_some())
    }

    fn take_next(&mut self, access: &mut Access<T, O>) -> bool {
        let away = access.take_next(self.origin.outstanding.counters());
        *self.delivered = away.map(|away| Delivered::new(away, self.origin));
        self.delivered.is_some()
    }

    fn record(&mut self, local: &mut Local<T, O>, _count: usize, token: Token) {
        let Some(open) = self.delivered.as_mut().and_then(|it| it.0.as_mut()) else {
            return;
        };
        let (shared, delivery) = (local.shared(), open.away.delivery());
        if token.is_some() || delivery.since > 0 {
            let notes = open.notes.insert(Box::default());
            notes.token = token;
            notes.since = delivery.since;
            // A clock that panics drops the delivery, which gives the item back.
            let pushed = shared.pushed_at(delivery.since);
            notes.waited = (pushed > 0).then(|| shared.time.age(pushed));
        }
        if shared.is_observed() {
            shared.emit_delivered(&shared.source, &open.away.item, delivery);
        }
        if Policies::<T, O>::RECLAIMS {
            let now = shared.time.clock_now();
            open.lease(now, shared.term_after(now));
        }
    }
}

/// Takes.
impl<T, O: Order<T>> Local<T, O> {
    /// The access of this handle, and what its deliveries have in common.
    #[inline]
    fn with_origin(&mut self) -> (&mut Access<T, O>, &Arc<Origin<T, O>>) {
        let Self { access, origin, .. } = self;
        let origin = origin.get_or_insert_with(|| Origin::new(&access.shared));
        (access, origin)
    }

    /// Takes the next item out for delivery if nothing else has to be done.
    #[inline(always)] // the take
    fn take_at_once(&mut self) -> Option<Delivered<T, O>> {
        // Where items are leased, pops are slow.
        if Shared::<T, O>::SORTS || Policies::<T, O>::RECLAIMS || self.word().slows_pop() {
            return None;
        }
        let (access, origin) = self.with_origin();
        let away = access.endpoint.take_away(&origin.outstanding, true)?;
        Some(Delivered::new(away, origin))
    }

    /// As [`Local::take_at_once`], where items become ready with time, and nothing does now. Not for items with time stamps,
    /// which are [registered](Shared::registers).
    #[inline]
    fn take_if_nothing_is_due(&mut self) -> Option<Delivered<T, O>> {
        let shared = &self.access.shared;
        let only_checks = !Shared::<T, O>::SORTS && self.word().slows_only_checks();
        if !only_checks || !shared.gate.is_open() || shared.is_observed() {
            return None;
        }
        let (due, mut lease) = (shared.due_timer.next(), None);
        if Policies::<T, O>::RECLAIMS || due != NEVER {
            // A clock is user code: before anything is taken.
            let now = shared.time.clock_now();
            lease = Some((now, self.access.end_if_quiet(due, now)?));
        }
        let (access, origin) = self.with_origin();
        access.endpoint.go_to_head();
        let away = access.endpoint.take_away(&origin.outstanding, false)?;
        let delivered = Delivered::new(away, origin);
        if let Some((now, end)) = lease {
            delivered.open().lease(now, end);
        }
        Some(delivered)
    }

    /// Takes an item out for delivery; `None` if waiting may help.
    pub(crate) fn take_unless_empty(&mut self) -> Option<Result<Delivered<T, O>, PopError>> {
        let (origin, mut delivered) = (Arc::clone(self.with_origin().1), None);
        let taken = self.attempt(
            &mut IntoDelivery {
                origin: &origin,
                delivered: &mut delivered,
            },
            false,
        )?;
        Some(taken.and(delivered.ok_or(PopError::Closed)))
    }
}

impl<T, O: Order<T>> Access<T, O> {
    /// When a lease from `now` on ends at the earliest; `None` if something is due, of which `due` is the first.
    #[inline]
    fn end_if_quiet(&mut self, due: u64, now: Instant) -> Option<u64> {
        let known = self.at_need.as_ref().and_then(|it| it.quiet.as_ref());
        match known {
            Some(quiet) if quiet.due == due && quiet.from <= now && now < quiet.until => Some(due),
            _ => self.find_quiet(due, now),
        }
    }

    #[cold]
    #[inline(never)]
    fn find_quiet(&mut self, due: u64, now: Instant) -> Option<u64> {
        let (shared, time) = (&self.shared, &self.shared.time);
        if due <= time.nanos(now) {
            return None;
        }
        let from = Policies::<T, O>::RECLAIMS.then(|| due.saturating_sub(shared.lease));
        let from = time.instant(from.unwrap_or_default());
        let quiet = from.zip(time.instant(due));
        let quiet = quiet.map(|(from, until)| Quiet { due, from, until });
        let end = shared.term_after(now);
        if quiet.is_some() {
            self.at_need.get_or_insert_with(Box::default).quiet = quiet;
        }
        Some(end)
    }
}

impl<T, O: Order<T>> CellOf<T, O> {
    /// Takes an item out for delivery.
    #[inline(always)] // the take
    pub(crate) fn take_for_delivery(&mut self, wait: Wait) -> Result<Delivered<T, O>, PopError> {
        if self.is_unsettled() {
            return self.take_slowly(wait);
        }
        match self.get_mut().take_at_once() {
            Some(delivered) => Ok(delivered),
            None => self.take_checked(wait),
        }
    }

    #[inline(never)]
    fn take_checked(&mut self, wait: Wait) -> Result<Delivered<T, O>, PopError> {
        match self.get_mut().take_if_nothing_is_due() {
            Some(delivered) => Ok(delivered),
            None => self.take_slowly(wait),
        }
    }

    #[cold]
    #[inline(never)]
    fn take_slowly(&mut self, wait: Wait) -> Result<Delivered<T, O>, PopError> {
        let local = self.settled();
        local.attempted();
        local.yield_to_served();
        let taken = local.wait_for_item(wait, Local::take_unless_empty);
        taken.unwrap_or(Err(PopError::Empty))
    }
}
