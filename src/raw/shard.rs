//! A shard: a queue with one producer, the holder of its lease, and any number of consumers.
//!
//! Positions count the items from the shard's first on. `head <= tail` except for the instant in
//! which [`Shard::vacate`] skips the rest of a segment.
//!
//! | word | written by | read by |
//! |---|---|---|
//! | `tail` | the leaseholder: Release | consumers: Acquire, when their cached copy is used up |
//! | `joint` | the leaseholder, around a commit over several queues | consumers, before `tail` |
//! | `front` | consumers: claims; aborts | consumers; the leaseholder only when it hands the lease back |

use super::directory::Directory;
use super::entry::Entry;
use super::front::Front;
use super::joint::Joint;
use super::producer::Producer;
use super::reclaim;
use super::segment::{number, offset, Segment};
use super::times::known;
use crate::sync::{barrier, weak, AtomicPtr, AtomicU64, Ordering, UnsafeCell};
use crossbeam_utils::CachePadded;
use std::ptr::{self, NonNull};

/// One single-producer, multi-consumer queue of a queue's many.
///
/// Type-stable: a shard lives as long as the queue, whoever leases it.
pub(super) struct Shard<T> {
    published: CachePadded<Published>,
    front: CachePadded<Front<T>>,
    supply: CachePadded<Supply>,
    /// The leaseholder's private state while nobody holds the lease.
    parked: UnsafeCell<Option<Producer<T>>>,
}

/// What the leaseholder writes.
struct Published {
    tail: AtomicU64,
    joint: AtomicPtr<Joint>,
    /// Positions that never held an item: the ends of segments given up early.
    skipped: AtomicU64,
}

/// Where segments come from and go to.
struct Supply {
    directory: Directory,
    spare: AtomicPtr<()>,
}

// SAFETY: the shard moves items of type T between threads; its raw pointers are its own.
unsafe impl<T: Send> Send for Shard<T> {}
// SAFETY: items leave by value to one claimant each, never by shared reference; `parked` belongs to
// whoever holds the lease.
unsafe impl<T: Send> Sync for Shard<T> {}

impl<T> Default for Shard<T> {
    fn default() -> Self {
        Self {
            published: CachePadded::new(Published {
                tail: AtomicU64::new(0),
                joint: AtomicPtr::new(ptr::null_mut()),
                skipped: AtomicU64::new(0),
            }),
            front: CachePadded::new(Front::new()),
            supply: CachePadded::new(Supply {
                directory: Directory::new(),
                spare: AtomicPtr::new(ptr::null_mut()),
            }),
            parked: UnsafeCell::new(Some(Producer::new())),
        }
    }
}

/// The leaseholder's side.
impl<T> Shard<T> {
    /// Takes the private state over.
    ///
    /// # Safety
    ///
    /// The caller has just taken the lease, with Acquire.
    pub(super) unsafe fn check_out(&self) -> Producer<T> {
        self.parked.with_mut(|parked| {
            // SAFETY: the leaseholder has this cell alone.
            unsafe { (*parked).take() }.expect("the last leaseholder parked it")
        })
    }

    /// Leaves the private state for the next leaseholder.
    ///
    /// # Safety
    ///
    /// The caller holds the lease and gives it back next, with Release.
    pub(super) unsafe fn check_in(&self, producer: Producer<T>) {
        self.parked.with_mut(|parked| {
            // SAFETY: the leaseholder has this cell alone.
            unsafe { *parked = Some(producer) };
        });
    }

    pub(super) fn directory(&self) -> &Directory {
        &self.supply.directory
    }

    /// Publishes all positions below `tail`.
    #[inline]
    pub(super) fn publish(&self, tail: u64) {
        // ORDERING: Release; pairs with `shard.tail`: whoever sees the positions sees the items, the
        // segment and its entry.
        let release = weak!("shard.publish", Release);
        self.published.tail.store(tail, release);
    }

    /// Shows consumers the joint that decides about this shard's next tail; null: none.
    pub(super) fn announce(&self, joint: *const Joint) {
        // ORDERING: Release; pairs with `shard.joint` and `shard.joint-again`. Set: the record is complete,
        // the items are in place. Cleared: the tail is published.
        self.published
            .joint
            .store(joint.cast_mut(), weak!("shard.announce", Release));
    }

