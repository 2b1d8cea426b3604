//! The state that the handles of a queue share, and operations without a handle.

mod due;
mod ends;
mod idle;
mod order;
pub(crate) mod restore;
mod stats;
mod token;

use crate::bound::Capacity;
use crate::core::admit::{Refusal, Unpushed};
use crate::core::settings::Settings;
use crate::order::{Order, PushMeta, PushMetaOf, ShardsOf, StoredOf};
use crate::policy::dead::Overflow;
use crate::policy::lease::LeaseRules;
use crate::policy::retry::Failures;
use crate::policy::telemetry::{Event, Telemetry};
use crate::policy::watch::WatchTable;
use crate::rate::Gate;
use crate::raw::{ByProof, Remainder, Shards, Shareable, Stored};
use crate::sync::{defer, swallow_panic};
use crate::time::Time;
use crate::wait::{DueTimer, ModeWord, WaitQueue, WaitRoom};
use crate::PopError;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use token::Token;

/// A queue: its shards, wait queues and room, and its failed deliveries.
pub(crate) struct Shared<T, O: Order<T>> {
    shards: Arc<ShardsOf<T, O>>,
    /// The source of items, if they are not taken from the shards directly.
    pub(crate) source: ByProof<O::Source>,
    /// The wait queue for items.
    ready: Arc<WaitQueue>,
    room: Option<Arc<Room>>,
    /// The wait queue for the queue to be idle.
    idle: WaitQueue,
    /// Checked before items are dequeued.
    pub(crate) gate: Gate,
    pub(crate) time: Time,
    pub(crate) due_timer: Arc<DueTimer>,
    pub(crate) failures: Failures<T, O::Meta>,
    pub(crate) watches: WatchTable<StoredOf<T, O>>,
    /// The term of leases, if items are leased.
    lease: Option<Duration>,
    /// Whether the time of each push is kept.
    pub(crate) timed: bool,
    pub(crate) name: Option<Arc<str>>,
    telemetry: Option<Telemetry>,
}

/// The room of a bounded queue.
pub(crate) struct Room {
    pub(crate) capacity: Capacity,
    /// The capacity as it was configured.
    pub(crate) limit: usize,
    /// The wait queue for permits.
    pub(crate) wait_queue: WaitQueue,
}

impl Room {
    fn new(limit: usize) -> Self {
        Self {
            capacity: Capacity::new(limit),
            limit,
            wait_queue: WaitQueue::new(ModeWord::standing(false, false), true),
        }
    }

    /// Releases permits that belong to no handle.
    fn give_back(&self, count: usize) {
        self.freed(self.capacity.give_shared(count));
    }

    /// Wakes waiters for `count` freed permits.
    #[inline]
    pub(crate) fn freed(&self, count: usize) {
        self.wait_queue.notify(count);
    }

    /// Takes a permit that will belong to no handle.
    fn take_one(&self) -> bool {
        self.capacity.take_shared(1) == 1
    }
}

impl WaitRoom for Room {
    fn wait_queue(&self) -> &WaitQueue {
        &self.wait_queue
    }
}

impl<T, O: Order<T>> Shared<T, O> {
    pub(crate) fn new(
        settings: Settings<Overflow<T>>,
        order: O::Settings,
        proof: Shareable<O::Source>,
    ) -> Self {
        let timed = settings.timestamps || O::is_timed(&order);
        let (time, failures) = (settings.time(), settings.failures());
        // An order that sorts takes all that is there.
        let stickiness = if Self::SORTS {
            u32::MAX
        } else {
            settings.stickiness
        };
        let shards = Arc::new(Shards::new(timed).with_stickiness(stickiness));
        let slow_pops = timed || Self::SORTS || settings.slows_pops();
        let word = ModeWord::standing(timed || Self::SORTS, slow_pops);
        let ready = Arc::new(WaitQueue::new(word, false));
        let room = settings.capacity.map(|limit| Arc::new(Room::new(limit)));
        let due_timer = DueTimer::new(
            time.clone(),
            Arc::clone(&ready),
            // An item whose lease expires may become a dead letter.
            room.clone().filter(|_| Self::LEASES).map(|room| room as _),
        );
        let source = ByProof::new(O::source(order, &shards, &due_timer), proof);
        if room.is_some() {
            ready.set_bounded();
        }
        settings.pace.join(&ready);
        Self {
            shards,
            source,
            ready,
            room,
            idle: WaitQueue::new(ModeWord::standing(false, false), false),
            gate: Gate::new(settings.pace, settings.max_held),
            time,
            due_timer,
            failures,
            watches: WatchTable::new(),
            lease: settings.lease,
            timed,
            telemetry: Telemetry::of(settings.name.as_ref()),
            name: settings.name,
        }
    }

