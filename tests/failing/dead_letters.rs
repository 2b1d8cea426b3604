//! Items that are delivered too often: when and why they become dead letters, and how they are pushed again.

use std::mem;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{channel, Sender};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::common::failing::{
    assert_room, clocked, fail, failures, letters, put_off, Failure, SECOND,
};
use crate::common::futures::Task;
use crate::common::{drain, panics, Ledger};
use requeue::{Backoff, DeadLetter, Fifo, Handle, Order, PopError, Queue, Reason};

/// A queue with this maximal number of deliveries.
fn mortal(attempts: u32) -> Queue<u32> {
    Queue::builder().max_attempts(attempts).build()
}

/// Makes the next items dead letters together, in a queue with one delivery per item.
fn kill<T>(handle: &mut Handle<T>, count: usize) {
    let tx = handle.begin();
    assert_eq!(tx.pop_batch(count).len(), count);
    tx.abort();
}

#[test]
fn an_item_dies_when_its_last_delivery_fails() {
    for failure in failures() {
        for attempts in [1, 2, 5] {
            let queue = mortal(attempts);
            let mut handle = queue.handle();
            handle.push_batch([7, 8]).unwrap();
            for _ in 1..attempts {
                fail(&mut handle, failure);
                assert!(queue.dead_letters().is_empty());
            }
            fail(&mut handle, failure);
            queue.stats().check().unwrap();
            let stats = queue.stats();
            assert_eq!((stats.dead, stats.ready), (1, 1));
            assert_eq!(stats.aborted, u64::from(attempts));
            assert_eq!(letters(&queue), [(7, attempts, failure.0)]);
            queue.stats().check().unwrap();
            assert_eq!(drain(&queue), [8]);
        }
    }
}

#[test]
fn an_item_whose_lease_is_over_too_often_dies() {
    let (clock, builder) = clocked();
    let queue = builder.max_attempts(2).leased(SECOND).build();
    queue.push(7).unwrap();
    for _ in 0..2 {
        let mut handle = queue.handle();
        let tx = handle.begin();
        tx.pop().unwrap();
        clock.advance(SECOND);
        queue.len(); // notices it
        drop(tx);
    }
    assert_eq!(queue.pop(), Err(PopError::Empty));
    assert_eq!(letters(&queue), [(7, 2, Reason::Expired)]);
    let stats = queue.stats();
    assert_eq!((stats.expired, stats.aborted, stats.dead), (2, 0, 1));
    stats.check().unwrap();
}

#[test]
fn letters_come_oldest_first_with_the_changes_of_their_workers() {
    let queue = mortal(1);
    let mut handle = queue.handle();
    for items in [vec![1, 2, 3], vec![4], vec![5, 6]] {
        let count = items.len();
        handle.push_batch(items).unwrap();
        let tx = handle.begin();
        tx.pop_batch(count).for_each(|mut item| *item *= 10);
        tx.abort();
    }
    let items = letters(&queue).into_iter().map(|(item, ..)| item);
    assert!(items.eq([10, 20, 30, 40, 50, 60]));
}

#[test]
fn without_room_for_its_letter_no_item_dies() {
    for (most, backoff) in [(0, None), (2, None), (2, Some(Backoff::fixed(SECOND)))] {
        let (clock, mut builder) = clocked();
        if let Some(backoff) = backoff {
            builder = builder.backoff(backoff);
        }
        let queue = builder.max_attempts(1).max_dead_letters(most).build();
        let mut handle = queue.handle();
        handle.push_batch(0..3).unwrap();
        kill(&mut handle, 3);
        assert_eq!(queue.dead_letters().len(), most);
        assert_eq!(queue.len(), if backoff.is_none() { 3 - most } else { 0 });
        clock.advance(SECOND);
        let tx = handle.begin();
        for item in tx.pop_batch(3) {
            assert_eq!(item.attempts(), 2);
        }
        drop(tx);
        clock.advance(SECOND);
        // A removed letter makes room for another one.
        assert_eq!(queue.dead_letters().next().is_some(), most > 0);
        kill(&mut handle, 1);
        assert_eq!(queue.dead_letters().len(), most);
        queue.stats().check().unwrap();
    }
}

