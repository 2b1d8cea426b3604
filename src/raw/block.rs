//! Blocks: the held items of a transaction, and after its abort the home of its runs.
//!
//! A block belongs to one handle while it is filled, in *stretches* of consecutive items that came
//! from one shard. A run is the chain of one shard's stretches. An abort gives the block up and links
//! its runs: no allocation, no copy, no work per item. The block is retired when all its runs are
//! unlinked.

use super::entry::{DeliveryMeta, Entry};
use super::front::Front;
use super::reclaim::Pin;
use super::row::Row;
use super::run::Run;
use super::slot::Slot;
use crate::sync::{AtomicUsize, Ordering, UnsafeCell};
use std::cell::Cell;
use std::mem::{size_of_val, ManuallyDrop, MaybeUninit};
use std::ptr::{self, NonNull};

/// Runs in a block of the usual kind.
const RUNS: usize = 4;
/// The most runs in a block; a transaction that touches more shards uses more blocks.
pub(super) const MOST_RUNS: usize = 64;

/// The allocation: a header and the items.
pub(super) type Filled<T> = NonNull<Row<Block<T>, HeldSlot<T>>>;

/// The header of a block.
pub(super) struct Block<T> {
    few: [Run<T>; RUNS],
    /// In place of the few, if it has any. Dropped by [`Block::free`].
    many: ManuallyDrop<Box<[Run<T>]>>,
    /// So many of them are set aside for a home.
    used: Cell<usize>,
    /// Runs that are still linked.
    linked: AtomicUsize,
}

/// The place of a held item, which begins with the item.
#[repr(C)]
pub(super) struct HeldSlot<T> {
    slot: Slot<T>,
    delivery: UnsafeCell<MaybeUninit<Packed>>,
    /// The index of the next item of its run. A cell of its own, since it is written when that one is taken: by then
    /// whoever uses this item may be on another thread.
    next: UnsafeCell<MaybeUninit<u32>>,
}

/// A delivery without the padding.
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

/// What is noted beside an item.
#[derive(Clone, Copy)]
pub(super) struct HeldMeta {
    pub(super) delivery: DeliveryMeta,
    /// The index of the next item of its run.
    pub(super) next: u32,
}

