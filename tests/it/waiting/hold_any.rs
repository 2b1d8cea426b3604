//! Transactions that take from the first of several queues with an item, and hold it.

use std::mem;
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Duration;

use crate::common::events::{ARRIVALS, ITEM};
use crate::common::failing::{clocked, SECOND};
use crate::common::futures::Task;
use crate::common::{assert_at_rest, drain, ends, panics};
use requeue::{
    hold_any, hold_any_async, hold_any_timeout, pop_any_async, pop_any_timeout, Handle, Leased,
    ManualClock, Order, PopError, Queue, Transaction,
};

fn queues<const N: usize>() -> [Queue<u32>; N] {
    [(); N].map(|()| Queue::unbounded())
}

fn handles_of<T, O: Order<T>, const N: usize>(queues: &[Queue<T, O>; N]) -> [Handle<T, O>; N] {
    std::array::from_fn(|place| queues[place].handle())
}

fn commit(transactions: Vec<Transaction<'_, u32>>) {
    for tx in transactions {
        tx.commit();
    }
}

fn begin<T, O: Order<T>>(handles: &mut [Handle<T, O>]) -> Vec<Transaction<'_, T, O>> {
    handles.iter_mut().map(Handle::begin).collect()
}

/// The index of the queue, and the item.
fn held<T: Copy, O: Order<T>>(
    transactions: &[Transaction<'_, T, O>],
) -> Result<(usize, T), PopError> {
    hold_any(transactions).map(|(place, item)| (place, *item))
}

#[test]
fn earlier_queues_are_preferred_and_the_item_is_held() {
    ends(|| {
        let queues = queues::<3>();
        queues[2].push(20).unwrap();
        queues[1].push_batch([10, 11]).unwrap();
        let mut handles = handles_of(&queues);
        let mut transactions = begin(&mut handles);
        assert_eq!(held(&transactions), Ok((1, 10)));
        queues[0].push(0).unwrap();
        assert_eq!(held(&transactions), Ok((0, 0)));
        assert_eq!(held(&transactions), Ok((1, 11)));
        assert_eq!(held(&transactions), Ok((2, 20)));
        let counts = transactions.iter().map(|tx| (tx.held(), tx.staged()));
        assert!(counts.eq([(1, 0), (2, 0), (1, 0)]));
        assert!(queues.iter().all(Queue::is_empty));
        transactions.remove(1).abort();
        commit(transactions);
        assert_eq!(
            queues.clone().map(|queue| drain(&queue)),
            [vec![], vec![10, 11], vec![]]
        );
        for queue in &queues {
            assert_at_rest(queue, 0, 0);
        }
    });
}

#[test]
fn transactions_may_be_borrowed_from_several_places() {
    ends(|| {
        let queue = Queue::unbounded();
        queue.push_batch([1, 2]).unwrap();
        let (mut a, mut b) = (queue.handle(), queue.handle());
        let (first, second) = (a.begin(), b.begin());
        let (place, mut item) = hold_any([&second, &first]).unwrap();
        *item += 10;
        assert_eq!((place, *item), (0, 11));
        assert_eq!(*hold_any([&first]).unwrap().1, 2);
        // The items outlive the list, and the transactions can be used meanwhile.
        second.push(3).unwrap();
        assert_eq!((*item, second.held(), first.held()), (11, 1, 1));
        assert!(second.commit().eq([11]));
    });
}

#[test]
fn of_nothing_comes_the_end() {
    ends(|| {
        let nothing: [Transaction<'_, u32>; 0] = [];
        assert_eq!(held(&nothing), Err(PopError::Closed));
        let timed = hold_any_timeout(&nothing, Duration::MAX);
        assert_eq!(timed.err(), Some(PopError::Closed));
        assert!(Task::new(hold_any_async(&nothing)).output().is_err());
    });
}

#[test]
fn one_that_is_borrowed_already_panics_and_borrows_none() {
    ends(|| {
        let queues = queues::<2>();
        let mut handles = handles_of(&queues);
        let transactions = begin(&mut handles);
        let (first, second) = (&transactions[0], &transactions[1]);
        assert!(panics(|| hold_any([first, second, first]).is_ok()));
        let task = Task::waiting(second.pop_async());
        assert!(panics(|| hold_any(&transactions).is_ok()));
        drop(task);
        queues[1].push(1).unwrap();
        assert_eq!(held(&transactions), Ok((1, 1)));
    });
}

/// Runs `hold_any` on another thread while the event takes place, and commits the item.
fn held_during(
    queues: &[Queue<u32>; 3],
    round: usize,
    event: impl FnOnce(&mut dyn FnMut()),
) -> Result<(usize, u32), PopError> {
    let start = Barrier::new(2);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let mut handles = handles_of(queues);
            let transactions = begin(&mut handles);
            start.wait();
            let held = held(&transactions);
            commit(transactions);
            held
        });
        event(&mut || {
            start.wait();
            (0..round * 40).for_each(|_| thread::yield_now());
        });
        waiter.join().unwrap()
    })
}

