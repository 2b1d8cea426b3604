//! Blocks: the held items of a transaction, and after its abort the home of its runs.
//!
//! A block belongs to one handle while it is filled, in *stretches* of consecutive items that came
//! from one lane. A run is the chain of one lane's stretches. An abort gives the block up and links
//! its runs: no allocation, no copy, no work per item. The block is retired when all its runs are
//! unlinked.

use super::front::Front;
use super::reclaim::Pin;
use super::row::Row;
use super::sink::Sink;
use super::slot::Slot;
use super::tag::{Entry, Tag};
use super::times::known;
use crate::sync::{AtomicU64, AtomicUsize, Ordering, UnsafeCell};
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};

/// Runs in a block; a transaction that touches more shards uses more blocks.
pub(super) const RUNS: usize = 4;

/// The allocation: a header and the items.
pub(super) type Filled<T> = NonNull<Row<Block<T>, Held<T>>>;

/// The header of a block.
pub(super) struct Block<T> {
    runs: [Run<T>; RUNS],
    /// Runs that are still linked.
    linked: AtomicUsize,
}

/// The place of a held item, which begins with the item.
#[repr(C)]
pub(super) struct Held<T> {
    slot: Slot<T>,
    note: UnsafeCell<MaybeUninit<Note>>,
}

/// What is noted beside an item.
#[derive(Clone, Copy)]
struct Note {
    since: u64,
    attempts: u32,
    /// The index of the next item of its run.
    next: u32,
}

impl Note {
    #[inline]
    fn new(Tag { attempts, since }: Tag, next: u32) -> Self {
        Self {
            since,
            attempts,
            next,
        }
    }

    #[inline]
    fn tag(self) -> Tag {
        Tag {
            attempts: self.attempts,
            since: self.since,
        }
    }
}

/// What one transaction took from one shard, as far as it is in one block.
///
/// Plain fields are written by the transaction's handle, before the link publishes the run.
pub(super) struct Run<T> {
    home: Cell<Option<NonNull<Front<T>>>>,
    block: Cell<Option<Filled<T>>>,
    cursor: AtomicU64,
    next: Cell<*mut Run<T>>,
    /// Whether it has more than one stretch.
    scattered: Cell<bool>,
    /// Before the link: the last item, the last run of the same home, and the next home's first.
    last_item: Cell<u32>,
    chain_end: Cell<*mut Run<T>>,
    sibling: Cell<*mut Run<T>>,
}

/// Which item of a run comes next, and how many are left: `next << 32 | left`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Cursor(u64);

