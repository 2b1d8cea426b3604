//! A seat: what one handle has at the shards of its queue, and the steps of its transactions.
//!
//! The seat keeps the state of the transaction, so that a forgotten transaction is found and ended at the next use
//! of the handle, or when it is dropped. No step runs user code, but the destructors of items that have left.

use super::block::Held;
use super::cell::{Fresh, Unborrowed};
use super::consumer::Consumer;
use super::desk::Desk;
use super::drops::drop_all;
use super::grip::Grip;
use super::hold::{Hold, Spot};
use super::joint::{Record, Tail, Tails};
use super::lanes::Lanes;
use super::producer::Producer;
use super::segment::Segment;
use super::shard::Shard;
use super::sink::Sink;
use super::tag::{Entry, Stored, Tag};
use crate::sync::{defer_with, step};
use std::mem;
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// One handle's part in a queue.
pub(crate) struct Seat<T> {
    /// Without a shard until the first push.
    producer: Producer<T>,
    lease: Option<Lease<T>>,
    pub(super) consumer: Consumer<T>,
    pub(super) hold: Hold<T>,
    /// Whether what is held was committed, and only waits to be taken out.
    taken: bool,
    /// The item that is looked at.
    pub(super) peeked: Option<Box<Hold<T>>>,
    desk: NonNull<Desk>,
    desk_number: usize,
    pub(super) lanes: Arc<Lanes<T>>,
}

/// The lease of a shard.
struct Lease<T> {
    shard: NonNull<Shard<T>>,
    number: usize,
}

// SAFETY: a seat owns what it points to or shares it as `Lanes` does; items are of type T. It has
// no tie to the thread that made it.
unsafe impl<T: Send> Send for Seat<T> {}

impl<T> Seat<T> {
    pub(crate) fn new(lanes: Arc<Lanes<T>>) -> Self {
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
            lanes,
        }
    }

    #[inline]
    pub(super) fn desk<'a>(&self) -> &'a Desk {
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

    /// The number of the handle's desk.
    pub(crate) fn number(&self) -> usize {
        self.desk_number
    }

    /// Staged items.
    #[inline]
    pub(crate) fn staged(&self) -> usize {
        self.producer.staged()
    }

    /// Held items, or those left to take out after a commit.
    #[inline]
    pub(crate) fn held(&self) -> usize {
        self.hold.len()
    }

    /// Whether a transaction is open, or was committed and not all of its items were taken out.
    #[inline]
    pub(crate) fn is_unsettled(&self) -> bool {
        self.staged() | self.held() != 0
    }

    /// Whether what is held was committed, and only waits to be taken out.
    pub(crate) fn is_taken(&self) -> bool {
        self.taken
    }
}

/// Pushes.
impl<T> Seat<T> {
    /// Pushes one item, committed at once.
    #[inline]
    pub(crate) fn push(&mut self, item: T) {
        self.make_room_for_one();
        // SAFETY: a producer that is not full has a shard.
        let shard = unsafe { self.shard().unwrap_unchecked() };
        self.producer.push(shard, item);
    }

    /// Notes the time of the item that is staged or pushed next.
    pub(crate) fn note_time(&mut self, since: u64) {
        self.make_room_for_one();
        self.producer.note_time(since);
    }

    /// Takes the item of the last [`Seat::push`] back, if nobody has, and nothing before it waits.
    pub(crate) fn retract(&mut self) -> Option<Entry<T>> {
        let shard = self.shard()?;
        self.producer.retract(shard)
    }

    /// Makes room for an item, and says that the transaction stages something: true if it has not said so before.
    #[inline]
    pub(crate) fn begin_staging(&mut self) -> bool {
        // Room first, so that nothing fails once it is said.
        self.make_room_for_one();
        let first = self.staged() == 0;
        if first {
            step!("seat.stages-unsaid", self.desk().begin_staging());
        }
        first
    }

    /// Stages an item, for which [room was made](Seat::begin_staging).
    #[inline]
    pub(crate) fn stage(&mut self, item: T) {
        self.make_room_for_one();
        self.producer.stage(item);
    }