/// A queue that keeps this many letters and passes the excess to a callback.
fn overflowing(most: usize) -> (Queue<u32>, std::sync::mpsc::Receiver<DeadLetter<u32>>) {
    let (sender, receiver) = channel();
    let queue = Queue::builder()
        .max_attempts(1)
        .max_dead_letters(most)
        .on_dead_overflow(move |letter| sender.send(letter).unwrap())
        .build();
    (queue, receiver)
}

#[test]
fn the_oldest_letters_give_way() {
    for failure in failures() {
        let (queue, overflowed) = overflowing(2);
        let mut handle = queue.handle();
        handle.push_batch(0..5).unwrap();
        (0..5).for_each(|_| fail(&mut handle, failure));
        let gone: Vec<_> = overflowed.try_iter().map(|letter| letter.item).collect();
        assert_eq!(gone, [0, 1, 2]);
        assert_eq!(letters(&queue).len(), 2);
        let stats = queue.stats();
        assert_eq!(stats.dead, 5);
        stats.check().unwrap();
    }
}

#[test]
fn several_letters_give_way_at_once() {
    for most in [0, 1, 3] {
        let (queue, overflowed) = overflowing(most);
        let mut handle = queue.handle();
        handle.push_batch(0..4).unwrap();
        kill(&mut handle, 4);
        assert_eq!(overflowed.try_iter().count(), 4 - most);
        assert_eq!(queue.dead_letters().len(), most);
    }
}

#[test]
fn items_that_die_by_their_leases_overflow_too() {
    let (sender, overflowed) = channel();
    let (clock, builder) = clocked();
    let queue = builder
        .leased(SECOND)
        .max_attempts(1)
        .max_dead_letters(1)
        .on_dead_overflow(move |letter| sender.send(letter.reason).unwrap())
        .build();
    let mut handle = queue.handle();
    handle.push_batch([1, 2]).unwrap();
    let tx = handle.begin();
    assert_eq!(tx.pop_batch(2).len(), 2);
    clock.advance(SECOND);
    assert!(queue.is_empty());
    assert_eq!(queue.dead_letters().len(), 1);
    assert_eq!(overflowed.try_iter().collect::<Vec<_>>(), [Reason::Expired]);
}

#[test]
fn an_overflow_that_panics_loses_its_letter_and_nothing_else() {
    for failure in failures() {
        let calls = Arc::new(AtomicUsize::new(0));
        let called = Arc::clone(&calls);
        let ledger = Ledger::new(6);
        let queue = Queue::builder()
            .max_attempts(1)
            .max_dead_letters(2)
            .on_dead_overflow(move |_| {
                called.fetch_add(1, Ordering::SeqCst);
                resume_unwind(Box::new("the overflow fails"));
            })
            .build();
        let mut handle = queue.handle();
        handle.push_batch(ledger.items()).unwrap();
        (0..3).for_each(|_| fail(&mut handle, failure));
        kill(&mut handle, 3);
        assert_eq!(calls.load(Ordering::SeqCst), 4);
        assert_eq!(ledger.drops(), [1, 1, 1, 1, 0, 0]);
        assert_eq!(queue.dead_letters().len(), 2);
        queue.stats().check().unwrap();
        drop(handle);
        drop(queue);
        ledger.assert_each_dropped_once();
    }
}

#[test]
fn an_overflow_may_use_the_queue() {
    let place: Arc<Mutex<Option<Queue<u32>>>> = Arc::default();
    let inner = Arc::clone(&place);
    let queue = Queue::builder()
        .capacity(3)
        .max_attempts(1)
        .max_dead_letters(1)
        .on_dead_overflow(move |letter| {
            let queue = inner.lock().unwrap().clone().unwrap();
            assert_eq!(queue.stats().held, 0);
            let mut handle = queue.handle();
            let tx = handle.begin();
            tx.push(letter.item + 10).unwrap();
            tx.commit();
            queue.stats().check().unwrap();
            assert_eq!(queue.dead_letters().len(), 1);
        })
        .build();
    *place.lock().unwrap() = Some(queue.clone());
    let mut handle = queue.handle();
    handle.push_batch([1, 2, 3]).unwrap();
    kill(&mut handle, 2);
    // Pushed by two handles: in any order.
    let mut left = drain(&queue);
    left.sort_unstable();
    assert_eq!(left, [3, 11]);
    assert_eq!(letters(&queue), [(2, 1, Reason::Aborted)]);
    assert_room(&queue);
    place.lock().unwrap().take(); // otherwise the queue would own itself
}

