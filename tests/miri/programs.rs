//! Small programs with a few threads, for Miri: it runs each with many schedules and weak memory, and checks each access
//! to memory. `CONTRIBUTING.md` has the command.
//!
//! Segments and blocks have two slots, as in the models, so that a few items use several.

#![cfg(test)]

use requeue::{
    commit_all, FairQueue, ManualClock, Order, PopError, PriorityQueue, Queue, ReturnTo,
    Transaction, Unleased,
};
use std::borrow::Borrow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Counts the items that were not dropped.
#[derive(Clone, Default)]
struct Alive(Arc<AtomicUsize>);

impl Alive {
    fn item(&self, number: u32) -> Token {
        // ORDERING: Relaxed, all of it; it is read when the threads have ended.
        self.0.fetch_add(1, Ordering::Relaxed);
        Token {
            number: Box::new(number),
            alive: self.clone(),
        }
    }

    fn items(&self, numbers: impl IntoIterator<Item = u32>) -> Vec<Token> {
        numbers
            .into_iter()
            .map(|number| self.item(number))
            .collect()
    }

    #[track_caller]
    fn check_none(&self) {
        assert_eq!(self.0.load(Ordering::Relaxed), 0, "items were leaked");
    }
}

/// An item that owns memory.
struct Token {
    number: Box<u32>,
    alive: Alive,
}

