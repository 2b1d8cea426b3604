//! A value for each thread, in a table indexed by the thread's number.
//!
//! A number belongs to one thread at a time. A thread that ends releases its number, and the next thread that needs
//! one takes it over, with the values that it finds there: the lock of the numbers orders their uses. The technique is
//! that of the crate `thread_local`.
//!
//! A thread remembers where its values are in the two tables that it has looked into last, by the tables' identities,
//! which are never reused: so it mostly finds its value without a look into the table.

use crate::sync::{
    defer, exclusive, lock, planted, thread_locals, weak, AtomicPtr, Mutex, Ordering, UnsafeCell,
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
    identity: usize,
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
            identity: new_identity(),
        }
    }

    /// The value of the current thread, which is made if there is none. `None`: it is in use by a caller of this call,
    /// or the thread-locals of the thread are destroyed.
    #[inline]
    pub(crate) fn own(&self, make: impl FnOnce() -> C) -> Option<Own<'_, C>> {
        let slot = match self.known_slot() {
            Some(slot) => slot,
            None => self.find_slot(make)?,
        };
        if slot.busy.replace(true) {
            return None;
        }
        // SAFETY: the slot belongs to this thread, and was not in use; it was filled before it was found.
        let value = |value: *mut Option<C>| unsafe { (*value).as_mut().unwrap_unchecked() };
        Some(Own {
            busy: &slot.busy,
            value: slot.value.with_mut(|at| NonNull::from(value(at))),
        })
    }

    /// The slot of the current thread, which is filled, if the thread remembers it.
    #[inline(always)]
    #[allow(clippy::inline_always)] // the push and the pop without a handle
    fn known_slot(&self) -> Option<&ThreadSlot<C>> {
        let known = KNOWN.try_with(|known| known.find(self.identity));
        let slot = known.ok().flatten()?;
        // SAFETY: a slot of this table, since no other one ever has this identity; it lives as long.
        Some(unsafe { slot.cast::<ThreadSlot<C>>().as_ref() })
    }

    /// Finds the slot of the current thread in the table, fills it if it is vacant, and remembers it. `None` as for
    /// [`ThreadCells::own`].
    #[cold]
    #[inline(never)]
    fn find_slot(&self, make: impl FnOnce() -> C) -> Option<&ThreadSlot<C>> {
        let slot = self.slot(location()?);
        if slot.busy.get() {
            return None;
        }
        // SAFETY: the slot belongs to this thread, and is not in use.
        let is_vacant = slot.value.with(|value| unsafe { (*value).is_none() });
        if is_vacant {
            slot.fill(make);
        }
        let at = NonNull::from(slot).cast();
        KNOWN.with(|known| known.remember(self.identity, at));
        Some(slot)
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

    /// Fills the slot, which belongs to this thread, is vacant and not in use.
    fn fill(&self, make: impl FnOnce() -> C) {
        self.busy.set(true);
        let _in_use = defer(|| self.busy.set(false));
        let new = make();
        // SAFETY: by contract; and `busy` has made this the only use.
        self.value.with_mut(|value| unsafe { *value = Some(new) });
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

/// The slots of the current thread in the two tables that it has looked into last.
struct Known([Cell<KnownSlot>; 2]);

/// The slot of the current thread in a table.
#[derive(Clone, Copy)]
struct KnownSlot {
    table: usize,
    slot: NonNull<()>,
}

impl KnownSlot {
    /// What no table has.
    const NONE: Self = Self {
        table: 0,
        slot: NonNull::dangling(),
    };
}

impl Known {
    const fn new() -> Self {
        Self([Cell::new(KnownSlot::NONE), Cell::new(KnownSlot::NONE)])
    }

    #[inline]
    fn find(&self, table: usize) -> Option<NonNull<()>> {
        let [last, before] = &self.0;
        let (last, before) = (last.get(), before.get());
        if last.table == table {
            return Some(last.slot);
        }
        (before.table == table).then_some(before.slot)
    }

    /// Remembers a slot, and forgets the one that was found before the last one.
    fn remember(&self, table: usize, slot: NonNull<()>) {
        let [last, before] = &self.0;
        before.set(last.replace(KnownSlot { table, slot }));
    }

    fn forget(&self) {
        for known in &self.0 {
            known.set(KnownSlot::NONE);
        }
    }
}

/// The identity of a new table, in this process.
fn new_identity() -> usize {
    // Not one of the models' atomics: it is only a number.
    static LAST: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    // ORDERING: Relaxed; a number.
    LAST.fetch_add(1, Ordering::Relaxed) + 1
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
    static KNOWN: Known = Known::new();
    static GUARD: NumberGuard = NumberGuard(Cell::new(None));
}

/// Releases the number of a thread when the thread ends.
struct NumberGuard(Cell<Option<(usize, Arc<Mutex<Numbers>>)>>);

impl NumberGuard {
    fn release(&self) {
        // Destructors that run later on this thread find no number, and no slot.
        let _ = LOCATION.try_with(|location| location.set(Location::GONE));
        let _ = KNOWN.try_with(Known::forget);

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

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{NumberGuard, ThreadCells, GUARD};
    use std::cell::Cell;
    use std::thread;

    #[test]
    fn each_table_has_values_of_its_own() {
        let tables = [(); 3].map(|()| ThreadCells::new());
        for round in 0..3 {
            for table in &tables {
                let own = table.own(Cell::default).expect("it is not in use");
                assert_eq!(own.replace(round + 1), round);
            }
        }
    }

    #[test]
    fn a_new_table_has_no_values_of_the_one_that_was_there_before() {
        let mut table = ThreadCells::new();
        assert_eq!(table.own(|| 1).as_deref(), Some(&1));
        table = ThreadCells::new();
        assert_eq!(table.own(|| 2).as_deref(), Some(&2));
    }

    #[test]
    fn threads_share_no_values() {
        let table = ThreadCells::new();
        let own = table.own(|| 1);
        let other = || assert_eq!(table.own(|| 2).as_deref(), Some(&2));
        thread::scope(|scope| scope.spawn(other).join().unwrap());
        assert_eq!(own.as_deref(), Some(&1));
    }

    #[test]
    fn a_thread_that_ends_forgets_its_values() {
        let table = ThreadCells::new();
        let ends = || {
            assert!(table.own(|| 1).is_some());
            GUARD.with(NumberGuard::release);
            assert!(table.own(|| 2).is_none());
        };
        thread::scope(|scope| scope.spawn(ends).join().unwrap());
    }
}
