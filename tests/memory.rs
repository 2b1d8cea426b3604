//! The memory that a queue keeps, measured by an allocator that counts the live bytes.
//!
//! A separate process, with one test at a time: the allocator counts the bytes of all threads.
//!
//! `REQUEUE_MEMORY_ITEMS` scales the number of items; 300,000 by default.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::env;
use std::mem::{self, size_of};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use common::drain;
use requeue::{FairQueue, Handle, ManualClock, Order, OwnedTransaction, PriorityQueue, Queue};

struct Counting;

/// The live bytes.
static LIVE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Number of allocations of this thread.
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator unchanged; the count on the side touches no memory of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        let _ = CALLS.try_with(|calls| calls.set(calls.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`, which is the same here.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: `memory` came from `alloc` above, with this layout, hence from `System`.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const KIB: usize = 1024;

/// Bytes that a queue may keep in addition to the measured ones.
const CONSTANT: usize = 64 * KIB;
/// Bytes that the harness allocates meanwhile for other tests.
const HARNESS: usize = 4 * KIB;

/// The epoch reclaimer keeps a bag of retired blocks for each thread and frees them when later operations have
/// advanced the epoch, so a little garbage may outlive its queue.
const GARBAGE: usize = 16 * KIB;

/// Bytes that a queue keeps for each handle of the largest number alive at once, even if they were dropped.
const FIXED: usize = 700;

/// Bytes in addition if the queue is bounded.
const BOUNDED: usize = 400;

/// Serializes the tests, so that each measures only its own bytes.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    let alone = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    // The thread of the test before ends meanwhile; its garbage is freed when a queue is dropped.
    for _ in 0..200 {
        let queue = Queue::unbounded();
        queue.push(0).unwrap();
        drop(queue);
        thread::yield_now();
    }
    alone
}

fn live() -> usize {
    LIVE.load(Ordering::Relaxed)
}

fn items() -> usize {
    let items = env::var("REQUEUE_MEMORY_ITEMS");
    items.map_or(300_000, |items| items.parse().expect("a number of items"))
}

#[track_caller]
fn assert_at_most(limit: usize) {
    let live = live();
    assert!(
        live <= limit + HARNESS,
        "{live} live bytes, at most {limit} expected"
    );
}

/// Passes items through `handle` in batches of 100 and checks that the peak of the second part is not higher than
/// that of the first one.
#[track_caller]
fn assert_flat_while_items_pass(handle: &mut Handle<u64>) {
    let mut batch = Vec::with_capacity(100);
    let mut peak_of_half = || {
        let rounds = 0..items() / 200;
        let peaks = rounds.map(|_| {
            handle.push_batch(0..100).unwrap();
            let full = live();
            assert_eq!(handle.pop_batch(100, &mut batch), 100);
            batch.clear();
            full
        });
        peaks.max().unwrap()
    };
    let first = peak_of_half();
    // The harness may allocate meanwhile, which does not last: see `HARNESS`.
    let second = (0..3).map(|_| peak_of_half()).min().unwrap();
    assert!(
        second <= first + GARBAGE,
        "{first} live bytes became {second}"
    );
}

#[test]
fn a_drained_queue_gives_its_memory_back() {
    let _alone = alone();
    let before = live();
    let queue = Queue::unbounded();
    let mut handles: Vec<Handle<u64>> = (0..8).map(|_| queue.handle()).collect();
    for item in 0..items() {
        handles[item % 8].push(item as u64).unwrap();
    }
    assert!(live() >= before + items() * size_of::<u64>());
    let mut popped = 0;
    while handles[popped % 8].pop().is_ok() {
        popped += 1;
    }
    assert_eq!(popped, items());
    assert_at_most(before + CONSTANT);
}

/// A visit moves the items of aborted transactions, and those at the head, to blocks that it fills.
#[test]
fn a_visit_makes_a_queue_little_heavier() {
    let _alone = alone();
    let queue = Queue::<[u8; KIB]>::builder().stickiness(1).build();
    let mut handle = queue.handle();
    handle.push_batch((0..1000).map(|_| [0; KIB])).unwrap();
    let open: Vec<OwnedTransaction<_>> = (0..500)
        .map(|_| {
            let tx = queue.begin_owned();
            tx.pop().unwrap();
            tx
        })
        .collect();
    drop(open);
    let before = live();
    assert_eq!(queue.peek_each(|_| ()), 1000);
    assert_at_most(before + 1000 * KIB / 4 + CONSTANT);
    assert_eq!(drain(&queue).len(), 1000);
}

#[test]
fn an_open_transaction_pins_its_own_items_only() {
    let _alone = alone();
    let queue = Queue::unbounded();
    let (mut holder, mut worker) = (queue.handle(), queue.handle());
    worker.push_batch([1, 2]).unwrap();
    let tx = holder.begin();
    let item = tx.pop().unwrap();
    assert_flat_while_items_pass(&mut worker);
    assert_eq!(*item, 1);
    tx.commit();
}

#[test]
fn an_idle_handle_pins_nothing() {
    let _alone = alone();
    let before = live();
    let queue = Queue::unbounded();
    let (mut idle, mut worker) = (queue.handle(), queue.handle());
    worker.push_batch([1, 2]).unwrap();
    assert_eq!(idle.pop(), Ok(1));
    assert_flat_while_items_pass(&mut worker);
    (0..items() as u64).for_each(|item| worker.push(item).unwrap());
    while worker.pop().is_ok() {}
    assert_at_most(before + CONSTANT);
    drop(idle);
}

/// An owner of a stack takes its last item out of its shard.
#[test]
fn items_that_their_owner_takes_leave_nothing() {
    let _alone = alone();
    let before = live();
    let queue = Queue::builder().lifo().build();
    let mut handle = queue.handle();
    for item in 0..items() {
        handle.push(item).unwrap();
        assert_eq!(handle.pop(), Ok(item));
    }
    assert_at_most(before + CONSTANT);
}

#[test]
fn items_without_a_handle_leave_nothing() {
    let _alone = alone();
    let before = live();
    let queue = Queue::unbounded();
    for _ in 0..2 {
        (0..items() / 2).for_each(|item| queue.push(item).unwrap());
        assert!(live() >= before + items() / 2 * size_of::<usize>());
        while queue.pop().is_ok() {}
        assert_at_most(before + CONSTANT);
    }
}

#[test]
fn short_lived_handles_leave_nothing() {
    let _alone = alone();
    for queue in [Queue::unbounded(), Queue::bounded(16)] {
        let mut consumer = queue.handle();
        let mut use_up = |handles: u64| {
            for item in 0..handles {
                let mut handle = queue.handle();
                handle.push_batch([2 * item, 2 * item + 1]).unwrap();
                assert!(handle.pop().is_ok());
                drop(handle);
                assert!(consumer.pop().is_ok());
            }
            live()
        };
        let level = use_up(1_000);
        use_up(19_000);
        assert_at_most(level + GARBAGE);
    }
}

#[test]
fn many_live_handles_leave_little() {
    const HANDLES: usize = 1_000;
    let _alone = alone();
    let before = live();
    let queue = Queue::unbounded();
    let mut handles: Vec<_> = (0..HANDLES).map(|_| queue.handle()).collect();
    for handle in &mut handles {
        handle.push_batch(0..10).unwrap();
    }
    drop(handles);
    assert_eq!(drain(&queue).len(), 10 * HANDLES);
    assert_at_most(before + HANDLES * KIB + CONSTANT);
}

#[test]
fn dropped_handles_leave_little() {
    const HANDLES: usize = 2_000;
    let _alone = alone();
    let queue = Queue::unbounded();
    let mut holder = queue.handle();
    let before = live();
    for _ in 0..2 {
        let mut handles: Vec<_> = (0..HANDLES).map(|_| queue.handle()).collect();
        for (handle, item) in handles.iter_mut().zip(0..) {
            handle.push_batch([item, item]).unwrap();
        }
        let tx = holder.begin();
        assert_eq!(tx.pop_batch(HANDLES).len(), HANDLES);
        drop(handles);
        tx.abort();
        assert_eq!(drain(&queue).len(), 2 * HANDLES);
        assert_at_most(before + FIXED * HANDLES + CONSTANT);
    }
}

#[test]
fn staged_and_aborted_items_leave_no_trace() {
    let _alone = alone();
    let before = live();
    let queue = Queue::unbounded();
    let mut handle = queue.handle();
    for (times, staged) in [(1, 100_000), (100, 1_000)] {
        for _ in 0..times {
            let tx = handle.begin();
            (0..staged).for_each(|item| tx.push(Box::new(item)).unwrap());
            assert!(live() >= before + staged * size_of::<usize>());
            tx.abort();
        }
        assert_at_most(before + CONSTANT);
    }
    assert!(queue.is_empty());
    assert_eq!(queue.stats().pushed, 0);
}

#[test]
fn aborted_items_leave_nothing_once_popped() {
    let _alone = alone();
    let before = live();
    let queue = Queue::unbounded();
    let mut handle = queue.handle();
    handle.push_batch((0..10_000).map(Box::new)).unwrap();
    for _ in 0..20 {
        let tx = handle.begin();
        assert_eq!(tx.pop_batch(5_000).len(), 5_000);
        tx.abort();
    }
    assert_eq!(drain(&queue).len(), 10_000);
    assert_at_most(before + CONSTANT);
}

/// Pops this many items and aborts.
fn abort_of(handle: &mut Handle<usize>, items: usize) {
    let tx = handle.begin();
    assert_eq!(tx.pop_batch(items).len(), items);
    tx.abort();
}

/// The large block of a transaction that aborted is not kept by whoever takes the few items in it.
#[test]
fn handles_keep_no_large_blocks() {
    const HANDLES: usize = 16;
    /// As many items as fit into a number of blocks, each twice as large as the last one.
    const FULL: usize = 2_016;
    let _alone = alone();
    let queue = Queue::unbounded();
    let mut aborter = queue.handle();
    let mut handles: Vec<_> = (0..HANDLES).map(|_| queue.handle()).collect();
    for handle in &mut handles {
        aborter.push(0).unwrap();
        (0..3).for_each(|_| abort_of(handle, 1));
        assert_eq!(handle.pop(), Ok(0));
    }
    let before = live();
    for handle in &mut handles {
        aborter.push_batch(0..FULL + 10).unwrap();
        abort_of(&mut aborter, FULL + 10);
        assert_eq!(aborter.pop_batch(FULL, &mut Vec::new()), FULL);
        let tx = handle.begin();
        assert_eq!(tx.pop_batch(10).len(), 10);
        drop(tx.commit());
    }
    assert!(queue.is_empty());
    assert_at_most(before + HANDLES * 8 * KIB + CONSTANT);
}

#[test]
fn a_dropped_queue_leaves_nothing() {
    let _alone = alone();
    let before = live();
    let queue = Queue::unbounded();
    let mut handles: Vec<_> = (0..8).map(|_| queue.handle()).collect();
    for item in 0..items() / 10 {
        handles[item % 8].push(Box::new(item)).unwrap();
        queue.push(Box::new(item)).unwrap();
    }
    for handle in &mut handles {
        (0..items() / 100).for_each(|_| drop(handle.pop().unwrap()));
        let tx = handle.begin();
        assert_eq!(tx.pop_batch(10).len(), 10);
        tx.push(Box::new(0)).unwrap();
        mem::forget(tx);
    }
    drop((queue, handles));
    assert_at_most(before + GARBAGE);
}

#[test]
fn threads_that_end_leave_nothing() {
    let _alone = alone();
    let queue = Queue::unbounded();
    let use_up = |threads: u64| {
        for _ in 0..threads {
            let queue = queue.clone();
            let user = thread::spawn(move || {
                (0..600).for_each(|item| queue.push(item).unwrap());
                assert_eq!(drain(&queue).len(), 600);
            });
            user.join().unwrap();
        }
        live()
    };
    let level = use_up(50);
    use_up(450);
    assert_at_most(level + GARBAGE);
}

/// Runs `user` on `threads` threads, which all live until `meanwhile` was called, and returns its result when they have
/// ended.
fn with_threads<R>(
    threads: usize,
    user: impl Fn() + Clone + Send + 'static,
    meanwhile: impl FnOnce() -> R,
) -> R {
    let at = Arc::new(Barrier::new(threads + 1));
    let spawn = |_| {
        let (at, user) = (Arc::clone(&at), user.clone());
        let run = move || {
            user();
            at.wait();
            at.wait();
        };
        let small = thread::Builder::new().stack_size(128 * KIB);
        small.spawn(run).unwrap()
    };
    let users: Vec<_> = (0..threads).map(spawn).collect();
    at.wait();
    let result = meanwhile();
    at.wait();
    for user in users {
        user.join().unwrap();
    }
    result
}

#[test]
fn threads_that_have_ended_leave_as_little_as_dropped_handles() {
    const THREADS: usize = 1_000;
    let _alone = alone();
    for queue in [Queue::unbounded(), Queue::bounded(10 * THREADS)] {
        let most = if queue.capacity().is_some() {
            FIXED + BOUNDED
        } else {
            FIXED
        };
        let before = live();
        let user = {
            let queue = queue.clone();
            move || {
                queue.push(1).unwrap();
                assert_eq!(queue.pop(), Ok(1));
            }
        };
        let pass_one = |mut handle: Handle<i32>| {
            handle.push(1).unwrap();
            assert_eq!(handle.pop(), Ok(1));
        };
        for _ in 0..2 {
            with_threads(THREADS, user.clone(), || ());
            // What the epoch reclaimer keeps for each thread that has ended, over 2 KiB, is freed by later pins, mostly.
            let limit = before + THREADS * (most + KIB) + CONSTANT;
            let is_freed = (0..100).any(|_| {
                (0..THREADS).for_each(|_| pass_one(queue.handle()));
                live() <= limit
            });
            assert!(is_freed, "{} live bytes, at most {limit} expected", live());
        }
        queue.stats().check().unwrap();
    }
}

#[test]
fn a_queue_costs_the_same_whatever_the_number_of_threads() {
    const THREADS: usize = 2_046;
    let _alone = alone();
    let others = Queue::unbounded();
    let user = move || others.push(1).unwrap();
    let costs = || {
        let cost = || {
            user();
            let before = live();
            let queue = Queue::unbounded();
            queue.push(1).unwrap();
            assert_eq!(queue.pop(), Ok(1));
            live() - before
        };
        thread::scope(|scope| scope.spawn(cost).join().unwrap())
    };
    let alone = costs();
    let beside = with_threads(THREADS, user.clone(), costs);
    assert!(
        beside <= alone + KIB,
        "{alone} bytes without other threads, {beside} beside {THREADS}"
    );
}

#[test]
fn a_thread_without_thread_locals_leaves_nothing() {
    /// Uses a queue after the thread's other thread-locals are dropped: those that are created first are dropped
    /// last.
    struct Last;
    impl Drop for Last {
        fn drop(&mut self) {
            assert_flat_while_items_pass(&mut Queue::unbounded().handle());
        }
    }
    thread_local! {
        static LAST: Last = const { Last };
    }
    let _alone = alone();
    let user = thread::spawn(|| {
        LAST.with(|_| ());
        assert_flat_while_items_pass(&mut Queue::unbounded().handle());
    });
    assert!(user.join().is_ok());
}

#[test]
fn owned_transactions_use_their_handles_again() {
    let _alone = alone();
    let queue = Queue::unbounded();
    let deliver = |deliveries: usize| {
        for item in 0..deliveries {
            let tx = queue.begin_owned();
            tx.push(item).unwrap();
            assert!(tx.pop().is_err());
            drop(tx.commit());
            let tx = queue.begin_owned();
            tx.pop().unwrap();
            drop(tx.commit());
        }
        live()
    };
    deliver(100);
    let calls = CALLS.with(Cell::get);
    let level = deliver(100);
    let calls = CALLS.with(Cell::get) - calls;
    assert!(calls < 50, "{calls} allocations for 200 transactions");
    deliver(20_000);
    assert_at_most(level + GARBAGE);
}

#[test]
fn few_handles_are_kept_for_owned_transactions() {
    const DELIVERIES: usize = 2_000;
    let _alone = alone();
    let queue = Queue::unbounded();
    let before = live();
    for _ in 0..2 {
        let deliveries: Vec<_> = (0..DELIVERIES).map(|_| queue.begin_owned()).collect();
        for (item, tx) in deliveries.iter().enumerate() {
            tx.push(item).unwrap();
        }
        assert!(
            live() >= before + DELIVERIES * 2 * KIB,
            "each has a segment"
        );
        drop(deliveries);
        assert_at_most(before + DELIVERIES * FIXED + 2 * CONSTANT);
    }
}

/// Holds 2,000 items of this many shards, taken round-robin, and gives them back.
#[track_caller]
fn assert_little_is_held_for_items_of(shards: usize) {
    const ITEMS: usize = 2_000;
    let queue = Queue::unbounded();
    let mut handles: Vec<_> = (0..shards).map(|_| queue.handle()).collect();
    let mut holder = queue.handle();
    for handle in &mut handles {
        handle.push((0, 0)).unwrap();
        assert!(holder.pop().is_ok());
    }
    let before = live();
    let tx = holder.begin();
    for item in 0..ITEMS {
        let shard = item % shards;
        handles[shard].push((shard, item)).unwrap();
        assert_eq!(*tx.pop().unwrap(), (shard, item));
    }
    assert_at_most(before + 256 * KIB);

    tx.abort();
    let items = drain(&queue);
    assert_eq!(items.len(), ITEMS);
    for shard in 0..shards {
        let of_shard = items.iter().filter(|item| item.0 == shard);
        let in_order = (shard..ITEMS).step_by(shards);
        assert!(of_shard.map(|item| item.1).eq(in_order));
    }
}

#[test]
fn little_is_held_for_items_of_many_shards() {
    let _alone = alone();
    for shards in [4, 5, 8, 64] {
        assert_little_is_held_for_items_of(shards);
    }
}

#[test]
fn delayed_items_leave_nothing_once_popped() {
    const DELAY: Duration = Duration::from_secs(1);
    let _alone = alone();
    let clock = ManualClock::new();
    let queue = Queue::builder().clock(clock.clone()).build();
    let before = live();
    let mut handle = queue.handle();
    handle
        .push_batch((0..items() / 3).map(|_| [0_u8; 200]))
        .unwrap();
    let tx = handle.begin();
    for item in tx.pop_batch(items()) {
        tx.retry_after(item, DELAY).unwrap();
    }
    tx.commit();
    assert!(live() >= before + items() / 3 * 200);
    clock.advance(DELAY);
    assert_eq!(drain(&queue).len(), items() / 3);
    assert_at_most(before + CONSTANT);
}

/// How many bytes each of many scheduled items costs beside itself.
fn bytes_per_scheduled<O: Order<u64>>(clock: &ManualClock, queue: &Queue<u64, O>) -> usize {
    const DELAY: Duration = Duration::from_secs(1);
    // Just after the vectors have grown, they have the most room.
    let count = items() as u64;
    let before = live();
    for item in 0..count {
        queue
            .after(DELAY + Duration::from_nanos(item * 7_919 % count))
            .push(item)
            .unwrap();
    }
    let bytes = (live() - before) / items();
    clock.advance(2 * DELAY);
    assert_eq!(drain(queue).len(), items());
    assert_at_most(before + CONSTANT);
    bytes - size_of::<u64>()
}

#[test]
fn scheduled_items_need_little_more_than_themselves_and_leave_nothing() {
    let _alone = alone();
    let clock = ManualClock::new();
    let builder = || Queue::builder().clock(clock.clone());
    let fifo = bytes_per_scheduled(&clock, &builder().build());
    let priority = bytes_per_scheduled(&clock, &builder().by_priority().build());
    println!("a scheduled item costs {fifo} bytes beside itself, {priority} by priority");
    assert!(fifo.max(priority) <= 100, "{fifo}, {priority}");
}

/// Holds that many items, and aborts, or commits.
fn hold_and_end(handle: &mut Handle<u64>, items: usize, commit: bool) {
    let tx = handle.begin();
    assert_eq!(tx.pop_batch(items).len(), items);
    if commit {
        drop(tx.commit());
    }
}

/// A queue that limits the attempts, so that memory is set aside for each held item.
#[test]
fn a_large_transaction_leaves_its_handle_little() {
    let _alone = alone();
    let queue = Queue::builder().max_attempts(2).build();
    let before = live();
    let mut handle = queue.handle();
    handle.push_batch(0..2 * items() as u64).unwrap();
    hold_and_end(&mut handle, items(), true);
    assert_at_most(before + items() * 24 + CONSTANT);
    hold_and_end(&mut handle, items(), false);
    assert_eq!(drain(&queue).len(), items());
    assert_at_most(before + CONSTANT);
}

#[test]
fn transactions_of_the_same_size_allocate_nothing_for_failures() {
    const HELD: usize = 30;
    let _alone = alone();
    let queue = Queue::builder().max_attempts(1_000).build();
    let mut handle = queue.handle();
    let mut pass = |times: usize| {
        let calls = CALLS.with(Cell::get);
        for time in 0..times {
            handle.push_batch(0..HELD as u64).unwrap();
            hold_and_end(&mut handle, HELD, false);
            hold_and_end(&mut handle, HELD, time % 2 == 0);
            handle.pop_batch(HELD, &mut Vec::with_capacity(HELD));
        }
        CALLS.with(Cell::get) - calls
    };
    pass(100);
    let calls = pass(100);
    // Those for the callers' batches, and for segments of pushed items.
    assert!(calls < 300, "{calls} allocations for 200 transactions");
}

#[test]
fn batches_in_transactions_allocate_nothing_at_rest() {
    const ITEMS: usize = 30;
    let _alone = alone();
    let mut handle = Queue::unbounded().handle();
    let mut pass = |times| {
        let calls = CALLS.with(Cell::get);
        for _ in 0..times {
            let tx = handle.begin();
            tx.push_batch(0..ITEMS).unwrap();
            tx.commit();
            let tx = handle.begin();
            assert!(tx.pop_batch(ITEMS).map(|item| *item).eq(0..ITEMS));
            tx.commit();
        }
        CALLS.with(Cell::get) - calls
    };
    pass(100);
    let calls = pass(100);
    assert!(calls < 5, "{calls} allocations for 200 transactions");
}

/// The bytes of a queue for each of its items, all of which have left a transaction in this way.
fn bytes_per_retried(retry: impl FnOnce(&mut OwnedTransaction<u64>, usize)) -> usize {
    const ITEMS: usize = 10_000;
    let before = live();
    let queue = Queue::unbounded();
    queue.handle().push_batch(0..ITEMS as u64).unwrap();
    let mut tx = queue.begin_owned();
    assert_eq!(tx.pop_batch(ITEMS).len(), ITEMS);
    retry(&mut tx, ITEMS);
    let bytes = live() - before;
    drop(tx);
    assert_eq!(drain(&queue).len(), ITEMS);
    bytes / ITEMS
}

#[test]
fn a_retried_item_needs_little_more_than_itself() {
    let _alone = alone();
    let together = bytes_per_retried(|tx, _| tx.retry_all_after(Duration::ZERO).unwrap());
    assert!(together <= 32, "{together} bytes for an item");
    let one_by_one = bytes_per_retried(|tx, items| {
        tx.retry_all_after(Duration::ZERO).unwrap();
        let items: Vec<_> = (0..items).map(|_| tx.pop().unwrap()).collect();
        for item in items {
            tx.retry(item).unwrap();
        }
    });
    assert!(one_by_one <= 128, "{one_by_one} bytes for an item");
}

/// The live bytes of a queue with so many ready items of a kilobyte, and after they were popped; and the allocations for them.
fn weigh_large(items: usize) -> [usize; 3] {
    let (before, calls) = (live(), CALLS.get());
    let mut handle = Queue::unbounded().handle();
    for item in 0..items {
        assert!(handle.push([item; KIB / size_of::<usize>()]).is_ok());
    }
    let full = live() - before;
    (0..items).for_each(|item| assert_eq!(handle.pop().unwrap()[0], item));
    assert!(handle.pop().is_err());
    [full, live() - before, CALLS.get() - calls]
}

#[test]
fn large_items_share_their_memory() {
    let _alone = alone();
    weigh_large(1); // what the thread allocates once
    let [one, empty, _] = weigh_large(1);
    assert!(one < 16 * KIB, "{one} bytes with one item");
    for items in [10, 30, 100, 300, 1_000, 10_000] {
        let [full, drained, calls] = weigh_large(items);
        let more = full - one;
        println!("{items}: {more} bytes more than with one item, {drained} after a drain, {calls} allocations");
        // A quarter of the memory is for items to come, besides a short segment.
        assert!(
            more <= items * KIB * 5 / 4 + 5 * KIB,
            "{more} bytes for {items}"
        );
        // A long segment in use, and what waits for reclamation; but no spare.
        assert!(
            drained <= empty + 32 * KIB + GARBAGE,
            "{drained} bytes after {items}"
        );
        assert!(calls <= 40 + items / 10, "{calls} allocations for {items}");
    }
}

/// The kilobytes of a queue that is new, that was used once, and that is drained after many items.
fn weight<O: Order<u64>>(make: fn() -> Queue<u64, O>) -> [usize; 3] {
    let weigh = |items: usize| {
        let before = live();
        let queue = make();
        for item in 0..items as u64 {
            assert!(queue.push(item).is_ok());
        }
        while queue.pop().is_ok() {}
        // Reclamation is deferred.
        for item in 0..items.min(1000) as u64 {
            assert!(queue.push(item).is_ok());
            assert_eq!(queue.pop(), Ok(item));
        }
        (live() - before).div_ceil(1000)
    };
    weigh(1); // what the thread allocates once
              // The harness may allocate meanwhile: see `HARNESS`.
    [0, 1, 100_000].map(|items| (0..8).map(|_| weigh(items)).min().unwrap())
}

/// The figures of `docs/guide/channels.md` and `docs/guide/performance.md`, printed with `--nocapture`.
#[test]
fn a_queue_weighs_what_the_guide_says() {
    let _alone = alone();
    let fair = || FairQueue::by(|item: &u64| item % 8);
    let weights = [
        ("FIFO", weight(Queue::unbounded), [4, 5, 10]),
        ("bounded", weight(|| Queue::bounded(100_000)), [5, 5, 14]),
        ("fair", weight(fair), [5, 7, 16]),
        ("priority", weight(PriorityQueue::by_priority), [4, 7, 10]),
    ];
    for (name, weight, most) in weights {
        println!("{name}: new, used once, drained: {weight:?} KB");
        for (weight, most) in weight.into_iter().zip(most) {
            assert!(
                weight <= most,
                "{name}: {weight} KB, at most {most} expected"
            );
        }
    }
}