impl Clone for Token {
    fn clone(&self) -> Self {
        self.alive.item(*self.number)
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        self.alive.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn number(item: impl Borrow<Token>) -> u32 {
    *item.borrow().number
}

/// Takes items in transactions until the queue is closed; aborts every other one.
fn work<O: Order<Token> + Unleased>(queue: &Queue<Token, O>) -> Vec<u32> {
    let mut handle = queue.handle();
    let mut taken = Vec::new();
    for turn in 0.. {
        let tx = handle.begin();
        let Ok(mut first) = tx.pop_blocking() else {
            break;
        };
        *first.number ^= 1; // writes to the item in its place
        *first.number ^= 1;
        let first = *first.number;
        let more = tx.pop_batch(1).len();
        if turn % 2 == 0 {
            tx.abort();
            continue;
        }
        let items = tx.commit().map(number).collect::<Vec<_>>();
        assert_eq!((items[0], items.len()), (first, 1 + more));
        taken.extend(items);
    }
    taken
}

/// Two threads push by `push` and two work; each item is committed once.
fn each_item_once<O: Order<Token> + Unleased>(
    queue: Queue<Token, O>,
    push: impl Fn(&Queue<Token, O>, Vec<Token>) + Sync,
) where
    Queue<Token, O>: Send + Sync,
{
    let alive = Alive::default();
    let mut taken = thread::scope(|scope| {
        let (queue, push, alive) = (&queue, &push, &alive);
        let workers = [(); 2].map(|()| scope.spawn(move || work(queue)));
        let pushers =
            [0, 3].map(|first| scope.spawn(move || push(queue, alive.items(first..first + 3))));
        let pushed = pushers.map(thread::ScopedJoinHandle::join);
        queue.close();
        assert!(pushed.iter().all(Result::is_ok));
        workers.map(|worker| worker.join().unwrap()).concat()
    });
    taken.sort_unstable();
    assert!(taken.into_iter().eq(0..6));
    drop(queue);
    alive.check_none();
}

#[test]
fn by_handles() {
    each_item_once(Queue::unbounded(), |queue, items| {
        let mut handle = queue.handle();
        for item in items {
            assert!(handle.push(item).is_ok());
        }
    });
}

#[test]
fn without_handles() {
    each_item_once(Queue::unbounded(), |queue, items| {
        for item in items {
            assert!(queue.push(item).is_ok());
        }
    });
}

/// Each item comes from a handle of its own: shards are given up, and acquired again.
#[test]
fn by_many_handles() {
    each_item_once(Queue::unbounded(), |queue, items| {
        for item in items {
            assert!(queue.handle().push(item).is_ok());
        }
    });
}

#[test]
fn by_transactions() {
    each_item_once(Queue::unbounded(), |queue, items| {
        let mut handle = queue.handle();
        for item in items {
            let vain = handle.begin();
            assert!(vain.push(item.clone()).is_ok());
            drop(vain.pop());
            vain.abort();
            let tx = handle.begin();
            assert!(tx.push(item).is_ok());
            drop(tx.commit());
        }
    });
}

#[test]
fn in_a_bounded_queue() {
    each_item_once(Queue::bounded(2), |queue, items| {
        let mut handle = queue.handle();
        for item in items {
            assert!(handle.push_blocking(item).is_ok());
        }
    });
}

#[test]
fn with_timestamps() {
    each_item_once(Queue::builder().timestamps().build(), |queue, items| {
        let mut handle = queue.handle();
        for item in items {
            assert!(handle.push(item).is_ok());
            assert!(queue.stats().pushed > 0);
        }
    });
}

#[test]
fn fair_by_key() {
    let queue = FairQueue::by(|item: &Token| *item.number % 3);
    each_item_once(queue, |queue, items| {
        let mut handle = queue.handle();
        for item in items {
            assert!(handle.push(item).is_ok());
        }
    });
}

#[test]
fn by_priority() {
    each_item_once(PriorityQueue::by_priority(), |queue, items| {
        let mut handle = queue.handle();
        for (priority, item) in (1..).zip(items) {
            assert!(handle.priority(priority).push(item).is_ok());
        }
    });
}

/// A thread sleeps until an item comes, or the close.
#[test]
fn waits_for_items() {
    let (alive, queue) = (Alive::default(), Queue::bounded(1));
    let popped = thread::scope(|scope| {
        let waiters = [(); 2].map(|()| {
            scope.spawn(|| {
                let mut handle = queue.handle();
                std::iter::from_fn(|| handle.pop_blocking().ok().map(number)).collect::<Vec<_>>()
            })
        });
        for item in alive.items(0..4) {
            assert!(queue.push_blocking(item).is_ok());
        }
        queue.close();
        waiters.map(|waiter| waiter.join().unwrap()).concat()
    });
    assert_eq!(popped.iter().sum::<u32>(), 6);
    assert_eq!(popped.len(), 4);
    drop(queue);
    alive.check_none();
}

/// What publishes an item is all that orders its pop after its push: nobody sleeps or is woken.
#[test]
fn without_waits() {
    let (alive, queue) = (Alive::default(), Queue::unbounded());
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut handle = queue.handle();
            for item in alive.items(0..6) {
                assert!(handle.push(item).is_ok());
            }
        });
        let popped = [(); 2].map(|()| {
            scope.spawn(|| {
                let mut handle = queue.handle();
                let mut next = || loop {
                    match handle.pop() {
                        Ok(item) => break number(item),
                        Err(_) => thread::yield_now(),
                    }
                };
                [next(), next(), next()]
            })
        });
        let popped = popped.map(|popped| popped.join().unwrap());
        assert!(popped
            .iter()
            .all(|numbers| numbers.windows(2).all(|pair| pair[0] < pair[1])));
        assert_eq!(popped.iter().flatten().sum::<u32>(), 15);
    });
    drop(queue);
    alive.check_none();
}

/// Whoever sees one half of a commit over two queues sees the other.
#[test]
fn commits_over_two_queues() {
    let alive = Alive::default();
    let [a, b] = [(); 2].map(|()| Queue::unbounded());
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut to_a, mut to_b) = (a.handle(), b.handle());
            for item in 0..4 {
                let both: (Transaction<'_, _>, Transaction<'_, _>) = (to_a.begin(), to_b.begin());
                assert!(both.0.push(alive.item(item)).is_ok());
                assert!(both.1.push(alive.item(item)).is_ok());
                drop(commit_all(both));
            }
        });
        scope.spawn(|| {
            let (mut of_a, mut of_b) = (a.handle(), b.handle());
            for expected in 0..4 {
                assert_eq!(of_a.pop_blocking().ok().map(number), Some(expected));
                assert_eq!(of_b.pop().ok().map(number), Some(expected), "half a commit");
            }
        });
    });
    drop((a, b));
    alive.check_none();
}

