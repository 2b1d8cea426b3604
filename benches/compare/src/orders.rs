//! Queues of other orders, compared with hand-written ones: two producers and two consumers that retry.

use crate::report::Contender;
use crate::stream::{flow, until};
use crossbeam_skiplist::SkipMap;
use requeue::{ByKey, ByPriority, FairQueue, Handle, Pace, PriorityQueue, Queue};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Number of keys among the items.
const KEYS: u64 = 1000;
/// Number of priorities among the items.
const PRIORITIES: u64 = 9999;

/// One end of a queue, for both pushes and pops.
pub(crate) trait End: Send + 'static {
    fn push(&mut self, item: u64);
    fn pop(&mut self) -> Option<u64>;
}

/// Passes `items` between these ends: two push, and two pop.
pub(crate) fn two_to_two<E: End>(name: &'static str, end: impl Fn() -> E, items: u32) -> Contender {
    let ends = || vec![end(), end()];
    flow(
        name,
        ends(),
        E::push,
        ends(),
        |end| until(|| end.pop()),
        items,
    )
}

/// Each push is followed by a pop, in one thread.
pub(crate) fn alone<E: End>(name: &'static str, mut end: E, items: u32) -> Contender {
    Contender::alone(name, items, move || {
        for item in 0..items {
            end.push(spread(item.into()));
            std::hint::black_box(end.pop());
        }
    })
}

/// Maps consecutive numbers to pseudo-random ones (Steele, Lea, Flood, "Fast splittable pseudorandom number
/// generators", 2014).
fn spread(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

fn key(item: u64) -> u64 {
    spread(item) % KEYS
}

fn priority(item: u64) -> u16 {
    u16::try_from(1 + spread(item) % PRIORITIES).expect("below 10,000")
}

impl End for Handle<u64> {
    fn push(&mut self, item: u64) {
        Handle::push(self, item).expect("not bounded");
    }

    fn pop(&mut self) -> Option<u64> {
        Handle::pop(self).ok()
    }
}

impl End for Handle<u64, ByKey<u64, u64>> {
    fn push(&mut self, item: u64) {
        Handle::push(self, item).expect("not bounded");
    }

    fn pop(&mut self) -> Option<u64> {
        Handle::pop(self).ok()
    }
}

impl End for Handle<u64, ByPriority> {
    fn push(&mut self, item: u64) {
        self.push_with(priority(item), None, item)
            .expect("not bounded");
    }

    fn pop(&mut self) -> Option<u64> {
        Handle::pop(self).ok()
    }
}

pub(crate) fn plain() -> impl Fn() -> Handle<u64> {
    let queue = Queue::unbounded();
    move || queue.handle()
}

pub(crate) fn paced(pace: Pace) -> impl Fn() -> Handle<u64> {
    let queue = Queue::builder().pace(pace).build();
    move || queue.handle()
}

pub(crate) fn fair() -> impl Fn() -> Handle<u64, ByKey<u64, u64>> {
    let queue = FairQueue::by(|item| key(*item));
    move || queue.handle()
}

pub(crate) fn by_priority() -> impl Fn() -> Handle<u64, ByPriority> {
    let queue = PriorityQueue::by_priority();
    move || queue.handle()
}

/// A queue for each key, served round-robin under one lock.
#[derive(Default)]
struct Rounds {
    items: HashMap<u64, VecDeque<u64>>,
    turns: VecDeque<u64>,
}

#[derive(Clone, Default)]
pub(crate) struct LockedRounds(Arc<Mutex<Rounds>>);

impl End for LockedRounds {
    fn push(&mut self, item: u64) {
        let key = key(item);
        let mut rounds = lock(&self.0);
        let Rounds { items, turns } = &mut *rounds;
        let queue = items.entry(key).or_default();
        if queue.is_empty() {
            turns.push_back(key);
        }
        queue.push_back(item);
    }

    fn pop(&mut self) -> Option<u64> {
        let mut rounds = lock(&self.0);
        let Rounds { items, turns } = &mut *rounds;
        let key = turns.pop_front()?;
        let queue = items.get_mut(&key)?;
        let item = queue.pop_front();
        if queue.is_empty() {
            items.remove(&key);
        } else {
            turns.push_back(key);
        }
        item
    }
}

#[derive(Clone, Default)]
pub(crate) struct LockedHeap(Arc<Mutex<Heap>>);

/// By priority and arrival, the lowest first.
type Heap = BinaryHeap<Reverse<(u16, u64)>>;

impl LockedHeap {
    pub(crate) fn push_at(&mut self, priority: u16) {
        lock(&self.0).push(Reverse((priority, priority.into())));
    }
}

impl End for LockedHeap {
    fn push(&mut self, item: u64) {
        lock(&self.0).push(Reverse((priority(item), item)));
    }

    fn pop(&mut self) -> Option<u64> {
        lock(&self.0).pop().map(|Reverse((_, item))| item)
    }
}

/// A skip list by priority and arrival.
#[derive(Clone, Default)]
pub(crate) struct SkipList(Arc<Arrivals>);

#[derive(Default)]
struct Arrivals {
    list: SkipMap<(u16, u64), u64>,
    count: AtomicU64,
}

impl SkipList {
    pub(crate) fn push_at(&mut self, priority: u16) {
        self.0.list.insert((priority, 0), priority.into());
    }
}

impl End for SkipList {
    fn push(&mut self, item: u64) {
        let Arrivals { list, count } = &*self.0;
        let arrival = count.fetch_add(1, Ordering::Relaxed);
        list.insert((priority(item), arrival), item);
    }

    fn pop(&mut self) -> Option<u64> {
        self.0.list.pop_front().map(|entry| *entry.value())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
