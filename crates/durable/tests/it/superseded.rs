//! Items whose key is taken, which replace the item that has it, or follow it, while a process runs and in the next one.

use crate::{copy_of, directory, open, options};
use futures::executor::block_on;
use futures::FutureExt;
use requeue::{ByKey, ByPriority, Fifo, Leased, ManualClock};
use requeue_durable::{
    Builder, Durability, DurableQueue, OnDuplicate, Order, PushError, StoreOptions,
};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

const HOUR: Duration = Duration::from_secs(3600);

/// Adds an order to a builder, and builds.
type Build<O> = fn(Builder<u32>) -> DurableQueue<u32, O>;

/// The queue of a directory: the key of an item is its last digit.
struct Queue<O: Order<u32>> {
    build: Build<O>,
    rule: OnDuplicate,
    set: fn(Builder<u32>) -> Builder<u32>,
    options: StoreOptions,
    clock: ManualClock,
}

impl<O: Order<u32>> Queue<O> {
    fn new(build: Build<O>, rule: OnDuplicate) -> Self {
        let (set, options) = (|it| it, options());
        let clock = ManualClock::new();
        Self {
            build,
            rule,
            set,
            options,
            clock,
        }
    }

    fn with(self, set: fn(Builder<u32>) -> Builder<u32>) -> Self {
        Self { set, ..self }
    }

    fn open(&self, directory: &TempDir) -> DurableQueue<u32, O> {
        let store = self.options.clone().open(directory.path()).unwrap();
        let builder = (self.set)(store.builder("numbers").clock(self.clock.clone()));
        (self.build)(builder.unique_by(|item| item % 10).on_duplicate(self.rule))
    }

    /// What is on the disk, in the order of the pushes.
    fn on_disk(directory: &TempDir) -> Vec<u32>
    where
        O: Order<u32>,
    {
        let (mut items, copy) = (Vec::new(), copy_of(directory));
        let queue = open(&copy).builder::<u32>("numbers");
        let queue: DurableQueue<u32> = queue.build().unwrap();
        queue.peek_each(|item| items.push(*item)).unwrap();
        items
    }
}

macro_rules! in_all_orders {
    ($check:ident) => {
        $check::<Fifo>(|it| it.build().unwrap());
        $check::<ByKey<u32, u32>>(|it| it.fair_by(|_| 0).build().unwrap());
        $check::<ByPriority>(|it| it.by_priority().build().unwrap());
        $check::<Leased<Fifo>>(|it| it.leased(HOUR).build().unwrap());
    };
}

/// Takes the next item, and commits: the item and its number of deliveries.
fn take<O: Order<u32>>(queue: &DurableQueue<u32, O>) -> Option<(u32, u32)> {
    let tx = queue.begin_owned();
    let taken = tx.pop().ok().map(|item| (*item, item.attempts()));
    tx.commit().unwrap();
    taken
}

#[test]
fn a_replaced_item_keeps_its_place_and_its_deliveries_in_the_next_process() {
    fn check<O: Order<u32>>(build: Build<O>) {
        let directory = directory();
        let queue = Queue::new(build, OnDuplicate::Replace).with(|it| it.max_attempts(9));
        let numbers = queue.open(&directory);
        numbers.push_batch([1, 2]).unwrap();
        for _ in 0..2 {
            numbers.begin_owned().pop().unwrap();
        }
        for item in [101, 201, 102, 3] {
            numbers.push(item).unwrap();
        }
        let after = copy_of(&directory);
        for numbers in [numbers, queue.open(&after)] {
            numbers.push(301).unwrap();
            assert_eq!(numbers.len(), 3);
            assert_eq!(take(&numbers), Some((301, 3)));
            assert_eq!(take(&numbers), Some((102, 1)));
            assert_eq!(take(&numbers), Some((3, 1)));
            assert_eq!(take(&numbers), None);
            numbers.stats().check().unwrap();
        }
        assert!(queue.open(&directory).is_empty());
    }
    in_all_orders!(check);
}

