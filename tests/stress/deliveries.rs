//! Deliveries that end on other threads than those that took them, in any order and way.

use crate::common::rng::Rng;
use crate::harness::{on_all_threads, scaled};
use requeue::{Delivery, FairQueue, Order, PopError, PriorityQueue, Queue, ReturnTo, Unleased};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Mutex;
use std::thread;

/// The deliveries that are open, for all threads, and how often each item was acknowledged.
struct Shared<'q, O: Order<u32>> {
    queue: &'q Queue<u32, O>,
    open: Mutex<Vec<Delivery<u32, O>>>,
    acked: Vec<AtomicU32>,
}

impl<O: Order<u32> + Unleased> Shared<'_, O> {
    /// Ends one of the open deliveries; not under the lock.
    fn end_one(&self, rng: &mut Rng) {
        let mut open = self.open.lock().unwrap();
        if open.is_empty() {
            drop(open);
            return thread::yield_now();
        }
        let index = rng.below(open.len());
        let delivery = open.swap_remove(index);
        drop(open);
        let count = |item: u32| self.acked[item as usize].fetch_add(1, Ordering::Relaxed);
        match rng.below(10) {
            0 => delivery.nack(),
            1 => delivery.nack_to(ReturnTo::Tail),
            2 => delivery.release(),
            3 => drop(delivery),
            4 => drop(delivery.into_transaction()),
            5 => {
                delivery
                    .into_transaction()
                    .commit()
                    .for_each(|item| _ = count(item));
            }
            _ => _ = count(delivery.ack()),
        }
    }

    fn work(&self, rng: &mut Rng) {
        loop {
            let most = rng.below(4);
            let taken = self.queue.take_batch(most);
            if taken.is_empty() && matches!(self.queue.take(), Err(PopError::Closed)) {
                return;
            }
            self.open.lock().unwrap().extend(taken);
            for _ in 0..rng.below(5) {
                self.end_one(rng);
            }
        }
    }
}

/// Threads push all items, take them, and end the deliveries of each other, until each item is acknowledged once.
fn each_is_acknowledged_once<O: Order<u32> + Unleased + 'static>(make: fn() -> Queue<u32, O>) {
    on_all_threads(|width, rng| {
        let (queue, items) = (make(), scaled(500));
        let shared = Shared {
            queue: &queue,
            open: Mutex::default(),
            acked: (0..items).map(|_| AtomicU32::new(0)).collect(),
        };
        thread::scope(|scope| {
            for _ in 0..width {
                let (shared, mut rng) = (&shared, rng.fork());
                scope.spawn(move || shared.work(&mut rng));
            }
            for item in 0..u32::try_from(items).unwrap() {
                queue.push_blocking(item).unwrap();
            }
            queue.close();
        });
        assert!(shared
            .acked
            .iter()
            .all(|acked| acked.load(Ordering::Relaxed) == 1));
        let stats = queue.stats();
        assert_eq!((stats.held, stats.committed), (0, items as u64));
        stats.check().unwrap();
    });
}

#[test]
fn deliveries_are_acknowledged_once() {
    each_is_acknowledged_once(Queue::unbounded);
}

#[test]
fn deliveries_of_a_bounded_queue_are_acknowledged_once() {
    each_is_acknowledged_once(|| Queue::bounded(10));
}

#[test]
fn deliveries_of_a_fair_queue_are_acknowledged_once() {
    each_is_acknowledged_once(|| FairQueue::by(|item: &u32| item % 7));
}

#[test]
fn deliveries_by_priority_are_acknowledged_once() {
    each_is_acknowledged_once(PriorityQueue::by_priority);
}

#[test]
fn deliveries_of_a_lifo_queue_are_acknowledged_once() {
    each_is_acknowledged_once(|| Queue::builder().lifo().build());
}
