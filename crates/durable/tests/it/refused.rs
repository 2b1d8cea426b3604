//! Items that are unique by key, and items with weights, while a process runs and in the next one.

use crate::{copy_of, directory, open, options};
use requeue::{ByKey, ByPriority, Fifo, Leased, ManualClock};
use requeue_durable::{
    Budget, Builder, DuplicateOf, Durability, DurableQueue, Order, PushError, Store, StoreError,
};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, UNIX_EPOCH};
use tempfile::TempDir;

const HOUR: Duration = Duration::from_secs(3600);

/// Adds an order to a builder, and builds.
type Build<O> = fn(Builder<u32>) -> Result<DurableQueue<u32, O>, StoreError>;

/// The queue of a directory: by default the key of an item is its last digit.
struct Queue<O: Order<u32>> {
    build: Build<O>,
    set: fn(Builder<u32>) -> Builder<u32>,
    clock: ManualClock,
}

impl<O: Order<u32>> Queue<O> {
    fn new(build: Build<O>) -> Self {
        Self {
            build,
            set: |it| it.unique_by(|item| item % 10),
            clock: ManualClock::new(),
        }
    }

    fn with(self, set: fn(Builder<u32>) -> Builder<u32>) -> Self {
        Self { set, ..self }
    }

    fn open(&self, directory: &TempDir) -> DurableQueue<u32, O> {
        let builder = (self.set)(open(directory).builder("numbers"));
        (self.build)(builder.clock(self.clock.clone())).unwrap()
    }
}

macro_rules! in_all_orders {
    ($check:ident) => {
        $check::<Fifo>(|it| it.build());
        $check::<ByKey<u32, u32>>(|it| it.fair_by(|item| item % 3).build());
        $check::<ByPriority>(|it| it.by_priority().build());
        $check::<Leased<Fifo>>(|it| it.leased(HOUR).build());
        $check::<Leased<ByPriority>>(|it| it.by_priority().leased(HOUR).build());
    };
}