/// A lease ends while its worker looks at the item, and then tries to commit.
#[test]
fn leases_that_end() {
    const TERM: Duration = Duration::from_secs(1);
    let (alive, clock) = (Alive::default(), ManualClock::new());
    let queue = Queue::builder().clock(clock.clone()).leased(TERM).build();
    assert!(queue.handle().push_batch(alive.items(0..3)).is_ok());
    let done = AtomicUsize::new(0);
    let mut taken = thread::scope(|scope| {
        let workers = [true, false].map(|is_late| {
            let (queue, clock, done) = (&queue, &clock, &done);
            scope.spawn(move || {
                let (mut handle, mut taken) = (queue.handle(), Vec::new());
                while done.load(Ordering::Relaxed) < 3 {
                    let tx = handle.begin();
                    let Ok(item) = tx.pop() else {
                        drop(tx);
                        clock.advance(TERM / 2);
                        thread::yield_now();
                        continue;
                    };
                    if is_late && item.attempts() == 1 {
                        clock.advance(TERM);
                    }
                    let expected = *item.number;
                    if let Ok(mut items) = tx.try_commit() {
                        assert_eq!(items.next().map(number), Some(expected));
                        done.fetch_add(1, Ordering::Relaxed);
                        taken.push(expected);
                    }
                }
                taken
            })
        });
        workers.map(|worker| worker.join().unwrap()).concat()
    });
    taken.sort_unstable();
    assert_eq!(taken, [0, 1, 2]);
    drop(queue);
    alive.check_none();
}

/// References to held items stay valid while others are taken, also on another thread, and whatever then happens to the
/// transaction.
#[test]
fn held_items_stay_in_their_place() {
    let (alive, queue) = (Alive::default(), Queue::unbounded());
    assert!(queue.push_batch(alive.items(0..4)).is_ok());
    let mut tx = queue.begin_owned();
    {
        let mut first = tx.pop().unwrap();
        let mut second = tx.pop().unwrap();
        let more: Vec<_> = tx.pop_batch(2).collect();
        std::mem::swap(&mut *first, &mut *second);
        *first.number += 10;
        let numbers = thread::scope(|scope| {
            scope
                .spawn(|| {
                    more.into_iter()
                        .map(|item| *item.number)
                        .collect::<Vec<_>>()
                })
                .join()
                .unwrap()
        });
        assert_eq!(
            (*first.number, *second.number, &*numbers),
            (11, 0, &[2, 3][..])
        );
    }
    for item in tx.items() {
        assert!(*item.number < 12);
    }
    tx = thread::spawn(move || {
        tx.rollback();
        assert_eq!(tx.pop_batch(2).len(), 2);
        assert_eq!(*tx.peek().unwrap().number, 2);
        tx
    })
    .join()
    .unwrap();
    assert_eq!(queue.pop().ok().map(number), Some(2));
    let mut taken = tx.commit();
    assert_eq!(taken.next().map(number), Some(11));
    drop(taken);
    assert_eq!(queue.drain().map(number).collect::<Vec<_>>(), [3]);
    drop(queue);
    alive.check_none();
}

/// A thread iterates over a batch that nobody had taken before, while the transaction takes an item that was delivered
/// before, and one leaves it.
#[test]
fn a_batch_is_read_while_its_transaction_goes_on() {
    let (alive, queue) = (Alive::default(), Queue::unbounded());
    assert!(queue.push_batch(alive.items(0..5)).is_ok());
    let mut handle = queue.handle();
    let tx = handle.begin();
    let mut batch = tx.pop_batch(4);
    let first = batch.next().unwrap();
    let read = thread::scope(|scope| {
        let read = scope.spawn(move || batch.map(|item| (*item.number, item.attempts())).collect());
        let mut other = queue.handle();
        assert!(other.begin().pop().is_ok());
        assert_eq!(tx.pop().unwrap().attempts(), 2);
        tx.retry(first).unwrap();
        read.join().unwrap()
    });
    let read: Vec<(u32, u32)> = read;
    assert_eq!(read, [(1, 1), (2, 1), (3, 1)]);
    drop(tx);
    let again = handle.begin();
    assert!(again
        .pop_batch(5)
        .all(|item| item.attempts() == 2 + u32::from(*item.number == 4)));
    again.commit();
    drop((queue, handle));
    alive.check_none();
}

