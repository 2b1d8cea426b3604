//! A value for each thread that uses a table.
//!
//! The values are in *slots*. A table has the set of its slots, behind a lock; a thread has a map from the tables that it
//! has used to its slots there. What a table costs depends on the threads that use it, and not on how many there are.
//!
//! | step | thread | how |
//! |---|---|---|
//! | a slot is made | its own, at its first call | added to the set, then to the map |
//! | the value is used | its own | a flag that no other thread reads |
//! | the thread ends | its own | the value is dropped, and the slot leaves the set, all under the lock |
//! | the table is dropped | any | the set is emptied under the lock; the slots are freed after that |
//!
//! So whoever takes a slot out of the set frees it. The map does not own the slot: an entry keeps only the set alive, which
//! tells whether the table still has the slot. Entries of dropped tables are removed when the map has doubled.
//!
//! A thread may end after what the values borrow: `thread::scope` does not wait for the destructors of thread-locals. So a
//! value is dropped under the lock, for which whoever drops the table waits; and only one whose drop uses nothing
//! that is borrowed, since a table that was forgotten outlives that too, and runs no user code. A slot in use stays until the table is dropped: user code that runs in a
//! call may exit the process, which destroys the thread-locals of the thread that makes the call. After a
//! fork the values of the other threads stay.
//!
//! A thread remembers its slots in a few tables, by the addresses of their sets, so it mostly finds its value without a
//! search in the map. An address is not used again while the map has the entry, and what
//! is remembered is forgotten when entries are removed.

use crate::raw::memory::reclaim;
use crate::sync::{count_visit, lock, thread_locals, Mutex, UnsafeCell};
use hashbrown::HashTable;
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::mem;
use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// Entries of a thread's map from which on those of dropped tables are removed.
const MAX_UNCHECKED_ENTRIES: usize = 16;

/// How many slots a thread finds without its map.
const MAX_KNOWN_SLOTS: usize = 8;

/// What a table has for a thread.
pub(crate) trait ThreadValue: Sized {
    /// Whether the value can be dropped under a lock when its thread ends: that runs no user code, and uses nothing that its
    /// type borrows.
    fn may_end(&mut self) -> bool;
}

/// A value for each thread.
pub(crate) struct ThreadCells<C: ThreadValue> {
    slots: Arc<SlotSet>,
    /// The table owns the values, which come in by shared reference.
    values: PhantomData<Cell<C>>,
}

/// The slots of one table, without the type of their values, in the order of their addresses.
#[derive(Default)]
struct SlotSet(Mutex<Vec<NonNull<()>>>);

// SAFETY: they are only addresses here; whoever uses a slot says why that is sound.
unsafe impl Send for SlotSet {}
// SAFETY: as above.
unsafe impl Sync for SlotSet {}

/// The place of one thread's value.
struct ThreadSlot<C> {
    value: UnsafeCell<C>,
    /// Whether the thread uses the value now.
    busy: Cell<bool>,
}

// SAFETY: the values are owned; the thread that drops them had to be sent them.
unsafe impl<C: ThreadValue + Send> Send for ThreadCells<C> {}
// SAFETY: by shared reference each slot is used by its thread alone. A value is dropped by another one, with the table.
unsafe impl<C: ThreadValue + Send> Sync for ThreadCells<C> {}

