//! Many keys, and keys with panicking or unusual implementations.

use crate::common::futures::block_on;
use crate::common::{assert_at_rest, drain, ends, panics};
use requeue::{ByKey, FairQueue, Handle, PopError, PushError, Queue};
use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    None,
    By,
    Weight,
    Hash,
    Eq,
    Drop,
}

thread_local! {
    /// The call that panics, once.
    static BOMB: Cell<Call> = const { Cell::new(Call::None) };
}

fn may_panic(call: Call) {
    if BOMB.with(Cell::get) == call {
        BOMB.with(|bomb| bomb.set(Call::None));
        panic!("as planned");
    }
}

/// A key with a poor hash that counts its live values.
struct Odd {
    id: u32,
    alive: Arc<AtomicUsize>,
}

impl Odd {
    fn new(id: u32, alive: &Arc<AtomicUsize>) -> Self {
        alive.fetch_add(1, Ordering::SeqCst);
        let alive = Arc::clone(alive);
        Self { id, alive }
    }
}

impl PartialEq for Odd {
    fn eq(&self, other: &Self) -> bool {
        may_panic(Call::Eq);
        self.id == other.id
    }
}

impl Eq for Odd {}

impl Hash for Odd {
    fn hash<H: Hasher>(&self, _: &mut H) {
        may_panic(Call::Hash);
    }
}

impl Drop for Odd {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::SeqCst);
        may_panic(Call::Drop);
    }
}

/// A queue of numbers with their tens as keys, and the number of live keys.
fn odd(key_capacity: usize) -> (FairQueue<Odd, u32>, impl Fn() -> usize) {
    let alive = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&alive);
    let by = move |item: &u32| {
        may_panic(Call::By);
        Odd::new(item / 10, &count)
    };
    let weigh = |_: &Odd| {
        may_panic(Call::Weight);
        1
    };
    let builder = Queue::builder().fair_by(by).weight(weigh);
    let queue = builder.key_capacity(key_capacity).build();
    (queue, move || alive.load(Ordering::SeqCst))
}

#[test]
fn none_is_a_key_like_others() {
    let queue = FairQueue::by(|item: &(Option<u8>, u8)| item.0);
    for item in [(None, 1), (None, 2), (Some(0), 3), (Some(1), 4), (None, 5)] {
        queue.push(item).unwrap();
    }
    let numbers: Vec<_> = drain(&queue)
        .into_iter()
        .map(|(_, number)| number)
        .collect();
    assert_eq!(numbers, [1, 3, 4, 2, 5]);
}

#[test]
fn keys_of_all_items_that_are_somewhere_are_kept_once() {
    let (queue, keys) = odd(100);
    let mut worker = queue.handle();
    worker.push_batch([10, 11, 20, 21]).unwrap();
    assert_eq!(keys(), 2);
    let tx = worker.begin();
    tx.push(30).unwrap();
    assert_eq!(keys(), 3);
    tx.pop().unwrap();
    tx.abort();
    assert_eq!(keys(), 2);
    queue.pop().unwrap();
    queue.pop().unwrap();
    assert_eq!(keys(), 2);
    queue.pop().unwrap();
    assert_eq!(keys(), 1);
    let tx = worker.begin();
    tx.pop().unwrap();
    assert_eq!(keys(), 1);
    drop(tx.commit());
    assert_eq!(keys(), 0);
}

#[test]
fn keys_of_which_some_are_popped_and_some_are_held_are_kept_until_the_last() {
    const MANY: u32 = 400;
    for key_capacity in [MANY as usize, usize::MAX] {
        let (queue, keys) = odd(key_capacity);
        let (mut one, mut other) = (queue.handle(), queue.handle());
        for _ in 0..2 {
            one.push_batch((0..MANY).map(|item| item % 10)).unwrap();
            let held = one.begin();
            let taken = held.pop_batch(100).count();
            let popped = (0..100).filter(|_| queue.pop().is_ok()).count();
            assert_eq!((taken, popped, keys()), (100, 100, 1));
            other.push(1).unwrap();
            let rest = other.begin();
            assert_eq!(rest.pop_batch(201).count(), 201);
            held.commit();
            assert_eq!((queue.is_empty(), keys()), (true, 1));
            rest.abort();
            assert_eq!(other.pop_batch(200, &mut Vec::new()), 200);
            assert_eq!(keys(), 1);
            queue.pop().unwrap();
            assert_eq!(keys(), 0);
        }
    }
}