    /// Makes room for one item at least, to be staged.
    pub(crate) fn stager(&mut self) -> Stager<'_, T> {
        self.make_room_for_one();
        let (segment, next, limit) = self.producer.room();
        Stager {
            producer: &mut self.producer,
            segment,
            next,
            limit,
        }
    }

    /// Says that nothing of what is staged will be published.
    pub(crate) fn end_staging(&mut self) {
        self.desk().end_staging();
    }

    /// Takes the last staged item back out.
    pub(crate) fn unstage(&mut self) -> Option<Entry<T>> {
        self.producer.unstage()
    }

    /// Drops what is staged.
    pub(crate) fn drop_staged(&mut self) {
        drop_all(|| self.unstage());
    }

    #[inline]
    fn make_room_for_one(&mut self) {
        if self.producer.is_full() {
            self.make_room();
        }
    }

    /// Leases a shard, opens a segment, or both.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self) {
        let shard = self.shard().unwrap_or_else(|| self.lease());
        if self.producer.is_full() {
            let lanes = &self.lanes;
            self.producer.open(shard, lanes.stamps(), lanes.timed());
        }
    }

    fn lease<'a>(&mut self) -> &'a Shard<T> {
        let (number, leased) = self.lanes.lease();
        let shard = NonNull::from(leased);
        self.lease = Some(Lease { shard, number });
        // SAFETY: as in `shard`; leased just now.
        unsafe {
            self.producer = shard.as_ref().unpark();
            shard.as_ref()
        }
    }
}

/// Room for some items that are staged. The seat counts them at the end.
pub(crate) struct Stager<'s, T> {
    producer: &'s mut Producer<T>,
    segment: Option<Segment<T>>,
    next: u64,
    limit: u64,
}

impl<T> Stager<'_, T> {
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.next < self.limit
    }

    /// Stages an item.
    ///
    /// # Panics
    ///
    /// If there is no room for it.
    #[inline]
    pub(crate) fn stage(&mut self, item: T) {
        assert!(self.has_room());
        // SAFETY: below the limit a segment is open. A position behind the tail is vacant and the
        // leaseholder's alone, and its segment is unfinished.
        unsafe {
            let segment = self.segment.unwrap_unchecked();
            segment.slot(self.next).fill(item);
        }
        self.next += 1;
    }
}

impl<T> Drop for Stager<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: filled one by one.
        unsafe { self.producer.count_staged(self.next) };
    }
}

/// Pops.
impl<T> Seat<T> {
    /// Goes to where items were put back without a handle, if there are any, since they come first.
    pub(crate) fn go_to_head(&mut self) {
        self.consumer.go_to_head(&self.lanes);
    }

    /// Whether an item may be ready where the next one is looked for. If it is not, that is known after an attempt.
    pub(crate) fn sees_one(&self) -> bool {
        self.consumer.backlog(&self.lanes) > 0
    }

    /// Takes one item, committed at once.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        let item = self.consumer.take_one(&self.lanes)?;
        self.desk().count_popped(1);
        Some(item)
    }

    /// Takes up to `most` items, committed at once.
    pub(super) fn pop_into(&mut self, most: usize, items: &mut impl Sink<T>) -> usize {
        let count = self.consumer.take_all(&self.lanes, items, most);
        self.desk().count_popped(count);
        count
    }

    /// Counts an item that was popped elsewhere.
    pub(crate) fn count_popped(&mut self) {
        self.desk().count_popped(1);
    }

    /// Holds one item more: true if there is one.
    #[inline(always)]
    #[allow(clippy::inline_always)] // the pop of a transaction
    pub(crate) fn hold(&mut self) -> bool {
        self.desk().count_taken(1);
        let held = self.consumer.take(&self.lanes, &mut self.hold, 1) > 0;
        if !held {
            self.desk().uncount_taken(1);
        }
        held
    }

    /// Holds up to `most` items more, and says how many those are.
    pub(crate) fn hold_batch(&mut self, most: usize) -> usize {
        if most == 0 {
            return 0;
        }
        self.desk().count_taken(1);
        let count = self.consumer.take_all(&self.lanes, &mut self.hold, most);
        match count {
            0 => self.desk().uncount_taken(1),
            _ => self.desk().count_taken(count - 1),
        }
        count
    }

    /// Holds all items that the next lane has now, from `lane` on, which moves behind it. False: there is
    /// none.
    pub(crate) fn hold_lane(&mut self, lane: &mut usize) -> bool {
        let Some(next) = self.lanes.next_from(*lane) else {
            return false;
        };
        *lane = next + 1;
        let most = usize::try_from(self.lanes.ready_in(next)).unwrap_or(usize::MAX);
        self.desk().count_taken(most);
        let held = self
            .consumer
            .take_lane(&self.lanes, next, &mut self.hold, most);
        self.desk().uncount_taken(most - held);
        true
    }

    /// Counts items as taken that are elsewhere: shown to somebody, or about to be [accepted](Seat::accept).
    pub(crate) fn count_taken(&mut self, items: usize) {
        self.desk().count_taken(items);
    }

    /// Counts no more what was [counted](Seat::count_taken).
    pub(crate) fn uncount_taken(&mut self, items: usize) {
        self.desk().uncount_taken(items);
    }

    /// Makes room for an item that is taken elsewhere, and [counts](Seat::count_taken) it.
    pub(crate) fn expect(&mut self, purpose: Purpose) {
        let common = self.lanes.common();
        Self::hold_of(&mut self.hold, &mut self.peeked, purpose).reserve(1, common.front());
        common.mark_used();
        self.count_taken(1);
    }

    /// Holds an item that was [counted](Seat::expect). If it is given back it goes to the common shard.
    pub(crate) fn accept(&mut self, purpose: Purpose, Entry { item, tag }: Entry<T>) {
        let hold = Self::hold_of(&mut self.hold, &mut self.peeked, purpose);
        hold.reserve(1, self.lanes.common().front());
        // SAFETY: there is room for it.
        unsafe { hold.accept(item, tag) };
    }

    pub(super) fn hold_of<'s>(
        hold: &'s mut Hold<T>,
        peeked: &'s mut Option<Box<Hold<T>>>,
        purpose: Purpose,
    ) -> &'s mut Hold<T> {
        match purpose {
            Purpose::Hold => hold,
            Purpose::Look => peeked.get_or_insert_with(|| Box::new(Hold::new())),
        }
    }
}

