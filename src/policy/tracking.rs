//! What is decided for each item by its time stamp: whether its time to live is over, and what is kept beside it.

use super::failed::Failed;
use super::records::{MakeTickets, Record, Records, Tracked, Weigh};
use super::ttl::Ttl;
use super::unique::Unique;
use crate::bound::Room;
use crate::order::{Order, ShardsOf, StoredOf, Ticket};
use crate::raw::{Inbox, Outstanding};
use crate::sync::Mutex;
use std::sync::Arc;

/// What is decided for each item.
pub(crate) struct Tracking<T, O: Order<T>> {
    /// How long items live, if not for ever.
    lives: Option<Lives<T, O>>,
    /// What is kept beside each item, if anything.
    records: Option<Records>,
    /// Says the weight of an item, if it is not 1.
    weigh: Option<Weigh<T>>,
    /// The keys that are taken, if keys are unique.
    unique: Option<Unique<T, O::Meta>>,
    /// The room of the queue, if it outlives it.
    room: Option<Arc<Room>>,
    /// Discarded items, which are dropped after what others wait for.
    discarded: Inbox<Failed<StoredOf<T, O>>>,
}

/// What is decided, if anything. Without the feature nothing is, and no program has code to drop it.
#[cfg(feature = "broker")]
pub(super) type Decided<T, O> = Option<Box<Tracking<T, O>>>;
#[cfg(not(feature = "broker"))]
pub(super) type Decided<T, O> = Option<(
    std::convert::Infallible,
    std::marker::PhantomData<Tracking<T, O>>,
)>;

/// What is left in a queue gives its permits back, if others use them too.
impl<T, O: Order<T>> Drop for Tracking<T, O> {
    fn drop(&mut self) {
        if let (Some(room), Some(records)) = (&self.room, &self.records) {
            room.give_back(records.weight());
        }
    }
}

/// How long the items of a queue live.
pub(crate) struct Lives<T, O: Order<T>> {
    pub(crate) ttl: Ttl,
    /// Held by the sweep that takes something, which writes the counters.
    pub(crate) sweeping: Mutex<()>,
    /// The counters of what sweeps have taken.
    pub(crate) swept: Outstanding<StoredOf<T, O>>,
}

impl<T, O: Order<T>> Tracking<T, O> {
    /// `None` if nothing is decided for each item.
    pub(super) fn new(
        ttl: Option<Ttl>,
        records: Option<MakeTickets>,
        weigh: Option<Weigh<T>>,
        unique: Option<Unique<T, O::Meta>>,
        room: Option<&Arc<Room>>,
        shards: &Arc<ShardsOf<T, O>>,
    ) -> Decided<T, O> {
        let lives = ttl.map(|ttl| Lives {
            ttl,
            sweeping: Mutex::new(()),
            swept: Outstanding::new(shards),
        });
        let tracks = cfg!(feature = "broker") && (lives.is_some() || records.is_some());
        let tracking = tracks.then(|| {
            Box::new(Self {
                lives,
                records: records.map(|tickets| Records::new(tickets())),
                weigh,
                unique,
                room: room.filter(|room| room.is_shared).cloned(),
                discarded: Inbox::new(),
            })
        });
        #[cfg(not(feature = "broker"))]
        let tracking = tracking.and(None);
        tracking
    }
}

impl<T, O: Order<T>> super::Policies<T, O> {
    #[inline]
    fn tracking(&self) -> Option<&Tracking<T, O>> {
        #[cfg(feature = "broker")]
        return self.tracking.as_deref();
        #[cfg(not(feature = "broker"))]
        self.tracking.as_ref().and(None)
    }

    /// Whether each item is looked at when it is taken.
    #[inline]
    pub(crate) fn tracks(&self) -> bool {
        cfg!(feature = "broker") && self.tracking.is_some()
    }

    /// Items that were discarded while they were held.
    pub(crate) fn discarded(&self) -> Option<&Inbox<Failed<StoredOf<T, O>>>> {
        Some(&self.tracking()?.discarded)
    }

    /// How long items live, if not for ever.
    #[inline]
    pub(crate) fn lives(&self) -> Option<&Lives<T, O>> {
        self.tracking()?.lives.as_ref()
    }

    #[inline]
    pub(crate) fn expires(&self) -> bool {
        self.lives().is_some()
    }

    /// Whether items may have times to live of their own.
    #[cfg(feature = "broker")]
    pub(crate) fn has_deadlines(&self) -> bool {
        self.lives().is_some_and(|lives| lives.ttl.is_max)
    }

    /// Reads the record of an item, if there is one.
    #[inline]
    fn record<R>(&self, since: u64, read: impl FnOnce(&Record) -> R) -> Option<R> {
        self.records()?.get(since, read)
    }

    /// The time stamp of the push of an item with this time stamp.
    pub(crate) fn pushed_at(&self, since: u64) -> u64 {
        self.record(since, |record| record.pushed).unwrap_or(since)
    }

    /// The weight of an item that is known: how many permits it has.
    pub(crate) fn weight_of(&self, since: u64) -> usize {
        self.record(since, |record| record.weight).unwrap_or(1)
    }

    /// The ticket of an item, if the queue is tracked.
    pub(crate) fn ticket(&self, since: u64) -> Option<Ticket> {
        self.record(since, |record| record.ticket)?
    }

    /// Calls `call`, under a lock, with what is known of an item, if the queue is tracked.
    #[inline]
    pub(crate) fn tracked<R>(&self, since: u64, call: impl Fn(&mut Tracked) -> R) -> Option<R> {
        let records = self.records().filter(|records| records.tickets.is_some())?;
        records.tracked(self.ticket(since)?, call)
    }

    pub(crate) fn weigher(&self) -> Option<&Weigh<T>> {
        self.tracking()?.weigh.as_ref()
    }

    /// Whether items have weights.
    pub(crate) fn weighs(&self) -> bool {
        self.weigher().is_some()
    }

    /// The keys that are taken, if keys are unique.
    #[inline]
    pub(crate) fn unique(&self) -> Option<&Unique<T, O::Meta>> {
        self.tracking()?.unique.as_ref()
    }

    /// Whether an open queue may refuse an item for what it is: it is too heavy, or a duplicate.
    pub(crate) fn refuses_some(&self) -> bool {
        self.weighs() || self.unique().is_some()
    }

    /// What is kept beside each item, if anything.
    #[inline]
    pub(crate) fn records(&self) -> Option<&Records> {
        self.tracking()?.records.as_ref()
    }
}