#[test]
fn a_crash_leaves_one_of_two_values() {
    let (directory, mut queue) = (
        directory(),
        Queue::<Fifo>::new(|it| it.build().unwrap(), OnDuplicate::Replace),
    );
    let at_most = HOUR;
    queue.options = queue.options.durability(Durability::Buffered { at_most });
    let numbers = queue.open(&directory);
    let mut seen = Vec::new();
    for round in 0..40 {
        numbers.push(10 * round).unwrap();
        let left = Queue::<Fifo>::on_disk(&directory);
        assert!(left.len() <= 1, "{left:?}");
        seen.extend(left);
        if round % 10 == 9 {
            numbers.pop().unwrap();
        }
    }
    assert!(seen.is_sorted(), "{seen:?}");
}

/// In which a removal would come before the value that it removes.
#[test]
fn a_value_that_was_taken_is_gone() {
    const ROUNDS: u32 = 60;
    let directory = directory();
    let queue = Queue::<Fifo>::new(|it| it.build().unwrap(), OnDuplicate::Follow);
    let (numbers, barrier) = (queue.open(&directory), Barrier::new(2));
    for round in 1..=ROUNDS {
        thread::scope(|scope| {
            scope.spawn(|| {
                barrier.wait();
                numbers.push(20 * round).unwrap();
                numbers.push(20 * round + 10).unwrap();
            });
            barrier.wait();
            while numbers.pop().is_ok_and(|item| item % 20 == 0) {}
        });
        let mut left = Vec::new();
        numbers.peek_each(|item| left.push(*item)).unwrap();
        drop(numbers.pop_batch(9).unwrap());
        if round % 20 == 0 {
            assert_eq!(Queue::<Fifo>::on_disk(&directory), [0; 0], "after {left:?}");
        }
    }
}

#[test]
fn a_value_that_is_not_in_memory_is_the_new_one() {
    let directory = directory();
    let queue = Queue::<Fifo>::new(|it| it.build().unwrap(), OnDuplicate::Follow);
    let queue = queue.with(|it| it.memory(0));
    let numbers = queue.open(&directory);
    numbers.push(1).unwrap();
    numbers.push(101).unwrap();
    let tx = numbers.begin_owned();
    assert_eq!(*tx.pop().unwrap(), 101);
    numbers.push(201).unwrap();
    numbers.push(301).unwrap();
    drop(tx);
    assert_eq!(take(&numbers), Some((101, 2)));
    assert_eq!(take(&numbers), Some((301, 1)));
    drop(numbers);

    // Also if it is not written yet.
    let mut queue = queue;
    let at_most = HOUR;
    queue.options = queue.options.durability(Durability::Buffered { at_most });
    let numbers = queue.open(&directory);
    for round in 0..300 {
        numbers.push(round * 20).unwrap();
        numbers.peek_each(|_| ()).unwrap(); // it is written then
        numbers.push(round * 20 + 10).unwrap();
        assert_eq!(numbers.pop().unwrap(), round * 20 + 10);
    }
}

#[test]
fn an_item_that_followed_another_one_can_be_replaced() {
    let directory = directory();
    let queue = Queue::<Fifo>::new(|it| it.build().unwrap(), OnDuplicate::Follow);
    let queue = queue.with(|it| it.unique_for(HOUR));
    let numbers = queue.open(&directory);
    numbers.push(1).unwrap();
    let held = numbers.begin_owned();
    held.pop().unwrap();
    numbers.push(101).unwrap();
    held.commit().unwrap();
    numbers.push(201).unwrap();
    drop(numbers);
    let numbers = queue.open(&directory);
    numbers.push(301).unwrap();
    assert_eq!(numbers.pop().unwrap(), 301);
    assert!(numbers.push(401).unwrap_err().is_duplicate());
    drop(numbers);
    let numbers = queue.open(&directory);
    assert!(numbers.push(401).unwrap_err().is_duplicate());
}