#[test]
fn an_arrival_in_any_queue_wakes() {
    ends(|| {
        for (name, arrive) in ARRIVALS {
            for round in 0..6 {
                let (queues, place) = (queues(), round % 3);
                let held = held_during(&queues, round, |meanwhile| {
                    arrive(&queues[place], meanwhile);
                });
                assert_eq!(held, Ok((place, ITEM)), "{name}");
            }
        }
    });
}

#[test]
fn the_last_close_wakes() {
    ends(|| {
        for round in 0..30 {
            let queues = queues();
            queues[(round + 1) % 3].close();
            let held = held_during(&queues, round, |meanwhile| {
                meanwhile();
                queues[round % 3].close();
                queues[(round + 2) % 3].close();
            });
            assert_eq!(held, Err(PopError::Closed));
        }
    });
}

/// Two workers each hold an item of another queue, and wait for more: neither waits for the other.
#[test]
fn a_holder_of_one_queue_does_not_wait_for_the_end_of_another() {
    ends(|| {
        let queues = queues::<2>();
        for queue in &queues {
            queue.push(1).unwrap();
        }
        let mut one = handles_of(&queues);
        let mut other = handles_of(&queues);
        let (one, other) = (begin(&mut one), begin(&mut other));
        assert_eq!((held(&one), held(&other)), (Ok((0, 1)), Ok((1, 1))));
        for queue in &queues {
            assert!(queue.close());
        }
        assert_eq!(
            (held(&one), held(&other)),
            (Err(PopError::Empty), Err(PopError::Empty))
        );
        let mut task = Task::new(hold_any_async(&one));
        assert_eq!(task.output().err(), Some(PopError::Empty));
        drop(task);
        // A worker without items waits for both.
        let mut third = handles_of(&queues);
        let third = begin(&mut third);
        let mut task = Task::waiting(hold_any_async(&third));
        commit(one);
        assert!(task.poll().is_pending());
        drop(other);
        assert_eq!(
            task.output().map(|(place, item)| (place, *item)),
            Ok((1, 1))
        );
        drop(task);
        commit(third);
        assert!(queues
            .iter()
            .all(|queue| queue.pop() == Err(PopError::Closed)));
    });
}

#[test]
fn a_timeout_of_zero_tries_once() {
    let queues = queues::<2>();
    let mut handles = handles_of(&queues);
    assert_eq!(
        pop_any_timeout(&mut handles, Duration::ZERO),
        Err(PopError::Empty)
    );
    let transactions = begin(&mut handles);
    let nothing = hold_any_timeout(&transactions, Duration::ZERO);
    assert_eq!(nothing.err(), Some(PopError::Empty));
    queues[1].push_batch([1, 2]).unwrap();
    let (place, item) = hold_any_timeout(&transactions, Duration::ZERO).unwrap();
    assert_eq!((place, *item), (1, 1));
    drop(transactions);
    assert_eq!(pop_any_timeout(&mut handles, Duration::ZERO), Ok((1, 1)));
}

/// The lease on the clock of the first queue expires while both forms wait.
#[test]
fn a_timeout_ends_by_the_clock_of_the_first_queue() {
    fn waits(wait: impl Fn([Queue<u32>; 2]) -> Option<PopError> + Send + Sync) {
        let (clock, builder) = clocked();
        let queues = [builder.build(), Queue::unbounded()];
        thread::scope(|scope| {
            let waiter = scope.spawn(|| wait(queues.clone()));
            while queues.iter().any(|queue| queue.stats().waiting < 1) {
                thread::yield_now();
            }
            clock.advance(SECOND);
            assert_eq!(waiter.join().unwrap(), Some(PopError::Empty));
        });
        assert!(queues.iter().all(|queue| queue.stats().waiting == 0));
    }
    ends(|| {
        waits(|queues| {
            let mut handles = handles_of(&queues);
            pop_any_timeout(&mut handles, SECOND).err()
        });
        waits(|queues| {
            let mut handles = handles_of(&queues);
            let transactions = begin(&mut handles);
            let nothing = hold_any_timeout(&transactions, SECOND);
            nothing.err()
        });
    });
}