/// What an item is taken for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// To be held by the transaction.
    Hold,
    /// To be looked at.
    Look,
}

/// What is held.
impl<T> Seat<T> {
    /// Where the next held item will be.
    pub(super) fn end_of_hold(&self) -> Spot {
        self.hold.end()
    }

    /// The next item that was given out to nobody yet, and its tag.
    pub(crate) fn next_fresh(&self, Fresh(spot): &mut Fresh) -> Option<(&T, Tag)> {
        let held = self.hold.step(spot)?;
        // SAFETY: held, and lent to nobody who may write to it.
        Some(unsafe { (&*held.item(), held.tag()) })
    }

    /// The parts of the hold from `spot` on: the first place of each, and how many it has.
    pub(super) fn places_from(
        &self,
        spot: Spot,
    ) -> impl Iterator<Item = (*const Held<T>, usize)> + '_ {
        self.hold.places_from(spot)
    }

    /// The item that was held last, and how often it was delivered.
    #[inline]
    pub(super) fn newest(&self) -> (*mut T, u32) {
        let held = self.hold.newest();
        // SAFETY: the newest is held.
        (held.item(), unsafe { held.tag() }.attempts)
    }

    /// What is known of the item at an address, if this transaction holds it.
    pub(crate) fn tag_of(&self, address: usize) -> Option<Tag> {
        self.hold.tag_of(address)
    }

    /// Counts removed items that are somewhere else by now.
    pub(crate) fn count_aborted(&mut self, items: usize) {
        self.desk().count_aborted(items);
    }
}

impl<T, M> Seat<Stored<T, M>> {
    /// Takes up to `most` items, committed at once, without what the order knows of them.
    pub(crate) fn pop_batch(&mut self, most: usize, items: &mut Vec<T>) -> usize {
        self.pop_into(most, items)
    }

    /// Takes a held item out of the transaction, which must say later how that ended, by
    /// [`Seat::count_aborted`].
    ///
    /// # Panics
    ///
    /// If another transaction holds the item.
    #[allow(clippy::needless_pass_by_value)] // whoever has it has it no more
    pub(crate) fn remove(&mut self, item: Grip<'_, T>) -> Entry<Stored<T, M>> {
        // SAFETY: the grip, which ends here, was the only way to use the item, and a grip is of the
        // present transaction: it borrows the cell.
        unsafe { self.hold.remove(item.address()) }
    }
}

/// Ends of transactions.
impl<T> Seat<T> {
    /// Commits: publishes what is staged, and leaves what is held to be taken out. Says how many
    /// items were staged, and how many held.
    #[inline]
    pub(crate) fn commit(&mut self, _: &Unborrowed<'_>) -> (usize, usize) {
        let staged = self.staged();
        if staged > 0 {
            self.publish();
            self.desk().end_staging();
        }
        (staged, self.commit_held())
    }

    #[inline]
    fn publish(&mut self) {
        if let Some(shard) = self.shard() {
            self.producer.publish(shard);
        }
    }