#[test]
fn an_item_follows_another_one_in_the_next_process() {
    fn check<O: Order<u32>>(build: Build<O>) {
        let (directory, queue) = (directory(), Queue::new(build, OnDuplicate::Follow));
        let numbers = queue.open(&directory);
        numbers.push(1).unwrap();
        let held = numbers.begin_owned();
        assert_eq!(*held.pop().unwrap(), 1);
        numbers.push(101).unwrap();
        numbers.push(2).unwrap();
        numbers.push(201).unwrap(); // instead of 101

        let after = copy_of(&directory);
        let numbers = queue.open(&after);
        assert_eq!((numbers.len(), numbers.stats().delayed), (2, 1));
        numbers.push(301).unwrap();
        numbers.push(102).unwrap();
        let tx = numbers.begin_owned();
        let items = tx.pop_batch(9).unwrap().map(|item| *item);
        assert_eq!(items.collect::<Vec<_>>(), [1, 102]);
        numbers.push(401).unwrap();
        tx.commit().unwrap();
        assert_eq!(take(&numbers), Some((401, 1)));
        assert_eq!(take(&numbers), None);
        numbers.stats().check().unwrap();
        drop(numbers);
        assert!(queue.open(&after).is_empty());
    }
    in_all_orders!(check);
}

#[test]
fn with_another_rule_nothing_follows() {
    let directory = directory();
    let queue = Queue::<Fifo>::new(|it| it.build().unwrap(), OnDuplicate::Follow);
    let numbers = queue.open(&directory);
    numbers.push(1).unwrap();
    let held = numbers.begin_owned();
    held.pop().unwrap();
    numbers.push(101).unwrap();
    drop((held, numbers));
    let queue = Queue {
        rule: OnDuplicate::Replace,
        ..queue
    };
    assert_eq!(queue.open(&directory).pop_batch(9).unwrap(), [1, 101]);
}

#[test]
fn more_items_of_a_key_than_can_follow_are_kept() {
    let directory = directory();
    let before = open(&directory).queue::<u32>("numbers").unwrap();
    before.push_batch([1, 101, 201, 2]).unwrap();
    drop(before);
    let queue = Queue::<Fifo>::new(|it| it.build().unwrap(), OnDuplicate::Follow);
    let numbers = queue.open(&directory);
    let mut items = numbers.pop_batch(9).unwrap();
    items.sort_unstable();
    assert_eq!(items, [1, 2, 101, 201]);
    numbers.stats().check().unwrap();
    assert!(numbers.is_empty());
}

#[test]
fn a_replaced_item_keeps_its_priority_and_its_time() {
    let (directory, wall) = (directory(), UNIX_EPOCH + 100_000 * HOUR);
    let mut queue =
        Queue::<ByPriority>::new(|it| it.by_priority().build().unwrap(), OnDuplicate::Replace);
    queue.options = queue.options.wall_clock(move || wall);
    let mut queue = queue.with(|it| it.ttl(3 * HOUR));
    let numbers = queue.open(&directory);
    numbers.priority(9).push(1).unwrap();
    let ticket = numbers.priority(8).push(2).unwrap();
    numbers.after(HOUR).push(3).unwrap();
    for item in [101, 102, 103] {
        numbers.priority(7).push(item).unwrap();
    }
    assert!(numbers.after(HOUR).push(201).unwrap_err().is_duplicate());
    assert_eq!(numbers.next_scheduled(), Some(numbers.now() + HOUR));
    assert!(numbers.reprioritize(ticket, 10).unwrap());
    drop(numbers);

    let later = wall + 2 * HOUR;
    queue.options = options().wall_clock(move || -> SystemTime { later });
    let numbers = queue.open(&directory);
    numbers.push(303).unwrap();
    queue.clock.advance(Duration::from_secs(3_599));
    assert_eq!(numbers.len(), 3);
    let tx = numbers.begin_owned();
    let items = tx.pop_batch(2).unwrap().map(|item| *item);
    assert_eq!(items.collect::<Vec<_>>(), [101, 102]);
    drop(tx);
    queue.clock.advance(Duration::from_secs(2));
    assert_eq!(numbers.pop_batch(9).unwrap(), [303]);
    assert_eq!(numbers.stats().timed_out, 2);
}