#[test]
fn futures_enter_and_leave_all_wait_queues() {
    let queues = queues::<2>();
    let mut handles = handles_of(&queues);
    let mut others = handles_of(&queues);
    let waiting = || queues.clone().map(|queue| queue.stats().waiting);
    for place in [0, 1] {
        let mut task = Task::waiting(pop_any_async(&mut handles));
        assert_eq!(waiting(), [1, 1]);
        queues[place].push(1).unwrap();
        assert!(task.was_woken());
        assert_eq!(task.output(), Ok((place, 1)));
        assert!(panics(|| task.poll().is_ready()), "polled again");
        drop(task);
        let transactions = begin(&mut handles);
        let mut task = Task::waiting(hold_any_async(&transactions));
        assert_eq!(waiting(), [1, 1]);
        assert!(panics(|| transactions[place].held()), "borrowed");
        queues[place].push(2).unwrap();
        assert!(task.was_woken());
        let (held, item) = task.output().unwrap();
        assert_eq!((held, *item, transactions[place].held()), (place, 2, 1));
        assert!(panics(|| task.poll().is_ready()), "polled again");
        assert_eq!(waiting(), [0, 0]);
        drop(task);
        commit(transactions);
    }
    // An unused wake-up is passed on.
    let transactions = begin(&mut handles);
    let first = Task::waiting(hold_any_async(&transactions));
    let mut second = Task::waiting(others[1].pop_async());
    queues[1].push(3).unwrap();
    assert!(first.was_woken() && !second.was_woken());
    drop(first);
    assert!(second.was_woken());
    assert_eq!(second.output(), Ok(3));
}

/// A forgotten future keeps its waiters until the transactions end, or the handles are used again.
#[test]
fn a_forgotten_future_is_settled_later() {
    let queues = queues::<2>();
    let mut handles = handles_of(&queues);
    let mut other = queues[1].handle();
    for holds in [true, false] {
        let mut task;
        if holds {
            let transactions = begin(&mut handles);
            mem::forget(Task::waiting(hold_any_async(&transactions)));
            task = Task::waiting(other.pop_async());
            queues[1].push(1).unwrap();
            assert!(!task.was_woken());
            drop(transactions);
        } else {
            mem::forget(Task::waiting(pop_any_async(&mut handles)));
            task = Task::waiting(other.pop_async());
            queues[1].push(1).unwrap();
            assert!(!task.was_woken());
            begin(&mut handles).into_iter().for_each(drop);
        }
        assert!(task.was_woken());
        assert_eq!(task.output(), Ok(1));
    }
}

/// Priority queues with leases: an item whose lease has expired is ready again for the others.
#[test]
fn queues_of_other_orders_are_asked_in_their_order() {
    ends(|| {
        let clock = ManualClock::new();
        let queue = || -> Queue<u32, Leased<_>> {
            let builder = Queue::builder().by_priority().clock(clock.clone());
            builder.leased(SECOND).build()
        };
        let queues = [queue(), queue()];
        queues[1].priority(2).push(20).unwrap();
        queues[1].priority(1).push(10).unwrap();
        let mut slow = handles_of(&queues);
        let slow = begin(&mut slow);
        assert_eq!(held(&slow), Ok((1, 10)));
        let mut handles = handles_of(&queues);
        let transactions = begin(&mut handles);
        assert_eq!(held(&transactions), Ok((1, 20)));
        let mut task = Task::waiting(hold_any_async(&transactions));
        clock.advance(SECOND);
        assert!(task.was_woken());
        assert_eq!(
            task.output().map(|(place, item)| (place, *item)),
            Ok((1, 10))
        );
        assert!(slow.into_iter().any(|tx| tx.try_commit().is_err()));
    });
}

/// Items arrive in all queues at once, some are given back: each is committed once, and all workers see the end.
#[test]
fn many_hold_from_many() {
    ends(|| {
        let queues = queues::<3>();
        let done = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for worker in 0..3 {
                let (queues, done) = (&queues, &done);
                scope.spawn(move || {
                    let mut handles = handles_of(queues);
                    for round in 0.. {
                        let mut transactions = begin(&mut handles);
                        let Ok((place, _)) = held(&transactions) else {
                            return;
                        };
                        let tx = transactions.swap_remove(place);
                        if (round + worker) % 5 > 0 {
                            done.lock().unwrap().extend(tx.commit());
                        }
                    }
                });
            }
            for item in 0..2_000 {
                queues[item as usize % 3].push(item).unwrap();
                if item % 7 == 0 {
                    thread::yield_now();
                }
            }
            for queue in &queues {
                assert!(queue.close());
            }
        });
        let mut done = done.into_inner().unwrap();
        done.sort_unstable();
        assert!(done.into_iter().eq(0..2_000));
    });
}
