//! The state that the handles of a queue share, and operations without a handle.

mod due;
mod ends;
mod idle;
mod order;
pub(crate) mod restore;
mod schedule;
mod stats;
mod tracking;
mod ttl;
mod unique;
mod visit;

use crate::bound::Room;
use crate::core::mode::{mode, Ready, BOUNDED, NOTIFY_ENDS, REGISTERED, SLOW_POPS, SORTED};
use crate::order::{Order, PushMeta, PushMetaOf, ShardsOf};
use crate::policy::records::Callbacks;
use crate::policy::settings::Settings;
use crate::policy::telemetry::Event;
use crate::policy::Policies;
use crate::raw::{ByProof, OnceBox, Remainder, Shards, Shareable, Stored};
use crate::wait::{WaitQueue, WaitWord};
use crate::{PopError, PushError};
use std::sync::Arc;
use std::time::Duration;

/// How many items a consumer takes from a shard before it compares shards again, unless it is set.
const STICKINESS: u32 = 64;

/// A queue: its shards, wait queues and room, and its failed deliveries.
pub(crate) struct Shared<T, O: Order<T>> {
    shards: Arc<ShardsOf<T, O>>,
    /// The source of items, if they are not taken from the shards directly.
    pub(crate) source: ByProof<O::Source>,
    /// The wait queue for items, and the mode of the queue.
    ready: Ready,
    room: Option<Arc<Room>>,
    /// The wait queue for the queue to be idle, made for the first waiter.
    idle: OnceBox<WaitQueue>,
    policies: Policies<T, O>,
}

deref!([T, O: Order<T>] Shared<T, O> => Policies<T, O>, |shared| &shared.policies);

impl<T, O: Order<T>> Shared<T, O> {
    pub(crate) fn new(
        settings: Settings,
        callbacks: Option<Box<Callbacks<T>>>,
        order: O::Settings,
        proof: Shareable<O::Source>,
    ) -> Self {
        let tracks = settings.tracks();
        let timed = settings.timestamps || O::is_timed(&order) || tracks;
        // An order that sorts takes all that is there.
        let stickiness = if Self::SORTS {
            u32::MAX
        } else {
            settings.stickiness.unwrap_or(STICKINESS)
        };
        let shards = Arc::new(Shards::with(timed, stickiness));
        let room = settings.room();
        let mode = mode([
            (room.is_some(), BOUNDED),
            (timed || Self::REGISTERS, REGISTERED),
            (Self::SORTS, SORTED),
            (timed || settings.slows_pops(), SLOW_POPS),
            (tracks, NOTIFY_ENDS),
        ]);
        let wait_queue = Ready::wait_queue(mode);
        let policies = settings.policies(callbacks, timed, wait_queue, room.as_ref(), &shards);
        let source = O::source(order, &shards);
        Self {
            shards,
            source: ByProof::new(source, proof),
            ready: Ready::new(&policies.due_timer),
            room,
            idle: OnceBox::default(),
            policies,
        }
    }

    pub(crate) fn shards(&self) -> &Arc<ShardsOf<T, O>> {
        &self.shards
    }

    #[inline]
    pub(crate) fn ready(&self) -> &Ready {
        &self.ready
    }

    #[inline]
    pub(crate) fn room(&self) -> Option<&Arc<Room>> {
        self.room.as_ref()
    }

    #[inline]
    pub(crate) fn word(&self) -> WaitWord {
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

    /// Pushes without a handle, into the common shard, with the metadata of a given registration, which the caller withdraws if
    /// the push is refused.
    pub(crate) fn push_as(
        &self,
        item: T,
        PushMeta { since, meta }: PushMetaOf<T, O>,
    ) -> Result<(), PushError<T>> {
        let ready = &self.ready;
        if ready.word().is_closed() {
            return Err(PushError::Closed(item));
        }
        let weight = self.weight_of(since);
        if !(self.takes(weight) || self.reclaim() && self.takes(weight)) {
            return Err(PushError::Full(item));
        }
        let admit = || !ready.fenced_word().is_closed();
        if let Err(stored) = self.shards.push(Stored { item, meta }, since, admit) {
            self.give_back(weight);
            return Err(PushError::Closed(stored.item));
        }
        ready.notify(1);
        self.pushed(since);
        Ok(())
    }

    /// Takes permits that will belong to no handle: all, or none.
    pub(crate) fn takes(&self, permits: usize) -> bool {
        self.room().map_or(true, |room| room.take(permits))
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

    /// Pauses the queue for a time.
    pub(crate) fn pause_for(&self, duration: Duration) {
        self.ready.set(SLOW_POPS);
        self.policies.pause_for(duration);
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
