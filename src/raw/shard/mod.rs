//! A shard: a queue with one producer, its owner, and any number of consumers.
//!
//! Positions are counted from the first item of the shard, from [`FIRST`] on. `head <= tail`, except for the instant in
//! which [`Shard::vacate`] skips the rest of a segment.
//!
//! | word | written by | read by |
//! |---|---|---|
//! | `tail` | the owner: Release | consumers: Acquire, when their cached copy is used up |
//! | `joint` | the owner, around a commit over several queues | consumers, before `tail` |
//! | | a thread that detaches the shard: the idle mark; the owner takes it off | the owner, after `tail` |
//! | `front` | consumers: claims; aborts; whoever detaches or attaches the shard | consumers; the owner only when it opens a segment or releases the shard |

pub(in crate::raw) mod cursor;
pub(in crate::raw) mod front;
pub(in crate::raw) mod joint;
pub(in crate::raw) mod producer;
mod put_back;
pub(in crate::raw) mod returns;
pub(in crate::raw) mod run;
pub(in crate::raw) mod sink;
mod supply;

pub(in crate::raw) use cursor::{Cursor, Take};
pub(in crate::raw) use front::Front;
pub(in crate::raw) use joint::{JointRecord, Tail, Tails};
pub(in crate::raw) use run::{Block, HeldSlot, Home, Progress, Run};
pub(in crate::raw) use sink::Sink;

use crate::raw::memory::{
    known, reclaim, Age, Directory, DirectoryEnd, NumberSet, Segment, MAX_ITEMS,
};
use crate::raw::shard::front::{Head, FIRST};
use crate::raw::shard::joint::Joint;
use crate::sync::{
    barrier, planted, step, weak, AtomicBool, AtomicPtr, AtomicU64, Ordering, UnsafeCell,
};
use crossbeam_utils::CachePadded;
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// A single-producer, multi-consumer queue, one of many in a queue.
///
/// Type-stable: a shard lives as long as the queue, whoever owns it.
///
/// What is seldom used is beside what the owner writes: consumers come there once per segment, and they read the tail
/// then anyway.
pub(in crate::raw) struct Shard<T> {
    front: CachePadded<Front<T>>,
    published: Published,
    supply: Supply<T>,
}

/// The fields that the owner writes.
struct Published {
    tail: AtomicU64,
    joint: AtomicPtr<Joint>,
    /// Positions that never held an item: those before the first one, and the ends of segments given up early.
    skipped: AtomicU64,
    /// Whether the shard has no owner, as a hint: the pool's set would cost the wait of a task 2 %.
    is_free: AtomicBool,
}

/// What is seldom used: the directory of segments, a spare one, and the owner's state between two owners.
struct Supply<T> {
    directory: Directory,
    spare: AtomicPtr<()>,
    /// The position of the head when the shard was last found idle.
    idle_at: AtomicU64,
    /// The end of the opened segments when the memory of the shard was freed last.
    vacant_at: AtomicU64,
    /// The owner's private state while the shard has no owner.
    checked_in: UnsafeCell<Option<Producer<T>>>,
}

/// Stages items behind a shard's tail and publishes them.
///
/// The last `staged` positions before `next` hold staged items; `next <= limit`, and the positions
/// up to `limit` have an open segment. `segment` is the last open one, `end` the place of its entry.
pub(in crate::raw) struct Producer<T> {
    next: u64,
    staged: usize,
    limit: u64,
    segment: Option<Segment<T>>,
    end: DirectoryEnd,
}

impl<T> Producer<T> {
    pub(in crate::raw) fn new() -> Self {
        Self {
            next: FIRST,
            staged: 0,
            limit: FIRST,
            segment: None,
            end: DirectoryEnd::new(),
        }
    }
}

// SAFETY: the shard moves items of type T between threads, and owns what its raw pointers point to.
unsafe impl<T: Send> Send for Shard<T> {}
// SAFETY: items leave by value to one claimant each, never by shared reference; `checked_in` is accessed
// by the owner alone.
unsafe impl<T: Send> Sync for Shard<T> {}

