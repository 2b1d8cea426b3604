//! Queues with a capacity: pushes with and without room, and no lost room.
//!
//! Concurrent tests are in `tests/stress/room.rs`.

use std::mem;
use std::panic::catch_unwind;
use std::time::Duration;

use crate::common::{assert_at_rest, drain, ends, panics, Ledger};
use requeue::{commit_all, Handle, PriorityQueue, PushError, Queue};

/// A full bounded queue.
fn full(capacity: usize) -> Queue<usize> {
    let queue = Queue::bounded(capacity);
    assert_eq!(queue.handle().push_batch(0..capacity).unwrap(), capacity);
    queue
}

/// Fills the queue up: exactly this many more items fit.
pub(crate) fn assert_room(queue: &Queue<usize>, room: usize) {
    let mut handle = queue.handle();
    for filler in 0..room {
        assert_eq!(handle.push(filler), Ok(()), "{filler} of {room}");
    }
    assert_eq!(handle.push(room), Err(PushError::Full(room)));
    assert_eq!(queue.push(room), Err(PushError::Full(room)));
}

#[test]
fn a_queue_without_room_cannot_be_made() {
    let message = |make: fn() -> Queue<u8>| {
        let panic = catch_unwind(make).unwrap_err();
        panic.downcast_ref::<&str>().copied().map(str::to_owned)
    };
    let expected = Some("capacity is 0: the queue could take no item".to_owned());
    assert_eq!(message(|| Queue::bounded(0)), expected);
    assert_eq!(message(|| Queue::builder().capacity(0).build()), expected);
}

#[test]
fn the_builder_makes_both_kinds() {
    assert_eq!(Queue::<u8>::unbounded().capacity(), None);
    assert_eq!(Queue::<u8>::default().capacity(), None);
    assert_eq!(PriorityQueue::<u8>::default().capacity(), None);
    assert_eq!(Queue::<u8>::builder().build().capacity(), None);
    assert_eq!(Queue::<u8>::bounded(3).capacity(), Some(3));
    let built = Queue::builder().capacity(7).capacity(3).build();
    assert_eq!(
        (built.capacity(), built.clone().capacity()),
        (Some(3), Some(3))
    );
    assert_room(&built, 3);
}

#[test]
fn debug_output_names_the_capacity_and_no_items() {
    struct NotDebug;
    let builder = Queue::<NotDebug>::builder().capacity(4321);
    assert!(format!("{builder:?}").contains("4321"));
    let queue = builder.build();
    queue.push(NotDebug).unwrap();
    assert!(format!("{queue:?}").contains("4321"));
}

#[test]
fn a_queue_for_one_item() {
    let queue = Queue::bounded(1);
    let mut handle = queue.handle();
    for round in 0..100 {
        assert_eq!(handle.push(round), Ok(()));
        assert_eq!(handle.push(round), Err(PushError::Full(round)));
        assert_eq!(queue.push(round), Err(PushError::Full(round)));
        assert_eq!(queue.pop(), Ok(round));
        assert_eq!(queue.push(round), Ok(()));
        assert_eq!(handle.push(round), Err(PushError::Full(round)));
        assert_eq!(handle.pop(), Ok(round));
    }
    assert_room(&queue, 1);
}

#[test]
fn the_largest_capacity() {
    let queue = Queue::bounded(usize::MAX);
    assert_eq!(queue.capacity(), Some(usize::MAX));
    let mut handle = queue.handle();
    for item in 0..1_000 {
        handle.push(item).unwrap();
        queue.push(item).unwrap();
    }
    assert_eq!(handle.push_batch(0..1_000).unwrap(), 1_000);
    let tx = handle.begin();
    tx.push(1).unwrap();
    assert_eq!(tx.pop_batch(usize::MAX).len(), 3_000);
    drop(tx.commit());
    assert_at_rest(&queue, 1, 0);
}

#[test]
fn full_gives_the_item_back() {
    let ledger = Ledger::new(7);
    let mut items = ledger.items();
    let mut item = || items.next().unwrap();
    let queue = Queue::bounded(1);
    let mut handle = queue.handle();
    handle.push(item()).unwrap();
    let refused = [
        queue.push(item()),
        handle.push(item()),
        handle.push_timeout(item(), Duration::ZERO),
        handle.transact(|tx| tx.push(item())),
        handle.transact(|tx| tx.push_timeout(item(), Duration::ZERO)),
    ];
    for (outcome, id) in refused.into_iter().zip(1..) {
        let error = outcome.unwrap_err();
        assert!(error.is_full());
        assert_eq!(error.into_inner().id, id);
    }
    let PushError::Full(batch) = handle.push_batch([item()]).unwrap_err() else {
        panic!("not full");
    };
    assert_eq!(batch[0].id, 6);
    drop((batch, handle, queue));
    ledger.assert_each_dropped_once();
}

