//! The number of woken waiters, and panics of wakers.

use std::iter::repeat_with;
use std::mem;
use std::panic::{catch_unwind, AssertUnwindSafe};

use crate::common::events;
use crate::common::futures::{all_rings, woken, Task};
use crate::common::waits::{poppers, pushers};
use requeue::{commit_all, Handle, PopError, Queue};

const WAITERS: usize = 64;

fn handles(queue: &Queue<u32>, count: usize) -> Vec<Handle<u32>> {
    repeat_with(|| queue.handle()).take(count).collect()
}

#[test]
fn one_item_wakes_one_of_64_waiters() {
    for (name, arrive) in events::ARRIVALS {
        let queue = Queue::unbounded();
        let mut handles = handles(&queue, WAITERS);
        let mut tasks = Vec::new();
        let mut line = Some(&mut handles);
        arrive(&queue, &mut || {
            tasks = poppers(line.take().expect("an event is prepared once"));
        });
        assert_eq!(all_rings(&tasks), 1, "{name}");
        let place = woken(&tasks)[0];
        assert_eq!(tasks[place].output(), Ok(events::ITEM));
        tasks.remove(place);
        assert_eq!(all_rings(&tasks), 0, "{name}");
    }
}

#[test]
fn one_permit_wakes_one_of_64_pushers() {
    for (name, depart) in events::DEPARTURES {
        let queue = Queue::bounded(1);
        let mut handles = handles(&queue, WAITERS);
        let mut tasks = Vec::new();
        let mut line = Some(&mut handles);
        depart(&queue, &mut || {
            tasks = pushers(line.take().expect("an event is prepared once"));
        });
        assert_eq!(all_rings(&tasks), 1, "{name}");
        let place = woken(&tasks)[0];
        assert_eq!(tasks[place].output(), Ok(()));
    }
}

/// Makes this many items ready; calls the closure once right before the event.
type Publish = fn(&Queue<u32>, u32, &mut dyn FnMut());

/// The events that make several items ready at once.
const BATCHES: [Publish; 5] = [
    |queue, count, meanwhile| {
        meanwhile();
        queue.handle().push_batch(0..count).unwrap();
    },
    |queue, count, meanwhile| {
        let mut handle = queue.handle();
        let tx = handle.begin();
        (0..count).for_each(|item| tx.push(item).unwrap());
        meanwhile();
        tx.commit();
    },
    |queue, count, meanwhile| {
        let mut handle = queue.handle();
        handle.push_batch(0..count).unwrap();
        let tx = handle.begin();
        assert!(tx.pop_batch(usize::MAX).len() > 0);
        while tx.pop().is_ok() {}
        meanwhile();
        tx.abort();
    },
    |queue, count, meanwhile| {
        let mut handle = queue.handle();
        handle.push_batch(0..count).unwrap();
        let tx = handle.begin();
        while tx.pop().is_ok() {}
        mem::forget(tx);
        meanwhile();
        drop(handle);
    },
    |queue, count, meanwhile| {
        let other = Queue::<char>::unbounded();
        let (mut a, mut b) = (queue.handle(), other.handle());
        let (tx_a, tx_b) = (a.begin(), b.begin());
        (0..count).for_each(|item| tx_a.push(item).unwrap());
        meanwhile();
        commit_all((tx_a, tx_b));
    },
];

#[test]
fn a_batch_wakes_as_many_waiters_as_it_has_items() {
    for publish in BATCHES {
        for (count, expected) in [(2, 2), (10, 10), (63, 63), (64, 64), (65, 64), (1_000, 64)] {
            let queue = Queue::unbounded();
            let mut handles = handles(&queue, WAITERS);
            let mut tasks = Vec::new();
            let mut line = Some(&mut handles);
            publish(&queue, count, &mut || {
                tasks = poppers(line.take().expect("published once"));
            });
            assert_eq!(all_rings(&tasks), expected);
            let places = woken(&tasks);
            assert_eq!(places.len(), expected);
            for place in places {
                assert!(tasks[place].output().is_ok());
            }
            let left = queue.len();
            assert_eq!(left + expected, usize::try_from(count).unwrap());
        }
    }
}

#[test]
fn returned_capacity_wakes_as_many_pushers_as_fit() {
    for count in [1, 2, 10, 63, 64] {
        let queue = Queue::bounded(WAITERS);
        let mut handle = queue.handle();
        handle.push_batch(0..64).unwrap();
        let mut handles = handles(&queue, WAITERS);
        let mut tasks = pushers(&mut handles);
        let tx = handle.begin();
        assert_eq!(tx.pop_batch(count).len(), count);
        assert_eq!(all_rings(&tasks), 0, "held items are still in the queue");
        tx.commit();
        let places = woken(&tasks);
        assert_eq!((places.len(), all_rings(&tasks)), (count, count));
        for place in places {
            assert_eq!(tasks[place].output(), Ok(()));
        }
        assert_eq!(queue.len(), WAITERS);
    }
}

/// A commit that both takes and pushes frees only the unused permits.
#[test]
fn a_commit_wakes_pushers_by_the_difference() {
    let queue = Queue::bounded(4);
    let mut handle = queue.handle();
    handle.push_batch([0; 4]).unwrap();
    let mut handles = handles(&queue, 4);
    let tasks = pushers(&mut handles);
    let tx = handle.begin();
    assert_eq!(tx.pop_batch(3).len(), 3);
    tx.push(1).unwrap();
    tx.commit();
    assert_eq!(all_rings(&tasks), 2);
}

