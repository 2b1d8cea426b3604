//! A value for each thread, in a table indexed by the thread's number.
//!
//! A number belongs to one thread at a time. A thread that ends releases its number, and the next thread that needs
//! one takes it over, with the values that it finds there: the lock of the numbers orders their uses. The technique is
//! that of the crate `thread_local`.

use crate::sync::{
    defer, exclusive, lock, planted, thread_locals, weak, AtomicPtr, Mutex, UnsafeCell,
};
use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// Bucket `n` has the values of `2^n` threads.
const BUCKETS: usize = usize::BITS as usize;

/// A value for each thread.
pub(crate) struct ThreadCells<C> {
    buckets: [AtomicPtr<ThreadSlot<C>>; BUCKETS],
}

/// The place of one thread's value.
struct ThreadSlot<C> {
    value: UnsafeCell<Option<C>>,
    /// Whether the thread uses the value now.
    busy: Cell<bool>,
}

// SAFETY: the values are owned; the thread that drops them had to be sent them.
unsafe impl<C: Send> Send for ThreadCells<C> {}
// SAFETY: by shared reference each slot is used by one thread at a time, that with its number. Threads with the same
// number use it one after the other, in the order of the lock of the numbers, so a value moves between them.
unsafe impl<C: Send> Sync for ThreadCells<C> {}

impl<C> ThreadCells<C> {
    pub(crate) fn new() -> Self {
        Self {
            buckets: [(); BUCKETS].map(|()| AtomicPtr::new(ptr::null_mut())),
        }
    }

    /// The value of the current thread, which is made if there is none. `None`: it is in use by a caller of this call,
    /// or the thread-locals of the thread are destroyed.
    #[inline]
    pub(crate) fn own(&self, make: impl FnOnce() -> C) -> Option<Own<'_, C>> {
        let slot = self.slot(location()?);
        if slot.busy.replace(true) {
            return None;
        }
        let value = slot.value.with_mut(|value| {
            // SAFETY: the slot belongs to this thread, and was not in use.
            match unsafe { &mut *value } {
                Some(value) => NonNull::from(value),
                vacant => slot.fill(vacant, make),
            }
        });
        Some(Own {
            busy: &slot.busy,
            value,
        })
    }

    #[inline]
    fn slot(&self, Location { bucket, index }: Location) -> &ThreadSlot<C> {
        // ORDERING: Acquire; pairs with `threads.add-bucket`.
        let mut slots = self.buckets[bucket].load(weak!("threads.bucket", Acquire));
        if slots.is_null() {
            slots = self.add_bucket(bucket);
        }
        // SAFETY: a bucket lives as long as the table, and the index is less than its number of slots.
        unsafe { &*slots.add(index) }
    }

    #[cold]
    fn add_bucket(&self, bucket: usize) -> *mut ThreadSlot<C> {
        let slots: Box<[ThreadSlot<C>]> =
            (0..1_usize << bucket).map(|_| ThreadSlot::new()).collect();
        let slots = Box::into_raw(slots).cast::<ThreadSlot<C>>();
        // ORDERING: Release; pairs with `threads.bucket`. Acquire on failure; pairs with the Release of the other thread.
        match self.buckets[bucket].compare_exchange(
            ptr::null_mut(),
            slots,
            weak!("threads.add-bucket", Release),
            weak!("threads.other-bucket", Acquire),
        ) {
            Ok(_) => slots,
            Err(other) => {
                // SAFETY: made above, and not shared.
                unsafe { drop_bucket(slots, bucket) };
                other
            }
        }
    }
}

impl<C> ThreadSlot<C> {
    fn new() -> Self {
        Self {
            value: UnsafeCell::new(None),
            busy: Cell::new(false),
        }
    }

    #[cold]
    fn fill(&self, vacant: &mut Option<C>, make: impl FnOnce() -> C) -> NonNull<C> {
        let panics = defer(|| self.busy.set(false));
        let value = make();
        panics.cancel();
        NonNull::from(vacant.insert(value))
    }
}

/// # Safety
///
/// The slots are those of this bucket, and the caller's.
unsafe fn drop_bucket<C>(slots: *mut ThreadSlot<C>, bucket: usize) {
    let slots = ptr::slice_from_raw_parts_mut(slots, 1 << bucket);
    // SAFETY: by contract; they were made by a box.
    drop(unsafe { Box::from_raw(slots) });
}

impl<C> Drop for ThreadCells<C> {
    fn drop(&mut self) {
        for (bucket, slots) in self.buckets.iter_mut().enumerate() {
            let slots = exclusive(slots);
            if !slots.is_null() {
                // SAFETY: `&mut self`: nobody uses them.
                unsafe { drop_bucket(slots, bucket) };
            }
        }
    }
}