#[test]
fn the_dead_take_no_room() {
    let queue = Queue::builder().capacity(2).max_attempts(1).build();
    for failure in failures() {
        let mut handle = queue.handle();
        handle.push_batch([1, 2]).unwrap();
        let mut pusher = queue.handle();
        let mut task = Task::waiting(pusher.push_async(3));
        fail(&mut handle, failure);
        assert!(task.was_woken());
        assert_eq!(task.output(), Ok(()));
        drop(task);
        assert!(handle.push(4).unwrap_err().is_full());
        assert_eq!(drain(&queue).len(), 2);
    }
    assert_eq!(queue.dead_letters().len(), 6);
    assert_room(&queue);
}

#[test]
fn letters_that_are_pushed_again_begin_anew() {
    let queue = mortal(2);
    let mut handle = queue.handle();
    handle.push_batch([1, 2, 3]).unwrap();
    kill(&mut handle, 3);
    kill(&mut handle, 3);
    assert_eq!(queue.dead_letters().requeue_all(), 3);
    let stats = queue.stats();
    assert_eq!((stats.pushed, stats.ready, stats.dead), (6, 3, 3));
    stats.check().unwrap();
    let tx = handle.begin();
    let again: Vec<_> = tx
        .pop_batch(5)
        .map(|item| (*item, item.attempts()))
        .collect();
    assert_eq!(again, [(1, 1), (2, 1), (3, 1)]);
    tx.abort();
    kill(&mut handle, 3);
    let stats = queue.stats();
    assert_eq!((stats.pushed, stats.dead), (6, 6));
    stats.check().unwrap();
}

#[test]
fn a_requeued_letter_wakes_a_waiter() {
    let queue = mortal(1);
    let mut handle = queue.handle();
    handle.push(7).unwrap();
    kill(&mut handle, 1);
    let mut task = Task::waiting(handle.pop_async());
    assert_eq!(queue.dead_letters().requeue_all(), 1);
    assert!(task.was_woken());
    assert_eq!(task.output(), Ok(7));
}

#[test]
fn a_full_queue_takes_back_as_many_letters_as_it_has_room() {
    let queue = Queue::builder().capacity(3).max_attempts(1).build();
    let mut handle = queue.handle();
    handle.push_batch([1, 2, 3]).unwrap();
    kill(&mut handle, 3);
    handle.push(9).unwrap();
    assert_eq!(queue.dead_letters().requeue_all(), 2);
    assert_eq!(queue.dead_letters().requeue_all(), 0);
    queue.stats().check().unwrap();
    assert_eq!(letters(&queue), [(3, 1, Reason::Aborted)]);
    let mut left = drain(&queue);
    left.sort_unstable();
    assert_eq!(left, [1, 2, 9]);
    assert_room(&queue);
}

#[test]
fn a_closed_queue_keeps_its_letters() {
    for capacity in [None, Some(5)] {
        let mut builder = Queue::builder().max_attempts(1);
        if let Some(capacity) = capacity {
            builder = builder.capacity(capacity);
        }
        let queue = builder.build();
        let mut handle = queue.handle();
        handle.push_batch([1, 2, 3]).unwrap();
        kill(&mut handle, 2);
        queue.close();
        kill(&mut handle, 1); // even after the close
        assert_eq!(queue.dead_letters().requeue_all(), 0);
        assert_eq!(queue.pop(), Err(PopError::Closed));
        let items = letters(&queue).into_iter().map(|(item, ..)| item);
        assert!(items.eq([1, 2, 3]));
        queue.stats().check().unwrap();
    }
}

