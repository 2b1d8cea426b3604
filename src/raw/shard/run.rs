//! Runs: consecutive items that one transaction took from one shard, in a *block* of memory.
//!
//! A block belongs to one handle while it is filled with the held items of a transaction. An abort gives up the block, and
//! links its run to the shard from which the items came, without allocation, copies or work per item. When the run is
//! unlinked the block is reused by the handle that took the last item if no other thread can reach it, and retired
//! otherwise.

use crate::raw::memory::{known, DeliveryMeta, Entry, Pin, Row, Slot};
use crate::sync::{planted, weak, AtomicPtr, AtomicU64, Ordering, UnsafeCell};
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr::{self, NonNull};

/// The address of the front of the shard that items came from, where they return. It lives as long as the queue.
pub(in crate::raw) type Home = *const ();

/// The allocation: a run, and the slots of its items.
pub(in crate::raw) type Block<T> = NonNull<Row<Run<T>, HeldSlot<T>>>;

/// The slot of a held item. The item is its first field.
#[repr(C)]
pub(in crate::raw) struct HeldSlot<T> {
    slot: Slot<T>,
    delivery: UnsafeCell<MaybeUninit<DeliveryMeta>>,
}

impl<T> HeldSlot<T> {
    fn vacant() -> Self {
        Self {
            slot: Slot::vacant(),
            delivery: UnsafeCell::new(MaybeUninit::uninit()),
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
            self.put(item);
            self.set_delivery(delivery);
        }
    }

    /// Stores an item without its delivery metadata.
    ///
    /// # Safety
    ///
    /// As for [`HeldSlot::fill`].
    #[inline]
    pub(in crate::raw) unsafe fn put(&self, item: T) {
        // SAFETY: by contract.
        unsafe { self.slot.fill(item) };
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
        // SAFETY: by contract.
        self.delivery
            .with_mut(|cell| unsafe { (*cell).write(delivery) });
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
    /// The delivery metadata was written, and does not change during the call.
    #[inline]
    pub(in crate::raw) unsafe fn delivery(&self) -> DeliveryMeta {
        // SAFETY: by contract.
        self.delivery
            .with(|delivery| unsafe { (*delivery).assume_init() })
    }
}

/// The items in one block that one transaction took from one shard.
///
/// The plain fields are written by the transaction's handle, before the link publishes the run.
pub(in crate::raw) struct Run<T> {
    home: Cell<Home>,
    block: Cell<Block<T>>,
    cursor: AtomicU64,
    /// Changes after the link only while the run is a [`bookmark`](crate::raw::handle::bookmark), or is below the one of the
    /// [returned deliveries](crate::raw::shard::returns).
    next: AtomicPtr<Run<T>>,
    /// The rank of a returned delivery; 0 in any other run.
    rank: Cell<u64>,
}

/// The index of a run's next item, and the number of items left: `next << 32 | left`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::raw) struct Progress(u64);

impl Progress {
    /// The index of the next item.
    #[inline]
    fn next(self) -> usize {
        (self.0 >> 32) as usize
    }

    /// The indices of the next `count` items.
    pub(super) fn indices(self, count: usize) -> Range<usize> {
        self.next()..self.next() + count
    }