    /// Leaves what is held to be taken out, and says how many items that are.
    #[inline]
    fn commit_held(&mut self) -> usize {
        let held = self.held();
        if held > 0 {
            self.taken = true;
            self.hold.commit();
            self.desk().count_committed(held);
        }
        held
    }

    /// Takes out the next committed item.
    #[inline]
    pub(crate) fn take_out(&mut self, _: &Unborrowed<'_>) -> Option<T> {
        let item = self.hold.take_out();
        self.taken = self.held() > 0;
        item
    }

    /// Drops the committed items that were not taken out.
    #[inline]
    pub(crate) fn drop_taken(&mut self, unborrowed: &Unborrowed<'_>) {
        if mem::needs_drop::<T>() {
            drop_all(|| self.take_out(unborrowed));
        } else {
            self.taken = false;
            self.hold.clear();
        }
    }

    /// Gives back what is held, and says how many items that were.
    pub(crate) fn give_back(&mut self, _: &Unborrowed<'_>) -> usize {
        let held = self.held();
        if held > 0 {
            self.hold.give_back(self.lanes.common());
            self.consumer.aborted(&self.lanes);
            self.desk().count_aborted(held);
        }
        held
    }

    /// Gives back what is held without a delivery counted, and says how many items that were.
    pub(crate) fn give_back_uncounted(&mut self, _: &Unborrowed<'_>) -> usize {
        let held = self.held();
        self.hold.uncount();
        self.hold.give_back(self.lanes.common());
        self.desk().uncount_taken(held);
        held
    }

    /// The held item at `spot`, which moves on to the next one, and its tag.
    pub(crate) fn next_held<'s>(
        &'s self,
        spot: &mut Spot,
        _: &'s Unborrowed<'_>,
    ) -> Option<(&'s T, Tag)> {
        let held = self.hold.next_at(spot)?;
        // SAFETY: held, and nobody else uses it.
        Some(unsafe { (&*held.item(), held.tag()) })
    }

    /// Takes the item that [`Seat::next_held`] has just given out of the transaction, which must say later how that
    /// ended, by [`Seat::count_aborted`].
    ///
    /// # Panics
    ///
    /// If there is none before the spot.
    pub(crate) fn remove_before(&mut self, spot: Spot, _: &Unborrowed<'_>) -> Entry<T> {
        // SAFETY: no held item is borrowed.
        unsafe { self.hold.remove_before(spot) }
    }

    /// Ends the transaction: gives back what is held, then drops what is staged.
    pub(super) fn abort(&mut self, unborrowed: &Unborrowed<'_>) {
        self.give_back(unborrowed);
        self.end_staging();
        self.drop_staged();
    }

    /// Gives everything leased back. Nothing is staged or held.
    fn leave(&mut self) {
        self.consumer.leave();
        let lanes = &self.lanes;
        if let Some(lease) = self.lease.take() {
            let producer = mem::replace(&mut self.producer, Producer::new());
            lanes.give_up(lease.number, producer);
        }
        // What was taken away from its transaction may not be counted yet.
        let desks = lanes.desks();
        if !desks.stays(self.desk_number) && !self.desk().is_open() {
            desks.retire(self.desk_number);
        }
        desks.release(self.desk_number);
    }
}

/// The parts of a commit over several queues: see [`Party`](super::joint::Party).
impl<T> Seat<T> {
    /// The shard that a joint has to know about.
    fn staging_shard<'a>(&self) -> Option<&'a Shard<T>> {
        self.shard().filter(|_| self.staged() > 0)
    }

    pub(crate) fn collect(&self, tails: &mut Tails) {
        if let Some(shard) = self.staging_shard() {
            tails.push(Tail {
                shard: NonNull::from(shard).as_ptr().cast_const().cast(),
                tail: self.producer.next(),
            });
        }
    }

    pub(crate) fn announce(&self, record: Record) {
        if let Some(shard) = self.staging_shard() {
            shard.announce(record.0);
        }
    }

    pub(crate) fn conclude(&mut self, _: &Unborrowed<'_>) {
        if let Some(shard) = self.staging_shard() {
            self.publish();
            shard.announce(ptr::null());
            self.desk().end_staging();
        }
        self.commit_held();
    }
}

impl<T> Drop for Seat<T> {
    fn drop(&mut self) {
        // Leaves also if a destructor of an item panics.
        let mut seat = defer_with(self, |seat| seat.leave());
        let unborrowed = Unborrowed::new();
        if seat.is_taken() {
            seat.drop_taken(&unborrowed);
        }
        seat.abort(&unborrowed);
    }
}
