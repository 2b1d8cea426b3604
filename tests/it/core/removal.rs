//! Items that leave a transaction before it ends: the remaining ones keep their order, and no item is lost,
//! duplicated, or dropped twice, at any position in the hold.

use std::mem;
use std::ptr;

use crate::common::failing::{clocked, SECOND};
use crate::common::{Ledger, Tracked};
use requeue::{Handle, ManualClock, Queue, Transaction};

/// Number of items per shard.
const PER_SHARD: usize = 150;

/// A queue whose items are numbered in the order of their shards, those pushed without a handle first.
fn queue_with(
    shards: usize,
    ledger: &Ledger,
) -> (ManualClock, Queue<Tracked>, Vec<Handle<Tracked>>) {
    let (clock, builder) = clocked();
    let queue = builder.build();
    let mut items = ledger.items();
    items
        .by_ref()
        .take(PER_SHARD)
        .for_each(|item| queue.push(item).unwrap());
    let handles = (1..shards).map(|_| {
        let mut handle = queue.handle();
        handle.push_batch(items.by_ref().take(PER_SHARD)).unwrap();
        handle
    });
    let handles = handles.collect();
    (clock, queue, handles)
}

/// Selects the items that leave, by index in the hold and item number.
type Pick = fn(usize, usize) -> bool;

const PICKS: [(&str, Pick); 9] = [
    ("none", |_, _| false),
    ("the first", |place, _| place == 0),
    ("the last", |place, held| place + 1 == held),
    ("one in the middle", |place, held| place == held / 2),
    ("the first half", |place, held| place < held / 2),
    ("the second half", |place, held| place >= held / 2),
    ("every other", |place, _| place % 2 == 1),
    ("all but one", |place, held| place != held / 3),
    ("all", |_, _| true),
];

/// A way to take items, one by one or in batches.
type Take = for<'t> fn(&'t Transaction<'_, Tracked>, usize) -> Vec<requeue::Item<'t, Tracked>>;

const TAKES: [Take; 3] = [
    |tx, count| tx.pop_batch(count).collect(),
    |tx, count| (0..count).map(|_| tx.pop().unwrap()).collect(),
    |tx, count| {
        let mut items = Vec::new();
        while items.len() < count {
            let more = (items.len() % 7 + 1).min(count - items.len());
            match items.len() % 3 {
                0 => items.push(tx.peek().unwrap().take()),
                _ => items.extend(tx.pop_batch(more)),
            }
        }
        items
    },
];