#[test]
fn a_death_ends_the_waiting_in_a_closed_queue() {
    for (reason, end) in failures() {
        let queue = mortal(1);
        let (mut worker, mut other) = (queue.handle(), queue.handle());
        worker.push(7).unwrap();
        let mut task = Task::new(other.pop_async());
        end(&mut worker, &mut |tx| {
            let item = tx.pop().unwrap();
            queue.close();
            task.assert_waits();
            if reason == Reason::Retried {
                tx.retry(item).unwrap();
            }
        });
        assert!(task.was_woken());
        assert_eq!(task.output(), Err(PopError::Closed));
    }
}

#[test]
fn letters_go_with_the_queue() {
    let ledger = Ledger::new(4);
    let queue = Queue::builder().max_attempts(1).build();
    let mut handle = queue.handle();
    handle.push_batch(ledger.items()).unwrap();
    kill(&mut handle, 2);
    drop(queue.dead_letters().next());
    assert_eq!(ledger.drops(), [1, 0, 0, 0]);
    kill(&mut handle, 1);
    drop(handle);
    drop(queue);
    ledger.assert_each_dropped_once();
}

#[test]
fn a_letter_whose_destructor_panics_takes_no_other_with_it() {
    let ledger = Ledger::new(3);
    let queue = Queue::builder().max_attempts(1).build();
    let mut handle = queue.handle();
    handle.push_batch(ledger.items_with_bomb(0)).unwrap();
    kill(&mut handle, 3);
    assert!(panics(|| queue.dead_letters().for_each(drop)));
    assert_eq!(ledger.drops(), [1, 0, 0]);
    assert_eq!(queue.dead_letters().requeue_all(), 2);
    assert_eq!(drain(&queue).len(), 2);
    ledger.assert_each_dropped_once();
}

#[test]
fn a_delayed_item_dies_at_its_last_delivery() {
    let (clock, builder) = clocked();
    let queue = builder.max_attempts(3).build();
    queue.push(7).unwrap();
    for _ in 0..3 {
        put_off(&queue, SECOND);
        clock.advance(SECOND);
    }
    assert_eq!(letters(&queue), [(7, 3, Reason::Retried)]);
}

#[test]
fn the_reason_is_that_of_the_last_delivery() {
    for last in failures::<u32, Fifo>() {
        let queue = mortal(2);
        let mut handle = queue.handle();
        handle.push(7).unwrap();
        let first: (Reason, Failure<u32>) = failures()[0];
        fail(&mut handle, first);
        fail(&mut handle, last);
        assert_eq!(letters(&queue), [(7, 2, last.0)]);
    }
}

#[test]
fn a_transaction_forgotten_by_a_dropped_handle_is_forgotten() {
    let queue = mortal(1);
    let mut handle = queue.handle();
    handle.push(7).unwrap();
    let tx = handle.begin();
    tx.pop().unwrap();
    mem::forget(tx);
    drop(handle);
    assert_eq!(letters(&queue), [(7, 1, Reason::Forgotten)]);
}