#[test]
fn only_single_pushes_at_once_replace() {
    let directory = directory();
    let queue = Queue::<Fifo>::new(|it| it.build().unwrap(), OnDuplicate::Follow);
    let numbers = queue.open(&directory);
    numbers.push(1).unwrap();
    assert!(numbers.push_batch([2, 101]).unwrap_err().is_duplicate());
    let mut handle = numbers.handle();
    let tx = handle.begin();
    assert!(tx.push(101).unwrap_err().is_duplicate());
    tx.push(2).unwrap();
    drop(tx);
    handle.push(201).unwrap();
    let tx = handle.begin();
    let refused = tx.push(301).unwrap_err();
    assert!(refused.is_duplicate());
    assert_eq!(*tx.pop().unwrap(), 201);
    drop(tx);
    block_on(handle.push_async(401)).unwrap();
    block_on(numbers.push_async(2)).unwrap();
    assert_eq!(Queue::<Fifo>::on_disk(&directory), [401, 2]);
    assert_eq!(numbers.pop_batch(9).unwrap(), [401, 2]);
    numbers.close().unwrap();
    assert!(numbers.push(1).unwrap_err().is_closed());
}

#[test]
fn an_item_that_follows_waits_for_room() {
    let directory = directory();
    let queue = Queue::<Fifo>::new(|it| it.build().unwrap(), OnDuplicate::Follow);
    let queue = queue.with(|it| it.capacity(2));
    let numbers = queue.open(&directory);
    numbers.push_batch([1, 2]).unwrap();
    let held = numbers.begin_owned();
    assert_eq!(*held.pop().unwrap(), 1);
    assert!(numbers.push(101).unwrap_err().is_full());
    let mut pushing = Box::pin(numbers.push_async(101));
    assert!(pushing.as_mut().now_or_never().is_none());
    numbers.push(102).unwrap(); // needs no room
    assert_eq!(numbers.pop().unwrap(), 102);
    block_on(pushing).unwrap();
    assert!(numbers.push(3).unwrap_err().is_full());
    assert_eq!(Queue::<Fifo>::on_disk(&directory), [1, 101]);
    held.commit().unwrap();
    assert_eq!(numbers.pop_batch(9).unwrap(), [101]);
}

#[test]
fn a_full_disk_and_a_failing_codec_replace_nothing() {
    struct Odd;

    impl requeue_durable::Codec<u32> for Odd {
        fn encode(
            &self,
            item: &u32,
            bytes: &mut Vec<u8>,
        ) -> Result<(), requeue_durable::CodecError> {
            bytes.extend_from_slice(&item.to_le_bytes());
            let even = requeue_durable::CodecError::new("even");
            (item % 2 == 1).then_some(()).ok_or(even)
        }

        fn decode(&self, bytes: &[u8]) -> Result<u32, requeue_durable::CodecError> {
            let bytes = bytes.try_into().map_err(requeue_durable::CodecError::new)?;
            Ok(u32::from_le_bytes(bytes))
        }
    }

    let directory = directory();
    let build = |reserve| {
        let store = options().reserve(reserve).open(directory.path()).unwrap();
        let builder = store.builder("numbers").codec(Odd).unique_by(|_| ());
        builder.on_duplicate(OnDuplicate::Replace).build().unwrap()
    };
    let numbers = build(0);
    numbers.push(1).unwrap();
    assert!(matches!(numbers.push(2), Err(PushError::Codec(2, _))));
    drop(numbers);
    let numbers = build(u64::MAX);
    let full = requeue_durable::StoreError::DiskFull;
    let refused = numbers.push(3).unwrap_err();
    assert_eq!(refused.to_string(), full.to_string());
    assert_eq!(numbers.pop().unwrap(), 1);
}
