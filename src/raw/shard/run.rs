//! Runs: chains of the items that one transaction took from one shard, as an abort returns them.

use crate::raw::memory::entry::{DeliveryMeta, Entry};
use crate::raw::memory::row::Row;
use crate::raw::memory::segment::known;
use crate::raw::memory::slot::Slot;
use crate::sync::{planted, weak, AtomicPtr, AtomicU64, AtomicUsize, Ordering, UnsafeCell};
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};

/// The address of the front of the shard that items came from, where they return. It lives as long as the queue.
pub(in crate::raw) type Home = *const ();

/// The allocation: a header, the items, and the runs.
pub(in crate::raw) type Filled<T> = NonNull<Row<Block, HeldSlot<T>, Run<T>>>;

/// The header of a block.
pub(in crate::raw) struct Block {
    /// The number of runs that are assigned to a home.
    pub(super) used: Cell<usize>,
    /// The number of runs that are still linked, plus a large number for each that was unlinked while other visitors might
    /// use it.
    pub(super) linked: AtomicUsize,
}

/// The slot of a held item. The item is its first field.
#[repr(C)]
pub(in crate::raw) struct HeldSlot<T> {
    slot: Slot<T>,
    delivery: UnsafeCell<MaybeUninit<Packed>>,
    /// The index of the next item of its run, if that is scattered. A separate cell, since it is written when another
    /// stretch begins, and by then this item may be in use on another thread.
    next: UnsafeCell<MaybeUninit<u32>>,
}

/// [`DeliveryMeta`] without padding.
#[derive(Clone, Copy)]
#[repr(C, packed(4))]
struct Packed {
    since: u64,
    attempts: u32,
}

impl Packed {
    #[inline]
    fn new(DeliveryMeta { attempts, since }: DeliveryMeta) -> Self {
        Self { since, attempts }
    }
}