/// Threads make items dead letters, while others push the letters again: none is lost.
#[test]
fn letters_pass_between_threads() {
    const ITEMS: usize = 200;
    let queue = Queue::builder()
        .max_attempts(1)
        .max_dead_letters(10)
        .build();
    queue.handle().push_batch(0..ITEMS).unwrap();
    let (done, taken) = channel();
    let work = |queue: &Queue<usize>, done: Sender<usize>| {
        let mut handle = queue.handle();
        for round in 0..2_000 {
            let tx = handle.begin();
            let Ok(item) = tx.pop().map(|item| *item) else {
                queue.dead_letters().requeue_all();
                continue;
            };
            if round % 3 == 0 {
                tx.commit();
                done.send(item).unwrap();
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..4 {
            let (queue, done) = (&queue, done.clone());
            scope.spawn(move || work(queue, done));
        }
    });
    drop(done);
    let mut all: Vec<_> = taken.iter().collect();
    all.extend(letters(&queue).into_iter().map(|(item, ..)| item));
    all.extend(drain(&queue));
    all.sort_unstable();
    assert!(all.into_iter().eq(0..ITEMS));
    queue.stats().check().unwrap();
}

/// The items and ids of all letters.
fn listed<O: Order<u32>>(queue: &Queue<u32, O>) -> Vec<(u32, u64)> {
    let mut listed = Vec::new();
    let letters = queue.dead_letters();
    let count = letters.visit(|letter| listed.push((letter.item, letter.id())));
    assert_eq!(count, listed.len());
    listed
}

/// Queues of all orders with one delivery per item, and these items made dead letters one after the other.
macro_rules! each_order_with_dead {
    ($items:expr, $test:ident) => {
        let builder = || Queue::builder().max_attempts(1);
        $test(&dead_in(builder().build(), $items));
        $test(&dead_in(builder().capacity(200).build(), $items));
        $test(&dead_in(builder().by_priority().build(), $items));
        $test(&dead_in(
            builder().fair_by(|item: &u32| *item).build(),
            $items,
        ));
    };
}

fn dead_in<O: Order<u32>>(
    queue: Queue<u32, O>,
    items: impl IntoIterator<Item = u32>,
) -> Queue<u32, O> {
    let mut handle = queue.handle();
    for item in items {
        queue.push(item).unwrap();
        handle.begin().pop().unwrap();
    }
    queue
}

#[test]
fn a_visit_shows_all_letters_in_their_order_and_leaves_them() {
    fn test<O: Order<u32>>(queue: &Queue<u32, O>) {
        let before = queue.stats();
        let first = listed(queue);
        assert!(first.iter().map(|letter| letter.0).eq(0..100));
        assert!(first.windows(2).all(|pair| pair[0].1 < pair[1].1));
        assert_eq!(listed(queue), first);
        let after = queue.stats();
        assert_eq!((after.dead, after.ready), (before.dead, 0));
        after.check().unwrap();
        let letters = queue.dead_letters();
        assert_eq!(letters.len(), 100);
        assert!(letters.map(|letter| letter.item).eq(0..100));
    }
    each_order_with_dead!(0..100, test);
}

#[test]
fn a_visit_shows_all_of_a_letter() {
    let (clock, builder) = clocked();
    let queue = builder.timestamps().build();
    queue.push(7).unwrap();
    let pushed = clock.now();
    clock.advance(SECOND);
    let mut handle = queue.handle();
    let tx = handle.begin();
    tx.fail(tx.pop().unwrap(), "broken").unwrap();
    tx.commit();
    let died = clock.now();
    clock.advance(SECOND);
    let mut letters = queue.dead_letters();
    for _ in 0..2 {
        let count = letters.visit(|letter| {
            assert_eq!((letter.item, letter.attempts), (7, 1));
            assert_eq!(
                (letter.reason, letter.error()),
                (Reason::Failed, Some("broken"))
            );
            assert_eq!(
                (letter.pushed_at, letter.died_at),
                (Some(pushed), Some(died))
            );
        });
        assert_eq!(count, 1);
    }
    assert_eq!(letters.next().unwrap().died_at, Some(died));
}

#[test]
fn a_visit_that_panics_puts_all_back() {
    fn test<O: Order<u32>>(queue: &Queue<u32, O>) {
        let before = listed(queue);
        for bomb in [0, 5, 40, 99] {
            let letters = queue.dead_letters();
            assert!(panics(
                || letters.visit(|letter| assert_ne!(letter.item, bomb))
            ));
            assert_eq!((listed(queue), letters.len()), (before.clone(), 100));
        }
    }
    each_order_with_dead!(0..100, test);
}

#[test]
fn two_visits_never_share_a_letter() {
    let queue = dead_in(mortal(1), 0..100);
    let letters = queue.dead_letters();
    let (mut outer, mut inner) = (Vec::new(), Vec::new());
    letters.visit(|letter| {
        outer.push(letter.item);
        if letter.item == 0 {
            assert!(!letters.requeue(letter.id()), "it is visited");
            assert_eq!(letters.len(), 100);
            queue.dead_letters().visit(|letter| inner.push(letter.item));
        }
    });
    assert!(outer.into_iter().eq(0..100));
    assert!(!inner.is_empty() && inner.len() < 100 && !inner.contains(&0));
    assert!(letters.map(|letter| letter.item).eq(0..100));
}

#[test]
fn a_visit_ends_while_items_die() {
    let queue = dead_in(mortal(1), [0]);
    let mut next = 1;
    let visited = queue.dead_letters().visit(|_| {
        dead_in(queue.clone(), [next]);
        next += 1;
    });
    assert_eq!((visited, queue.dead_letters().len()), (1, 2));
}

#[test]
fn letters_beyond_the_most_go_after_a_visit() {
    let (sent, gone) = channel();
    let queue = Queue::builder()
        .max_attempts(1)
        .max_dead_letters(2)
        .on_dead_overflow(move |letter: DeadLetter<u32>| sent.send(letter.item).unwrap())
        .build();
    let queue = dead_in(queue, [1, 2]);
    queue.dead_letters().visit(|letter| {
        if letter.item == 1 {
            dead_in(queue.clone(), [3]);
            assert_eq!(queue.dead_letters().len(), 3);
        }
    });
    assert!(gone.try_iter().eq([1]), "the oldest");
    assert!(listed(&queue).into_iter().map(|it| it.0).eq([2, 3]));
    assert_eq!(queue.dead_letters().len(), 2);
}

#[test]
fn a_letter_is_pushed_again_by_its_id() {
    fn test<O: Order<u32>>(queue: &Queue<u32, O>) {
        let letters = queue.dead_letters();
        let ids: Vec<_> = listed(queue).into_iter().map(|letter| letter.1).collect();
        assert!(letters.requeue(ids[50]));
        assert!(!letters.requeue(ids[50]) && !letters.requeue(u64::MAX));
        assert_eq!((letters.len(), queue.pop()), (99, Ok(50)));
        queue.stats().check().unwrap();
        queue.close();
        assert!(!letters.requeue(ids[0]));
        assert_eq!(listed(queue)[0], (0, ids[0]), "it is where it was");
        assert_eq!(letters.len(), 99);
    }
    each_order_with_dead!(0..100, test);
}

#[test]
fn a_letter_stays_where_there_is_no_room() {
    let queue = Queue::builder().max_attempts(1).capacity(1).build();
    let queue = dead_in(queue, [1, 2]);
    let (letters, before) = (queue.dead_letters(), listed(&queue));
    queue.push(3).unwrap();
    assert!(!letters.requeue(before[1].1));
    assert_eq!(listed(&queue), before);
    queue.pop().unwrap();
    assert!(letters.requeue(before[1].1));
    assert_eq!(queue.pop(), Ok(2));
}

#[test]
fn an_item_that_dies_again_has_another_id() {
    let queue = dead_in(mortal(1), [1, 2]);
    let before = listed(&queue);
    queue.dead_letters().requeue(before[0].1);
    queue.handle().begin().pop().unwrap();
    let after = listed(&queue);
    assert_eq!((after[0], after[1].0), (before[1], 1));
    assert!(after[1].1 > before[1].1);
}

#[test]
fn a_drain_of_letters_takes_those_of_its_beginning() {
    let queue = dead_in(mortal(1), [1, 2, 3]);
    let letters = queue.dead_letters();
    let mut drain = letters.drain();
    assert_eq!(drain.next().unwrap().item, 1);
    dead_in(queue.clone(), [4]);
    assert!(drain.map(|letter| letter.item).eq([2, 3]));
    assert_eq!(listed(&queue).len(), 1);
    assert!(letters.drain().map(|letter| letter.item).eq([4]));
    assert!(letters.is_empty());
}

#[test]
fn a_clock_that_panics_leaves_the_time_of_death_open() {
    struct Broken(AtomicUsize);
    impl requeue::Clock for Broken {
        fn now(&self) -> std::time::Instant {
            if self.0.fetch_add(1, Ordering::SeqCst) > 0 {
                resume_unwind(Box::new("the clock fails"));
            }
            std::time::Instant::now()
        }

        fn wake_at(&self, _: std::time::Instant, _: &std::task::Waker) {}
    }
    let clock = Broken(AtomicUsize::new(0));
    let queue = Queue::builder().max_attempts(1).clock(clock).build();
    let queue = dead_in(queue, [1]);
    let letter = queue.dead_letters().next().unwrap();
    assert_eq!((letter.item, letter.died_at), (1, None));
}
