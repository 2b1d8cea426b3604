//! Many threads: no item is lost or delivered twice, and the order is kept.

use std::collections::HashSet;
use std::sync::Barrier;
use std::thread;

use crate::common::failing::SECOND;
use crate::common::rng::Rng;
use crate::common::{assert_at_rest, ends};
use requeue::{ManualClock, PriorityQueue, Queue, Ticket};

const THREADS: u64 = 4;
const ITEMS: u32 = 4000;

/// Pops until the queue is closed; gives some items back, some of them in batches.
fn work(queue: &PriorityQueue<u32>, mut rng: Rng) -> Vec<u32> {
    let mut handle = queue.handle();
    let mut items = Vec::new();
    loop {
        let tx = handle.begin();
        let Ok(first) = tx.pop_blocking() else {
            return items;
        };
        let mut batch = vec![*first];
        batch.extend(tx.pop_batch(rng.below(4)).map(|item| *item));
        if rng.percent(30) {
            continue;
        }
        tx.commit();
        items.extend(batch);
    }
}

#[test]
fn every_item_is_popped_once_whoever_aborts() {
    ends(|| {
        let queue = PriorityQueue::by_priority();
        let mut rng = Rng::new(1);
        let mut items = thread::scope(|scope| {
            let queue = &queue;
            let workers: Vec<_> = (0..THREADS)
                .map(|_| {
                    let rng = rng.fork();
                    scope.spawn(move || work(queue, rng))
                })
                .collect();
            let pushers: Vec<_> = (0..2)
                .map(|pusher| {
                    let mut rng = rng.fork();
                    scope.spawn(move || {
                        let mut handle = queue.handle();
                        for item in 0..ITEMS {
                            let priority = u16::try_from(rng.below(1 << 16)).unwrap();
                            let item = item * 2 + pusher;
                            handle.priority(priority).push(item).unwrap();
                        }
                    })
                })
                .collect();
            for pusher in pushers {
                pusher.join().unwrap();
            }
            queue.close();
            let items = workers.into_iter().map(|worker| worker.join().unwrap());
            items.flatten().collect::<Vec<_>>()
        });
        items.sort_unstable();
        assert!(items.into_iter().eq(0..2 * ITEMS));
        assert_at_rest(&queue, 0, 0);
    });
}

#[test]
fn each_thread_gets_items_in_order() {
    ends(|| {
        let queue = PriorityQueue::by_priority();
        let mut rng = Rng::new(2);
        for item in 0..ITEMS {
            let priority = 1 + u16::try_from(rng.below(100)).unwrap();
            queue.priority(priority).push((priority, item)).unwrap();
        }
        let start = Barrier::new(4);
        let parts: Vec<Vec<_>> = thread::scope(|scope| {
            let workers = [(); 4].map(|()| {
                scope.spawn(|| {
                    let mut handle = queue.handle();
                    start.wait();
                    std::iter::from_fn(|| handle.pop().ok()).collect()
                })
            });
            workers.map(|worker| worker.join().unwrap()).into()
        });
        for part in &parts {
            assert!(part.windows(2).all(|pair| pair[0] < pair[1]));
        }
        let total: usize = parts.iter().map(Vec::len).sum();
        assert_eq!(total, ITEMS as usize);
    });
}

#[test]
fn an_item_is_cancelled_or_popped_and_never_both() {
    ends(|| {
        let queue = PriorityQueue::by_priority();
        let mut rng = Rng::new(3);
        let (cancelled, mut popped) = thread::scope(|scope| {
            let queue = &queue;
            let worker_rng = rng.fork();
            let worker = scope.spawn(move || work(queue, worker_rng));
            let mut handle = queue.handle();
            let mut tickets: Vec<Ticket> = Vec::new();
            let mut cancelled = Vec::new();
            for item in 0..ITEMS {
                let priority = u16::try_from(rng.below(1 << 16)).unwrap();
                tickets.push(handle.priority(priority).push(item).unwrap());
                let ticket = rng.pick(&tickets);
                match rng.below(3) {
                    0 => cancelled.extend(queue.cancel(ticket)),
                    1 => _ = queue.reprioritize(ticket, priority),
                    _ => {}
                }
            }
            queue.close();
            (cancelled, worker.join().unwrap())
        });
        let number = cancelled.len() + popped.len();
        popped.extend(cancelled);
        let items: HashSet<_> = popped.into_iter().collect();
        assert_eq!((number, items.len()), (ITEMS as usize, ITEMS as usize));
        assert_at_rest(&queue, 0, 0);
    });
}

#[test]
fn scheduled_items_reach_waiting_threads() {
    ends(|| {
        let clock = ManualClock::new();
        let builder = Queue::builder().by_priority().clock(clock.clone());
        let queue = builder.capacity(64).build();
        let mut items = thread::scope(|scope| {
            let queue = &queue;
            let workers: Vec<_> = (0..THREADS)
                .map(|seed| scope.spawn(move || work(queue, Rng::new(seed))))
                .collect();
            let mut handle = queue.handle();
            for item in 0..1000 {
                let delay = item % 7 * SECOND;
                while handle.after(delay).push(item).is_err() {
                    clock.advance(SECOND);
                    thread::yield_now();
                }
            }
            queue.close();
            clock.advance(7 * SECOND);
            let items = workers.into_iter().map(|worker| worker.join().unwrap());
            items.flatten().collect::<Vec<_>>()
        });
        items.sort_unstable();
        assert!(items.into_iter().eq(0..1000));
        assert_at_rest(&queue, 0, 0);
    });
}