    /// Gives the memory back of a shard in which nothing is left, and closes it: true if so.
    ///
    /// # Safety
    ///
    /// The caller is the leaseholder, whose tail is at `tail`, the end of a segment. It uses neither that
    /// nor its page any more.
    pub(super) unsafe fn retire(&self, tail: u64) -> bool {
        if self.front.head().position() != tail || !self.front.close() {
            return false;
        }
        // ORDERING: Acquire; pairs with `shard.recycle`, which keeps nothing from now on.
        let acquire = weak!("shard.close-supply", Acquire);
        let spare = self.supply.spare.swap(closed(), acquire);
        if let Some(spare) = Segment::<T>::from_raw(spare) {
            // SAFETY: a spare belongs to whoever took it; it was emptied. The shard was not closed.
            unsafe { spare.retire() };
        }
        // SAFETY: by contract, and nothing is in the shard.
        unsafe { self.directory().vacate() };
        true
    }

    /// Opens a shard that may have been retired. The caller has leased it, and it is in use.
    pub(super) fn reopen(&self) {
        self.front.reopen();
        // ORDERING: Relaxed, both; nobody else writes here while it is closed.
        if self.supply.spare.load(Ordering::Relaxed) == closed() {
            self.supply.spare.store(ptr::null_mut(), Ordering::Relaxed);
        }
    }

    /// A segment that was emptied and kept.
    pub(super) fn spare(&self) -> Option<Segment<T>> {
        // ORDERING: Relaxed; a look to save the swap below.
        let spare = self.supply.spare.load(Ordering::Relaxed);
        if spare.is_null() || spare == closed() {
            return None;
        }
        // ORDERING: Acquire; pairs with `shard.recycle`: the consumers are done with it.
        let acquire = weak!("shard.spare", Acquire);
        Segment::from_raw(self.supply.spare.swap(ptr::null_mut(), acquire))
    }

    /// Gives up what an idle shard need not hold: the spare, and the rest of the segment in use if
    /// the shard is empty. `limit` is the end of the opened segments. Returns the new tail.
    pub(super) fn vacate(&self, tail: u64, limit: u64, segment: Option<Segment<T>>) -> u64 {
        let tail = self.skip_rest(tail, limit, segment).unwrap_or(tail);
        if let Some(spare) = self.spare() {
            // SAFETY: a spare belongs to whoever took it; it was emptied.
            unsafe { spare.retire() };
        }
        tail
    }

    /// Claims the vacant rest of the segment in use, once all positions before it are claimed.
    fn skip_rest(&self, tail: u64, limit: u64, segment: Option<Segment<T>>) -> Option<u64> {
        let segment = segment.filter(|_| tail < limit)?;
        let (rest, head) = (limit - tail, self.front.head());
        if head.position() != tail || self.front.claim(head, rest).is_err() {
            return None;
        }
        self.publish(limit);
        self.count_skipped(rest);
        // SAFETY: the CAS claimed these positions.
        unsafe { self.finish(segment, rest) };
        Some(limit)
    }

    /// Claims the last published position, if it is at the head, and takes its item back.
    ///
    /// # Safety
    ///
    /// The caller is the leaseholder; `segment` is where it put the item at `position`.
    pub(super) unsafe fn retract(&self, segment: Segment<T>, position: u64) -> Option<Entry<T>> {
        // ORDERING: SeqCst, between the publication and the look at the head; pairs with `strict.between`,
        // between the two looks of `Shards::left_when_closed`: if the first look shows that the item before is claimed,
        // either it is seen here too, or the second look shows the publication.
        barrier::full("shard.retract");
        loop {
            let head = self.front.head();
            if head.position() != position {
                return None;
            }
            if self.front.claim(head, 1).is_ok() {
                break;
            }
        }
        self.count_skipped(1);
        // SAFETY: claimed just now, so it is filled, ours, and keeps its segment alive until then.
        unsafe {
            let entry = segment.take_one(position);
            self.finish(segment, 1);
            Some(entry)
        }
    }

    /// Counts published positions that gave nobody an item.
    fn count_skipped(&self, positions: u64) {
        // ORDERING: Relaxed, both; written by the leaseholder alone, for statistics.
        let skipped = self.published.skipped.load(Ordering::Relaxed);
        self.published
            .skipped
            .store(skipped + positions, Ordering::Relaxed);
    }
}

/// The consumers' side.
impl<T> Shard<T> {
    #[inline]
    pub(super) fn front(&self) -> &Front<T> {
        &self.front
    }

    /// The end of what is visible, a committed joint included.
    #[inline]
    pub(super) fn tail(&self) -> u64 {
        // ORDERING: Acquire; pairs with `shard.announce`. Before the tail: a cleared joint has its tail
        // published.
        let joint = self.published.joint.load(weak!("shard.joint", Acquire));
        if !joint.is_null() {
            if let Some(tail) = self.joint_tail() {
                return tail;
            }
        }
        // ORDERING: Acquire; pairs with `shard.publish`.
        self.published.tail.load(weak!("shard.tail", Acquire))
    }

