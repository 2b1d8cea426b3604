//! Bounded queues: never more items than the capacity, `Full` only if no room was free, and all room is free at the
//! end.

use crate::common::rng::Rng;
use crate::harness::{on_all_threads, panic_as_planned, scaled, together, unless_planned};
use requeue::{Handle, PushError, Queue, Transaction};
use std::mem;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};
use std::thread;

/// The free room is exactly the capacity less the ready items.
fn assert_nothing_stranded(queue: &Queue<usize>) {
    let (capacity, ready) = (queue.capacity().unwrap(), queue.len());
    let mut handle = queue.handle();
    for item in ready..capacity {
        assert_eq!(handle.push(item), Ok(()), "{item} of {capacity}");
    }
    assert_eq!(handle.push(0), Err(PushError::Full(0)));
    assert_eq!(queue.len(), capacity);
}

/// The ways in which a thread of the ring takes a token and puts it back.
type RateSlot = fn(&Queue<usize>, &mut Handle<usize>) -> bool;

const TURNS: [RateSlot; 4] = [
    |_, handle| {
        let Ok(token) = handle.pop() else {
            return false;
        };
        handle.push(token).expect("there is room for one more");
        true
    },
    |queue, _| {
        let Ok(token) = queue.pop() else { return false };
        queue.push(token).expect("there is room for one more");
        true
    },
    |queue, handle| {
        let Ok(token) = handle.pop() else {
            return false;
        };
        queue.push(token).expect("there is room for one more");
        true
    },
    |_, handle| {
        let tx = handle.begin();
        let Some(token) = tx.pop().ok().map(|item| *item) else {
            return false;
        };
        tx.push(token).expect("it takes the room of the token");
        tx.commit();
        true
    },
];

/// There is one token fewer than the capacity: a thread that has taken one can put it back, whatever the others do.
fn ring(places: usize, turns: &[RateSlot]) {
    on_all_threads(|threads, rng| {
        let queue = Queue::bounded(places);
        queue.handle().push_batch(0..places - 1).unwrap();
        let share = scaled(16_000) / threads;
        together(threads, rng, |_, rng| {
            let mut handle = queue.handle();
            for _ in 0..share {
                if rng.percent(1) {
                    handle = queue.handle();
                }
                if !rng.pick(turns)(&queue, &mut handle) {
                    thread::yield_now();
                }
            }
        });
        assert_eq!(queue.len(), places - 1);
        assert_nothing_stranded(&queue);
    });
}

#[test]
fn a_ring_with_one_free_place_is_never_full() {
    for places in [2, 3, 5, 17, 200] {
        ring(places, &TURNS[..1]);
    }
}

#[test]
fn a_ring_is_never_full_whichever_way_the_tokens_move() {
    for places in [2, 3, 5, 17, 200] {
        ring(places, &TURNS);
    }
}

/// Some threads only push and some only pop, so that all room moves from these to those. A pusher that owns a voucher
/// for free room is never refused.
#[test]
fn room_that_is_given_back_is_found() {
    on_all_threads(|threads, rng| {
        for capacity in [1, 2, 7, 100] {
            let queue = Queue::bounded(capacity);
            let vouchers = AtomicUsize::new(capacity);
            let pushers = threads / 2;
            let left = AtomicUsize::new(scaled(4_000));
            let take = |counter: &AtomicUsize| {
                let less = |count: usize| count.checked_sub(1);
                counter.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less)
            };
            together(threads, rng, |number, _| {
                let mut handle = queue.handle();
                if number < pushers {
                    while left.load(Ordering::SeqCst) > 0 {
                        match take(&vouchers) {
                            Err(_) => thread::yield_now(),
                            Ok(_) => handle.push(0).expect("a voucher is good for room"),
                        }
                    }
                } else {
                    while left.load(Ordering::SeqCst) > 0 {
                        if handle.pop().is_ok() {
                            vouchers.fetch_add(1, Ordering::SeqCst);
                            let _ = take(&left);
                        } else {
                            thread::yield_now();
                        }
                    }
                }
            });
            assert_eq!(vouchers.into_inner() + queue.len(), capacity);
            assert_nothing_stranded(&queue);
        }
    });
}

/// A lower bound of the occupied room: counted after it was taken, and before it is released.
struct Gauge {
    taken: AtomicIsize,
    capacity: isize,
}

impl Gauge {
    fn new(capacity: usize) -> Self {
        let taken = AtomicIsize::new(0);
        let capacity = capacity.try_into().unwrap();
        Self { taken, capacity }
    }

    /// Relaxed would be sufficient: the counter is one cache line, and the calls order its accesses.
    fn took(&self, room: usize) {
        let room = isize::try_from(room).unwrap();
        let taken = self.taken.fetch_add(room, Ordering::SeqCst) + room;
        assert!(taken <= self.capacity, "{taken} of {}", self.capacity);
    }

    fn gives(&self, room: usize) {
        self.taken
            .fetch_sub(room.try_into().unwrap(), Ordering::SeqCst);
    }
}

/// One thread of the storm.
struct Actor<'q> {
    queue: &'q Queue<usize>,
    gauge: &'q Gauge,
    handle: Handle<usize>,
}

/// An open transaction that reports to the gauge.
struct Gauged<'a, 'h> {
    tx: Transaction<'h, usize>,
    gauge: &'a Gauge,
}

