//! An allocator whose addresses, as places in lines, are the same in each run of a seed.
//!
//! Each thread of the system has an arena, of chunks that are never given back. A block is used again for another of its
//! size, like in other allocators; only if it is in the present chunk, so that a simulation, which begins
//! with a new one, does not depend on what was freed before.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr;

const CHUNK: usize = 64 << 20;
const PAGE: usize = 4096;
/// Sizes and alignments are multiples of a grain. Those of blocks up to `SMALL` bytes are exact, others powers of two.
const GRAIN: usize = 16;
const SMALL: usize = 1024;
/// The alignment of what is not to share lines; blocks with it have lists of their own.
const PADDED: usize = 128;

const EXACT: usize = SMALL / GRAIN + 1;
const LISTS: usize = 2 * (EXACT + usize::BITS as usize);

struct Arena {
    next: Cell<*mut u8>,
    left: Cell<usize>,
    chunk: Cell<usize>,
    free: [Cell<*mut u8>; LISTS],
}

thread_local! {
    static ARENA: Arena = const {
        Arena {
            next: Cell::new(ptr::null_mut()),
            left: Cell::new(0),
            chunk: Cell::new(0),
            free: [const { Cell::new(ptr::null_mut()) }; LISTS],
        }
    };
}

/// Begins a new chunk, at a place that depends on the seed.
pub(crate) fn begin(seed: u64) {
    ARENA.with(|arena| {
        arena.renew();
        let skipped = usize::try_from(seed).unwrap_or(0) % (PAGE / GRAIN) * GRAIN;
        arena.take(skipped, GRAIN);
    });
}

#[allow(clippy::cast_ptr_alignment)] // blocks are aligned to a grain
impl Arena {
    fn renew(&self) {
        let layout = Layout::from_size_align(CHUNK, PAGE).expect("a power of two");
        // SAFETY: it has a size.
        let chunk = unsafe { System.alloc(layout) };
        self.next.set(chunk);
        self.left.set(if chunk.is_null() { 0 } else { CHUNK });
        self.chunk.set(chunk as usize);
        self.free.iter().for_each(|list| list.set(ptr::null_mut()));
    }

    /// The next bytes of the chunk; null if they are not left.
    fn take(&self, size: usize, align: usize) -> *mut u8 {
        let next = self.next.get();
        let skipped = (next as usize).wrapping_neg() % align;
        if skipped + size > self.left.get() {
            return ptr::null_mut();
        }
        self.left.set(self.left.get() - skipped - size);
        let block = next.wrapping_add(skipped);
        self.next.set(block.wrapping_add(size));
        block
    }

    fn allocate(&self, class: Class) -> *mut u8 {
        let list = &self.free[class.list];
        let block = list.get();
        if block.is_null() {
            let block = self.take(class.size, class.align);
            if !block.is_null() {
                return block;
            }
            self.renew();
            return self.take(class.size, class.align);
        }
        // SAFETY: a free block begins with the address of the next one.
        list.set(unsafe { block.cast::<*mut u8>().read() });
        block
    }

    fn free(&self, block: *mut u8, class: Class) {
        if (block as usize).wrapping_sub(self.chunk.get()) < CHUNK {
            let list = &self.free[class.list];
            // SAFETY: it is free, in a chunk of this arena, and large enough.
            unsafe { block.cast::<*mut u8>().write(list.get()) };
            list.set(block);
        }
    }
}

/// Blocks of one size.
#[derive(Clone, Copy)]
struct Class {
    size: usize,
    align: usize,
    list: usize,
}

/// `None`: too large for a chunk.
fn class(layout: Layout) -> Option<Class> {
    let align = if layout.align() <= GRAIN {
        GRAIN
    } else {
        PADDED
    };
    let size = layout.size().max(1).next_multiple_of(align);
    let (size, list) = match size {
        ..=SMALL => (size, size / GRAIN),
        _ => (
            size.next_power_of_two(),
            EXACT + size.next_power_of_two().ilog2() as usize,
        ),
    };
    let list = 2 * list + usize::from(align == PADDED);
    (size <= CHUNK / 4 && layout.align() <= align).then_some(Class { size, align, list })
}

/// The allocator of the process.
pub(crate) struct Arenas;

// SAFETY: blocks are apart from each other, large enough and aligned. A thread uses its own arena only, without allocating; a block that
// another thread frees is in none of its chunks.
unsafe impl GlobalAlloc for Arenas {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(class) = class(layout) else {
            // SAFETY: by contract.
            return unsafe { System.alloc(layout) };
        };
        let block = ARENA.try_with(|arena| arena.allocate(class));
        block.unwrap_or(ptr::null_mut())
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match class(layout) {
            Some(class) => drop(ARENA.try_with(|arena| arena.free(block, class))),
            // SAFETY: by contract; it came from there.
            None => unsafe { System.dealloc(block, layout) },
        }
    }
}
