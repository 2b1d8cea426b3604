//! An allocator that knows the largest memory that a thread has asked for.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Measuring;

#[global_allocator]
static ALLOCATOR: Measuring = Measuring;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

/// The size of the largest memory that this thread has asked for during a call.
pub(crate) fn largest_of<R>(call: impl FnOnce() -> R) -> (R, usize) {
    LARGEST.set(0);
    let result = call();
    (result, LARGEST.get())
}

fn note(size: usize) {
    // The thread may be ending.
    let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(size)));
}

// SAFETY: all calls are those of the system's allocator.
unsafe impl GlobalAlloc for Measuring {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller's contract is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller's contract is the same.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size);
        // SAFETY: the caller's contract is the same.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract is the same.
        unsafe { System.dealloc(memory, layout) }
    }
}