    pub(crate) fn shards(&self) -> &Arc<ShardsOf<T, O>> {
        &self.shards
    }

    #[inline]
    pub(crate) fn ready(&self) -> &Arc<WaitQueue> {
        &self.ready
    }

    #[inline]
    pub(crate) fn room(&self) -> Option<&Arc<Room>> {
        self.room.as_ref()
    }

    /// The rules of leases, if items are leased.
    #[inline]
    pub(crate) fn lease(&self) -> Option<LeaseRules<T>> {
        let copy = O::COPY?;
        self.lease.map(|term| LeaseRules { term, copy })
    }

    #[inline]
    pub(crate) fn word(&self) -> ModeWord {
        self.ready.word()
    }

    /// The time stamp of a push: 0 if none is kept.
    pub(crate) fn stamp(&self) -> u64 {
        if self.timed {
            self.time.stamp()
        } else {
            0
        }
    }

    /// Pushes without a handle, into the common shard, with the metadata of a given registration.
    pub(crate) fn push_as(
        &self,
        item: T,
        register: impl FnOnce(&T) -> Option<PushMetaOf<T, O>>,
    ) -> Result<(), Unpushed<T>> {
        let ready = &*self.ready;
        if ready.word().is_closed() {
            return Err(Unpushed::new(item, Refusal::Closed));
        }
        let takes_one = || self.room().map_or(true, |room| room.take_one());
        if !(takes_one() || self.reclaim() && takes_one()) {
            return Err(Unpushed::new(item, None));
        }
        let permit = defer(|| self.give_back(1));
        let Some(PushMeta { since, meta }) = register(&item) else {
            return Err(Unpushed::new(item, Refusal::Full));
        };
        let admit = || !ready.fenced_word().is_closed();
        if let Err(stored) = self.shards.push(Stored { item, meta }, since, admit) {
            self.unregister(meta);
            return Err(Unpushed::new(stored.item, Refusal::Closed));
        }
        permit.cancel();
        ready.notify(1);
        Ok(())
    }

    pub(crate) fn give_back(&self, permits: usize) {
        if let Some(room) = self.room() {
            room.give_back(permits);
        }
    }

    pub(crate) fn close(&self) -> bool {
        let closed = self.ready.close();
        if closed {
            if let Some(room) = self.room() {
                room.wait_queue.wake_all();
            }
            self.emit(|| Event::Closed);
        }
        closed
    }

    /// Emits an event if events are observed. A panic of a clock in `event` is caught.
    #[inline]
    pub(crate) fn emit<'e>(&self, event: impl FnOnce() -> Event<'e>) {
        if let Some(telemetry) = &self.telemetry {
            swallow_panic(|| telemetry.emit(event()));
        }
    }

    /// What emits the events of the queue, if they are observed.
    #[cfg(not(any(loom, shuttle)))]
    pub(crate) fn telemetry(&self) -> Option<&Telemetry> {
        self.telemetry.as_ref()
    }

    /// Whether events are observed.
    pub(crate) fn is_observed(&self) -> bool {
        self.telemetry.is_some()
    }

    /// The error for a queue that was found empty just now.
    #[cold]
    pub(crate) fn why_empty(&self) -> PopError {
        if self.word().is_closed() && self.remainder() == Remainder::Nothing {
            PopError::Closed
        } else {
            PopError::Empty
        }
    }
}