impl<T> HeldSlot<T> {
    pub(super) fn vacant() -> Self {
        Self {
            slot: Slot::vacant(),
            delivery: UnsafeCell::new(MaybeUninit::uninit()),
            next: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Stores an item.
    ///
    /// # Safety
    ///
    /// The slot is vacant, and the caller has exclusive access to it.
    #[inline]
    pub(in crate::raw) unsafe fn fill(&self, item: T, delivery: DeliveryMeta) {
        // SAFETY: by contract.
        unsafe {
            self.slot.fill(item);
            self.set_delivery(delivery);
        }
    }

    /// Moves the item out.
    ///
    /// # Safety
    ///
    /// The slot is filled, and the caller has exclusive access to it.
    #[inline]
    pub(in crate::raw) unsafe fn take(&self) -> T {
        // SAFETY: by contract.
        unsafe { self.slot.take() }
    }

    /// Moves the item out, and marks the slot as a gap.
    ///
    /// # Safety
    ///
    /// As for [`HeldSlot::take`].
    pub(in crate::raw) unsafe fn remove(&self) -> Entry<T> {
        // SAFETY: by contract.
        unsafe {
            let entry = Entry {
                delivery: self.delivery(),
                item: self.take(),
            };
            self.set_delivery(DeliveryMeta::GONE);
            entry
        }
    }

    /// # Safety
    ///
    /// The caller has exclusive access to the slot.
    #[inline]
    pub(in crate::raw) unsafe fn set_delivery(&self, delivery: DeliveryMeta) {
        let delivery = Packed::new(delivery);
        // SAFETY: by contract.
        self.delivery
            .with_mut(|cell| unsafe { (*cell).write(delivery) });
    }

    /// Sets the index of the next item of its run.
    ///
    /// # Safety
    ///
    /// The block belongs to the caller; the item may be in use elsewhere.
    #[inline]
    pub(in crate::raw) unsafe fn set_next(&self, next: u32) {
        // SAFETY: by contract.
        self.next.with_mut(|cell| unsafe { (*cell).write(next) });
    }

    /// The address of the item.
    #[inline]
    pub(in crate::raw) fn item(&self) -> *mut T {
        self.slot.as_ptr()
    }

    /// The delivery metadata of the item.
    ///
    /// # Safety
    ///
    /// The slot is or was filled, and its delivery metadata does not change during the call.
    #[inline]
    pub(in crate::raw) unsafe fn delivery(&self) -> DeliveryMeta {
        // SAFETY: by contract.
        let Packed { since, attempts } = self
            .delivery
            .with(|delivery| unsafe { (*delivery).assume_init() });
        DeliveryMeta { attempts, since }
    }

    /// The index of the next item of its run.
    ///
    /// # Safety
    ///
    /// It was set, before the block was shared or by the caller.
    pub(in crate::raw) unsafe fn next(&self) -> u32 {
        // SAFETY: by contract.
        self.next.with(|next| unsafe { (*next).assume_init() })
    }
}

/// The items in one block that one transaction took from one shard.
///
/// The plain fields are written by the transaction's handle, before the link publishes the run.
pub(in crate::raw) struct Run<T> {
    pub(super) home: Cell<Home>,
    block: Cell<Option<Filled<T>>>,
    cursor: AtomicU64,
    /// Changes after the link only while the run is a [`bookmark`](crate::raw::handle::bookmark).
    next: AtomicPtr<Run<T>>,
    /// Whether the run has more than one stretch.
    scattered: Cell<bool>,
    /// Before the link: the last item, the last run of the same home, and the next home's first.
    last_item: Cell<u32>,
    chain_end: Cell<*mut Run<T>>,
    sibling: Cell<*mut Run<T>>,
}

/// The index of a run's next item, and the number of items left: `next << 32 | left`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::raw) struct Progress(u64);

impl Progress {
    #[allow(clippy::cast_possible_truncation)] // the upper half
    pub(super) fn next(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // the lower half
    pub(in crate::raw) fn left(self) -> usize {
        self.0 as u32 as usize
    }

    /// Of a bookmark: there is nothing to be claimed yet, and the run stays linked.
    #[inline]
    fn bookmark() -> Self {
        Self::new(u32::MAX, 0)
    }

    /// Whether nothing is left, and nothing will come.
    #[inline]
    pub(in crate::raw) fn is_exhausted(self) -> bool {
        self.left() == 0 && self != Self::bookmark()
    }

    /// After the last item.
    #[inline]
    pub(in crate::raw) fn used_up() -> Self {
        Self::new(0, 0)
    }

    #[inline]
    fn new(next: u32, left: usize) -> Self {
        Self(u64::from(next) << 32 | left as u64)
    }
}

impl<T> Run<T> {
    pub(in crate::raw) fn vacant() -> Self {
        Self {
            home: Cell::new(ptr::null()),
            block: Cell::new(None),
            cursor: AtomicU64::new(0),
            next: AtomicPtr::new(ptr::null_mut()),
            scattered: Cell::new(false),
            last_item: Cell::new(0),
            chain_end: Cell::new(ptr::null_mut()),
            sibling: Cell::new(ptr::null_mut()),
        }
    }

    /// Makes the first `count` items of the block its only ones.
    #[inline]
    pub(in crate::raw) fn fill(&self, block: Filled<T>, count: usize) {
        self.block.set(Some(block));
        // ORDERING: Relaxed; the link publishes it.
        self.cursor
            .store(Progress::new(0, count).0, Ordering::Relaxed);
    }

    /// Makes the run a bookmark, whose items will be in this block.
    pub(in crate::raw) fn begin_bookmark(&self, block: Filled<T>) {
        self.block.set(Some(block));
        // ORDERING: Relaxed; the link or the insertion publishes it.
        self.cursor.store(Progress::bookmark().0, Ordering::Relaxed);
    }

    /// Makes the run a common one, with the first `count` items of the block. Takes a pointer, because others may free the run
    /// as soon as they see the store.
    ///
    /// # Safety
    ///
    /// The run is a bookmark of the caller, who does not use it any more.
    pub(in crate::raw) unsafe fn end_bookmark(run: NonNull<Self>, count: usize) {
        // SAFETY: a bookmark is alive until the store.
        let cursor = unsafe { &(*run.as_ptr()).cursor };
        // ORDERING: Release; pairs with `run.cursor`: the items, and the run that was inserted below.
        let release = weak!("run.end-bookmark", Release);
        cursor.store(Progress::new(0, count).0, release);
    }

    /// Inserts a run, which is not shared yet, below this one, a bookmark of the caller.
    pub(in crate::raw) fn insert_below(&self, run: NonNull<Run<T>>) {
        // SAFETY: not shared yet, and so alive.
        unsafe { run.as_ref() }.set_next(self.next());
        self.change_next(run.as_ptr());
    }

    /// Changes the run below this one, a bookmark of the caller.
    pub(in crate::raw) fn change_next(&self, next: *mut Run<T>) {
        // ORDERING: Release; pairs with `run.next`: the fields of an inserted run.
        let release = weak!("run.insert", Release);
        self.next.store(next, release);
    }

    /// Appends the items in `start..end`.
    ///
    /// # Safety
    ///
    /// The block belongs to the run and to the caller alone, and the items are filled.
    pub(in crate::raw) unsafe fn extend(&self, block: Filled<T>, start: u32, end: u32) {
        let (cursor, more) = (self.cursor(), (end - start) as usize);
        let cursor = if cursor.left() == 0 {
            self.block.set(Some(block));
            Progress::new(start, more)
        } else {
            self.scatter();
            self.set_follower(start);
            self.chain(start, end - 1);
            Progress::new(cursor.next(), cursor.left() + more)
        };
        self.last_item.set(end - 1);
        // ORDERING: Relaxed; the link publishes it.
        self.cursor.store(cursor.0, Ordering::Relaxed);
    }

    /// Removes slots whose items have left from the chain.
    pub(in crate::raw) fn skip_gaps(&self) {
        self.scatter();
        let cursor = self.cursor();
        let (mut first, mut left) = (cursor.next(), 0);
        for at in self.indices(cursor.next(), cursor.left()) {
            // SAFETY: filled once.
            if !unsafe { self.held(at).delivery() }.is_gone() {
                if left == 0 {
                    first = at;
                } else {
                    self.set_follower(at);
                }
                self.last_item.set(at);
                left += 1;
            }
        }
        // ORDERING: Relaxed; the link publishes it.
        self.cursor
            .store(Progress::new(first, left).0, Ordering::Relaxed);
    }

    /// Links the items of the only stretch to each other.
    fn scatter(&self) {
        if !self.scattered.replace(true) {
            self.chain(self.cursor().next(), self.last_item.get());
        }
    }

    /// Links the items from `first` to `last` to each other.
    fn chain(&self, first: u32, last: u32) {
        for at in first..last {
            // SAFETY: as in `set_follower`.
            unsafe { self.held(at).set_next(at + 1) };
        }
    }

    /// The index of the item after the one at `at`, which is not the last one.
    fn after(&self, at: u32) -> u32 {
        if self.scattered.get() {
            // SAFETY: set before the link, for all items but the last.
            unsafe { self.held(at).next() }
        } else {
            at + 1
        }
    }

    /// The indices of `count` items from `first` on.
    pub(super) fn indices(&self, first: u32, count: usize) -> impl Iterator<Item = u32> + '_ {
        (0..count).scan(first, move |at, index| {
            let this = *at;
            if index + 1 < count {
                *at = self.after(this);
            }
            Some(this)
        })
    }

    /// Makes the item at `next` the successor of the last one.
    fn set_follower(&self, next: u32) {
        // SAFETY: filled once, and not shared yet.
        unsafe { self.held(self.last_item.get()).set_next(next) };
    }

    /// Removes all items.
    pub(in crate::raw) fn clear(&self) {
        self.scattered.set(false);
        // ORDERING: Relaxed; not shared yet.
        self.cursor.store(0, Ordering::Relaxed);
    }

    /// Adds this run to a list with one chain of runs per home, and returns the list's head.
    pub(in crate::raw) fn group(&self, homes: *mut Run<T>) -> *mut Run<T> {
        let this: *const Self = self;
        let this = this.cast_mut();
        let mut at = homes;
        // SAFETY: runs of blocks that are not shared yet.
        while let Some(first) = unsafe { at.as_ref() } {
            if first.home.get() == self.home.get() {
                // SAFETY: as above.
                unsafe { &*first.chain_end.get() }.set_next(this);
                first.chain_end.set(this);
                return homes;
            }
            at = first.sibling.get();
        }
        self.chain_end.set(this);
        self.sibling.set(homes);
        this
    }

    /// Takes the first chain off a list made by [`Run::group`]: its home, its first run and its last one.
    ///
    /// # Safety
    ///
    /// The runs' blocks are complete, and the chain was not linked yet.
    pub(super) unsafe fn next_chain(
        homes: &mut *mut Run<T>,
    ) -> Option<(Home, [NonNull<Run<T>>; 2])> {
        let first = NonNull::new(*homes)?;
        // SAFETY: not linked yet, so its block is alive. Read before the link: afterwards the
        // run may have been freed.
        let run = unsafe { first.as_ref() };
        *homes = run.sibling.get();
        Some((run.home.get(), [first, NonNull::new(run.chain_end.get())?]))
    }

    /// Whether the items from this cursor on, in order, are all that was put into the block.
    #[inline]
    pub(in crate::raw) fn is_whole(&self, cursor: Progress) -> bool {
        // SAFETY: a run is reached only while its block is alive.
        let is_only = || unsafe { Row::header(self.block()) }.used.get() == 1;
        planted!("front.adopts-part", return true);
        cursor.next() == 0 && !self.scattered.get() && is_only()
    }

    #[inline]
    pub(in crate::raw) fn cursor(&self) -> Progress {
        // ORDERING: Acquire; pairs with `run.claim`: a thread that sees a run used up sees that its home's
        // `emptied` was incremented.
        Progress(self.cursor.load(weak!("run.cursor", Acquire)))
    }

    /// The cursor after `count` more items.
    #[allow(clippy::cast_possible_truncation)] // blocks are far smaller than u32
    pub(in crate::raw) fn advance(&self, cursor: Progress, count: usize) -> Progress {
        let left = cursor.left() - count;
        let mut next = cursor.next();
        if !self.scattered.get() {
            next += count as u32;
        } else if left > 0 {
            for _ in 0..count {
                next = self.after(next);
            }
        }
        Progress::new(next, left)
    }

    /// Claims the items between two cursors: false if another consumer was faster.
    pub(in crate::raw) fn claim(&self, from: Progress, to: Progress) -> bool {
        // ORDERING: Release; pairs with `run.cursor`. Relaxed on failure.
        let release = weak!("run.claim", Release);
        self.cursor
            .compare_exchange(from.0, to.0, release, Ordering::Relaxed)
            .is_ok()
            || planted!("run.claims-anyway")
    }

    /// The least time of the remaining items.
    pub(in crate::raw) fn oldest(&self) -> Option<u64> {
        let cursor = self.cursor();
        let times = self
            .indices(cursor.next(), cursor.left())
            // SAFETY: filled before the link.
            .map(|at| unsafe { self.held(at).delivery() }.since);
        times.filter_map(known).min()
    }

    pub(super) fn held(&self, index: u32) -> &HeldSlot<T> {
        let block = self.block();
        // SAFETY: a run is reached only while its block is alive; indices stay within it.
        unsafe { Row::get(block, index as usize) }
    }

    pub(in crate::raw) fn block(&self) -> Filled<T> {
        self.block.get().expect("a run with items has a block")
    }

    #[inline]
    pub(in crate::raw) fn next(&self) -> *mut Run<T> {
        // ORDERING: Acquire; pairs with `run.insert`.
        self.next.load(weak!("run.next", Acquire))
    }

    /// Sets the run below, before the link.
    #[inline]
    pub(in crate::raw) fn set_next(&self, next: *mut Run<T>) {
        // ORDERING: Relaxed; the link or the insertion publishes it.
        self.next.store(next, Ordering::Relaxed);
    }
}
