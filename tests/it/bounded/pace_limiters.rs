//! Limiters of one's own, and the slots of single items.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use super::pace::{builder, paced, POPS};
use crate::common::failing::{fail, failures, SECOND};
use crate::common::futures::Task;
use crate::common::{assert_at_rest, panics};
use requeue::{Limiter, Pace, Queue, RateSlot};

/// A limiter that counts its calls, and panics on demand.
#[derive(Default)]
struct Counter {
    out: Mutex<i32>,
    breaks: Mutex<bool>,
}

impl Counter {
    fn may_panic(&self) {
        let breaks = *self.breaks.lock().unwrap();
        assert!(!breaks, "the limiter fails");
    }
}

struct Counting(Arc<Counter>);

impl Limiter for Counting {
    fn start(&self, now: Instant) -> Result<RateSlot, Instant> {
        self.0.may_panic();
        *self.0.out.lock().unwrap() += 1;
        Ok(RateSlot::new(now, 3))
    }

    fn cancel(&self, slot: RateSlot, _: Instant) {
        assert_eq!(slot.mark(), 3);
        *self.0.out.lock().unwrap() -= 1;
        self.0.may_panic();
    }

    fn give_back(&self, slot: RateSlot, now: Instant) {
        self.cancel(slot, now);
    }
}

fn counted(items: std::ops::Range<u32>) -> (Arc<Counter>, Queue<u32>) {
    let counter = Arc::new(Counter::default());
    let (_, queue) = paced(Pace::shared(Counting(Arc::clone(&counter))), items);
    (counter, queue)
}

#[test]
fn each_held_or_committed_item_has_a_slot() {
    let (counter, queue) = counted(0..10);
    let out = || *counter.out.lock().unwrap();
    let mut handle = queue.handle();
    let tx = handle.begin();
    let items = tx.pop_batch(4);
    assert_eq!(out(), 4);
    let first = items.into_iter().next().unwrap();
    tx.retry(first).unwrap();
    assert_eq!(out(), 3);
    std::mem::forget(tx.peek().unwrap());
    assert_eq!(out(), 4);
    drop(tx);
    assert_eq!(out(), 0);
    handle.transact(|tx| tx.pop().map(|_| ())).unwrap();
    assert_eq!(out(), 1);
    drop(handle.begin());
    assert_eq!((out(), queue.len()), (1, 9));
}

/// A limiter of the items in flight, whose `spend` may panic.
struct InFlight(Arc<Counter>);

impl Limiter for InFlight {
    fn start(&self, now: Instant) -> Result<RateSlot, Instant> {
        *self.0.out.lock().unwrap() += 1;
        Ok(RateSlot::new(now, 3))
    }

    fn cancel(&self, slot: RateSlot, _: Instant) {
        self.spend(slot);
    }

    fn give_back(&self, slot: RateSlot, _: Instant) {
        self.spend(slot);
    }

    fn spend(&self, slot: RateSlot) {
        assert_eq!(slot.mark(), 3);
        *self.0.out.lock().unwrap() -= 1;
        self.0.may_panic();
    }
}

#[test]
fn a_slot_is_spent_when_its_item_is_committed() {
    let counter = Arc::new(Counter::default());
    let (_, queue) = paced(Pace::shared(InFlight(Arc::clone(&counter))), 0..20);
    let out = || *counter.out.lock().unwrap();
    let mut handle = queue.handle();
    let tx = handle.begin();
    assert_eq!(tx.pop_batch(4).len(), 4);
    assert_eq!(out(), 4);
    tx.commit();
    assert_eq!(out(), 0);
    let tx = handle.begin();
    drop(tx.peek().unwrap());
    let item = tx.pop().unwrap();
    tx.retry(item).unwrap();
    assert_eq!(tx.pop_batch(2).len(), 2);
    tx.abort();
    assert_eq!(out(), 0);
    assert!(handle.pop().is_ok());
    assert_eq!(handle.pop_batch(3, &mut Vec::new()), 3);
    assert_eq!(out(), 0);
}

#[test]
fn the_commit_succeeds_if_a_limiter_panics() {
    let counter = Arc::new(Counter::default());
    let (_, queue) = paced(Pace::shared(InFlight(Arc::clone(&counter))), 0..4);
    *counter.breaks.lock().unwrap() = true;
    let mut handle = queue.handle();
    let tx = handle.begin();
    assert_eq!(tx.pop_batch(3).len(), 3);
    tx.commit();
    assert!(handle.pop().is_ok());
    assert_eq!((*counter.out.lock().unwrap(), queue.len()), (0, 0));
}