#[test]
fn a_timeout_of_any_length_finds_the_room_that_is_there() {
    ends(|| {
        let queue = Queue::bounded(3);
        let mut handle = queue.handle();
        assert_eq!(handle.push_timeout(0, Duration::ZERO), Ok(()));
        assert_eq!(handle.push_timeout(1, Duration::MAX), Ok(()));
        assert_eq!(handle.push_blocking(2), Ok(()));
        assert_room(&queue, 0);
    });
}

#[test]
fn held_items_keep_their_room() {
    let queue = full(3);
    let mut worker = queue.handle();
    let tx = worker.begin();
    assert_eq!(tx.pop_batch(2).len(), 2);
    assert_room(&queue, 0);
    tx.abort();
    assert_eq!(drain(&queue), [0, 1, 2]);
    assert_room(&queue, 3);
}

#[test]
fn staged_items_take_room() {
    let queue = Queue::bounded(3);
    let mut worker = queue.handle();
    let tx = worker.begin();
    tx.push(0).unwrap();
    tx.push(1).unwrap();
    assert_room(&queue, 1);
    assert_eq!(tx.push(2), Err(PushError::Full(2)));
    drop(tx.commit());
    assert_room(&queue, 0);
    assert_eq!(queue.len(), 3);
}

#[test]
fn a_transaction_stages_as_many_as_it_holds_on_a_full_queue() {
    let queue = full(4);
    let mut worker = queue.handle();
    let tx = worker.begin();
    for part in 0..3 {
        assert_eq!(tx.push(part), Err(PushError::Full(part)));
        tx.pop().unwrap();
        assert_eq!(tx.push(part), Ok(()));
        assert_room(&queue, 0);
    }
    assert_eq!(tx.push(9), Err(PushError::Full(9)));
    drop(tx.commit());
    assert_eq!(drain(&queue), [3, 0, 1, 2]);
    assert_room(&queue, 4);
}

#[test]
fn a_transaction_that_stages_first_gives_room_back_when_it_holds() {
    let queue = Queue::bounded(4);
    queue.push(0).unwrap();
    queue.push(1).unwrap();
    let mut worker = queue.handle();
    let tx = worker.begin();
    tx.push(2).unwrap();
    tx.push(3).unwrap();
    assert_room(&queue, 0);
    assert_eq!(tx.pop_batch(2).len(), 2);
    assert_room(&queue, 2);
    drop(tx.commit());
    assert_eq!(queue.len(), 4);
}

#[test]
fn both_ends_of_a_transaction_return_the_larger_of_what_it_held_and_staged() {
    for (held, staged) in [(0, 3), (3, 0), (1, 3), (3, 1), (2, 2)] {
        for commit in [true, false] {
            let queue = Queue::bounded(6);
            queue.handle().push_batch(0..held).unwrap();
            let mut worker = queue.handle();
            let tx = worker.begin();
            assert_eq!(tx.pop_batch(held).len(), held);
            (0..staged).for_each(|item| tx.push(item).unwrap());
            let ready = if commit { staged } else { held };
            if commit {
                drop(tx.commit());
            } else {
                tx.abort();
            }
            assert_at_rest(&queue, ready, 0);
            assert_room(&queue, 6 - ready);
        }
    }
}

#[test]
fn a_death_frees_the_room_that_no_staged_item_needs() {
    for (held, staged, dead) in [
        (1, 0, 1),
        (1, 1, 1),
        (2, 1, 1),
        (2, 2, 1),
        (2, 3, 2),
        (3, 1, 3),
    ] {
        let queue = Queue::bounded(3);
        queue.handle().push_batch(0..held).unwrap();
        let mut worker = queue.handle();
        let tx = worker.begin();
        let items: Vec<_> = tx.pop_batch(held).collect();
        (0..staged).for_each(|item| tx.push(item).unwrap());
        for item in items.into_iter().take(dead) {
            tx.fail(item, "broken").unwrap();
        }
        assert_room(&queue, 3 - staged.max(held - dead));
        drop(tx.commit());
        drain(&queue);
        assert_room(&queue, 3);
    }
}

