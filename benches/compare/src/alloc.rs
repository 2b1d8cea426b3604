//! An allocator that counts the live bytes while a workload asks for it. The other workloads pay one load.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

struct Counting;

static ON: AtomicBool = AtomicBool::new(false);
static LIVE: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Counts from zero: what was allocated before is not in the count, unless it is freed.
pub(crate) fn start() {
    LIVE.store(0, Ordering::Relaxed);
    ON.store(true, Ordering::Relaxed);
}

pub(crate) fn stop() {
    ON.store(false, Ordering::Relaxed);
}

/// Bytes allocated and not freed since the start.
pub(crate) fn live() -> usize {
    LIVE.load(Ordering::Relaxed)
}

/// Counts without a check for overflow: what was allocated before the start may be freed after it.
fn count(change: impl FnOnce(&AtomicUsize)) {
    if ON.load(Ordering::Relaxed) {
        change(&LIVE);
    }
}

fn grow(bytes: usize) {
    count(|live| {
        live.fetch_add(bytes, Ordering::Relaxed);
    });
}

fn shrink(bytes: usize) {
    count(|live| {
        live.fetch_sub(bytes, Ordering::Relaxed);
    });
}

// SAFETY: every call goes to the system's allocator unchanged; the count on the side touches no memory of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`, which is the same here.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller keeps the contract of `alloc_zeroed`, which is the same here.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        grow(size);
        shrink(layout.size());
        // SAFETY: `memory` came from `System` with this layout, and the caller keeps the contract of `realloc`.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        shrink(layout.size());
        // SAFETY: `memory` came from `System` with this layout.
        unsafe { System.dealloc(memory, layout) }
    }
}