#[test]
fn a_snapshot_keeps_its_keys_and_a_queue_takes_its_keys_along() {
    let (queue, keys) = odd(100);
    queue.handle().push_batch([10, 11, 20]).unwrap();
    let snapshot = queue.keys();
    drain(&queue);
    assert_eq!(keys(), 2);
    drop(snapshot);
    assert_eq!(keys(), 0);
    queue.push(10).unwrap();
    drop(queue);
    assert_eq!(keys(), 0);
}

#[test]
fn keys_with_one_hash_are_served_in_turn() {
    let (queue, keys) = odd(100);
    queue.handle().push_batch([10, 11, 12, 20, 21, 30]).unwrap();
    assert_eq!(drain(&queue), [10, 20, 30, 11, 21, 12]);
    assert_eq!(keys(), 0);
}

/// Also with a batch, and in a transaction, whose other items are not lost.
#[test]
fn panicking_user_code_loses_only_its_own_item() {
    for call in [Call::By, Call::Weight, Call::Hash, Call::Eq, Call::Drop] {
        let (queue, keys) = odd(4);
        queue.handle().push_batch([10, 20]).unwrap();
        let arm = || BOMB.with(|bomb| bomb.set(call));
        // The weight is computed for a new key only, and only a key that is not new is dropped.
        let next = if call == Call::Weight { 30 } else { 11 };
        arm();
        assert!(panics(|| queue.push(next)));
        assert_at_rest(&queue, 2, 0);
        arm();
        assert!(panics(|| queue.handle().push_batch([12, next])));
        assert_at_rest(&queue, 2, 0);
        let mut worker = queue.handle();
        let tx = worker.begin();
        tx.push(13).unwrap();
        arm();
        assert!(panics(|| tx.push(next)));
        assert_eq!(tx.staged(), 1);
        tx.commit();
        BOMB.with(|bomb| bomb.set(Call::None));
        assert_at_rest(&queue, 3, 0);
        assert_eq!(keys(), 2);
        // An item whose push failed does not count against the limit.
        queue.handle().push_batch([14, 15]).unwrap();
        assert_eq!(queue.push(16), Err(PushError::Full(16)));
        assert_eq!(drain(&queue), [10, 20, 13, 14, 15]);
        assert_eq!(keys(), 0);
        queue.stats().check().unwrap();
    }
}