    /// After `count` more items.
    pub(in crate::raw) fn after(self, count: usize) -> Self {
        Self::new(self.next() + count, self.left() - count)
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // the lower half
    pub(in crate::raw) fn left(self) -> usize {
        self.0 as u32 as usize
    }

    /// Of a bookmark: there is nothing to be claimed yet, and the run stays linked.
    #[inline]
    fn bookmark() -> Self {
        Self::new(u32::MAX as usize, 0)
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

    /// Whether no item of the run is claimed, so that they are the first ones of the block.
    #[inline]
    pub(in crate::raw) fn is_whole(self) -> bool {
        planted!("front.adopts-part", return true);
        self.next() == 0
    }

    #[inline]
    fn new(next: usize, left: usize) -> Self {
        Self((next as u64) << 32 | left as u64)
    }
}

impl<T> Run<T> {
    /// Allocates a block with room for `len` items.
    pub(in crate::raw) fn allocate(len: usize) -> Block<T> {
        let run = Self {
            home: Cell::new(ptr::null()),
            block: Cell::new(NonNull::dangling()),
            cursor: AtomicU64::new(0),
            next: AtomicPtr::new(ptr::null_mut()),
            rank: Cell::new(0),
        };
        let block = Row::new(run, len, HeldSlot::vacant);
        // SAFETY: allocated just now.
        unsafe { Self::of(block) }.block.set(block);
        block
    }

    /// The run of a block.
    ///
    /// # Safety
    ///
    /// The block is not freed while `'b` lasts.
    #[inline]
    pub(in crate::raw) unsafe fn of<'b>(block: Block<T>) -> &'b Self {
        // SAFETY: by contract.
        unsafe { Row::header(block) }
    }

    /// Frees the block once all pins end.
    ///
    /// # Safety
    ///
    /// The caller has unlinked its run, while pinned.
    pub(in crate::raw) unsafe fn retire(block: Block<T>, pin: &Pin) {
        // SAFETY: no longer reachable, and threads that still move items out are pinned. No items are left, so freeing the
        // block runs no user code.
        unsafe {
            let bytes = Row::<Self, HeldSlot<T>>::layout(Row::len(block)).size();
            pin.retire(bytes, move || Row::free(block));
        }
    }

    /// Makes the first `count` items of the block the run's, which is not linked. They return to `home`.
    #[inline]
    pub(in crate::raw) fn fill(&self, home: Home, count: usize) {
        self.begin(home, Progress::new(0, count));
    }

    /// Makes the run a bookmark.
    pub(in crate::raw) fn begin_bookmark(&self, home: Home) {
        self.begin(home, Progress::bookmark());
    }

    #[inline]
    fn begin(&self, home: Home, cursor: Progress) {
        self.home.set(home);
        // ORDERING: Relaxed; the link or the insertion publishes it.
        self.cursor.store(cursor.0, Ordering::Relaxed);
    }

    /// Where the items return.
    #[inline]
    pub(in crate::raw) fn home(&self) -> Home {
        self.home.get()
    }

    /// Counts one more delivery of the first `count` items.
    ///
    /// # Safety
    ///
    /// The block belongs to the caller, and these slots are filled.
    #[inline]
    pub(in crate::raw) unsafe fn count_delivery(&self, count: usize) {
        for index in 0..count {
            let slot = self.held(index);
            // SAFETY: by contract.
            unsafe { slot.set_delivery(slot.delivery().again()) };
        }
    }

    /// Moves the items in the first `count` slots together, where others were removed between them, and returns how many are
    /// left.
    ///
    /// # Safety
    ///
    /// These slots were filled, and the caller has exclusive access to them.
    pub(in crate::raw) unsafe fn close_gaps(&self, count: usize) -> usize {
        let mut left = 0;
        for index in 0..count {
            // SAFETY: by contract; the slot before is vacant, because its item was removed or moved.
            unsafe {
                let slot = self.held(index);
                let delivery = slot.delivery();
                if !delivery.is_gone() {
                    if left < index {
                        self.held(left).fill(slot.take(), delivery);
                    }
                    left += 1;
                }
            }
        }
        left
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

    /// A run of one returned delivery.
    pub(in crate::raw) fn of_one(home: Home, entry: Entry<T>, rank: u64) -> NonNull<Self> {
        // SAFETY: allocated just now, with one vacant slot.
        let run = unsafe { Self::of(Self::allocate(1)) };
        run.rank.set(rank);
        // SAFETY: as above.
        unsafe { run.held(0).fill(entry.item, entry.delivery) };
        run.fill(home, 1);
        NonNull::from(run)
    }

    /// A bookmark above a run that is not shared yet.
    pub(in crate::raw) fn bookmark_above(home: Home, below: NonNull<Self>) -> NonNull<Self> {
        // SAFETY: allocated just now.
        let run = unsafe { Self::of(Self::allocate(0)) };
        run.begin_bookmark(home);
        run.set_next(below.as_ptr());
        NonNull::from(run)
    }

    /// The rank of a returned delivery; 0 for any other run.
    pub(in crate::raw) fn rank(&self) -> u64 {
        self.rank.get()
    }

    /// Inserts a run, which is not shared yet, below this one, whose link belongs to the caller.
    pub(in crate::raw) fn insert_below(&self, run: NonNull<Run<T>>) {
        // SAFETY: not shared yet, and so alive.
        unsafe { run.as_ref() }.set_next(self.next());
        self.change_next(run.as_ptr());
    }

    /// Changes the run below this one, whose link belongs to the caller.
    pub(in crate::raw) fn change_next(&self, next: *mut Run<T>) {
        // ORDERING: Release; pairs with `run.next`: the fields of an inserted run.
        let release = weak!("run.insert", Release);
        self.next.store(next, release);
    }

    #[inline]
    pub(in crate::raw) fn cursor(&self) -> Progress {
        // ORDERING: Acquire; pairs with `run.claim`: a thread that sees a run used up sees that its home's
        // `emptied` was incremented.
        Progress(self.cursor.load(weak!("run.cursor", Acquire)))
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
        // SAFETY: filled before the link.
        let time = |index| unsafe { self.held(index).delivery() }.since;
        let times = cursor.indices(cursor.left()).map(time);
        times.filter_map(known).min()
    }

    /// The time of the next item, if it is known. There is one.
    pub(super) fn next_since(&self, cursor: Progress) -> Option<u64> {
        // SAFETY: filled before the link.
        known(unsafe { self.held(cursor.next()).delivery() }.since)
    }

    pub(super) fn held(&self, index: usize) -> &HeldSlot<T> {
        // SAFETY: a run is reached only while its block is alive; indices stay within it.
        unsafe { Row::get(self.block(), index) }
    }

    #[inline]
    pub(in crate::raw) fn block(&self) -> Block<T> {
        self.block.get()
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