/// What the item is of which this one is a duplicate, if it is not pushed.
fn duplicate<O: Order<u32>>(queue: &DurableQueue<u32, O>, item: u32) -> Option<DuplicateOf> {
    match queue.push(item) {
        Ok(()) => None,
        Err(PushError::Duplicate(back, of)) => {
            assert_eq!(back, item);
            Some(of)
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn items_on_the_disk_have_their_keys() {
    fn check<O: Order<u32>>(build: Build<O>) {
        let (directory, queue) = (directory(), Queue::new(build));
        let numbers = queue.open(&directory);
        numbers.push_batch([1, 2, 3]).unwrap();
        let tx = numbers.begin_owned();
        tx.retry_after(tx.pop().unwrap(), HOUR).unwrap();
        tx.commit().unwrap();
        drop(numbers);

        let numbers = queue.open(&directory);
        for item in [11, 12, 13] {
            assert_eq!(duplicate(&numbers, item), Some(DuplicateOf::Queued));
        }
        numbers.push(14).unwrap();
        queue.clock.advance(HOUR);
        for _ in 0..4 {
            let mut tx = numbers.begin_owned();
            let item = *tx.pop().unwrap();
            assert_eq!(duplicate(&numbers, item + 20), Some(DuplicateOf::Held));
            assert_eq!(tx.items().len(), 1);
            tx.commit().unwrap();
            numbers.push(item + 20).unwrap();
            assert_eq!(duplicate(&numbers, item), Some(DuplicateOf::Queued));
            numbers.retain(|&other, _| other != item + 20).unwrap();
        }
        numbers.stats().check().unwrap();
        assert!(numbers.pop().unwrap_err().is_empty());
    }
    in_all_orders!(check);
}

#[test]
fn items_that_are_not_in_memory_have_their_keys() {
    let directory = directory();
    let queue = Queue::<Fifo>::new(Builder::build).with(|it| it.unique_by(|n| n % 10).memory(0));
    queue.open(&directory).push_batch([1, 2]).unwrap();
    let numbers = queue.open(&directory);
    assert_eq!(duplicate(&numbers, 11), Some(DuplicateOf::Queued));
    let refused = numbers.push_batch([3, 12]).unwrap_err();
    assert!(refused.is_duplicate());
    assert_eq!(refused.into_inner(), Some(vec![3, 12]));
    assert_eq!(numbers.pop_batch(9).unwrap(), [1, 2]);
    numbers.push_batch([11, 12]).unwrap();
}

#[test]
fn a_crash_frees_the_keys_of_what_was_only_staged() {
    fn check<O: Order<u32>>(build: Build<O>) {
        let (directory, queue) = (directory(), Queue::new(build));
        let numbers = queue.open(&directory);
        numbers.push_batch([1, 2]).unwrap();
        let committed = numbers.begin_owned();
        let first = committed.pop_batch(1).unwrap().next().map(|item| *item);
        let first = first.unwrap();
        assert_eq!(committed.held(), 1);
        committed.commit().unwrap();
        let held = numbers.begin_owned();
        held.pop().unwrap();
        held.push(3).unwrap();
        assert_eq!(duplicate(&numbers, 13), Some(DuplicateOf::Staged));

        let after = copy_of(&directory);
        let numbers = queue.open(&after);
        assert_eq!(duplicate(&numbers, 13), None);
        assert_eq!(duplicate(&numbers, 10 + first), None);
        assert_eq!(duplicate(&numbers, 13 - first), Some(DuplicateOf::Queued));
    }
    in_all_orders!(check);
}

#[test]
fn a_crash_leaves_one_item_of_a_key() {
    let (directory, queue) = (directory(), Queue::<Fifo>::new(Builder::build));
    let at_most = HOUR;
    let options = options().durability(Durability::Buffered { at_most });
    let store = options.open(directory.path()).unwrap();
    let numbers = (queue.set)(store.builder("numbers")).build().unwrap();
    for round in 1..=30 {
        numbers.push(10 * round).unwrap();
        if round % 10 == 0 {
            store.flush().unwrap();
            numbers.pop().unwrap();
            numbers.push(10 * round + 500).unwrap(); // the log has both, or the first, or neither
            let left = queue.open(&copy_of(&directory)).pop_batch(9).unwrap();
            assert!(left.len() <= 1, "{left:?}");
        }
        numbers.pop().unwrap();
    }
}

#[test]
fn several_items_with_a_key_are_kept_and_the_last_one_has_it() {
    fn check<O: Order<u32>>(build: Build<O>) {
        let (directory, queue) = (directory(), Queue::new(build));
        let before = Queue::new(build).with(|it| it);
        before.open(&directory).push_batch([1, 11, 21]).unwrap();

        let numbers = queue.open(&directory);
        assert_eq!(numbers.len(), 3);
        for _ in 0..3 {
            assert_eq!(duplicate(&numbers, 31), Some(DuplicateOf::Queued));
            let mut tx = numbers.begin_owned();
            tx.pop().unwrap();
            let is_last = tx.items().any(|item| *item == 21);
            let of = if is_last {
                DuplicateOf::Held
            } else {
                DuplicateOf::Queued
            };
            assert_eq!(duplicate(&numbers, 31), Some(of));
            tx.commit().unwrap();
        }
        numbers.stats().check().unwrap();
        numbers.push(31).unwrap();
    }
    // In the orders that deliver the last one last.
    check::<Fifo>(Builder::build);
    check::<ByKey<u32, u32>>(|it| it.fair_by(|_| 0).build());
    check::<ByPriority>(|it| it.by_priority().build());
}

#[test]
fn a_dead_letter_is_requeued_only_if_its_key_is_free() {
    let (directory, queue) = (directory(), Queue::<Fifo>::new(Builder::build));
    let numbers = queue.open(&directory);
    numbers.push(1).unwrap();
    let tx = numbers.begin_owned();
    tx.fail(tx.pop().unwrap(), "no").unwrap();
    tx.commit().unwrap();
    assert_eq!(duplicate(&numbers, 11), None);
    drop(numbers);

    let numbers = queue.open(&directory);
    let letters = numbers.dead_letters();
    let id = letters.oldest().unwrap().unwrap().id();
    assert!(letters.requeue(id).unwrap_err().is_duplicate());
    assert_eq!(letters.len(), 1);
    assert_eq!(numbers.pop().unwrap(), 11);
    assert!(letters.requeue(id).unwrap());
    assert_eq!(duplicate(&numbers, 11), Some(DuplicateOf::Queued));
}

#[test]
fn a_window_goes_on_in_the_next_process() {
    fn check<O: Order<u32>>(build: Build<O>) {
        let (directory, wall) = (directory(), Arc::new(AtomicU64::new(1_000)));
        let queue = Queue::new(build);
        let open = || {
            let wall = Arc::clone(&wall);
            let hours = move || HOUR * u32::try_from(wall.load(Ordering::Relaxed)).unwrap();
            let options = options().wall_clock(move || UNIX_EPOCH + hours());
            let store = options.open(directory.path()).unwrap();
            let builder = store.builder("numbers").clock(queue.clock.clone());
            build(builder.unique_by(|n| n % 10).unique_for(3 * HOUR)).unwrap()
        };
        let numbers = open();
        numbers.push_batch([1, 2, 3, 4, 5]).unwrap();
        numbers.retain(|item, _| *item != 5).unwrap();
        let tx = numbers.begin_owned();
        tx.fail(tx.pop().unwrap(), "no").unwrap();
        let dead = numbers.dead_letters().oldest().unwrap().unwrap();
        tx.pop().unwrap();
        tx.commit().unwrap();
        numbers.begin_owned().pop().unwrap();
        drop(numbers.pop_batch(1).unwrap());
        numbers.push(6).unwrap();
        let mut left = Vec::new();
        numbers.peek_each(|item| left.push(*item)).unwrap();
        let recent: Vec<_> = (1..5)
            .filter(|n| *n != dead.item && !left.contains(n))
            .collect();
        assert_eq!((left.len(), recent.len()), (2, 2));
        drop(numbers);

        wall.fetch_add(1, Ordering::Relaxed);
        let numbers = open();
        for item in &recent {
            assert_eq!(duplicate(&numbers, item + 10), Some(DuplicateOf::Recent));
        }
        let batch = vec![7, recent[0] + 10];
        let refused = numbers.push_batch(batch.clone()).unwrap_err();
        assert_eq!(refused.into_inner(), Some(batch));
        assert_eq!(duplicate(&numbers, left[0] + 10), Some(DuplicateOf::Queued));
        let tx = numbers.begin_owned();
        assert!(tx.push(recent[1] + 10).unwrap_err().is_duplicate());
        numbers.push_batch([dead.item + 10, 15]).unwrap();
        assert_eq!(numbers.pop_batch(9).unwrap().len(), 4);
        drop((tx, numbers));

        wall.fetch_add(1, Ordering::Relaxed);
        let numbers = open();
        let all: Vec<_> = recent
            .iter()
            .copied()
            .chain([left[0], dead.item, 5])
            .collect();
        for item in &all {
            assert_eq!(duplicate(&numbers, item + 20), Some(DuplicateOf::Recent));
        }
        assert!(numbers
            .dead_letters()
            .requeue(dead.id())
            .unwrap_err()
            .is_duplicate());
        queue.clock.advance(HOUR);
        for item in &all[..2] {
            numbers.push(item + 20).unwrap();
        }
        for item in &all[2..] {
            assert_eq!(duplicate(&numbers, item + 20), Some(DuplicateOf::Recent));
        }
        queue.clock.advance(HOUR);
        numbers
            .push_batch(all[2..].iter().map(|item| item + 20))
            .unwrap();
        drop(numbers);

        wall.fetch_add(3, Ordering::Relaxed);
        let numbers = open();
        assert_eq!(numbers.pop_batch(9).unwrap().len(), 5);
        assert_eq!(duplicate(&numbers, 1), Some(DuplicateOf::Recent));
        numbers.push(8).unwrap();
    }
    in_all_orders!(check);
}

#[test]
fn a_crash_leaves_an_item_or_its_window() {
    let (directory, queue) = (directory(), Queue::<Fifo>::new(Builder::build));
    let queue = queue.with(|it| it.unique_by(|item| *item).unique_for(HOUR));
    let at_most = HOUR;
    let numbers = queue.open(&directory);
    let mut handle = numbers.handle();
    for round in 0..20 {
        handle.push(round).unwrap();
        let tx = handle.begin();
        tx.pop().unwrap();
        let later = Durability::Buffered { at_most };
        let durability = [Durability::Synced, later][round as usize % 2];
        tx.commit_with(durability).unwrap();
        let after = queue.open(&copy_of(&directory));
        let left = after.pop_batch(9).unwrap();
        assert!(left.is_empty() || left == [round], "{left:?}");
        // A pop begins a window too.
        assert_eq!(duplicate(&after, round), Some(DuplicateOf::Recent));
    }
}

#[test]
fn a_key_function_that_panics_pushes_nothing() {
    let (directory, queue) = (directory(), Queue::<Fifo>::new(Builder::build));
    let queue = queue.with(|it| it.unique_by(|item| if *item == 7 { panic!("7") } else { *item }));
    let numbers = queue.open(&directory);
    let tx = numbers.begin_owned();
    tx.push(1).unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| tx.push_batch([2, 7]))).is_err());
    tx.push_batch([2, 3]).unwrap();
    tx.commit().unwrap();
    drop(numbers);
    assert_eq!(queue.open(&directory).pop_batch(9).unwrap(), [1, 2, 3]);
}

