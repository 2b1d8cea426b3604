//! An allocator that counts the calls of each thread, and can fail one of them.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr;

struct Failing;

thread_local! {
    /// Number of allocations of this thread.
    static CALLS: Cell<u64> = const { Cell::new(0) };
    /// The number of the allocation of this thread that fails.
    static FAILS: Cell<u64> = const { Cell::new(u64::MAX) };
}

/// Counts an allocation: false if it is to fail.
fn is_granted() -> bool {
    let number = CALLS.try_with(|calls| {
        calls.set(calls.get() + 1);
        calls.get()
    });
    number.map_or(true, |number| FAILS.try_with(Cell::get) != Ok(number))
}

// SAFETY: every call that does not fail goes to the system's allocator unchanged; null is how an allocator fails, and
// the counts touch no memory of it.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !is_granted() {
            return ptr::null_mut();
        }
        // SAFETY: the caller keeps the contract of `alloc`, which is the same here.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: `memory` came from `alloc` above, with this layout, hence from `System`.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Failing = Failing;

/// Number of allocations of this thread during `call`.
pub(crate) fn allocations_of(call: impl FnOnce()) -> u64 {
    let before = CALLS.get();
    call();
    CALLS.get() - before
}

/// Lets the `number`-th allocation of this thread from now on fail, counted from 1. Returns whether it was reached
/// during `call`.
pub(crate) fn with_failing<R>(number: u64, call: impl FnOnce() -> R) -> (R, bool) {
    let fails = CALLS.get() + number;
    FAILS.set(fails);
    let result = call();
    FAILS.set(u64::MAX);
    (result, CALLS.get() >= fails)
}
