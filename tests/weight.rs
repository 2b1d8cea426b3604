//! The bytes that a queue keeps: when it is made, and when it was used once. A number here falls, and does not rise.
//!
//! Each queue is measured on a thread of its own, by an allocator that counts the bytes of that thread: neither the harness
//! nor another test is in the count.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::thread;
use std::time::Duration;

use requeue::{channel, FairQueue, Handle, Order, PriorityQueue, Queue};

struct Counting;

thread_local! {
    /// Bytes that this thread has allocated and not freed, and in how many allocations.
    static LIVE: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

fn live() -> (usize, usize) {
    LIVE.with(Cell::get)
}

/// Counts without a check for overflow: what a thread frees may come from another one.
fn count(change: impl FnOnce(usize, usize) -> (usize, usize)) {
    let _ = LIVE.try_with(|live| {
        let (bytes, blocks) = live.get();
        live.set(change(bytes, blocks));
    });
}

// SAFETY: every call goes to the system's allocator unchanged; the count on the side touches no memory of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(|bytes, blocks| (bytes.wrapping_add(layout.size()), blocks.wrapping_add(1)));
        // SAFETY: the caller keeps the contract of `alloc`, which is the same here.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(|bytes, blocks| (bytes.wrapping_sub(layout.size()), blocks.wrapping_sub(1)));
        // SAFETY: `memory` came from `alloc` above, with this layout, hence from `System`.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How often a queue is weighed: the place of a key in memory is random.
const TRIES: usize = 32;

/// Asserts that what `make` returns keeps at most `limit` bytes, on a thread that has used another queue before.
#[track_caller]
fn assert_weight<Q>(name: &str, limit: usize, make: impl Fn() -> Q + Sync) {
    let weigh = || {
        let other = use_once(Queue::unbounded());
        let (bytes, blocks) = live();
        let subject = make();
        let kept = (live().0 - bytes, live().1 - blocks);
        drop((subject, other));
        kept
    };
    let weights = (0..TRIES).map(|_| thread::scope(|scope| scope.spawn(weigh).join()));
    let most = weights.map(|weight| weight.expect("the queue can be made and used"));
    let (bytes, blocks) = most.max().expect("some tries");
    println!("{name:<20} {bytes:>6} bytes in {blocks:>2} blocks");
    assert!(bytes <= limit, "{name}: {bytes} bytes, and not {limit}");
}

/// Pushes one item, and pops it.
fn use_once<O: Order<u64>>(queue: Queue<u64, O>) -> Queue<u64, O> {
    queue.push(1).unwrap();
    assert_eq!(queue.pop(), Ok(1));
    queue
}

/// Pushes one item by a handle, and pops it by another one.
fn with_handles<O: Order<u64>>(queue: &Queue<u64, O>) -> [Handle<u64, O>; 2] {
    let mut handles = [queue.handle(), queue.handle()];
    handles[0].push(1).unwrap();
    assert_eq!(handles[1].pop(), Ok(1));
    handles
}

#[test]
fn queues_weigh_no_more() {
    let bounded = || Queue::bounded(100);
    let lifo = || Queue::builder().lifo().build();
    let leased = || Queue::builder().leased(Duration::from_secs(1)).build();
    let fair = || FairQueue::by(|item: &u64| item % 10);
    let priority = PriorityQueue::by_priority;

    assert_weight("empty", 1_120, Queue::<u64>::unbounded);
    assert_weight("used once", 3_768, || use_once(Queue::unbounded()));
    assert_weight("by handles", 3_144, || with_handles(&Queue::unbounded()));
    assert_weight("bounded", 1_888, bounded);
    assert_weight("bounded, used", 4_928, || use_once(bounded()));
    assert_weight("lifo", 2_072, lifo);
    assert_weight("lifo, used", 4_848, || use_once(lifo()));
    assert_weight("leased", 1_120, leased);
    assert_weight("leased, used", 3_928, || use_once(leased()));
    assert_weight("fair", 2_344, fair);
    assert_weight("fair, used", 5_788, || use_once(fair()));
    assert_weight("priority", 2_416, priority);
    assert_weight("priority, used", 5_800, || use_once(priority()));
    assert_weight("channel", 1_184, channel::unbounded::<u64>);
    assert_weight("channel, used", 3_832, || {
        let (sender, receiver) = channel::unbounded();
        sender.push(1_u64).unwrap();
        assert_eq!(receiver.pop(), Ok(1));
        (sender, receiver)
    });
}
