//! Batches: pushes are all or nothing, pops wait until there are enough items.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::task::Poll;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::common::futures::{block_on, poll_once, Task};
use crate::common::{assert_at_rest, drain, ends, filled, panics, Ledger, PATIENCE};
use requeue::{Handle, PushError, Queue};

type Pushed = Result<usize, PushError<Vec<u32>>>;
type Push = fn(&mut Handle<u32>, Vec<u32>) -> Pushed;

/// All ways to push a batch. Those from [`TRYING`] on wait for room.
const PUSHES: [(&str, Push); 10] = [
    ("push_batch", |handle, items| handle.push_batch(items)),
    ("push_batch_timeout", |handle, items| {
        handle.push_batch_timeout(items, Duration::ZERO)
    }),
    ("push_batch_timeout of a queue", |handle, items| {
        handle.queue().push_batch_timeout(items, Duration::ZERO)
    }),
    ("push_batch in a transaction", |handle, items| {
        handle.transact(|tx| tx.push_batch(items))
    }),
    ("push_batch_timeout in a transaction", |handle, items| {
        handle.transact(|tx| tx.push_batch_timeout(items, Duration::ZERO))
    }),
    ("push_batch_blocking", |handle, items| {
        handle.push_batch_blocking(items)
    }),
    ("push_batch_async", |handle, items| {
        block_on(handle.push_batch_async(items))
    }),
    ("push_batch_blocking in a transaction", |handle, items| {
        handle.transact(|tx| tx.push_batch_blocking(items))
    }),
    ("push_batch_timeout in a transaction", |handle, items| {
        handle.transact(|tx| tx.push_batch_timeout(items, PATIENCE))
    }),
    ("push_batch_async in a transaction", |handle, items| {
        handle.transact(|tx| block_on(tx.push_batch_async(items)))
    }),
];

const TRYING: usize = 5;

fn waiting_pushes() -> &'static [(&'static str, Push)] {
    &PUSHES[TRYING..]
}

/// A bounded queue with these items.
fn bounded(capacity: usize, items: impl IntoIterator<Item = u32>) -> Queue<u32> {
    let queue = Queue::bounded(capacity);
    queue.handle().push_batch(items).unwrap();
    queue
}