#[test]
fn one_of_several_threads_pushes_a_key() {
    const THREADS: u32 = 4;
    let (directory, queue) = (directory(), Queue::<Fifo>::new(Builder::build));
    let (numbers, barrier) = (queue.open(&directory), Barrier::new(THREADS as usize));
    for round in 0..20 {
        let push = |thread| {
            barrier.wait();
            numbers.push(10 * thread + round % 10).is_ok()
        };
        let push = &push;
        let pushes = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| scope.spawn(move || push(thread)))
                .collect();
            let pushed = threads.into_iter().map(|thread| thread.join().unwrap());
            pushed.filter(|is_pushed| *is_pushed).count()
        });
        assert_eq!((pushes, numbers.len()), (1, 1));
        if round % 10 == 0 {
            assert_eq!(queue.open(&copy_of(&directory)).len(), 1);
        }
        numbers.pop().unwrap();
    }
}

#[test]
fn items_on_the_disk_have_their_weights() {
    fn check<O: Order<u32>>(build: Build<O>) {
        let (directory, queue) = (directory(), Queue::new(build));
        let queue = queue.with(|it| it.weigh(|item| *item as usize).capacity(10));
        let numbers = queue.open(&directory);
        numbers.push_batch([4, 3]).unwrap();
        assert!(numbers.push(4).unwrap_err().is_full());
        assert!(numbers.push(11).unwrap_err().is_too_heavy());
        let held = numbers.begin_owned();
        let first = *held.pop().unwrap();
        held.push(first + 2).unwrap(); // what is held makes room
        assert!(numbers.push(2).unwrap_err().is_full());

        let after = copy_of(&directory);
        let numbers = queue.open(&after);
        assert_eq!((numbers.weight(), numbers.capacity()), (7, Some(10)));
        assert!(numbers.push(4).unwrap_err().is_full());
        numbers.push(3).unwrap();
        assert!(numbers.is_full());
        let popped = numbers.pop().unwrap() as usize;
        assert_eq!(numbers.weight(), 10 - popped);
        numbers.pop_batch(2).unwrap();
        assert_eq!(numbers.weight(), 0);
        numbers.push(10).unwrap();
    }
    in_all_orders!(check);
}