/// How a transaction ends after items have left it.
type End = fn(Transaction<'_, Tracked>, &[usize]);

/// Whether it is a commit, and the end itself.
const ENDS: [(bool, End); 4] = [
    (true, |tx, kept| {
        assert_eq!(tx.held(), kept.len());
        let taken = tx.commit();
        assert_eq!(taken.len(), kept.len());
        assert!(taken.map(|item| item.id).eq(kept.iter().copied()));
    }),
    (true, |tx, kept| {
        // The others are dropped.
        let taken = tx.commit().take(kept.len() / 2);
        assert!(taken
            .map(|item| item.id)
            .eq(kept[..kept.len() / 2].iter().copied()));
    }),
    (false, |tx, _| tx.abort()),
    (false, |tx, _| mem::forget(tx)),
];

/// Takes this many items, removes the selected ones, and returns the remaining and the removed ones.
fn take_and_remove(
    tx: &Transaction<'_, Tracked>,
    take: Take,
    count: usize,
    pick: Pick,
    backwards: bool,
) -> [Vec<usize>; 2] {
    let items = take(tx, count);
    let (mut kept, mut left) = (Vec::new(), Vec::new());
    for (place, item) in items.into_iter().enumerate() {
        if pick(place, count) {
            left.push(item);
        } else {
            kept.push(item.id);
        }
    }
    if backwards {
        left.reverse();
    }
    let gone = left.iter().map(|item| item.id).collect();
    for item in left {
        assert!(tx.retry_after(item, SECOND).is_ok());
    }
    assert_eq!(tx.held(), kept.len());
    [kept, gone]
}

/// Pops all ready items, and checks that each shard is in order, except for `first`, which come before all others.
#[track_caller]
fn assert_drains(queue: &Queue<Tracked>, shards: usize, first: &[usize]) -> usize {
    let mut next = vec![0; shards];
    let mut count = 0;
    while let Ok(item) = queue.pop() {
        if let Some(&expected) = first.get(count) {
            assert_eq!(item.id, expected);
        } else {
            let shard = item.id / PER_SHARD;
            assert!(next[shard] <= item.id, "{} is late", item.id);
            next[shard] = item.id;
        }
        count += 1;
    }
    count
}

fn check(shards: usize, take: Take, count: usize, pick: Pick, backwards: bool) {
    for (commits, end) in ENDS {
        let ledger = Ledger::new(shards * PER_SHARD);
        let (clock, queue, _handles) = queue_with(shards, &ledger);
        let mut worker = queue.handle();
        let tx = worker.begin();
        let [kept, gone] = take_and_remove(&tx, take, count, pick, backwards);
        end(tx, &kept);
        drop(worker.begin());
        queue.stats().check().unwrap();
        let stats = queue.stats();
        assert_eq!((stats.held, stats.delayed), (0, gone.len() as u64));
        let committed = if commits { kept.len() } else { 0 };
        let dropped: usize = ledger.drops().iter().sum();
        assert_eq!(dropped, committed);
        let ready = shards * PER_SHARD - committed - gone.len();
        assert_eq!(assert_drains(&queue, shards, &[]), ready);
        clock.advance(SECOND);
        assert_eq!(assert_drains(&queue, shards, &gone), gone.len());
        ledger.assert_each_dropped_once();
        queue.stats().check().unwrap();
    }
}

#[test]
fn of_one_shard() {
    for take in TAKES {
        for (_, pick) in PICKS {
            for count in [1, 2, 3, 31, 32, 33, 100, 140] {
                check(1, take, count, pick, false);
                check(1, take, count, pick, true);
            }
        }
    }
}

#[test]
fn of_several_shards() {
    for take in TAKES {
        for (_, pick) in PICKS {
            for (shards, count) in [(2, 200), (3, 400), (6, 850)] {
                check(shards, take, count, pick, false);
                check(shards, take, count, pick, true);
            }
        }
    }
}

/// The transaction goes on after its items have left.
#[test]
fn more_is_taken_after_some_have_left() {
    for take in TAKES {
        for (_, first) in PICKS {
            for (_, second) in PICKS {
                for (commits, end) in ENDS {
                    let ledger = Ledger::new(2 * PER_SHARD);
                    let (clock, queue, _handles) = queue_with(2, &ledger);
                    let mut worker = queue.handle();
                    let tx = worker.begin();
                    let [mut kept, mut gone] = take_and_remove(&tx, take, 70, first, false);
                    let items = take(&tx, 90);
                    for (place, item) in items.into_iter().enumerate() {
                        if second(place, 90) {
                            gone.push(item.id);
                            assert!(tx.retry_after(item, SECOND).is_ok());
                        } else {
                            kept.push(item.id);
                        }
                    }
                    end(tx, &kept);
                    drop(worker.begin());
                    let committed = if commits { kept.len() } else { 0 };
                    let ready = 2 * PER_SHARD - committed - gone.len();
                    assert_eq!(assert_drains(&queue, 2, &[]), ready);
                    clock.advance(SECOND);
                    assert_eq!(assert_drains(&queue, 2, &gone), gone.len());
                    ledger.assert_each_dropped_once();
                    queue.stats().check().unwrap();
                }
            }
        }
    }
}

/// Each abort returns the items of an earlier one, fewer each time.
#[test]
fn again_and_again_from_returned_runs() {
    for (_, pick) in PICKS {
        let ledger = Ledger::new(3 * PER_SHARD);
        let (clock, queue, _handles) = queue_with(3, &ledger);
        let mut worker = queue.handle();
        let mut gone = Vec::new();
        for _ in 0..6 {
            let tx = worker.begin();
            let count = queue.len().min(200);
            let [_, more] = take_and_remove(&tx, TAKES[0], count, pick, false);
            gone.extend(more);
            tx.abort();
            queue.stats().check().unwrap();
        }
        assert_eq!(assert_drains(&queue, 3, &[]), 3 * PER_SHARD - gone.len());
        clock.advance(SECOND);
        assert_eq!(assert_drains(&queue, 3, &gone), gone.len());
        ledger.assert_each_dropped_once();
    }
}

#[test]
fn items_without_a_size_and_large_ones() {
    fn check<T>(item: impl Fn() -> T) {
        let (clock, builder) = clocked();
        let queue: Queue<T> = builder.build();
        queue.handle().push_batch((0..100).map(|_| item())).unwrap();
        let mut worker = queue.handle();
        for (commits, left) in [(true, 80), (false, 80)] {
            let tx = worker.begin();
            for (place, item) in tx.pop_batch(30).enumerate() {
                if place % 3 == 0 {
                    assert!(tx.retry_after(item, SECOND).is_ok());
                }
            }
            if commits {
                assert_eq!(tx.commit().count(), 20);
            } else {
                tx.abort();
            }
            queue.stats().check().unwrap();
            clock.advance(SECOND);
            assert_eq!(queue.len(), left);
        }
    }
    check(|| ());
    check(|| [7u64; 1_000]);
}

/// References to remaining items stay valid while others leave.
#[test]
fn remaining_items_do_not_move() {
    let (_clock, builder) = clocked();
    let queue = builder.build();
    queue
        .handle()
        .push_batch((0..200).map(|n| n.to_string()))
        .unwrap();
    let mut worker = queue.handle();
    let tx = worker.begin();
    let (leave, mut stay): (Vec<_>, Vec<_>) = tx
        .pop_batch(200)
        .partition(|item| item.parse::<u32>().unwrap() % 2 == 0);
    let addresses: Vec<_> = stay.iter().map(|item| ptr::addr_of!(**item)).collect();
    for item in leave {
        tx.retry_after(item, SECOND).unwrap();
    }
    for (item, address) in stay.iter_mut().zip(addresses) {
        assert_eq!(ptr::addr_of!(**item), address);
        item.push('!');
    }
    let expected = (0..200).filter(|n| n % 2 == 1).map(|n| format!("{n}!"));
    assert!(tx.commit().eq(expected));
}
