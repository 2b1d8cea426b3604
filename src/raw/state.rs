//! The private state of a seat, as one step of it sees it.

use super::consumer::Consumer;
use super::desk::Desk;
use super::hold::Hold;
use super::lanes::Lanes;
use super::producer::Producer;
use super::shard::Shard;
use super::sink::Sink;
use super::tag::Entry;
use crate::sync::step;
use std::ptr::NonNull;

/// What a seat owns.
pub(super) struct State<T> {
    /// Without a shard until the first push.
    pub(super) producer: Producer<T>,
    lease: Option<Lease<T>>,
    pub(super) consumer: Consumer<T>,
    pub(super) hold: Hold<T>,
    /// Whether what is held was committed, and only waits to be taken out.
    pub(super) taken: bool,
    /// The item that is looked at.
    pub(super) peeked: Option<Box<Hold<T>>>,
    pub(super) desk: NonNull<Desk>,
    pub(super) desk_number: usize,
}

/// The lease of a shard.
struct Lease<T> {
    shard: NonNull<Shard<T>>,
    number: usize,
}

impl<T> State<T> {
    pub(super) fn new(lanes: &Lanes<T>) -> Self {
        let desk_number = lanes.desks().lease();
        let desk: &Desk = lanes.desks().get(desk_number);
        Self {
            producer: Producer::new(),
            lease: None,
            consumer: Consumer::new(desk_number),
            hold: Hold::new(),
            taken: false,
            peeked: None,
            desk: NonNull::from(desk),
            desk_number,
        }
    }

    #[inline]
    pub(super) fn desk(&self) -> &Desk {
        // SAFETY: desks are type-stable, and the seat keeps its queue alive.
        unsafe { self.desk.as_ref() }
    }

    /// The leased shard.
    #[inline]
    fn shard<'a>(&self) -> Option<&'a Shard<T>> {
        // SAFETY: shards are type-stable, and the seat keeps its queue alive.
        self.lease
            .as_ref()
            .map(|lease| unsafe { lease.shard.as_ref() })
    }

    /// Says that a transaction stages something, unless `admit` refuses then.
    #[inline]
    pub(super) fn begin_staging_if(&self, admit: impl FnOnce() -> bool) -> bool {
        let first = self.producer.staged() == 0;
        if first {
            step!("state.stages-unsaid", self.desk().begin_staging());
        }
        let admitted = admit();
        if first && !admitted {
            self.desk().end_staging();
        }
        admitted
    }

    #[inline]
    pub(super) fn make_room_for_one(&mut self, lanes: &Lanes<T>) {
        if self.producer.is_full() {
            self.make_room(lanes);
        }
    }

    /// Notes the time of the item that is staged or pushed next.
    pub(super) fn note_time(&mut self, lanes: &Lanes<T>, since: u64) {
        self.make_room_for_one(lanes);
        self.producer.note_time(since);
    }

    #[inline]
    pub(super) fn push(&mut self, lanes: &Lanes<T>, item: T) {
        self.make_room_for_one(lanes);
        // SAFETY: a producer that is not full has a shard.
        let shard = unsafe { self.shard().unwrap_unchecked() };
        self.producer.push(shard, item);
    }

    /// Takes the item that was pushed last back, unless it or an item before it is somebody else's to
    /// take.
    pub(super) fn retract(&mut self) -> Option<Entry<T>> {
        let shard = self.shard()?;
        self.producer.retract(shard)
    }

    /// Leases a shard, opens a segment, or both.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, lanes: &Lanes<T>) {
        let shard = self.shard().unwrap_or_else(|| self.lease(lanes));
        if self.producer.is_full() {
            self.producer.open(shard, lanes.stamps(), lanes.timed());
        }
    }

    fn lease<'a>(&mut self, lanes: &Lanes<T>) -> &'a Shard<T> {
        let (number, leased) = lanes.lease();
        let shard = NonNull::from(leased);
        self.lease = Some(Lease { shard, number });
        // SAFETY: as in `shard`; leased just now.
        unsafe {
            self.producer = shard.as_ref().unpark();
            shard.as_ref()
        }
    }

    #[inline]
    pub(super) fn publish(&mut self) {
        if let Some(shard) = self.shard() {
            self.producer.publish(shard);
        }
    }

    /// Holds what `next` gives, if anything. If it is given back it goes to the common shard.
    pub(super) fn hold_next(
        &mut self,
        lanes: &Lanes<T>,
        next: impl FnOnce() -> Option<Entry<T>>,
    ) -> bool {
        self.hold.reserve(1, lanes.common().front());
        lanes.common().mark_used();
        // Before it is taken, as in `Access::hold`.
        self.desk().count_taken(1);
        let Some(Entry { item, tag }) = next() else {
            self.desk().uncount_taken(1);
            return false;
        };
        // SAFETY: room was made for it.
        unsafe { self.hold.accept(item, tag) };
        true
    }

    /// The item that was held last, and how often it was delivered.
    #[inline]
    pub(super) fn newest(&self) -> (*mut T, u32) {
        let held = self.hold.newest();
        // SAFETY: the newest is held.
        (held.item(), unsafe { held.tag() }.attempts)
    }

    /// Leaves what is held to be taken out, and says how many items that are.
    #[inline]
    pub(super) fn commit_held(&mut self) -> usize {
        let held = self.hold.len();
        if held > 0 {
            self.taken = true;
            self.hold.commit();
            self.desk().count_committed(held);
        }
        held
    }

    /// Gives everything leased back. Nothing is staged or held.
    pub(super) fn leave(&mut self, lanes: &Lanes<T>) {
        self.consumer.leave();
        if let Some(lease) = self.lease.take() {
            let producer = std::mem::replace(&mut self.producer, Producer::new());
            lanes.give_up(lease.number, producer);
        }
        // What was taken away from its transaction may not be counted yet.
        if !lanes.desks().stays(self.desk_number) && !self.desk().is_open() {
            lanes.desks().retire(self.desk_number);
        }
        lanes.desks().release(self.desk_number);
    }

    /// The shard that a joint has to know about.
    pub(super) fn staging_shard<'a>(&self) -> Option<&'a Shard<T>> {
        self.shard().filter(|_| self.producer.staged() > 0)
    }
}