#[test]
fn staged_or_taken_items_wake_no_waiter() {
    let queue = Queue::bounded(2);
    let mut handles = handles(&queue, 2);
    let mut tasks = poppers(&mut handles);
    let mut handle = queue.handle();
    let tx = handle.begin();
    tx.push(1).unwrap();
    tx.abort();
    drop(handle.begin());
    handle.begin().commit();
    assert_eq!(handle.pop(), Err(PopError::Empty));
    assert_eq!(all_rings(&tasks), 0);
    tasks.iter_mut().for_each(Task::assert_waits);
}

/// The panic of the call if a waker panicked in it.
const PASSED_ON: Option<&str> = None;

/// The panic of `call`, if it panicked.
fn panic_of<R>(call: impl FnOnce() -> R) -> Option<&'static str> {
    let panic = catch_unwind(AssertUnwindSafe(call)).err()?;
    panic.downcast().ok().map(|message| *message)
}

#[test]
fn a_waker_that_panics_passes_the_wake_up_on() {
    for (name, arrive) in events::ARRIVALS {
        let queue = Queue::unbounded();
        let mut handles = handles(&queue, 3);
        let [a, b, c] = &mut handles[..] else {
            unreachable!()
        };
        let mut bomb = Task::new(a.pop_async());
        let (mut next, mut last) = (Task::new(b.pop_async()), Task::new(c.pop_async()));
        bomb.break_bell();
        let panic = panic_of(|| {
            arrive(&queue, &mut || {
                for task in [&mut bomb, &mut next, &mut last] {
                    task.assert_waits();
                }
            });
        });
        if !name.starts_with("a panic") {
            assert_eq!(panic, PASSED_ON, "{name}");
        }
        let rings = [bomb.rings(), next.rings(), last.rings()];
        assert_eq!(rings, [1, 1, 0], "{name}");
        assert_eq!(next.output(), Ok(events::ITEM), "{name}");
        assert!(queue.is_empty(), "{name}");
    }
}

#[test]
fn a_pushers_waker_that_panics_passes_the_wake_up_on() {
    for (name, depart) in events::DEPARTURES {
        let queue = Queue::bounded(1);
        let mut handles = handles(&queue, 3);
        let [a, b, c] = &mut handles[..] else {
            unreachable!()
        };
        let mut bomb = Task::new(a.push_async(1));
        let (mut next, mut last) = (Task::new(b.push_async(2)), Task::new(c.push_async(3)));
        bomb.break_bell();
        let panic = panic_of(|| {
            depart(&queue, &mut || {
                for task in [&mut bomb, &mut next, &mut last] {
                    task.assert_waits();
                }
            });
        });
        if !name.starts_with("a panic") {
            assert_eq!(panic, PASSED_ON, "{name}");
        }
        let rings = [bomb.rings(), next.rings(), last.rings()];
        assert_eq!(rings, [1, 1, 0], "{name}");
        assert_eq!(next.output(), Ok(()), "{name}");
        assert_eq!(queue.pop(), Ok(2), "{name}");
    }
}

#[test]
fn wakers_that_all_panic_lose_no_item() {
    let queue = Queue::unbounded();
    let mut handles = handles(&queue, 5);
    let mut tasks: Vec<_> = handles
        .iter_mut()
        .map(|handle| Task::waiting_with_bomb(handle.pop_async()))
        .collect();
    let mut handle = queue.handle();
    assert_eq!(panic_of(|| handle.push_batch([1, 2])), PASSED_ON);
    assert_eq!(all_rings(&tasks), 5);
    assert_eq!(queue.len(), 2);
    assert_eq!(tasks[0].output(), Ok(1));
    assert_eq!(handle.pop(), Ok(2));
    handle.push(3).unwrap();
}

#[test]
fn a_batch_wakes_as_many_others_as_wakers_panic() {
    let queue = Queue::unbounded();
    let (mut bombs, mut others) = (handles(&queue, 2), handles(&queue, 4));
    let bombs: Vec<_> = bombs
        .iter_mut()
        .map(|handle| Task::waiting_with_bomb(handle.pop_async()))
        .collect();
    let mut tasks = poppers(&mut others);
    assert_eq!(panic_of(|| queue.handle().push_batch([1, 2, 3])), PASSED_ON);
    assert_eq!((all_rings(&bombs), woken(&tasks)), (2, vec![0, 1, 2]));
    for task in &mut tasks[..3] {
        assert!(task.output().is_ok());
    }
}

#[test]
fn close_wakes_everybody_whatever_wakers_panic() {
    let queue = Queue::<u32>::unbounded();
    let (mut bombs, mut others) = (handles(&queue, 2), handles(&queue, 3));
    let _bombs: Vec<_> = bombs
        .iter_mut()
        .map(|handle| Task::waiting_with_bomb(handle.pop_async()))
        .collect();
    let mut tasks = poppers(&mut others);
    assert_eq!(panic_of(|| queue.close()), PASSED_ON);
    assert!(queue.is_closed());
    for task in &mut tasks {
        assert!(task.was_woken());
        assert_eq!(task.output(), Err(PopError::Closed));
    }
}