/// Items are everywhere when the queue goes: ready, returned, staged, held, dead, leaked.
#[test]
fn a_queue_that_goes_with_its_items() {
    let (alive, queue) = (Alive::default(), Queue::builder().max_attempts(1).build());
    let [mut a, mut b, mut c] = [(); 3].map(|()| queue.handle());
    assert!(a.push_batch(alive.items(0..5)).is_ok());
    assert!(queue.push(alive.item(5)).is_ok());
    let tx = b.begin();
    drop(tx.pop_batch(2));
    tx.abort();
    assert_eq!(queue.dead_letters().len(), 2);
    let tx = b.begin();
    assert!(tx.push(alive.item(6)).is_ok());
    drop(tx.pop());
    std::mem::forget(tx);
    let tx = c.begin();
    drop(tx.pop());
    drop(queue);
    drop(tx.commit());
    thread::spawn(move || drop((a, b))).join().unwrap();
    assert!(matches!(c.pop(), Ok(_) | Err(PopError::Empty)));
    drop(c);
    alive.check_none();
}

/// Each item leaves the hold before the end of its transaction, the first one last, which frees its block.
#[test]
fn items_leave_the_hold_early() {
    let alive = Alive::default();
    let queue = Queue::unbounded();
    let mut handle = queue.handle();
    assert!(handle.push_batch(alive.items(0..8)).is_ok());
    let tx = handle.begin();
    let mut items: Vec<_> = tx.pop_batch(8).collect();
    while let Some(mut item) = items.pop() {
        *item.number ^= 1; // writes through the reference
        let even = items.len() % 2 == 0;
        let left = if even {
            tx.retry(item)
        } else {
            tx.fail(item, "odd")
        };
        assert!(left.is_ok());
    }
    drop(tx.commit());
    assert_eq!((queue.len(), queue.dead_letters().len()), (4, 4));
    drop((handle, queue));
    alive.check_none();
}

/// Deliveries come back on other threads, beside pops, and outlive their queue.
#[test]
fn visited_items_are_removed() {
    let alive = Alive::default();
    let queue = Queue::unbounded();
    let mut handle = queue.handle();
    handle.push_batch(alive.items(0..6)).unwrap();
    let tx = handle.begin();
    assert_eq!(tx.pop_batch(3).len(), 3);
    tx.abort();
    let popper = thread::spawn({
        let queue = queue.clone();
        move || {
            (0..2)
                .filter_map(|_| queue.pop().ok())
                .map(number)
                .collect()
        }
    });
    let mut removed = Vec::new();
    queue.retain(|item, _| {
        let keep = *item.number % 2 == 0;
        removed.extend((!keep).then_some(*item.number));
        keep
    });
    let mut all: Vec<_> = popper.join().unwrap();
    all.extend(queue.drain().map(number));
    all.extend(removed);
    all.sort_unstable();
    assert!(all.into_iter().eq(0..6));
    drop((queue, handle));
    alive.check_none();
}

#[test]
fn deliveries_end_in_any_order() {
    let alive = Alive::default();
    let queue = Queue::unbounded();
    assert!(queue.push_batch(alive.items(0..6)).is_ok());
    let [first, second, third, fourth] = [(); 4].map(|()| queue.take().ok().unwrap());
    let returning = thread::spawn(move || {
        drop(third);
        first.nack();
    });
    let other = queue.clone();
    let popping = thread::spawn(move || [(); 2].map(|()| other.pop().ok().map(number)));
    second.nack_to(ReturnTo::Tail);
    returning.join().unwrap();
    let popped = popping.join().unwrap();
    let rest: Vec<_> = std::iter::from_fn(|| queue.pop().ok().map(number)).collect();
    let mut all: Vec<_> = popped.into_iter().flatten().chain(rest).collect();
    all.sort_unstable();
    assert_eq!(all, [0, 1, 2, 4, 5]);
    let tx = fourth.into_transaction();
    assert!(tx.push(alive.item(6)).is_ok());
    drop(queue);
    drop(tx.commit());
    alive.check_none();
}