impl<T> Default for Shard<T> {
    fn default() -> Self {
        Self {
            front: CachePadded::new(Front::new()),
            published: Published {
                tail: AtomicU64::new(FIRST),
                joint: AtomicPtr::new(ptr::null_mut()),
                skipped: AtomicU64::new(FIRST),
                is_free: AtomicBool::new(true),
            },
            supply: Supply {
                directory: Directory::default(),
                spare: AtomicPtr::new(ptr::null_mut()),
                idle_at: AtomicU64::new(u64::MAX),
                vacant_at: AtomicU64::new(FIRST),
                checked_in: UnsafeCell::new(Some(Producer::new())),
            },
        }
    }
}

/// The owner's side.
impl<T> Shard<T> {
    /// Takes the private state.
    ///
    /// # Safety
    ///
    /// The caller has just acquired the shard, with Acquire.
    pub(in crate::raw) unsafe fn check_out(&self) -> Producer<T> {
        // ORDERING: Relaxed; a hint.
        self.published.is_free.store(false, Ordering::Relaxed);
        self.supply.checked_in.with_mut(|producer| {
            // SAFETY: only the owner accesses this cell.
            unsafe { (*producer).take() }.expect("the last owner checked it in")
        })
    }

    /// Stores the private state for the next owner.
    ///
    /// # Safety
    ///
    /// The caller owns the shard and releases it next, with Release.
    pub(in crate::raw) unsafe fn check_in(&self, producer: Producer<T>) {
        // ORDERING: Relaxed; a hint.
        self.published.is_free.store(true, Ordering::Relaxed);
        self.supply.checked_in.with_mut(|checked_in| {
            // SAFETY: only the owner accesses this cell.
            unsafe { *checked_in = Some(producer) };
        });
    }

    pub(in crate::raw) fn directory(&self) -> &Directory {
        &self.supply.directory
    }

    /// Publishes all positions below `tail`.
    #[inline]
    pub(in crate::raw) fn publish(&self, tail: u64) {
        // ORDERING: Release; pairs with `shard.tail`: a thread that sees the positions sees the items, the
        // segment and its entry.
        let release = weak!("shard.publish", Release);
        self.published.tail.store(tail, release);
    }

    /// Attaches the shard if it was marked as idle before the items just published could be seen.
    #[inline]
    pub(in crate::raw) fn show(&self) {
        if self.hides() {
            self.unmark_idle();
        }
    }

    /// Whether the shard has to be [shown](Shard::show) for the items just published.
    #[inline]
    pub(in crate::raw) fn hides(&self) -> bool {
        barrier::light_for_detach("shard.hides");
        // ORDERING: Relaxed; the barrier orders it behind the tail, against `detach.marked`: either the mark is seen
        // here, or the tail is seen by the thread that set it.
        !self.published.joint.load(Ordering::Relaxed).is_null()
    }

    /// Takes the idle mark off and attaches the shard.
    ///
    /// In this order: a thread that detaches the shard after it was added to the set sees that it is not marked.
    #[cold]
    #[inline(never)]
    fn unmark_idle(&self) {
        // ORDERING: Release; pairs with `shard.joint` and `shard.joint-again`: the tails of former joints are published.
        // The addition to the set publishes it.
        let release = weak!("shard.unmark", Release);
        let unmark = || self.published.joint.store(ptr::null_mut(), release);
        planted!("shard.unmarks-late", {
            self.front.attach();
            return unmark();
        });
        unmark();
        step!("shard.shows-nothing", self.front.attach());
    }