impl Gauged<'_, '_> {
    fn stage(&self) {
        let covered = self.tx.staged() < self.tx.held();
        match self.tx.push(0) {
            Ok(()) if covered => {}
            Ok(()) => self.gauge.took(1),
            Err(error) => assert!(error.is_full() && !covered, "it holds more than it stages"),
        }
    }

    /// A held item keeps its room, unless a staged item uses it.
    fn hold(&self) {
        let covered = self.tx.held() < self.tx.staged();
        self.gauge.gives(usize::from(covered));
        if self.tx.pop().is_err() {
            self.gauge.took(usize::from(covered));
        }
    }

    /// Ends the transaction in some way.
    fn end(self, rng: &mut Rng) {
        let Self { tx, gauge } = self;
        let (held, staged) = (tx.held(), tx.staged());
        let most = held.max(staged);
        if rng.percent(50) {
            gauge.gives(most - staged);
            drop(tx.commit());
            return;
        }
        gauge.gives(most - held);
        match rng.below(3) {
            0 => tx.abort(),
            1 => mem::forget(tx),
            _ => {
                let panicked = unless_planned(move || {
                    let _tx = tx;
                    panic_as_planned()
                });
                assert!(panicked.is_none());
            }
        }
    }
}

impl Actor<'_> {
    fn push(&self, outcome: Result<usize, bool>) {
        match outcome {
            Ok(count) => self.gauge.took(count),
            Err(full) => assert!(full),
        }
    }

    /// Counts up to `most` items as taken.
    fn pop(&mut self, most: usize, pop: impl FnOnce(&mut Self) -> usize) {
        self.gauge.gives(most);
        let popped = pop(self);
        self.gauge.took(most - popped);
    }

    fn transact(&mut self, rng: &mut Rng) {
        let gauge = self.gauge;
        let tx = Gauged {
            tx: self.handle.begin(),
            gauge,
        };
        for _ in 0..rng.below(6) {
            if rng.percent(50) {
                tx.stage();
            } else {
                tx.hold();
            }
        }
        tx.end(rng);
    }

    fn act(&mut self, rng: &mut Rng) {
        let some = 1 + rng.below(4);
        match rng.below(12) {
            0..=1 => {
                let pushed = self.handle.push(0).map(|()| 1);
                self.push(pushed.map_err(|error| error.is_full()));
            }
            2 => self.push(self.queue.push(0).map(|()| 1).map_err(|e| e.is_full())),
            3 => {
                let pushed = self.handle.push_batch(vec![0; some]);
                self.push(pushed.map_err(|error| error.is_full()));
            }
            4..=5 => self.pop(1, |actor| usize::from(actor.handle.pop().is_ok())),
            6 => self.pop(1, |actor| usize::from(actor.queue.pop().is_ok())),
            7 => self.pop(some, |actor| actor.handle.pop_batch(some, &mut Vec::new())),
            8 if rng.percent(20) => self.handle = self.queue.handle(),
            _ => self.transact(rng),
        }
    }
}

#[test]
fn a_storm_never_takes_more_room_than_there_is() {
    on_all_threads(|threads, rng| {
        for capacity in [1, 2, 7, 64, 1_000] {
            let queue = &Queue::bounded(capacity);
            let gauge = &Gauge::new(capacity);
            let share = scaled(6_000) / threads;
            together(threads, rng, |_, rng| {
                let handle = queue.handle();
                let mut actor = Actor {
                    queue,
                    gauge,
                    handle,
                };
                (0..share).for_each(|_| actor.act(rng));
            });
            let taken = gauge.taken.load(Ordering::SeqCst);
            assert_eq!(taken, isize::try_from(queue.len()).unwrap());
            assert_eq!(queue.stats().held, 0);
            assert_nothing_stranded(queue);
        }
    });
}

/// Waiting pushers and poppers on a small queue: all items are received, in the order of their pusher.
#[test]
fn everything_gets_through_a_small_queue() {
    on_all_threads(|threads, rng| {
        for capacity in [1, 2, 7] {
            let queue = Queue::bounded(capacity);
            let pairs = threads / 2;
            let share = scaled(2_000) / threads;
            let sum = AtomicUsize::new(0);
            let pushing = AtomicUsize::new(pairs);
            together(2 * pairs, rng, |number, rng| {
                let mut handle = queue.handle();
                if number < pairs {
                    for item in 0..share {
                        let item = number * share + item;
                        match rng.below(2) {
                            0 => handle.push_blocking(item).unwrap(),
                            _ => assert_eq!(handle.push_batch_blocking([item]), Ok(1)),
                        }
                    }
                    if pushing.fetch_sub(1, Ordering::SeqCst) == 1 {
                        assert!(queue.close());
                    }
                } else {
                    let mut last = vec![None; pairs];
                    while let Ok(item) = take(&mut handle, rng) {
                        let last = &mut last[item / share];
                        assert!(*last < Some(item), "{item} after {last:?}");
                        *last = Some(item);
                        sum.fetch_add(item, Ordering::SeqCst);
                    }
                }
            });
            let items = pairs * share;
            assert_eq!(sum.into_inner(), items * (items - 1) / 2);
            assert_eq!(queue.stats().committed, items as u64);
        }
    });
}

fn take(handle: &mut Handle<usize>, rng: &mut Rng) -> Result<usize, requeue::PopError> {
    match rng.below(2) {
        0 => handle.pop_blocking(),
        _ => handle.transact(|tx| tx.pop_blocking().map(|item| *item)),
    }
}
