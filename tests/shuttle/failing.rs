//! Workers that fail: each item is committed once, or becomes a dead letter.

use super::{below, explore, join, one_of, start};
use requeue::{Builder, Item, ManualClock, Order, PopError, Queue, Transaction};
use shuttle::thread;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The time for which a lease table in use is not checked.
const TICK: Duration = Duration::from_millis(1);
const ITEMS: usize = 4;

/// A queue with its settings, its clock, and the fates of the items.
struct Shop<O: Order<usize>> {
    queue: Queue<usize, O>,
    clock: ManualClock,
    ends: Arc<Ends>,
}

/// Std's primitives: using them is no step of the schedule.
#[derive(Default)]
struct Ends(Mutex<[bool; ITEMS]>);

impl Ends {
    fn enter(&self, item: usize) {
        let mut ends = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(!mem::replace(&mut ends[item], true), "item {item} twice");
    }

    fn are_complete(&self, elsewhere: usize) -> bool {
        let ends = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ends.iter().filter(|end| **end).count() + elsewhere == ITEMS
    }
}

impl<O: Order<usize>> Shop<O> {
    fn any(order: impl FnOnce(Builder<usize>) -> Builder<usize, O>) -> Arc<Self> {
        let (clock, ends) = (ManualClock::new(), Arc::<Ends>::default());
        let overflow = Arc::clone(&ends);
        let mut builder = Queue::builder()
            .clock(clock.clone())
            .max_attempts(one_of(&[1, 2, 3]))
            .max_dead_letters(one_of(&[1, ITEMS]))
            .on_dead_overflow(move |letter| overflow.enter(letter.item));
        if below(3) == 0 {
            builder = builder.capacity(ITEMS);
        }
        let queue = order(builder).build();
        Arc::new(Self { queue, clock, ends })
    }

    fn push(&self, items: std::ops::Range<usize>) {
        let mut handle = self.queue.handle();
        items.for_each(|item| handle.push(item).unwrap());
    }

    /// Advances the clock until each item is committed or dead.
    fn run_clock(&self) {
        while !self.ends.are_complete(self.queue.dead_letters().len()) {
            self.clock.advance(TICK);
            thread::yield_now();
        }
    }

    fn check(&self) {
        self.queue
            .dead_letters()
            .for_each(|letter| self.ends.enter(letter.item));
        assert!(self.ends.are_complete(0));
        assert_eq!(self.queue.pop(), Err(PopError::Closed));
        let stats = self.queue.stats();
        assert_eq!(stats.check(), Ok(()));
        assert_eq!((stats.ready, stats.held, stats.delayed), (0, 0, 0));
    }
}

/// Works until the queue is closed.
fn work<O: Order<usize>>(shop: &Shop<O>) {
    let mut handle = match below(2) {
        0 => shop.queue.handle(),
        _ => shop.queue.named_handle("worker"),
    };
    loop {
        if below(4) == 0 {
            let _ = handle.peek_with(|item| assert!(*item < ITEMS));
        }
        let tx = handle.begin();
        match tx.pop_blocking() {
            Ok(item) => work_on(&tx, item),
            Err(error) => return assert_eq!(error, PopError::Closed),
        }
        match below(4) {
            0 => tx.abort(),
            1 => mem::forget(tx),
            _ => {
                for item in tx.try_commit().into_iter().flatten() {
                    shop.ends.enter(item);
                }
            }
        }
    }
}

/// Retries an item, or holds it for a while, and others with it.
fn work_on<O: Order<usize>>(tx: &Transaction<'_, usize, O>, item: Item<'_, usize>) {
    match below(5) {
        0 => tx.retry_after(item, TICK * one_of(&[0, 1, 3])).unwrap(),
        1 => (0..below(3)).for_each(|_| thread::yield_now()),
        2 => drop(tx.peek()),
        3 => {
            let _ = (tx.pop(), tx.renew());
        }
        _ => {}
    }
}

#[test]
fn each_item_is_committed_once_or_dies() {
    explore(|| match below(2) {
        0 => open(|builder| builder.leased(2 * TICK)),
        _ => open(|builder| builder),
    });
}

fn open<O: Order<usize> + 'static>(order: impl FnOnce(Builder<usize>) -> Builder<usize, O>) {
    let shop = Shop::any(order);
    shop.push(0..2);
    let workers = start(2 + below(2), &shop, work);
    shop.push(2..ITEMS);
    let early = below(2) == 0 && shop.queue.close();
    shop.run_clock();
    assert_ne!(shop.queue.close(), early);
    join(workers);
    shop.check();
}

/// A thread that checks the queue puts the first item at the head, and wakes the waiter for the second too.
#[test]
fn one_waiter_is_always_the_leader() {
    explore(|| {
        let clock = ManualClock::new();
        let queue = Queue::builder().clock(clock.clone()).build();
        let mut handle = queue.handle();
        for item in 1..=2 {
            handle.push(item).unwrap();
            let tx = handle.begin();
            let held = tx.pop().unwrap();
            tx.retry_after(held, TICK * item).unwrap();
        }
        clock.advance(TICK);
        let waiters = start(2, &Arc::new(queue.clone()), |queue| {
            queue.handle().pop_blocking().unwrap();
        });
        queue.len();
        clock.advance(TICK);
        join(waiters);
    });
}

/// Visitors delay the items that the takers wait for, and leave; so does each taker that has taken an item.
#[test]
fn a_leaving_leader_hands_over() {
    explore(|| {
        let clock = ManualClock::new();
        let queue = Queue::builder().clock(clock.clone()).build();
        queue.handle().push_batch(0..2).unwrap();
        let shared = Arc::new(queue.clone());
        let visitors = start(2, &shared, |queue| {
            let mut handle = queue.handle();
            let tx = handle.begin();
            if let Ok(item) = tx.pop() {
                tx.retry_after(item, TICK * one_of(&[1, 2])).unwrap();
            }
        });
        let takers = start(3, &shared, |queue| {
            queue.handle().pop_blocking().unwrap();
        });
        join(visitors);
        queue.push(2).unwrap();
        (0..2).for_each(|_| clock.advance(TICK));
        join(takers);
    });
}