#[test]
fn a_key_function_that_panics_takes_no_room() {
    let by = |item: &usize| assert_ne!(*item, 0);
    let queue = Queue::builder().capacity(1).fair_by(by).build();
    let mut handle = queue.handle();
    for _ in 0..2 {
        assert!(panics(|| queue.push(0)));
        assert!(panics(|| handle.push(0)));
        assert!(panics(|| handle.begin().push(0)));
    }
    assert_eq!(queue.push(1), Ok(()));
    assert_eq!(queue.push(2), Err(PushError::Full(2)));
}

#[test]
fn a_commit_returns_room_before_its_items_are_taken_out() {
    let queue = full(2);
    let (mut worker, mut other) = (queue.handle(), queue.handle());
    let tx = worker.begin();
    assert_eq!(tx.pop_batch(2).len(), 2);
    let taken = tx.commit();
    assert_eq!(other.push_batch([2, 3]).unwrap(), 2);
    assert!(taken.eq([0, 1]));
    assert_room(&queue, 0);
}

#[test]
fn full_queues_exchange_items() {
    let (left, right) = (full(2), full(2));
    let (mut a, mut b) = (left.handle(), right.handle());
    for _ in 0..10 {
        let (from, to) = (a.begin(), b.begin());
        let (x, y) = (*from.pop().unwrap(), *to.pop().unwrap());
        from.push(y).unwrap();
        to.push(x).unwrap();
        assert_room(&left, 0);
        assert_room(&right, 0);
        commit_all((from, to));
    }
    assert_at_rest(&left, 2, 0);
    assert_at_rest(&right, 2, 0);
}

/// Drops a handle of a queue with three ready items and room for three more.
type Leave = fn(Handle<usize>);

const LEAVES: [(&str, Leave); 7] = [
    ("dropped", drop),
    ("forgotten", mem::forget),
    ("dropped with a forgotten transaction", |mut handle| {
        mem::forget(open(&mut handle));
    }),
    ("used after a forgotten transaction", |mut handle| {
        mem::forget(open(&mut handle));
        handle.begin().abort();
        mem::forget(handle);
    }),
    ("dropped with forgotten items of a commit", |mut handle| {
        let tx = handle.begin();
        tx.push(7).unwrap();
        tx.push(8).unwrap();
        mem::forget(tx.commit());
    }),
    ("unwound by a panic", |mut handle| {
        assert!(panics(move || {
            let _tx = open(&mut handle);
            panic!("the worker fails");
        }));
    }),
    ("dropped after work", |mut handle| {
        handle.push(3).unwrap();
        handle.push_batch([4, 5]).unwrap();
        handle.pop_batch(4, &mut Vec::new());
    }),
];

/// A transaction that takes all room and holds an item.
fn open(handle: &mut Handle<usize>) -> requeue::Transaction<'_, usize> {
    let tx = handle.begin();
    tx.pop().unwrap();
    (0..4).for_each(|item| tx.push(item).unwrap());
    assert_eq!(tx.push(4), Err(PushError::Full(4)));
    tx
}

#[test]
fn handles_that_go_in_any_way_strand_no_room() {
    for (name, leave) in LEAVES {
        for others in [0, 1, 3] {
            let queue = Queue::bounded(6);
            let others: Vec<_> = (0..others).map(|_| queue.handle()).collect();
            for round in 0..20 {
                drain(&queue);
                let mut handle = queue.handle();
                handle.push_batch(0..6).unwrap();
                handle.pop_batch(3, &mut Vec::new());
                leave(handle);
                let ready = queue.len();
                assert!(ready <= 6, "{name}, round {round}");
                assert_room(&queue, 6 - ready);
            }
            drop(others);
            assert_room(&queue, 0);
        }
    }
}

#[test]
fn room_that_one_handle_leaves_unused_is_there_for_all() {
    for capacity in [1, 2, 3, 7, 64, 1_000] {
        let queue = full(capacity);
        let mut handles: Vec<_> = (0..5).map(|_| queue.handle()).collect();
        for round in 0..25 {
            let (giver, taker) = (round % 5, (round * 3 + 1) % 5);
            assert_eq!(
                handles[giver].pop_batch(capacity, &mut Vec::new()),
                capacity
            );
            for item in 0..capacity {
                assert_eq!(handles[taker].push(item), Ok(()), "of {capacity}");
            }
            assert!(handles[giver].push(0).is_err_and(|error| error.is_full()));
        }
        drop(handles);
        assert_room(&queue, 0);
    }
}