#[test]
fn a_queue_keeps_what_weighs_too_much() {
    let directory = directory();
    let queue = Queue::<Fifo>::new(Builder::build).with(|it| it.memory(0));
    queue.open(&directory).push_batch([40, 3]).unwrap();
    let queue = queue.with(|it| it.memory(0).weigh(|item| *item as usize).capacity(10));
    let numbers = queue.open(&directory);
    assert_eq!(numbers.weight(), 43);
    assert!(numbers.push(1).unwrap_err().is_full());
    assert_eq!(numbers.pop_batch(2).unwrap(), [40, 3]);
    drop(numbers);
    let numbers = queue.open(&directory);
    assert!(numbers.push(11).unwrap_err().is_too_heavy());
    numbers.push(10).unwrap();
}

#[test]
fn queues_share_a_budget_in_the_next_process_too() {
    let directory = directory();
    let build = |store: &Store, name, budget: &Budget| {
        let builder = store.builder::<u32>(name).weigh(|item| *item as usize);
        builder.budget(budget).fair_by(|item| item % 3).build()
    };
    let (store, budget) = (open(&directory), Budget::new(10));
    let left = build(&store, "left", &budget).unwrap();
    let right = build(&store, "right", &budget).unwrap();
    left.push_batch([4, 0]).unwrap();
    right.push(3).unwrap();
    assert!(left.push(4).unwrap_err().is_full());
    assert!(right.push(11).unwrap_err().is_too_heavy());
    left.push(3).unwrap();
    drop((left, right, store));
    assert_eq!(budget.free(), 10);

    let store = open(&directory);
    let left = build(&store, "left", &budget).unwrap();
    left.push(1).unwrap();
    let refused = build(&store, "right", &budget).unwrap_err();
    assert!(matches!(refused, StoreError::NoRoom));
    assert_eq!((left.weight(), budget.free()), (8, 2));
    left.retain(|item, _| *item != 1).unwrap();
    let right = build(&store, "right", &budget).unwrap();
    assert_eq!((right.pop().unwrap(), budget.free()), (3, 3));
}