impl<C: ThreadValue> ThreadCells<C> {
    pub(crate) fn new() -> Self {
        Self {
            slots: Arc::default(),
            values: PhantomData,
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
        Some(Own {
            busy: &slot.busy,
            // SAFETY: the slot belongs to this thread, and was not in use.
            value: slot
                .value
                .with_mut(|value| unsafe { NonNull::new_unchecked(value) }),
        })
    }

    /// The slot of the current thread, if the thread remembers it.
    #[inline(always)] // the push and the pop without a handle
    fn known_slot(&self) -> Option<&ThreadSlot<C>> {
        let known = KNOWN.try_with(|known| known.find(Arc::as_ptr(&self.slots)));
        let slot = known.ok().flatten()?;
        // SAFETY: a slot of this table, since a thread forgets what it remembers before another set can have its address.
        // It lives as long: only this thread frees it before, when it ends, and then it remembers nothing.
        Some(unsafe { slot.cast::<ThreadSlot<C>>().as_ref() })
    }

    /// Finds the slot of the current thread in its map, or makes it, and remembers it. `None`: the thread-locals of the
    /// thread are destroyed.
    #[cold]
    #[inline(never)]
    fn find_slot(&self, make: impl FnOnce() -> C) -> Option<&ThreadSlot<C>> {
        // First: where those that are made last are destroyed first, the map is destroyed before the thread's garbage.
        reclaim::register();
        count_visit();
        let table = Arc::as_ptr(&self.slots);
        let slot = match MAP.try_with(|map| map.find(table)).ok()? {
            Some(slot) => slot,
            None => self.add_slot(make),
        };
        KNOWN.with(|known| known.remember(table, slot));
        // SAFETY: as in `known_slot`: the map has the entry.
        Some(unsafe { slot.cast::<ThreadSlot<C>>().as_ref() })
    }

    /// Makes a slot for the current thread, whose thread-locals are not destroyed.
    fn add_slot(&self, make: impl FnOnce() -> C) -> NonNull<()> {
        let slot = Box::new(ThreadSlot {
            value: UnsafeCell::new(make()),
            busy: Cell::new(false),
        });
        let slot = NonNull::from(Box::leak(slot)).cast();
        let mut slots = lock(&self.slots.0);
        let index = slots.partition_point(|other| *other < slot);
        slots.insert(index, slot);
        drop(slots);
        MAP.with(|map| {
            map.add(Entry {
                slots: Arc::clone(&self.slots),
                slot,
                end: end_slot::<C>,
            });
        });
        slot
    }
}

impl<C: ThreadValue> Drop for ThreadCells<C> {
    fn drop(&mut self) {
        let slots = mem::take(&mut *lock(&self.slots.0));
        let own = |slot: NonNull<()>| slot.cast::<ThreadSlot<C>>().as_ptr();
        // SAFETY: they were made by a box, and were in the set until now. `&mut self`: nobody uses them.
        let owned = |slot| unsafe { Box::from_raw(own(slot)) };
        // The others too if one panics.
        drop(slots.into_iter().map(owned).collect::<Vec<_>>());
    }
}

/// Drops the value in a slot if it is not in use. Returns whether it was dropped.
///
/// # Safety
///
/// The slot is one of the current thread with such a value, and in its set, whose lock is held.
unsafe fn end_slot<C: ThreadValue>(slot: NonNull<()>) -> bool {
    let slot = slot.cast::<ThreadSlot<C>>();
    // SAFETY: by contract.
    let ThreadSlot { value, busy } = unsafe { slot.as_ref() };
    // SAFETY: the slot belongs to this thread; the value is used only if it is not in use.
    let can_end = !busy.get() && value.with_mut(|value| unsafe { (*value).may_end() });
    if can_end {
        // SAFETY: made by a box; it leaves the set under the same lock, so nobody else frees it.
        drop(unsafe { Box::from_raw(slot.as_ptr()) });
    }
    can_end
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

/// The slots of the current thread.
struct Map {
    entries: RefCell<HashTable<Entry>>,
    /// The number of entries at which those of dropped tables are removed.
    full: Cell<usize>,
}

/// A slot of the current thread.
struct Entry {
    slots: Arc<SlotSet>,
    slot: NonNull<()>,
    /// [`end_slot`] for its type.
    end: unsafe fn(NonNull<()>) -> bool,
}

impl Map {
    const fn new() -> Self {
        Self {
            entries: RefCell::new(HashTable::new()),
            full: Cell::new(MAX_UNCHECKED_ENTRIES),
        }
    }

    fn find(&self, table: *const SlotSet) -> Option<NonNull<()>> {
        let entries = self.entries.borrow();
        let found = entries.find(hash_of(table), |entry| Arc::as_ptr(&entry.slots) == table);
        found.map(|entry| entry.slot)
    }

    fn add(&self, entry: Entry) {
        let mut entries = self.entries.borrow_mut();
        if entries.len() >= self.full.get() {
            entries.retain(|entry| entry.is_in_table());
            self.full.set(MAX_UNCHECKED_ENTRIES.max(2 * entries.len()));
            KNOWN.with(Known::forget);
        }
        let hash = |entry: &Entry| hash_of(Arc::as_ptr(&entry.slots));
        entries.insert_unique(hash(&entry), entry, hash);
    }

    /// Ends all values of the current thread, which ends.
    fn end(&self) {
        let _ = KNOWN.try_with(Known::forget);
        let entries = self.entries.take();
        if !entries.is_empty() {
            entries.into_iter().for_each(Entry::end);
            // The garbage of their shards: otherwise it stays until enough other threads pin.
            reclaim::collect();
        }
    }
}

/// A multiplicative hash of an address, with the upper bits, which depend on all others, below.
fn hash_of(table: *const SlotSet) -> u64 {
    let product = (table as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    product.rotate_left(u32::BITS)
}

impl Entry {
    /// Whether the table was not dropped.
    fn is_in_table(&self) -> bool {
        lock(&self.slots.0).binary_search(&self.slot).is_ok()
    }

    fn end(self) {
        let mut slots = lock(&self.slots.0);
        let Ok(index) = slots.binary_search(&self.slot) else {
            return;
        };
        // SAFETY: a slot of this thread, with a value of this type, and in the set.
        if unsafe { (self.end)(self.slot) } {
            slots.remove(index);
        }
    }
}

// Loom destroys thread-locals in a random order, and destructors that synchronize must have a fixed one. Its models
// call `end_thread` instead.
#[cfg(not(loom))]
impl Drop for Map {
    fn drop(&mut self) {
        self.end();
    }
}

/// Ends the values of the current thread, as its end does.
#[cfg(all(test, loom))]
pub(crate) fn end_thread() {
    MAP.with(Map::end);
}

/// The slots of the current thread in the tables that it has looked for in its map last, the last one first.
struct Known([Cell<KnownSlot>; MAX_KNOWN_SLOTS]);

/// The slot of the current thread in a table.
#[derive(Clone, Copy)]
struct KnownSlot {
    table: *const SlotSet,
    slot: NonNull<()>,
}

impl KnownSlot {
    /// What no table has.
    const OF_NO_TABLE: Self = Self {
        table: ptr::null(),
        slot: NonNull::dangling(),
    };
}

impl Known {
    const fn new() -> Self {
        #[allow(clippy::declare_interior_mutable_const)] // to fill an array
        const VACANT: Cell<KnownSlot> = Cell::new(KnownSlot::OF_NO_TABLE);
        Self([VACANT; MAX_KNOWN_SLOTS])
    }

    #[inline]
    fn find(&self, table: *const SlotSet) -> Option<NonNull<()>> {
        let mut known = self.0.iter().map(Cell::get);
        let found = known.find(|known| known.table == table)?;
        Some(found.slot)
    }

    /// Remembers a slot as the first one, and forgets the last one.
    fn remember(&self, table: *const SlotSet, slot: NonNull<()>) {
        let mut moved = KnownSlot { table, slot };
        for known in &self.0 {
            moved = known.replace(moved);
        }
    }

    fn forget(&self) {
        for known in &self.0 {
            known.set(KnownSlot::OF_NO_TABLE);
        }
    }
}

thread_locals! {
    static KNOWN: Known = Known::new();
    static MAP: Map = Map::new();
}

/// The values of tests.
#[cfg(test)]
impl<V> ThreadValue for Cell<V> {
    fn may_end(&mut self) -> bool {
        true
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{ThreadCells, MAP, MAX_KNOWN_SLOTS, MAX_UNCHECKED_ENTRIES};
    use crate::sync::visits_of;
    use std::cell::Cell;
    use std::sync::Arc;
    use std::thread;

    /// A value whose drops can be counted.
    type Counted = Cell<Option<Arc<()>>>;

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
    fn a_few_tables_in_turn_are_found_without_the_map() {
        let tables = [(); MAX_KNOWN_SLOTS].map(|()| ThreadCells::new());
        let searches = visits_of(|| {
            for table in tables.iter().cycle().take(10 * MAX_KNOWN_SLOTS) {
                assert!(table.own(Cell::<u8>::default).is_some());
            }
        });
        assert_eq!(searches, MAX_KNOWN_SLOTS);
    }

    #[test]
    fn a_new_table_has_no_values_of_the_one_that_was_there_before() {
        for round in 0..4 * MAX_UNCHECKED_ENTRIES {
            let table = ThreadCells::new();
            let own = table.own(|| Cell::new(round)).expect("it is not in use");
            assert_eq!(own.get(), round);
        }
    }

    #[test]
    fn a_thread_forgets_dropped_tables() {
        let kept = ThreadCells::new();
        assert!(kept.own(|| Cell::new(1)).is_some());
        for _ in 0..10 * MAX_UNCHECKED_ENTRIES {
            assert!(ThreadCells::new().own(|| Cell::new(2)).is_some());
        }
        assert!(MAP.with(|map| map.entries.borrow().len()) <= 2 * MAX_UNCHECKED_ENTRIES);
        assert_eq!(kept.own(|| Cell::new(3)).map(|own| own.get()), Some(1));
    }

    #[test]
    fn threads_share_no_values() {
        let table = ThreadCells::new();
        let own = table.own(|| Cell::new(1));
        let other = || assert_eq!(table.own(|| Cell::new(2)).map(|own| own.get()), Some(2));
        thread::scope(|scope| scope.spawn(other).join().unwrap());
        assert_eq!(own.map(|own| own.get()), Some(1));
    }

    #[test]
    fn a_thread_that_ends_ends_its_values() {
        let [count, other] = [(); 2].map(|()| Arc::new(()));
        let table = Arc::new(ThreadCells::<Counted>::new());
        let values = [&count, &other].map(Arc::clone);
        let uses = |table: Arc<ThreadCells<Counted>>, value| {
            thread::spawn(move || assert!(table.own(|| Cell::new(Some(value))).is_some()))
        };
        let [first, second] = values;
        uses(Arc::clone(&table), first).join().unwrap();
        assert_eq!(Arc::strong_count(&count), 1);
        // Whoever comes last: the thread, or the table.
        uses(table, second).join().unwrap();
        assert_eq!(Arc::strong_count(&other), 1);
    }

    #[test]
    fn a_value_in_use_does_not_end_with_its_thread() {
        let count = Arc::new(());
        let table = ThreadCells::<Counted>::new();
        let own = table.own(|| Cell::new(Some(Arc::clone(&count))));
        MAP.with(super::Map::end);
        assert_eq!(Arc::strong_count(&count), 2);
        drop(own);
        drop(table);
        assert_eq!(Arc::strong_count(&count), 1);
    }
}