impl Cursor {
    #[allow(clippy::cast_possible_truncation)] // the upper half
    fn next(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // the lower half
    pub(super) fn left(self) -> usize {
        self.0 as u32 as usize
    }

    fn new(next: u32, left: usize) -> Self {
        Self(u64::from(next) << 32 | left as u64)
    }
}

impl<T> Held<T> {
    fn vacant() -> Self {
        Self {
            slot: Slot::vacant(),
            note: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Holds an item, which `next` will follow if that comes from the same lane.
    ///
    /// # Safety
    ///
    /// The place is vacant and the caller's alone.
    #[inline]
    pub(super) unsafe fn fill(&self, item: T, tag: Tag, next: u32) {
        let note = Note::new(tag, next);
        // SAFETY: by contract.
        unsafe { self.slot.fill(item) };
        // SAFETY: likewise.
        self.note.with_mut(|place| unsafe { (*place).write(note) });
    }

    /// Moves the item out.
    ///
    /// # Safety
    ///
    /// The place is filled and the caller's alone.
    #[inline]
    pub(super) unsafe fn take(&self) -> T {
        // SAFETY: by contract.
        unsafe { self.slot.take() }
    }

    /// Moves the item out, and says so in its tag.
    ///
    /// # Safety
    ///
    /// As for [`Held::take`].
    pub(super) unsafe fn remove(&self) -> Entry<T> {
        // SAFETY: by contract.
        unsafe {
            let entry = Entry {
                tag: self.tag(),
                item: self.take(),
            };
            self.set_tag(Tag::GONE);
            entry
        }
    }

    /// # Safety
    ///
    /// The place was filled, and is the caller's alone.
    pub(super) unsafe fn set_tag(&self, tag: Tag) {
        // SAFETY: by contract.
        self.note.with_mut(|note| unsafe {
            let note = (*note).assume_init_mut();
            *note = Note::new(tag, note.next);
        });
    }

    /// The address of the item.
    #[inline]
    pub(super) fn item(&self) -> *mut T {
        self.slot.as_ptr()
    }

    /// What is known of the item.
    ///
    /// # Safety
    ///
    /// As for `note`.
    #[inline]
    pub(super) unsafe fn tag(&self) -> Tag {
        // SAFETY: by contract.
        unsafe { self.note() }.tag()
    }

    /// # Safety
    ///
    /// The place is or was filled, before the block was shared or by the caller.
    unsafe fn note(&self) -> Note {
        // SAFETY: by contract.
        self.note.with(|note| unsafe { (*note).assume_init() })
    }
}

impl<T> Block<T> {
    /// Allocates a block for `len` items.
    pub(super) fn allocate(len: usize) -> Filled<T> {
        let header = Self {
            runs: std::array::from_fn(|_| Run::vacant()),
            linked: AtomicUsize::new(0),
        };
        Row::new(header, len, Held::vacant)
    }

    /// The run of the items from `home`, set aside if there is none yet. `None`: all are in use.
    ///
    /// # Safety
    ///
    /// The block is alive and the caller's.
    pub(super) unsafe fn run_for(block: Filled<T>, home: &Front<T>) -> Option<u32> {
        let home = Some(NonNull::from(home));
        // SAFETY: alive.
        let runs = unsafe { &Row::header(block).runs };
        let index = runs
            .iter()
            .position(|run| run.home.get() == home || run.home.get().is_none())?;
        runs[index].home.set(home);
        u32::try_from(index).ok()
    }

    /// Adds the items in `start..end`, if any, to the chain of `run`.
    ///
    /// # Safety
    ///
    /// The block is alive and the caller's; the items are filled, and follow those of all runs.
    pub(super) unsafe fn add_stretch(block: Filled<T>, run: u32, start: u32, end: u32) {
        if start < end {
            // SAFETY: alive.
            let runs = unsafe { &Row::header(block).runs };
            // SAFETY: as the caller's.
            unsafe { runs[run as usize].extend(block, start, end) };
        }
    }

    /// Forgets all stretches.
    ///
    /// # Safety
    ///
    /// The block is alive and the caller's.
    pub(super) unsafe fn forget_stretches(block: Filled<T>) {
        // SAFETY: alive.
        unsafe { &Row::header(block).runs }
            .iter()
            .for_each(Run::clear);
    }

    /// Takes places whose items have left out of all runs.
    ///
    /// # Safety
    ///
    /// The block is alive and the caller's.
    pub(super) unsafe fn skip_gaps(block: Filled<T>) {
        // SAFETY: alive.
        let runs = unsafe { &Row::header(block).runs }.iter();
        for run in runs.filter(|run| run.cursor().left() > 0) {
            run.skip_gaps();
        }
    }

    /// Makes the block ready to be given up, and returns the runs with items.
    ///
    /// # Safety
    ///
    /// The block is alive and the caller's.
    pub(super) unsafe fn complete<'a>(block: Filled<T>) -> impl Iterator<Item = &'a Run<T>>
    where
        T: 'a,
    {
        // SAFETY: alive.
        let header: &'a Self = unsafe { Row::header(block) };
        let used = || header.runs.iter().filter(|run| run.cursor().left() > 0);
        // ORDERING: Relaxed; the links publish it.
        header.linked.store(used().count(), Ordering::Relaxed);
        used()
    }

    /// Counts one run as unlinked, and retires the block after the last.
    ///
    /// # Safety
    ///
    /// The run was unlinked by the caller, while pinned.
    pub(super) unsafe fn release(block: Filled<T>, pin: &Pin) {
        // SAFETY: a block with a linked run is alive.
        let linked = unsafe { &Row::header(block).linked };
        // ORDERING: Relaxed, both; the others' accesses end with their pins, which retirement waits
        // for. The load saves the last one its step.
        if linked.load(Ordering::Relaxed) == 1 || linked.fetch_sub(1, Ordering::Relaxed) == 1 {
            // SAFETY: no run of it can be reached any more, and whoever still moves items out is
            // pinned. The items are gone, so that freeing runs no user code.
            unsafe {
                let bytes = Row::<Self, Held<T>>::bytes(Row::len(block));
                pin.retire(bytes, move || Row::free(block));
            }
        }
    }
}

impl<T> Run<T> {
    fn vacant() -> Self {
        Self {
            home: Cell::new(None),
            block: Cell::new(None),
            cursor: AtomicU64::new(0),
            next: Cell::new(ptr::null_mut()),
            scattered: Cell::new(false),
            last_item: Cell::new(0),
            chain_end: Cell::new(ptr::null_mut()),
            sibling: Cell::new(ptr::null_mut()),
        }
    }

    /// Appends the items in `start..end`.
    ///
    /// # Safety
    ///
    /// The block is the run's and the caller's, and the items are filled.
    unsafe fn extend(&self, block: Filled<T>, start: u32, end: u32) {
        let (cursor, more) = (self.cursor(), (end - start) as usize);
        let cursor = if cursor.left() == 0 {
            self.block.set(Some(block));
            Cursor::new(start, more)
        } else {
            self.scattered.set(true);
            self.set_follower(start);
            Cursor::new(cursor.next(), cursor.left() + more)
        };
        self.last_item.set(end - 1);
        // ORDERING: Relaxed; the link publishes it.
        self.cursor.store(cursor.0, Ordering::Relaxed);
    }

    /// Takes places whose items have left out of the chain.
    fn skip_gaps(&self) {
        let (mut at, count) = (self.cursor().next(), self.cursor().left());
        let (mut first, mut left) = (at, 0);
        for _ in 0..count {
            let held = self.held(at);
            // SAFETY: filled once.
            let note = unsafe { held.note() };
            if !note.tag().is_gone() {
                if left == 0 {
                    first = at;
                } else {
                    self.set_follower(at);
                }
                self.last_item.set(at);
                left += 1;
            }
            at = note.next;
        }
        self.scattered.set(true);
        // ORDERING: Relaxed; the link publishes it.
        self.cursor
            .store(Cursor::new(first, left).0, Ordering::Relaxed);
    }

    /// Makes the item at `next` follow the last one.
    fn set_follower(&self, next: u32) {
        // SAFETY: filled once, and not shared yet.
        self.held(self.last_item.get())
            .note
            .with_mut(|note| unsafe { (*note).assume_init_mut().next = next });
    }

    /// Forgets all items.
    fn clear(&self) {
        self.scattered.set(false);
        // ORDERING: Relaxed; not shared yet.
        self.cursor.store(0, Ordering::Relaxed);
    }

    /// Adds this run to a list with one chain of runs per home, and returns the list's head.
    pub(super) fn group(&self, homes: *mut Run<T>) -> *mut Run<T> {
        let this: *const Self = self;
        let this = this.cast_mut();
        let mut at = homes;
        // SAFETY: runs of blocks that are not shared yet.
        while let Some(first) = unsafe { at.as_ref() } {
            if first.home.get() == self.home.get() {
                // SAFETY: as above.
                unsafe { &*first.chain_end.get() }.next.set(this);
                first.chain_end.set(this);
                return homes;
            }
            at = first.sibling.get();
        }
        self.chain_end.set(this);
        self.sibling.set(homes);
        this
    }

    /// Links the chains of a list made by [`Run::group`], each to its home.
    ///
    /// # Safety
    ///
    /// The runs' blocks are complete, and the caller gives them up.
    pub(super) unsafe fn link_all(mut homes: *mut Run<T>) {
        while let Some(first) = NonNull::new(homes) {
            // SAFETY: not linked yet, so its block is alive. Read before the link: afterwards the
            // run may be gone.
            let (home, last) = unsafe {
                homes = first.as_ref().sibling.get();
                (first.as_ref().home.get(), first.as_ref().chain_end.get())
            };
            if let (Some(home), Some(last)) = (home, NonNull::new(last)) {
                // SAFETY: a home is part of a shard, which the handle keeps alive.
                unsafe { home.as_ref().link(first, last) };
            }
        }
    }

    #[inline]
    pub(super) fn cursor(&self) -> Cursor {
        // ORDERING: Acquire; pairs with the Release in `claim`: who sees a run used up sees that
        // its home's `emptied` was stepped.
        Cursor(self.cursor.load(Ordering::Acquire))
    }

    /// Where the cursor stands after `count` items more.
    #[allow(clippy::cast_possible_truncation)] // blocks are far smaller than u32
    pub(super) fn advance(&self, cursor: Cursor, count: usize) -> Cursor {
        let left = cursor.left() - count;
        let mut next = cursor.next();
        if !self.scattered.get() {
            next += count as u32;
        } else if left > 0 {
            for _ in 0..count {
                // SAFETY: filled before the link.
                next = unsafe { self.held(next).note() }.next;
            }
        }
        Cursor::new(next, left)
    }

    /// Claims the items between two cursors: true if nobody was faster.
    pub(super) fn claim(&self, from: Cursor, to: Cursor) -> bool {
        // ORDERING: Release; pairs with the Acquire in `cursor`. Relaxed on failure.
        self.cursor
            .compare_exchange(from.0, to.0, Ordering::Release, Ordering::Relaxed)
            .is_ok()
    }

    /// Moves claimed items into the sink.
    ///
    /// # Safety
    ///
    /// The caller claimed `count` items from `cursor` on, while pinned, and moves them once. The
    /// sink granted room for them.
    pub(super) unsafe fn move_out<S: Sink<T>>(&self, cursor: Cursor, count: usize, sink: &mut S) {
        let mut at = cursor.next();
        for _ in 0..count {
            let held = self.held(at);
            // SAFETY: filled before the link.
            let note = unsafe { held.note() };
            // SAFETY: ours by the claim; filled before the link. The sink granted room.
            unsafe { sink.accept(held.slot.take(), note.tag().again()) };
            at = note.next;
        }
    }

    /// The least time of the items that are left.
    pub(super) fn oldest(&self) -> Option<u64> {
        let cursor = self.cursor();
        let mut at = cursor.next();
        let times = (0..cursor.left()).map(|_| {
            // SAFETY: filled before the link.
            let note = unsafe { self.held(at).note() };
            at = note.next;
            note.since
        });
        times.filter_map(known).min()
    }

    fn held(&self, index: u32) -> &Held<T> {
        let block = self.block();
        // SAFETY: a run is reached only while its block is alive; indices stay within it.
        unsafe { Row::get(block, index as usize) }
    }

    pub(super) fn block(&self) -> Filled<T> {
        self.block.get().expect("a run with items has a block")
    }

    pub(super) fn next(&self) -> *mut Run<T> {
        self.next.get()
    }

    pub(super) fn set_next(&self, next: *mut Run<T>) {
        self.next.set(next);
    }
}