    /// The tail that a committed joint gives this shard.
    #[cold]
    fn joint_tail(&self) -> Option<u64> {
        let _pin = reclaim::pin();
        // ORDERING: Acquire; pairs with `shard.announce`.
        let acquire = weak!("shard.joint-again", Acquire);
        let joint = self.published.joint.load(acquire);
        // SAFETY: read under the pin; joints are retired after they were cleared.
        unsafe { joint.as_ref() }?.tail_of(NonNull::from(self).as_ptr().cast_const().cast())
    }

    /// Counts claimed positions of `segment` as finished, and keeps or frees it after the last.
    ///
    /// # Safety
    ///
    /// As for [`Segment::finish`], and the segment is one of this shard's.
    pub(super) unsafe fn finish(&self, segment: Segment<T>, count: u64) {
        // SAFETY: by contract.
        if unsafe { segment.finish(count) } {
            // SAFETY: the last finisher has it alone, and all its slots are vacant.
            unsafe { self.recycle(segment) };
        }
    }

    /// # Safety
    ///
    /// The caller has the segment alone, and its slots are vacant.
    unsafe fn recycle(&self, segment: Segment<T>) {
        // SAFETY: by contract.
        unsafe { segment.reset() };
        // ORDERING: Release; pairs with `shard.spare` and `shard.close-supply`. Relaxed on failure: there is
        // one, or the shard is retired.
        let kept = self.supply.spare.compare_exchange(
            ptr::null_mut(),
            segment.into_raw(),
            weak!("shard.recycle", Release),
            Ordering::Relaxed,
        );
        if kept.is_err() {
            // SAFETY: by contract; all its positions were claimed.
            unsafe { segment.retire() };
        }
    }

    /// Whether an idle shard still holds a segment that [`Shard::vacate`] would free.
    pub(super) fn is_vacant(&self) -> bool {
        // ORDERING: Relaxed; a hint.
        offset::<T>(self.front.head().position()) == 0
            && self.supply.spare.load(Ordering::Relaxed).is_null()
    }

    /// The head's position, if no item is visible there.
    pub(super) fn position_if_empty(&self) -> Option<u64> {
        let position = self.front.head().position();
        (position >= self.tail()).then_some(position)
    }

    /// Items in line, those of returned runs aside.
    pub(super) fn backlog(&self) -> u64 {
        let position = self.front.head().position();
        self.tail().saturating_sub(position)
    }

    /// Items ever published.
    pub(super) fn pushed(&self) -> u64 {
        // ORDERING: Relaxed; statistics.
        let skipped = self.published.skipped.load(Ordering::Relaxed);
        self.tail().saturating_sub(skipped)
    }

    /// The stamp of the segment at the head; `None` if nothing is visible there.
    pub(super) fn age(&self) -> Option<u64> {
        if !self.front.is_clear() {
            return (!self.front.is_closed()).then_some(0);
        }
        let position = self.front.head().position();
        if position >= self.tail() {
            return None;
        }
        let pin = reclaim::pin();
        let found = self.directory().find::<T>(number::<T>(position), &pin);
        Some(found.map_or(u64::MAX, |(_, stamp)| stamp))
    }
}

/// Times.
impl<T> Shard<T> {
    /// The least of the times of the item at the head and of the returned ones.
    pub(super) fn oldest(&self) -> Option<u64> {
        let at_head = self.time_at_head();
        at_head.into_iter().chain(self.front.oldest()).min()
    }

    /// The time of the item at the head, if one is visible there.
    fn time_at_head(&self) -> Option<u64> {
        // Before the look at the head: a row that could be reached then is not freed until the end.
        let pin = reclaim::pin();
        let position = self.front.head().position();
        if position >= self.tail() {
            return None;
        }
        let times = self.directory().find_times(number::<T>(position), &pin)?;
        // SAFETY: the head was read under the pin, and a row has a time for each position.
        known(unsafe { times.get(offset::<T>(position)) })
    }
}

impl<T> Drop for Shard<T> {
    /// Frees the memory. The queue has taken all items out, and every consumer has finished.
    fn drop(&mut self) {
        // SAFETY: `&mut self`: nobody holds the lease.
        let producer = unsafe { self.check_out() };
        let first = number::<T>(self.front.head().position());
        // SAFETY: segments before the head are finished and gone, those behind it are not.
        unsafe { self.directory().free::<T>(first, producer.opened()) };
        if let Some(spare) = self.spare() {
            // SAFETY: a spare belongs to whoever took it.
            unsafe { spare.free() };
        }
    }
}

/// What stands for the spare segment of a retired shard.
fn closed() -> *mut () {
    ptr::null_mut::<u8>().wrapping_add(1).cast()
}
