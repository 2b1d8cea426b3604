//! The settings of a queue.

use super::dead::{Letters, Overflow};
use super::delay::Delayed;
use super::records::{Callbacks, MakeTickets};
use super::retry::{Failures, ReturnTo};
use super::telemetry::Telemetry;
use super::tracking::Tracking;
use super::ttl::{AfterTtl, Ttl};
use super::unique::{OnDuplicate, Unique};
use super::watch::WatchTable;
use super::Policies;
use crate::bound::{Budget, Room};
use crate::order::{Order, ShardsOf};
use crate::rate::{Gate, Pace};
use crate::time::{whole, Backoff, Clock, Time, START};
use crate::wait::{DueTimer, WaitQueue};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

/// The settings of a queue of any order.
#[allow(clippy::struct_excessive_bools)] // each is an option
#[derive(Clone, Default)]
pub(crate) struct Settings {
    pub(crate) capacity: Option<usize>,
    /// The capacity that it shares, if any.
    pub(crate) budget: Option<Budget>,
    pub(crate) max_attempts: Option<NonZeroU32>,
    /// `None`: any number.
    pub(crate) max_dead_letters: Option<usize>,
    pub(crate) backoff: Option<Backoff>,
    pub(crate) return_to: ReturnTo,
    pub(crate) clock: Option<Arc<dyn Clock>>,
    pub(crate) timestamps: bool,
    /// How long items live, if not for ever.
    pub(crate) ttl: Option<Duration>,
    /// Whether an item may live for a shorter time.
    pub(crate) own_ttls: bool,
    pub(crate) after_ttl: AfterTtl,
    /// See [`Ttl::drops_letters`].
    pub(crate) drops_expired: bool,
    /// Makes the tickets of a tracked queue, if something is kept beside each item.
    pub(crate) records: Option<MakeTickets>,
    /// For how long a key stays taken after a commit.
    pub(crate) unique_for: Duration,
    pub(crate) on_duplicate: OnDuplicate,
    /// The term of leases, if items are leased.
    pub(crate) lease: Option<Duration>,
    pub(crate) pace: Pace,
    pub(crate) max_held: Option<usize>,
    pub(crate) paused: bool,
    pub(crate) name: Option<Arc<str>>,
    /// How many items a consumer takes from a shard before it compares shards again, if that is set.
    pub(crate) stickiness: Option<u32>,
}

impl Settings {
    /// How long items live, if not for ever.
    pub(crate) fn ttl(&self) -> Option<Ttl> {
        let ttl = self.ttl.filter(|_| cfg!(feature = "broker"));
        ttl.map(|span| Ttl {
            // A longer one is as long as the clock goes back.
            span: span.min(Duration::from_nanos(START)),
            is_max: self.own_ttls,
            after: self.after_ttl,
            drops_letters: self.drops_expired,
        })
    }

    /// The room of a queue with these settings, if it is bounded.
    pub(crate) fn room(&self) -> Option<Arc<Room>> {
        let own = || self.capacity.map(|limit| Arc::new(Room::new(limit, false)));
        self.budget.as_ref().map(Budget::room).or_else(own)
    }

    /// Whether something is decided for each item.
    pub(crate) fn tracks(&self) -> bool {
        self.ttl().is_some() || self.records.is_some()
    }

    /// Whether pops check more than the source of items.
    pub(crate) fn slows_pops(&self) -> bool {
        self.max_attempts.is_some()
            || self.backoff.is_some()
            || self.lease.is_some()
            || !self.pace.is_unlimited()
            || self.max_held.is_some()
            || self.name.is_some()
    }

    fn failures<T, M>(&self, overflow: Option<Overflow<T>>) -> Failures<T, M> {
        Failures {
            max_attempts: self.max_attempts,
            backoff: self.backoff,
            return_to: self.return_to,
            delayed: Delayed::new(),
            letters: Letters::new(self.max_dead_letters.unwrap_or(usize::MAX), overflow),
        }
    }

    /// The policies of a queue with these settings, and with this wait queue for items.
    pub(crate) fn policies<T, O: Order<T>>(
        self,
        callbacks: Option<Box<Callbacks<T>>>,
        timed: bool,
        wait_queue: WaitQueue,
        room: Option<&Arc<Room>>,
        shards: &Arc<ShardsOf<T, O>>,
    ) -> Policies<T, O> {
        let callbacks = callbacks.map_or_else(Callbacks::default, |callbacks| *callbacks);
        let (window, rule) = (whole(self.unique_for), self.on_duplicate);
        let (on_supersede, on_reserve) = (callbacks.on_supersede, callbacks.on_reserve);
        let unique = |key_of| Unique::new(key_of, window, rule, on_supersede, on_reserve);
        let unique = callbacks.key_of.map(unique);
        let tracking = Tracking::new(
            self.ttl(),
            self.records,
            callbacks.weigh,
            unique,
            room,
            shards,
        );
        let failures = self.failures(callbacks.overflow);
        let time = Time::new(self.clock);
        // An item whose lease expires may become a dead letter, and one whose time to live is over is gone.
        let frees = Policies::<T, O>::RECLAIMS || self.ttl.is_some();
        let room = room.filter(|_| frees).cloned();
        let room = room.map(|room| room as _);
        let due_timer = DueTimer::new(time.clone(), wait_queue, room);
        self.pace.join(&due_timer);
        Policies {
            due_timer,
            time,
            gate: Gate::new(self.pace, self.max_held),
            failures,
            watches: WatchTable::default(),
            lease: self.lease.map_or(0, whole),
            timed,
            tracking,
            telemetry: Telemetry::of(self.name.as_ref()),
            name: self.name,
        }
    }
}