#[test]
fn a_new_pace_spends_the_slots_of_earlier_starts() {
    let (_, queue) = paced(Pace::every(SECOND), 0..3);
    queue.pop().unwrap();
    let counter = Arc::new(Counter::default());
    queue.set_pace(Pace::shared(InFlight(Arc::clone(&counter))));
    assert_eq!(*counter.out.lock().unwrap(), 0);
}

#[test]
fn slots_are_returned_to_their_pace() {
    let (counter, queue) = counted(0..3);
    let mut handle = queue.handle();
    let tx = handle.begin();
    let _held = tx.pop().unwrap();
    let other = Arc::new(Counter::default());
    queue.set_pace(Pace::shared(Counting(Arc::clone(&other))));
    tx.abort();
    assert_eq!(*counter.out.lock().unwrap(), 0);
    assert_eq!(*other.out.lock().unwrap(), 1, "what was started before");
    assert_eq!(queue.pop(), Ok(0));
}

#[test]
fn a_retry_returns_its_own_slot() {
    let (clock, queue) = paced(Pace::every(SECOND).burst(2), 0..9);
    let mut handle = queue.handle();
    let tx = handle.begin();
    let old = tx.pop().unwrap();
    clock.advance(10 * SECOND);
    assert_eq!(tx.pop_batch(3).len(), 2);
    tx.retry(old).unwrap();
    assert!(tx.pop().is_err(), "an old slot has no value");
    clock.advance(SECOND);
    let new = tx.peek().unwrap().take();
    assert!(tx.pop().is_err());
    tx.retry(new).unwrap();
    assert!(tx.pop().is_ok(), "the slot of the peeked item");
}

#[test]
fn an_item_held_before_the_pace_was_set_returns_no_slot() {
    let (_, queue) = paced(Pace::unlimited(), 0..9);
    let mut handle = queue.handle();
    let tx = handle.begin();
    let free = tx.pop().unwrap();
    queue.set_pace(Pace::every(SECOND).burst(2));
    assert_eq!(tx.pop_batch(3).len(), 2);
    tx.retry(free).unwrap();
    assert!(tx.pop().is_err());
}

#[test]
fn a_batch_of_which_a_part_was_taken_is_leased() {
    let pace = Pace::shared(OnlyOne(AtomicBool::new(false)));
    let (clock, builder) = builder(pace);
    let queue = builder.leased(SECOND).build();
    queue.handle().push_batch([1, 2]).unwrap();
    let mut handle = queue.handle();
    let tx = handle.begin();
    assert!(panics(|| tx.pop_batch(2).len()));
    assert_eq!(tx.held(), 1);
    clock.advance(SECOND);
    assert_at_rest(&queue, 2, 0);
    assert!(tx.try_commit().is_err());
}

/// Counts its calls.
struct Asked(Pace, Arc<AtomicUsize>);

impl Limiter for Asked {
    fn start(&self, now: Instant) -> Result<RateSlot, Instant> {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.start(now)
    }

    fn cancel(&self, slot: RateSlot, now: Instant) {
        self.0.cancel(slot, now);
    }

    fn give_back(&self, slot: RateSlot, now: Instant) {
        self.0.give_back(slot, now);
    }
}

#[test]
fn a_waiter_sleeps_even_before_the_origin_of_the_clock() {
    let asked = Arc::new(AtomicUsize::new(0));
    let pace = Pace::shared(Asked(Pace::every(SECOND), Arc::clone(&asked)));
    let (clock, queue) = paced(pace, 0..2);
    clock.set(clock.now().checked_sub(600 * SECOND).unwrap());
    assert_eq!(queue.pop(), Ok(0));
    let mut handle = queue.handle();
    let mut task = Task::waiting(handle.pop_async());
    for _ in 0..9 {
        task.assert_waits();
    }
    let before = asked.load(Ordering::SeqCst);
    for _ in 0..9 {
        task.assert_waits();
    }
    assert_eq!(asked.load(Ordering::SeqCst), before);
    clock.advance(601 * SECOND);
    assert_eq!(task.output(), Ok(1));
}

#[test]
fn a_panicking_limiter_loses_nothing() {
    for pop in POPS {
        let (counter, queue) = counted(0..3);
        *counter.breaks.lock().unwrap() = true;
        assert!(panics(|| pop(&queue)));
        assert_at_rest(&queue, 3, 0);
    }
    for failure in failures() {
        let (counter, queue) = counted(0..3);
        let mut handle = queue.handle();
        let tx = handle.begin();
        assert_eq!(tx.pop_batch(2).len(), 2);
        *counter.breaks.lock().unwrap() = true;
        tx.abort();
        assert_at_rest(&queue, 3, 0);
        *counter.breaks.lock().unwrap() = false;
        fail(&mut handle, failure);
        assert_at_rest(&queue, 3, 0);
    }
}

/// The first start replaces the pace of its queue, so that this one has no other owner; its destructor panics.
struct Last(Arc<OnceLock<Queue<u32>>>);