/// The use of the current thread's value. It ends on the thread on which it began.
pub(crate) struct Own<'c, C> {
    busy: &'c Cell<bool>,
    value: NonNull<C>,
}

impl<C> Deref for Own<'_, C> {
    type Target = C;

    #[inline]
    fn deref(&self) -> &C {
        // SAFETY: the slot belongs to this thread, and `busy` makes this its only use.
        unsafe { self.value.as_ref() }
    }
}

impl<C> DerefMut for Own<'_, C> {
    #[inline]
    fn deref_mut(&mut self) -> &mut C {
        // SAFETY: as above.
        unsafe { self.value.as_mut() }
    }
}

impl<C> Drop for Own<'_, C> {
    #[inline]
    fn drop(&mut self) {
        self.busy.set(false);
    }
}

/// The bucket of a number, and its index there.
#[derive(Clone, Copy)]
struct Location {
    bucket: usize,
    index: usize,
}

impl Location {
    /// For a thread that has no number yet.
    const NONE: Self = Self::without_bucket(0);
    /// For a thread whose thread-locals are destroyed.
    const GONE: Self = Self::without_bucket(1);

    const fn without_bucket(index: usize) -> Self {
        Self {
            bucket: BUCKETS,
            index,
        }
    }

    fn of(number: usize) -> Self {
        let bucket = BUCKETS - 1 - (number + 1).leading_zeros() as usize;
        Self {
            bucket,
            index: number + 1 - (1 << bucket),
        }
    }
}

/// The numbers that no thread has.
#[derive(Default)]
struct Numbers {
    /// The lowest one that was never given out.
    next: usize,
    released: BinaryHeap<Reverse<usize>>,
}

impl Numbers {
    fn acquire(&mut self) -> usize {
        if let Some(Reverse(number)) = self.released.pop() {
            return number;
        }
        let number = self.next;
        self.next += usize::from(!planted!("threads.shares-numbers"));
        number
    }
}

/// The numbers of the process.
#[cfg(not(any(loom, shuttle)))]
fn numbers() -> Arc<Mutex<Numbers>> {
    static NUMBERS: std::sync::OnceLock<Arc<Mutex<Numbers>>> = std::sync::OnceLock::new();
    Arc::clone(NUMBERS.get_or_init(Arc::default))
}

/// The numbers of one execution.
#[cfg(any(loom, shuttle))]
fn numbers() -> Arc<Mutex<Numbers>> {
    crate::sync::lazy_static! {
        static ref NUMBERS: Arc<Mutex<Numbers>> = Arc::new(Mutex::new(Numbers::default()));
    }
    Arc::clone(&NUMBERS)
}

thread_locals! {
    static LOCATION: Cell<Location> = Cell::new(Location::NONE);
    static GUARD: NumberGuard = NumberGuard(Cell::new(None));
}

/// Releases the number of a thread when the thread ends.
struct NumberGuard(Cell<Option<(usize, Arc<Mutex<Numbers>>)>>);

impl NumberGuard {
    fn release(&self) {
        // Destructors that run later on this thread find no number.
        let _ = LOCATION.try_with(|location| location.set(Location::GONE));
        if let Some((number, numbers)) = self.0.take() {
            lock(&numbers).released.push(Reverse(number));
        }
    }
}

// Loom destroys thread-locals in a random order, and destructors that synchronize must have a fixed one. Its models
// call `end_thread` instead.
#[cfg(not(loom))]
impl Drop for NumberGuard {
    fn drop(&mut self) {
        self.release();
    }
}

/// Releases the number of the current thread, which ends.
#[cfg(all(test, loom))]
pub(crate) fn end_thread() {
    GUARD.with(NumberGuard::release);
}

/// The location of the current thread's values; `None` if its thread-locals are destroyed.
#[inline]
fn location() -> Option<Location> {
    match LOCATION.try_with(Cell::get) {
        Ok(location) if location.bucket < BUCKETS => Some(location),
        Ok(location) if location.index == Location::NONE.index => acquire_number(),
        _ => None,
    }
}

#[cold]
fn acquire_number() -> Option<Location> {
    let acquire = |guard: &NumberGuard| {
        let numbers = numbers();
        let number = lock(&numbers).acquire();
        guard.0.set(Some((number, numbers)));
        let acquired = Location::of(number);
        LOCATION.with(|location| location.set(acquired));
        acquired
    };
    GUARD.try_with(acquire).ok()
}