    /// Marks the shard as idle. Returns false if it takes part in a commit over several queues.
    pub(in crate::raw) fn mark_idle(&self) -> bool {
        // ORDERING: Relaxed, both; `detach.marked` orders it before the check of the tail. A read-modify-write, so that who
        // reads the mark sees the tail that was published before the joint was cleared.
        let marked = self.published.joint.compare_exchange(
            ptr::null_mut(),
            idle(),
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        marked.map_or_else(|joint| joint == idle(), |_| true)
    }

    /// The head, if all positions are claimed.
    pub(in crate::raw) fn head_if_idle(&self) -> Option<Head> {
        let head = self.front.head();
        // ORDERING: Relaxed; ordered by `detach.marked`, or seen with the addition to the set. Owners know their tail.
        let tail = self.published.tail.load(Ordering::Relaxed);
        (head.position() == tail).then_some(head)
    }

    /// Whether the shard is idle, and no item was taken from its head since this was asked before: a second chance, as in the
    /// clock algorithm. A hint.
    pub(in crate::raw) fn stays_idle(&self) -> bool {
        let position = self.front.head().position();
        // ORDERING: Relaxed, all; a hint.
        let tail = self.published.tail.load(Ordering::Relaxed);
        let before = self.supply.idle_at.load(Ordering::Relaxed);
        self.supply.idle_at.store(position, Ordering::Relaxed);
        position == tail && position == before
    }

    /// Sets the joint that decides about this shard's next tail, and attaches the shard, which then stays attached
    /// until the joint is cleared.
    pub(in crate::raw) fn announce(&self, joint: *const Joint) {
        // ORDERING: Release; pairs with `shard.joint` and `shard.joint-again`: the record is complete and the items
        // are stored.
        let before = self
            .published
            .joint
            .swap(joint.cast_mut(), weak!("shard.announce", Release));
        if !before.is_null() {
            step!("shard.announces-detached", self.front.attach());
        }
    }

    /// Clears the joint, or [shows](Shard::show) the shard if none was announced.
    pub(in crate::raw) fn conclude(&self) {
        // ORDERING: Relaxed; a joint was stored by this thread.
        let joint = self.published.joint.load(Ordering::Relaxed);
        if joint.is_null() || joint == idle() {
            return self.show();
        }
        // ORDERING: Release; pairs with `shard.joint` and `shard.joint-again`: the tail is published.
        self.published
            .joint
            .store(ptr::null_mut(), weak!("shard.conclude", Release));
    }

    /// Makes a shard without an owner, which was never used, a detached one.
    pub(in crate::raw) fn begin_detached(&self, set: &Arc<NumberSet>, number: usize) {
        self.front.begin_detached(set, number);
        // ORDERING: Relaxed; nobody else knows the shard.
        self.published.joint.store(idle(), Ordering::Relaxed);
    }

    /// Frees memory that an idle shard does not need: the spare, and the segment in use if the shard is
    /// empty. `limit` is the end of the opened segments. Returns the new tail.
    pub(in crate::raw) fn vacate(&self, tail: u64, limit: u64, segment: Option<Segment<T>>) -> u64 {
        let tail = self.skip_rest(tail, limit, segment).unwrap_or(tail);
        self.free_spare();
        if tail == limit {
            // ORDERING: Relaxed; a hint.
            self.supply.vacant_at.store(tail, Ordering::Relaxed);
        }
        tail
    }

    /// Claims the vacant rest of the segment in use, once all positions before it are claimed.
    fn skip_rest(&self, tail: u64, limit: u64, segment: Option<Segment<T>>) -> Option<u64> {
        let segment = segment.filter(|_| tail < limit)?;
        let rest = limit - tail;
        self.claim_at(tail, rest)?;
        // For an instant the head is behind the tail, which every reader takes for empty.
        self.publish(limit);
        self.count_skipped(rest);
        // SAFETY: the CAS claimed these positions.
        unsafe { self.finish(segment, rest) };
        Some(limit)
    }

    /// Takes the item at `position`, if it is at the head.
    ///
    /// # Safety
    ///
    /// The caller is the owner, and published the item at `position` in `segment`.
    #[inline(always)] // the pop of a stack
    pub(in crate::raw) unsafe fn take_at(&self, segment: Segment<T>, position: u64) -> Option<T> {
        self.claim_at(position, 1)?;
        // SAFETY: claimed just now, so it is filled and the caller's, and keeps its segment alive until
        // it is finished.
        unsafe {
            let item = segment.slot(position).take();
            self.finish(segment, 1);
            Some(item)
        }
    }

    /// Claims `count` positions from `position` on if that is at the head, whatever else is counted there.
    fn claim_at(&self, position: u64, count: u64) -> Option<Head> {
        let mut head = self.front.head();
        while head.position() == position {
            match self.front.claim(head, count) {
                Ok(after) => return Some(after),
                Err(now) => head = now,
            }
        }
        None
    }

    /// Counts published positions that delivered no item.
    pub(in crate::raw) fn count_skipped(&self, positions: u64) {
        // ORDERING: Relaxed, both; written by the owner alone, for statistics.
        let skipped = self.published.skipped.load(Ordering::Relaxed);
        self.published
            .skipped
            .store(skipped + positions, Ordering::Relaxed);
    }
}

/// The consumers' side.
impl<T> Shard<T> {
    #[inline]
    pub(in crate::raw) fn front(&self) -> &Front<T> {
        &self.front
    }