fn join_all(threads: Vec<JoinHandle<()>>) {
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn a_batch_that_fits_is_pushed_in_all_forms() {
    ends(|| {
        for (name, push) in PUSHES {
            for queue in [Queue::bounded(5), Queue::unbounded()] {
                let mut handle = queue.handle();
                assert_eq!(push(&mut handle, vec![1, 2, 3]), Ok(3), "{name}");
                assert_eq!(push(&mut handle, vec![]), Ok(0), "{name}");
                assert_eq!(push(&mut handle, vec![4, 5]), Ok(2), "{name}");
                assert_eq!(drain(&queue), [1, 2, 3, 4, 5]);
            }
        }
    });
}

#[test]
fn a_batch_that_does_not_fit_comes_back_whole_and_in_order() {
    let queue = bounded(5, [1, 2]);
    let mut handle = queue.handle();
    let refused = handle.push_batch([9, 3, 7, 5]);
    assert_eq!(refused, Err(PushError::Full(vec![9, 3, 7, 5])));
    assert_at_rest(&queue, 2, 0);
    assert_eq!(handle.push_batch([3, 4, 5]), Ok(3), "it left its room");
    assert_eq!(drain(&queue), [1, 2, 3, 4, 5]);
}

#[test]
fn a_closed_queue_gives_a_batch_back_whole_and_in_order() {
    ends(|| {
        for (name, push) in PUSHES {
            let queue = bounded(3, [1]);
            queue.close();
            for batch in [vec![8, 3], vec![5, 4, 3], vec![9, 3, 7, 5]] {
                let refused = push(&mut queue.handle(), batch.clone());
                assert_eq!(refused, Err(PushError::Closed(batch)), "{name}");
            }
            assert_eq!(drain(&queue), [1]);
        }
    });
}

#[test]
fn a_batch_larger_than_the_capacity_is_refused_at_once() {
    for (name, push) in PUSHES {
        for ready in [vec![], vec![1, 2, 3]] {
            let queue = bounded(3, ready.clone());
            let refused = ends(move || {
                let refused = push(&mut queue.handle(), vec![9, 3, 7, 5]);
                assert_eq!(drain(&queue), ready);
                refused
            });
            assert_eq!(refused, Err(PushError::Full(vec![9, 3, 7, 5])), "{name}");
        }
    }
}

#[test]
fn a_batch_is_refused_without_a_drop() {
    let ledger = Ledger::new(5);
    let queue = Queue::bounded(3);
    queue.push(ledger.item(0)).unwrap();
    let mut handle = queue.handle();
    let refused = handle.push_batch((1..5).map(|id| ledger.item(id)));
    assert_eq!(ledger.drops(), [0; 5]);
    let items = refused.unwrap_err().into_inner();
    assert!(items.iter().map(|item| item.id).eq(1..5));
    drop((items, handle, queue));
    ledger.assert_each_dropped_once();
}

#[test]
fn a_panicking_iterator_takes_no_room() {
    let ledger = Ledger::new(4);
    let queue = Queue::bounded(3);
    let mut handle = queue.handle();
    let items = || ledger.items().inspect(|item| assert_ne!(item.id, 2));
    assert!(panics(|| handle.push_batch(items())));
    assert!(panics(|| handle.push_batch_blocking(items())));
    assert!(panics(|| block_on(handle.push_batch_async(items()))));
    assert_eq!(ledger.drops(), [3, 3, 3, 0]);
    assert_at_rest(&queue, 0, 0);
    assert!(handle.push_batch((0..3).map(|_| ledger.item(3))).is_ok());
}

#[test]
fn the_iterator_may_use_the_queue() {
    let queue = Queue::bounded(4);
    let mut handle = queue.handle();
    let items = (10..13).inspect(|item| queue.push(item % 10).unwrap());
    let refused = handle.push_batch(items);
    assert_eq!(refused, Err(PushError::Full(vec![10, 11, 12])));
    let items = (10..13).inspect(|_| assert!(queue.pop().is_ok()));
    assert_eq!(handle.push_batch(items), Ok(3));
    assert_eq!(drain(&queue), [10, 11, 12]);
}

#[test]
fn a_batch_may_be_as_large_as_the_capacity() {
    let queue = Queue::bounded(10_000);
    let mut handle = queue.handle();
    for _ in 0..3 {
        assert_eq!(handle.push_batch(0..10_000), Ok(10_000));
        assert!(handle.push_batch([0]).is_err());
        let mut items = Vec::new();
        while handle.pop_batch(7_000, &mut items) > 0 {}
        assert!(items.into_iter().eq(0..10_000));
    }
}

/// No consumer takes a part of a batch: while there is only room for a part, no item is ready.
#[test]
fn a_waiting_batch_goes_in_as_a_whole() {
    let queue = bounded(3, [0, 1, 2]);
    let mut handle = queue.handle();
    let mut push = Task::waiting(handle.push_batch_async([3, 4, 5]));
    for left in (1..3).rev() {
        queue.pop().unwrap();
        push.assert_waits();
        assert_eq!(queue.len(), left);
    }
    assert_eq!(queue.pop(), Ok(2));
    assert!(push.was_woken());
    assert_eq!(push.output(), Ok(3));
    assert_eq!(drain(&queue), [3, 4, 5]);
}

#[test]
fn a_dropped_batch_leaves_no_trace() {
    let ledger = Ledger::new(5);
    let queue = Queue::bounded(3);
    queue.push(ledger.item(0)).unwrap();
    let mut handle = queue.handle();
    let batch = (1..4).map(|id| ledger.item(id));
    drop(Task::waiting(handle.push_batch_async(batch)));
    assert_eq!(ledger.drops(), [0, 1, 1, 1, 0]);
    assert_at_rest(&queue, 1, 0);
    handle.push(ledger.item(4)).unwrap();
    handle.push(ledger.item(4)).unwrap();
    assert!(handle.push(ledger.item(4)).is_err());
}

#[test]
fn a_batch_that_times_out_returns_its_gathered_permits() {
    let queue = bounded(2, [0]);
    let (mut handle, mut other) = (queue.handle(), queue.handle());
    let shortly = Duration::from_nanos(1);
    assert!(handle
        .push_batch_timeout([1, 2], shortly)
        .unwrap_err()
        .is_full());
    queue.push(3).unwrap();
    queue.pop().unwrap();
    let tx = other.begin();
    assert!(tx
        .push_batch_timeout([1, 2], shortly)
        .unwrap_err()
        .is_full());
    queue.push(4).unwrap();
    drop(tx);
    assert_at_rest(&queue, 2, 0);
}

/// It may keep the room that it has found so far, but only until its handle is used.
#[test]
fn a_forgotten_batch_gives_its_room_back_when_its_handle_is_used() {
    type Use = fn(Handle<u32>);
    let uses: [Use; 3] = [
        drop,
        |mut handle| handle.begin().abort(),
        |mut handle| {
            assert!(handle.pop().is_ok());
            handle.push(0).unwrap();
        },
    ];
    for then in uses {
        let queue = bounded(4, 0..2);
        let (mut handle, mut other) = (queue.handle(), queue.handle());
        Task::waiting(handle.push_batch_async([7, 8, 9])).forget();
        let mut waiter = Task::new(other.push_batch_async([5, 6]));
        let early = waiter.poll();
        then(handle);
        if early.is_pending() {
            assert!(waiter.was_woken());
            assert_eq!(waiter.output(), Ok(2));
        }
        drop(waiter);
        assert_eq!(queue.len(), 4);
        assert_eq!(other.push(0), Err(PushError::Full(0)));
    }
}

/// A stream of small waiting pushes cannot starve a large batch.
#[test]
fn small_pushes_do_not_starve_a_batch() {
    const CAPACITY: usize = 4;
    let queue = bounded(CAPACITY, 0..4);
    let (mut large, mut small) = (queue.handle(), queue.handle());
    let mut batch = Task::waiting(large.push_batch_async(10..14));
    for _ in 0..10 * CAPACITY {
        queue.pop().unwrap();
        let pushed = batch.poll();
        if pushed.is_ready() {
            assert_eq!(pushed, Poll::Ready(Ok(CAPACITY)));
            return;
        }
        let _ = poll_once(small.push_async(1));
        let _ = poll_once(small.push_batch_async([1, 1]));
        if queue.is_empty() {
            queue.push(1).unwrap();
        }
    }
    panic!("the batch starves");
}

#[test]
fn a_batch_waits_for_room_on_a_thread() {
    for (name, push) in waiting_pushes() {
        let queue = bounded(3, [0, 1, 2]);
        let mut handle = queue.handle();
        let pusher = thread::spawn(move || push(&mut handle, vec![3, 4, 5]));
        let received = ends(move || queue.iter().take(6).collect::<Vec<_>>());
        assert_eq!(received, [0, 1, 2, 3, 4, 5], "{name}");
        assert_eq!(pusher.join().unwrap(), Ok(3));
    }
}

#[test]
fn close_ends_the_wait_of_a_batch() {
    for (name, push) in waiting_pushes() {
        let queue = bounded(3, [0]);
        let mut handle = queue.handle();
        let pusher = thread::spawn(move || push(&mut handle, vec![9, 8, 7]));
        assert!(queue.close());
        let refused = ends(move || pusher.join().unwrap());
        assert_eq!(refused, Err(PushError::Closed(vec![9, 8, 7])), "{name}");
        assert!(queue.iter().eq([0]));
    }
}

/// Pushers that each need the whole capacity do not deadlock, each with a part of it.
#[test]
fn batches_of_the_whole_capacity_do_not_block_each_other() {
    const CAPACITY: usize = 4;
    const ROUNDS: u32 = 300;
    let queue = Queue::bounded(CAPACITY);
    let received = ends(move || {
        let mut pushers = Vec::new();
        for id in 0..4 {
            let (_, push) = waiting_pushes()[id as usize % 2];
            let mut handle = queue.handle();
            pushers.push(thread::spawn(move || {
                for round in 0..ROUNDS {
                    let batch = vec![id * ROUNDS + round; CAPACITY];
                    assert_eq!(push(&mut handle, batch), Ok(CAPACITY));
                }
            }));
        }
        let all = pushers.len() * CAPACITY * ROUNDS as usize;
        let received: Vec<_> = queue.iter().take(all).collect();
        join_all(pushers);
        assert!(queue.is_empty());
        received
    });
    // A batch needs an empty queue, so they are popped one after the other.
    let mut batches = Vec::new();
    for batch in received.chunks(CAPACITY) {
        assert_eq!(batch, [batch[0]; CAPACITY]);
        batches.push(batch[0]);
    }
    batches.sort_unstable();
    assert!(batches.into_iter().eq(0..4 * ROUNDS));
}

/// Large and small pushes, waiting and not, and consumers of both kinds: all complete.
#[test]
fn batches_of_all_sizes_get_through() {
    const CAPACITY: u32 = 5;
    const ROUNDS: u32 = 300;
    let queue = Queue::bounded(CAPACITY as usize);
    ends(move || {
        let mut pushers = Vec::new();
        for size in 1..=CAPACITY {
            let (_, push) = waiting_pushes()[size as usize % 2];
            let mut handle = queue.handle();
            pushers.push(thread::spawn(move || {
                for _ in 0..ROUNDS {
                    assert_eq!(
                        push(&mut handle, vec![size; size as usize]),
                        Ok(size as usize)
                    );
                }
            }));
        }
        let consumer = queue.clone();
        let consumer = thread::spawn(move || {
            let (mut handle, mut sum) = (consumer.handle(), 0);
            let mut items = Vec::new();
            while handle.pop_batch_blocking(2, 3, &mut items) > 0 {
                sum += items.drain(..).sum::<u32>();
            }
            sum
        });
        let closer = queue.clone();
        let closer = thread::spawn(move || {
            join_all(pushers);
            assert!(closer.close());
        });
        let sum = queue.iter().sum::<u32>() + consumer.join().unwrap();
        closer.join().unwrap();
        assert_eq!(sum, (1..=CAPACITY).map(|size| size * size * ROUNDS).sum());
    });
}

/// All ways to pop a batch with a wait; the items are committed.
type Pop = fn(&mut Handle<u32>, usize, usize, Duration) -> Vec<u32>;

const POPS: [(&str, Pop); 4] = [
    ("a handle", |handle, min, max, timeout| {
        let mut items = vec![77];
        let count = handle.pop_batch_timeout(min, max, &mut items, timeout);
        assert_eq!(items.remove(0), 77);
        assert_eq!(count, items.len());
        items
    }),
    ("a transaction", |handle, min, max, timeout| {
        let tx = handle.begin();
        let items = tx.pop_batch_timeout(min, max, timeout);
        let count = items.len();
        let items: Vec<_> = items.map(|item| *item).collect();
        assert_eq!((count, tx.held()), (items.len(), items.len()));
        assert!(tx.commit().eq(items.iter().copied()));
        items
    }),
    ("a future of a handle", |handle, min, max, timeout| {
        let mut items = Vec::new();
        let taken = in_time(handle.pop_batch_async(min, max, &mut items), timeout);
        assert_eq!(taken.unwrap_or(items.len()), items.len());
        items
    }),
    ("a future of a transaction", |handle, min, max, timeout| {
        let tx = handle.begin();
        let items = in_time(tx.pop_batch_async(min, max), timeout);
        let count = items.map_or(tx.held(), |items| items.len());
        assert_eq!(count, tx.held());
        tx.commit().collect()
    }),
];

/// Waits for a future, or polls it once if there is a timeout.
fn in_time<F: Future + Unpin>(future: F, timeout: Duration) -> Option<F::Output> {
    if timeout == Duration::MAX {
        return Some(block_on(future));
    }
    match poll_once(future) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

#[test]
fn enough_items_end_the_wait_at_once() {
    ends(|| {
        for (name, pop) in POPS {
            let queue = filled(0..9);
            let mut handle = queue.handle();
            assert_eq!(pop(&mut handle, 2, 2, Duration::MAX), [0, 1], "{name}");
            assert_eq!(pop(&mut handle, 4, 4, Duration::ZERO), [2, 3, 4, 5]);
            let some = pop(&mut handle, 1, 100, Duration::MAX);
            assert!(!some.is_empty() && some.iter().copied().eq((6..).take(some.len())));
            assert_at_rest(&queue, 3 - some.len(), 0);
        }
    });
}

#[test]
fn a_timeout_returns_the_items_so_far() {
    for (name, pop) in POPS {
        for timeout in [Duration::ZERO, Duration::from_millis(1)] {
            let queue = filled(0..2);
            let mut handle = queue.handle();
            assert_eq!(pop(&mut handle, 3, 5, timeout), [0, 1], "{name}");
            assert_eq!(pop(&mut handle, 3, 5, timeout), []);
            assert_at_rest(&queue, 0, 0);
        }
    }
}

#[test]
fn a_minimum_of_zero_does_not_wait() {
    ends(|| {
        for (name, pop) in POPS {
            let queue = filled(0..2);
            let mut handle = queue.handle();
            assert_eq!(pop(&mut handle, 0, 1, Duration::MAX), [0], "{name}");
            assert_eq!(pop(&mut handle, 0, 5, Duration::MAX), [1]);
            assert_eq!(pop(&mut handle, 0, 5, Duration::MAX), []);
            assert_eq!(pop(&mut handle, 0, 0, Duration::MAX), []);
        }
    });
}

#[test]
fn a_maximum_below_the_minimum_is_enough() {
    ends(|| {
        for (name, pop) in POPS {
            let queue = filled(0..3);
            let mut handle = queue.handle();
            assert_eq!(pop(&mut handle, 3, 2, Duration::MAX), [0, 1], "{name}");
            assert_eq!(pop(&mut handle, usize::MAX, 0, Duration::MAX), []);
            assert_eq!(queue.len(), 1);
        }
    });
}

#[test]
fn a_batch_gathers_what_arrives() {
    for (name, pop) in POPS {
        let queue = Queue::unbounded();
        let mut handle = queue.handle();
        let consumer = thread::spawn(move || pop(&mut handle, 5, 9, Duration::MAX));
        queue.push(0).unwrap();
        queue.handle().push(1).unwrap();
        queue.push(2).unwrap();
        queue.handle().push_batch([3, 4]).unwrap();
        let mut items = ends(move || consumer.join().unwrap());
        items.sort_unstable();
        assert_eq!(items, [0, 1, 2, 3, 4], "{name}");
    }
}

/// Items popped by a handle are committed, so their room is free for the pushes that it waits for.
#[test]
fn a_batch_larger_than_the_capacity_is_popped_as_it_comes() {
    let queue = Queue::bounded(2);
    let (mut consumer, mut producer) = (queue.handle(), queue.handle());
    let producer = thread::spawn(move || {
        for item in 0..9 {
            producer.push_blocking(item).unwrap();
        }
    });
    let items = ends(move || POPS[0].1(&mut consumer, 9, 9, Duration::MAX));
    assert!(items.into_iter().eq(0..9));
    producer.join().unwrap();
}

#[test]
fn a_closed_queue_ends_the_wait_for_more() {
    for (name, pop) in POPS {
        let queue = filled([1, 2]);
        queue.close();
        let mut handle = queue.handle();
        let (items, more) = ends(move || {
            let items = pop(&mut handle, 3, 5, Duration::MAX);
            (items, pop(&mut handle, 3, 5, Duration::MAX))
        });
        assert_eq!((items, more), (vec![1, 2], vec![]), "{name}");
    }
}

#[test]
fn close_wakes_waiting_batches() {
    for (name, pop) in POPS {
        let queue = filled([1]);
        let mut handle = queue.handle();
        let consumer = thread::spawn(move || pop(&mut handle, 2, 5, Duration::MAX));
        queue.close();
        let items = ends(move || consumer.join().unwrap());
        assert_eq!(items, [1], "{name}");
    }
}

/// While another transaction holds an item of a closed queue, the item may be given back.
#[test]
fn a_batch_of_a_closed_queue_waits_for_held_items() {
    let pop = POPS[0].1;
    for abort in [true, false] {
        let queue = filled([1, 2]);
        let (mut holder, mut consumer) = (queue.handle(), queue.handle());
        let tx = holder.begin();
        assert_eq!(tx.pop().as_deref(), Ok(&1));
        queue.close();
        let (begun, begins) = channel();
        let consumer = thread::spawn(move || {
            begun.send(()).unwrap();
            pop(&mut consumer, 2, 5, Duration::MAX)
        });
        begins.recv().unwrap();
        if abort {
            tx.abort();
        } else {
            drop(tx.commit());
        }
        let mut items = ends(move || consumer.join().unwrap());
        items.sort_unstable();
        assert_eq!(items, if abort { vec![1, 2] } else { vec![2] });
    }
}

/// Two transactions that wait for more items than there are do not wait for each other's items.
#[test]
fn transactions_on_a_closed_queue_do_not_wait_for_one_another() {
    let queue = filled(0..6);
    queue.close();
    let consumers: Vec<_> = (0..2)
        .map(|_| {
            let mut handle = queue.handle();
            thread::spawn(move || {
                let tx = handle.begin();
                let count = tx.pop_batch_blocking(6, 6).len();
                tx.commit();
                count
            })
        })
        .collect();
    let counts = ends(move || {
        let join = |consumer: JoinHandle<usize>| consumer.join().unwrap();
        consumers.into_iter().map(join).sum::<usize>()
    });
    assert_eq!(counts, 6);
    assert_at_rest(&queue, 0, 0);
}

/// Consumers that each wait for two share the items; none of them sleeps while an item is ready.
#[test]
fn consumers_of_batches_share_the_items() {
    const ITEMS: usize = 2_000;
    let total: usize = ends(|| {
        let queue = Queue::bounded(3);
        let closed = AtomicBool::new(false);
        thread::scope(|scope| {
            let consumer = |index: usize| {
                let (mut handle, closed) = (queue.handle(), &closed);
                move || {
                    let mut total = 0;
                    loop {
                        let items = POPS[0].1(&mut handle, 2, 2 + index, Duration::MAX);
                        if items.len() < 2 {
                            assert!(closed.load(Ordering::SeqCst));
                            return total + items.len();
                        }
                        total += items.len();
                    }
                }
            };
            let consumers = [0, 1, 2].map(|index| scope.spawn(consumer(index)));
            let mut producer = queue.handle();
            for item in 0..ITEMS {
                producer
                    .push_blocking(u32::try_from(item).unwrap())
                    .unwrap();
            }
            closed.store(true, Ordering::SeqCst);
            queue.close();
            consumers
                .map(|consumer| consumer.join().unwrap())
                .iter()
                .sum()
        })
    });
    assert_eq!(total, ITEMS);
}