impl Limiter for Last {
    fn start(&self, now: Instant) -> Result<RateSlot, Instant> {
        self.0.get().unwrap().set_pace(Pace::unlimited());
        Ok(RateSlot::new(now, 0))
    }

    fn cancel(&self, _: RateSlot, _: Instant) {}

    fn give_back(&self, _: RateSlot, _: Instant) {}
}

impl Drop for Last {
    fn drop(&mut self) {
        panic!("the destructor of a limiter fails");
    }
}

#[test]
fn a_limiter_whose_destructor_panics_loses_no_item() {
    let pops: [fn(&Queue<u32>) -> u32; 3] = [
        |queue| queue.pop().unwrap(),
        |queue| queue.handle().pop().unwrap(),
        |queue| {
            let mut items = Vec::new();
            queue.handle().pop_batch(1, &mut items);
            items[0]
        },
    ];
    for pop in pops {
        let home = Arc::new(OnceLock::new());
        let pace = Pace::shared(Last(Arc::clone(&home)));
        let queue = Queue::builder().capacity(1).pace(pace).build();
        assert!(home.set(queue.clone()).is_ok());
        queue.push(1).unwrap();
        assert_eq!(pop(&queue), 1);
        queue.push(2).unwrap();
        assert_at_rest(&queue, 1, 0);
    }
}

/// Panics on the second start.
struct OnlyOne(AtomicBool);

impl Limiter for OnlyOne {
    fn start(&self, now: Instant) -> Result<RateSlot, Instant> {
        assert!(!self.0.swap(true, Ordering::SeqCst), "only one");
        Ok(RateSlot::new(now, 0))
    }

    fn cancel(&self, _: RateSlot, _: Instant) {}

    fn give_back(&self, _: RateSlot, _: Instant) {}
}

#[test]
fn a_limiter_that_panics_in_a_batch_takes_no_room() {
    let pace = Pace::shared(OnlyOne(AtomicBool::new(false)));
    let queue = Queue::builder().capacity(2).pace(pace).build();
    let mut handle = queue.handle();
    handle.push_batch([1, 2]).unwrap();
    let mut items = Vec::new();
    assert!(panics(|| handle.pop_batch(2, &mut items)));
    assert_eq!(items, [1]);
    queue.push(3).unwrap();
    assert!(queue.push(4).unwrap_err().is_full());
}

/// A limiter that numbers its slots, and records what becomes of them.
#[derive(Default)]
struct Numbered {
    started: AtomicU64,
    ends: Mutex<Vec<(&'static str, u64)>>,
}

struct Numbering(Arc<Numbered>);

impl Limiter for Numbering {
    fn start(&self, now: Instant) -> Result<RateSlot, Instant> {
        let number = self.0.started.fetch_add(1, Ordering::Relaxed);
        Ok(RateSlot::new(now, number))
    }

    fn cancel(&self, slot: RateSlot, _: Instant) {
        self.0.ends.lock().unwrap().push(("cancelled", slot.mark()));
    }

    fn give_back(&self, slot: RateSlot, _: Instant) {
        self.0
            .ends
            .lock()
            .unwrap()
            .push(("given back", slot.mark()));
    }

    fn spend(&self, slot: RateSlot) {
        self.0.ends.lock().unwrap().push(("spent", slot.mark()));
    }
}

#[test]
fn each_item_of_a_batch_has_its_own_slot() {
    let numbered = Arc::new(Numbered::default());
    let (_, queue) = paced(Pace::shared(Numbering(Arc::clone(&numbered))), 0..6);
    let mut handle = queue.handle();
    let tx = handle.begin();
    let mut batch = tx.pop_batch(3);
    tx.retry(batch.nth(1).unwrap()).unwrap();
    let next = tx.pop_batch(2);
    assert_eq!(*numbered.ends.lock().unwrap(), [("given back", 1)]);
    tx.retry(next.last().unwrap()).unwrap();
    tx.commit();
    let mut ends = std::mem::take(&mut *numbered.ends.lock().unwrap());
    ends[2..].sort_unstable();
    let spent = [0, 2, 3].map(|number| ("spent", number));
    assert_eq!(ends[..2], [("given back", 1), ("given back", 4)]);
    assert_eq!(ends[2..], spent);
}

#[test]
fn a_forgotten_peek_starts_nothing() {
    let numbered = Arc::new(Numbered::default());
    let (_, queue) = paced(Pace::shared(Numbering(Arc::clone(&numbered))), 0..2);
    let mut handle = queue.handle();
    let tx = handle.begin();
    std::mem::forget(tx.peek().unwrap());
    tx.commit();
    assert_eq!(*numbered.ends.lock().unwrap(), [("cancelled", 0)]);
    assert_at_rest(&queue, 2, 0);
}