    /// The end of the visible items, by the tail or a committed joint.
    #[inline]
    pub(in crate::raw) fn tail(&self) -> u64 {
        let by_joint = || self.joint_tail().unwrap_or_else(|| self.published_tail());
        self.tail_without_joint().unwrap_or_else(by_joint)
    }

    /// The end of the visible items; `None` if a joint may decide about it.
    #[inline]
    pub(in crate::raw) fn tail_without_joint(&self) -> Option<u64> {
        // ORDERING: Acquire; pairs with `shard.announce`. Before the tail: when a joint is cleared its tail
        // is published.
        let joint = self.published.joint.load(weak!("shard.joint", Acquire));
        (joint <= idle()).then(|| self.published_tail())
    }

    #[inline]
    fn published_tail(&self) -> u64 {
        // ORDERING: Acquire; pairs with `shard.publish`.
        self.published.tail.load(weak!("shard.tail", Acquire))
    }

    /// The tail of this shard by a committed joint.
    #[cold]
    fn joint_tail(&self) -> Option<u64> {
        let _pin = reclaim::pin();
        // ORDERING: Acquire; pairs with `shard.announce`.
        let acquire = weak!("shard.joint-again", Acquire);
        let joint = self.published.joint.load(acquire);
        if joint == idle() {
            return None;
        }
        // SAFETY: read under the pin; joints are retired after they are cleared.
        unsafe { joint.as_ref() }?.tail_of(NonNull::from(self).as_ptr().cast_const().cast())
    }

    /// Counts claimed positions of `segment` as finished, and keeps or frees it after the last one.
    ///
    /// # Safety
    ///
    /// As for [`Segment::finish`], and the segment is one of this shard's.
    pub(in crate::raw) unsafe fn finish(&self, segment: Segment<T>, count: u64) {
        // SAFETY: by contract.
        if unsafe { segment.finish(count) } {
            // SAFETY: the last finisher has exclusive access, and all slots are vacant.
            unsafe { self.recycle(segment) };
        }
    }

    /// Whether [`Shard::vacate`] would free nothing of an idle shard, as a hint.
    pub(in crate::raw) fn is_vacant(&self) -> bool {
        // ORDERING: Relaxed, both; a hint.
        self.front.head().position() == self.supply.vacant_at.load(Ordering::Relaxed)
            && self.supply.spare.load(Ordering::Relaxed).is_null()
    }

    /// The head's position, if no item is visible there.
    #[inline]
    pub(in crate::raw) fn position_if_empty(&self) -> Option<u64> {
        let position = self.front.head().position();
        (position >= self.tail()).then_some(position)
    }