#[test]
fn a_panicking_destructor_of_a_key_loses_nothing() {
    let (queue, keys) = odd(4);
    queue.handle().push_batch([10, 20]).unwrap();
    BOMB.with(|bomb| bomb.set(Call::Drop));
    assert_eq!(drain(&queue), [10, 20]);
    assert_eq!(keys(), 0);
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn a_key_function_that_changes_its_mind_loses_nothing() {
    let calls = AtomicUsize::new(0);
    let queue = Queue::builder()
        .fair_by(move |_: &u32| calls.fetch_add(1, Ordering::SeqCst) % 3)
        .serial()
        .build();
    let mut worker = queue.handle();
    worker.push_batch(0..30).unwrap();
    let tx = worker.begin();
    assert_eq!(tx.pop_batch(9).len(), 3);
    tx.abort();
    let mut left = drain(&queue);
    left.sort_unstable();
    assert!(left.into_iter().eq(0..30));
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn an_item_that_is_changed_stays_with_its_key() {
    let queue = FairQueue::by(|item: &u32| item / 10);
    let mut worker = queue.handle();
    worker.push_batch([10, 11, 20]).unwrap();
    let tx = worker.begin();
    *tx.pop().unwrap() = 90;
    tx.abort();
    assert_eq!(drain(&queue), [90, 20, 11]);
    assert_eq!(queue.keys().iter().len(), 0);
}

#[test]
fn a_batch_whose_key_panics_is_dropped_however_it_is_pushed() {
    let (queue, keys) = odd(usize::MAX);
    let mut worker = queue.handle();
    for pushes in [
        |worker: &mut Handle<u32, ByKey<Odd, u32>>| drop(worker.push_batch([1, 2])),
        |worker: &mut Handle<u32, ByKey<Odd, u32>>| drop(worker.push_batch_blocking([1, 2])),
        |worker: &mut Handle<u32, ByKey<Odd, u32>>| drop(block_on(worker.push_batch_async([1, 2]))),
    ] {
        BOMB.with(|bomb| bomb.set(Call::By));
        assert!(panics(|| pushes(&mut worker)));
        assert_eq!((queue.len(), keys()), (0, 0));
        pushes(&mut worker);
        assert_eq!(worker.pop_batch(3, &mut Vec::new()), 2);
    }
    assert_at_rest(&queue, 0, 0);
}

#[test]
fn a_batch_that_fails_while_it_gathers_room_keeps_none() {
    ends(|| {
        let broken = Arc::new(AtomicBool::new(false));
        let breaks = Arc::clone(&broken);
        let by = move |item: &u32| {
            assert!(*item < 100 || !breaks.load(Ordering::SeqCst), "no key");
            *item
        };
        let queue = Queue::builder()
            .fair_by(by)
            .capacity(4)
            .key_capacity(4)
            .build();
        queue.handle().push_batch(0..4).unwrap();
        let mut handle = queue.handle();
        std::thread::scope(|scope| {
            let batch = || panics(|| handle.push_batch_blocking(100..103));
            let failed = scope.spawn(batch);
            queue.pop().unwrap();
            // Until it is the first in the wait queue, and has gathered the free permit.
            for item in 10.. {
                if queue.push(item).is_err() {
                    break;
                }
                queue.pop().unwrap();
                std::thread::yield_now();
            }
            broken.store(true, Ordering::SeqCst);
            queue.pop().unwrap();
            assert!(failed.join().unwrap());
        });
        broken.store(false, Ordering::SeqCst);
        assert_eq!(queue.len(), 2);
        assert_eq!([queue.push(1), queue.push(2)], [Ok(()); 2]);
        drop(handle);
    });
}

#[test]
fn a_letter_whose_key_cannot_be_found_stays_one() {
    let broken = Arc::new(AtomicUsize::new(0));
    let breaks = Arc::clone(&broken);
    let by = move |item: &u32| {
        assert_eq!(breaks.load(Ordering::SeqCst), 0);
        *item
    };
    let builder = Queue::builder().fair_by(by).max_attempts(1);
    let queue = builder.build();
    queue.push(1).unwrap();
    assert_eq!(*queue.handle().begin().pop().unwrap(), 1);
    broken.store(1, Ordering::SeqCst);
    assert!(panics(|| queue.dead_letters().requeue_all()));
    broken.store(0, Ordering::SeqCst);
    assert_eq!(
        (queue.dead_letters().requeue_all(), queue.pop()),
        (1, Ok(1))
    );
}

#[test]
fn a_million_keys_with_one_item_each() {
    const KEYS: u32 = 1_000_000;
    let queue = FairQueue::by(|item: &u32| *item);
    let mut handle = queue.handle();
    for item in 0..KEYS {
        handle.push(item).unwrap();
    }
    assert_eq!(queue.len(), KEYS as usize);
    for item in 0..KEYS {
        assert_eq!(handle.pop(), Ok(item));
    }
    assert_eq!(handle.pop(), Err(PopError::Empty));
    assert_at_rest(&queue, 0, 0);
}

/// Numbers of keys are reused, and more keys than there are hints share them.
#[test]
fn keys_that_come_and_go_are_kept_apart() {
    const KEYS: u64 = 5_000;
    let queue = FairQueue::by(|item: &u64| item / 10);
    let mut handle = queue.handle();
    for first in [0, KEYS, KEYS / 2] {
        let keys = first..first + KEYS;
        for turn in 0..3 {
            for key in keys.clone() {
                handle.push(10 * key + turn).unwrap();
            }
        }
        let snapshot = queue.keys();
        let counts = snapshot.iter().map(|(key, items)| (*key, items));
        assert!(counts.eq(keys.clone().map(|key| (key, 3))));
        for turn in 0..3 {
            assert!(keys.clone().all(|key| handle.pop() == Ok(10 * key + turn)));
        }
        assert_at_rest(&queue, 0, 0);
    }
}

/// Lists grow and shrink while their items leave at the other end.
#[test]
fn items_of_keys_of_all_lengths_come_out_in_order() {
    const KEYS: u64 = 30;
    let queue = FairQueue::by(|item: &u64| item % KEYS);
    let mut handle = queue.handle();
    let mut next = [0; 30]; // for each key
    let mut expect = |item: u64| {
        let next = &mut next[usize::try_from(item % KEYS).unwrap()];
        assert_eq!(item / KEYS, *next);
        *next += 1;
    };
    for (count, pops) in (0..200).zip([0, 1, 3].into_iter().cycle()) {
        let keys = (0..KEYS).filter(|key| count % (key + 1) == 0);
        let items: Vec<_> = keys.map(|key| count / (key + 1) * KEYS + key).collect();
        let len = u64::try_from(handle.push_batch(items).unwrap()).unwrap();
        for _ in 0..(len * pops).min(len + 2) {
            handle.pop().into_iter().for_each(&mut expect);
        }
    }
    drain(&queue).into_iter().for_each(&mut expect);
    assert_eq!(next[0], 200);
    assert_at_rest(&queue, 0, 0);
}