impl<T> HeldSlot<T> {
    fn vacant() -> Self {
        Self {
            slot: Slot::vacant(),
            delivery: UnsafeCell::new(MaybeUninit::uninit()),
            next: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Holds an item, which `next` will follow if that comes from the same shard.
    ///
    /// # Safety
    ///
    /// The place is vacant and the caller's alone.
    #[inline]
    pub(super) unsafe fn fill(&self, item: T, delivery: DeliveryMeta, next: u32) {
        // SAFETY: by contract.
        unsafe {
            self.slot.fill(item);
            self.set_delivery(delivery);
            self.set_next(next);
        }
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

    /// Moves the item out, and says so in its delivery.
    ///
    /// # Safety
    ///
    /// As for [`HeldSlot::take`].
    pub(super) unsafe fn remove(&self) -> Entry<T> {
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
    /// The place is the caller's alone.
    #[inline]
    pub(super) unsafe fn set_delivery(&self, delivery: DeliveryMeta) {
        let delivery = Packed::new(delivery);
        // SAFETY: by contract.
        self.delivery
            .with_mut(|place| unsafe { (*place).write(delivery) });
    }

    /// Says which item of its run follows.
    ///
    /// # Safety
    ///
    /// The block is the caller's, whoever has the item.
    #[inline]
    pub(super) unsafe fn set_next(&self, next: u32) {
        // SAFETY: by contract.
        self.next.with_mut(|place| unsafe { (*place).write(next) });
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
    /// The place is or was filled, and its delivery is not changed meanwhile.
    #[inline]
    pub(super) unsafe fn delivery(&self) -> DeliveryMeta {
        // SAFETY: by contract.
        let Packed { since, attempts } = self
            .delivery
            .with(|delivery| unsafe { (*delivery).assume_init() });
        DeliveryMeta { attempts, since }
    }

    /// What is noted beside the item.
    ///
    /// # Safety
    ///
    /// The place is or was filled, before the block was shared or by the caller.
    pub(super) unsafe fn note(&self) -> HeldMeta {
        // SAFETY: by contract.
        unsafe {
            HeldMeta {
                delivery: self.delivery(),
                next: self.next.with(|next| (*next).assume_init()),
            }
        }
    }
}

impl<T> Block<T> {
    /// Allocates a block for `len` items from so many shards, or a few more.
    pub(super) fn allocate(len: usize, runs: usize) -> Filled<T> {
        let many = if runs > RUNS { runs } else { 0 };
        let header = Self {
            few: std::array::from_fn(|_| Run::vacant()),
            many: ManuallyDrop::new((0..many).map(|_| Run::vacant()).collect()),
            used: Cell::new(0),
            linked: AtomicUsize::new(0),
        };
        Row::new(header, len, HeldSlot::vacant)
    }

    /// How many runs there are.
    ///
    /// # Safety
    ///
    /// The block is alive.
    pub(super) unsafe fn run_count(block: Filled<T>) -> usize {
        // SAFETY: by contract.
        unsafe { Row::header(block) }.runs().len()
    }

    #[inline]
    fn runs(&self) -> &[Run<T>] {
        if self.many.is_empty() {
            &self.few
        } else {
            &self.many
        }
    }

    /// The runs that are set aside.
    #[inline]
    fn used(&self) -> &[Run<T>] {
        &self.runs()[..self.used.get()]
    }

    /// The run of the items from `home`, set aside if there is none yet. `None`: all are. In a `vacant`
    /// block none is.
    ///
    /// # Safety
    ///
    /// The block is alive and the caller's.
    pub(super) unsafe fn run_for(block: Filled<T>, home: &Front<T>, vacant: bool) -> Option<u32> {
        let home = Some(NonNull::from(home));
        // SAFETY: alive.
        let header = unsafe { Row::header(block) };
        if vacant {
            header.used.set(0);
        }
        let known = header.used().iter().position(|run| run.home.get() == home);
        let index = known.unwrap_or(header.used.get());
        header.runs().get(index)?.home.set(home);
        header.used.set(header.used.get().max(index + 1));
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
            let runs = unsafe { Row::header(block) }.runs();
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
        unsafe { Row::header(block) }
            .used()
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
        let runs = unsafe { Row::header(block) }.used().iter();
        for run in runs.filter(|run| run.cursor().left() > 0) {
            run.skip_gaps();
        }
    }

    /// Makes the block ready to be given up, and adds the runs with items to a list as [`Run::group`]
    /// makes. `None`: there are none.
    ///
    /// # Safety
    ///
    /// The block is alive and the caller's, and so are those of the list.
    pub(super) unsafe fn complete(block: Filled<T>, homes: *mut Run<T>) -> Option<*mut Run<T>> {
        // SAFETY: alive.
        let header = unsafe { Row::header(block) };
        let filled = header.used().iter().filter(|run| run.cursor().left() > 0);
        let (homes, linked) = filled.fold((homes, 0), |(homes, linked), run| {
            (run.group(homes), linked + 1)
        });
        // ORDERING: Relaxed; the links publish it.
        header.linked.store(linked, Ordering::Relaxed);
        (linked > 0).then_some(homes)
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
                let many = size_of_val(&**Row::header(block).many);
                let bytes = Row::<Self, HeldSlot<T>>::bytes(Row::len(block)) + many;
                pin.retire(bytes, move || Self::free(block));
            }
        }
    }

    /// Frees the block at once.
    ///
    /// # Safety
    ///
    /// Nobody uses the block any more, and no item is left in it.
    pub(super) unsafe fn free(block: Filled<T>) {
        // SAFETY: by contract; the header is not used afterwards.
        unsafe {
            let many = ptr::read(&Row::header(block).many);
            drop(ManuallyDrop::into_inner(many));
            Row::free(block);
        }
    }
}