    /// Whether certainly no item is visible: no joint has to be asked, and no run is linked.
    #[inline]
    pub(in crate::raw) fn looks_empty(&self) -> bool {
        let position = self.front.head().position();
        let is_at_tail = |tail| position >= tail;
        self.tail_without_joint().is_some_and(is_at_tail) && self.front.is_clear()
    }

    /// Whether the shard has no owner, as a hint.
    #[inline]
    pub(in crate::raw) fn looks_free(&self) -> bool {
        // ORDERING: Relaxed; a hint.
        self.published.is_free.load(Ordering::Relaxed)
    }

    /// The number of visible items at the head, without returned ones.
    pub(in crate::raw) fn backlog(&self) -> u64 {
        let position = self.front.head().position();
        self.tail().saturating_sub(position)
    }

    /// The number of ready items, exact at rest.
    pub(in crate::raw) fn ready(&self) -> u64 {
        self.backlog() + self.front.ready() as u64
    }

    /// The number of items ever published.
    pub(in crate::raw) fn pushed(&self) -> u64 {
        // ORDERING: Relaxed; statistics.
        let skipped = self.published.skipped.load(Ordering::Relaxed);
        self.tail().saturating_sub(skipped)
    }

    /// When the item at the head was pushed, in parts of a tick of the clock that stamps segments, of which
    /// [`MAX_ITEMS`] make one; `None` if nothing is visible there.
    ///
    /// Interpolated between the stamps of its segment and of the next one, or of the next tick if that is not open. If the handle
    /// pauses in the middle of its last segment, the items that follow look too old, by at most a segment. If that
    /// segment were stretched to the present instead, those before the pause would look too young, and wait as long as other
    /// handles push. Returned items are older than all others.
    pub(in crate::raw) fn age(&self) -> Option<u64> {
        if !self.front.is_clear() {
            return (!self.front.is_detached()).then_some(0);
        }
        let position = self.front.head().position();
        let tail = self.tail();
        if position >= tail {
            return None;
        }
        let age = self.directory().age::<T>(position, tail, &reclaim::pin());
        let parts = MAX_ITEMS as u64;
        let age = age.map(
            |Age {
                 offset,
                 len,
                 stamps: [opened, next],
             }| { opened * parts + (next - opened) * (offset * parts / len) },
        );
        // `None`: the head has moved on meanwhile.
        Some(age.unwrap_or(u64::MAX))
    }
}

/// Times.
impl<T> Shard<T> {
    /// The least of the times of the item at the head and of the returned ones.
    pub(in crate::raw) fn oldest(&self) -> Option<u64> {
        let at_head = self.time_at_head().map(|(_, since)| since);
        at_head.into_iter().chain(self.front.oldest()).min()
    }

    /// The head, and the time of the item there, if one is visible. It is that of a later item if the head has moved since.
    fn time_at_head(&self) -> Option<(Head, u64)> {
        // Before the head is read: a segment that is reachable then is not freed until the end.
        let pin = reclaim::pin();
        let head = self.front.head();
        let position = head.position();
        if position >= self.tail() {
            return None;
        }
        let (segment, _) = self.directory().find::<T>(position, &pin)?;
        // SAFETY: the head was read under the pin, and a segment with times is retired.
        let since = known(unsafe { segment.since(position) })?;
        Some((head, since))
    }
}

impl<T> Drop for Shard<T> {
    /// Frees the memory. The queue has taken out all items, and every consumer has finished.
    fn drop(&mut self) {
        // SAFETY: `&mut self`: the shard has no owner.
        let producer = unsafe { self.check_out() };
        let head = self.front.head().position();
        // SAFETY: segments before the head are finished and freed, those behind it are not.
        unsafe { self.directory().free::<T>(head, producer.limit) };
        self.free_spare();
    }
}

/// The mark of an idle shard: less than the address of any joint.
#[inline]
fn idle() -> *mut Joint {
    ptr::null_mut::<u8>().wrapping_add(1).cast()
}
