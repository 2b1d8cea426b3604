//! The times of items in all shards of a queue. Each item's value is its own time, so that a wrong one is found.

use crate::raw::testing::UNBORROWED;
use crate::raw::{Endpoint, Shards};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;

/// More than two segments or nodes of numbers, and a part of one.
const TIMES: u64 = if cfg!(miri) { 30 } else { 600 };

fn timed<T>() -> Arc<Shards<T>> {
    Arc::new(Shards::new(true))
}

fn endpoint<T>(shards: &Arc<Shards<T>>) -> Endpoint<T> {
    Endpoint::new(Arc::clone(shards))
}

/// Holds all ready items, and checks that each has its value as its time, and `attempts`.
fn hold_all(endpoint: &mut Endpoint<u64>, attempts: u32) -> usize {
    let before = endpoint.held();
    while endpoint.hold_batch(usize::MAX) > 0 {}
    let held = endpoint.held_items();
    for (item, delivery) in &held[before..] {
        assert_eq!((delivery.since, delivery.attempts), (*item, attempts));
    }
    held.len() - before
}

/// Stages an item with its time.
fn stage_since(endpoint: &mut Endpoint<u64>, item: u64, since: u64) {
    endpoint.note_time(since);
    endpoint.stage_one(item);
}

/// Pushes with and without a handle: more than a segment and a node of each.
fn fill(shards: &Shards<u64>, endpoint: &mut Endpoint<u64>) {
    for since in 1..=TIMES {
        endpoint.push_since(since, since);
        shards.push(since, since, || true).unwrap();
    }
}

#[test]
fn items_keep_their_times_through_aborts() {
    let shards = timed();
    let mut endpoint = endpoint(&shards);
    fill(&shards, &mut endpoint);
    for attempts in 1..4 {
        assert_eq!(shards.oldest(), Some(1));
        assert_eq!(hold_all(&mut endpoint, attempts), 2 * 600);
        assert_eq!(shards.oldest(), None);
        endpoint.abort(UNBORROWED);
    }
}

#[test]
fn items_of_forgotten_transactions_and_dropped_handles_keep_their_times() {
    let shards = timed();
    let mut first = endpoint(&shards);
    fill(&shards, &mut first);
    hold_all(&mut first, 1);
    assert!(first.is_unsettled());
    first.abort(UNBORROWED);
    assert_eq!(hold_all(&mut first, 2), 2 * 600);
    drop(first);
    assert_eq!(hold_all(&mut endpoint(&shards), 3), 2 * 600);
}

#[test]
fn a_shard_with_another_owner_keeps_its_times() {
    let shards = timed();
    for since in 1..=TIMES {
        endpoint(&shards).push_since(since, since);
        if since % 7 == 0 {
            assert_eq!(shards.oldest(), Some(since - 6));
            assert_eq!(hold_all(&mut endpoint(&shards), 1), 7);
            let mut popper = endpoint(&shards);
            assert_eq!(popper.pop_into(7, &mut Vec::<u64>::new()), 7);
        }
    }
}

#[test]
fn emptied_segments_take_new_times() {
    let shards = timed();
    let mut endpoint = endpoint(&shards);
    for since in 1..=10 * TIMES {
        endpoint.push_since(since, since);
        assert_eq!(shards.oldest(), Some(since));
        assert_eq!(hold_all(&mut endpoint, 1), 1);
        endpoint.commit(UNBORROWED);
        endpoint.drop_taken(UNBORROWED);
    }
}

#[test]
fn a_batch_has_one_time() {
    let shards = timed();
    let mut endpoint = endpoint(&shards);
    (0..600).for_each(|_| stage_since(&mut endpoint, 5, 5));
    assert_eq!(shards.oldest(), None);
    endpoint.commit(UNBORROWED);
    endpoint.push_since(6, 6);
    assert_eq!(shards.oldest(), Some(5));
    assert_eq!(hold_all(&mut endpoint, 1), 601);
}

#[test]
fn items_that_are_not_published_leave_no_time() {
    let shards = timed();
    let mut endpoint = endpoint(&shards);
    endpoint.push_since(0, 0);
    assert_eq!(endpoint.pop(), Some(0));
    (0..3 * TIMES).for_each(|item| stage_since(&mut endpoint, item, 1));
    endpoint.abort(UNBORROWED);
    endpoint.note_time(2);
    endpoint.begin_staging();
    endpoint.counters().abort_staging();
    endpoint.push_since(3, 3);
    assert_eq!(endpoint.retract(), Some(3));
    assert_eq!(shards.push(4, 4, || false), Err(4));
    assert_eq!(shards.oldest(), None);
    stage_since(&mut endpoint, 5, 5);
    endpoint.commit(UNBORROWED);
    assert_eq!(shards.oldest(), Some(5));
    assert_eq!(hold_all(&mut endpoint, 1), 1);
}

#[test]
fn the_oldest_is_searched_in_every_shard() {
    let shards = timed();
    let mut endpoints = [endpoint(&shards), endpoint(&shards), endpoint(&shards)];
    assert_eq!(shards.oldest(), None);
    shards.push(40, 40, || true).unwrap();
    for (endpoint, since) in endpoints.iter_mut().zip([30, 10, 20]) {
        endpoint.push_since(since, since);
    }
    assert_eq!(shards.oldest(), Some(10));
    assert_eq!(hold_all(&mut endpoints[0], 1), 4);
    shards.push(50, 50, || true).unwrap();
    assert_eq!(shards.oldest(), Some(50));
    endpoints[0].abort(UNBORROWED);
    assert_eq!(shards.oldest(), Some(10));
    assert_eq!(endpoints[2].pop_into(5, &mut Vec::<u64>::new()), 5);
    assert_eq!(shards.oldest(), None);
}

#[test]
fn the_oldest_of_a_partly_used_run_is_a_remaining_item() {
    let shards = timed();
    let mut endpoint = endpoint(&shards);
    (1..=9).for_each(|since| endpoint.push_since(since, since));
    hold_all(&mut endpoint, 1);
    endpoint.abort(UNBORROWED);
    for since in 1..9 {
        assert_eq!(endpoint.pop(), Some(since));
        assert_eq!(shards.oldest(), Some(since + 1));
    }
}

#[test]
fn a_plain_queue_keeps_no_times() {
    let shards = Arc::new(Shards::new(false));
    let mut endpoint = endpoint(&shards);
    endpoint.push_since(1, 1);
    shards.push(2, 2, || true).unwrap();
    assert_eq!(shards.oldest(), None);
    while endpoint.hold() {}
    assert!(endpoint
        .held_items()
        .iter()
        .all(|(_, delivery)| delivery.since == 0));
    assert_eq!(endpoint.held(), 2);
    endpoint.abort(UNBORROWED);
    assert_eq!(shards.oldest(), None);
}

#[test]
fn items_without_a_time_are_not_the_oldest() {
    let shards = timed();
    let mut endpoints = [endpoint(&shards), endpoint(&shards)];
    endpoints[0].push(1);
    assert_eq!(shards.oldest(), None);
    endpoints[1].push_since(2, 2);
    assert_eq!(shards.oldest(), Some(2));
}

/// Items of any layout, each in both kinds of shard.
fn check_layout<T: Clone>(item: &T) {
    let shards = timed();
    let mut endpoint = endpoint(&shards);
    for since in 1..=TIMES {
        endpoint.push_since(item.clone(), since);
        assert!(shards.push(item.clone(), since, || true).is_ok());
    }
    for attempts in 1..3 {
        while endpoint.hold() {}
        let held = endpoint.held_items();
        assert!(held
            .iter()
            .all(|(_, delivery)| delivery.attempts == attempts));
        let sum: u64 = held.iter().map(|(_, delivery)| delivery.since).sum();
        assert_eq!(sum, TIMES * (TIMES + 1));
        endpoint.abort(UNBORROWED);
        assert_eq!(shards.oldest(), Some(1));
    }
}

#[test]
fn items_of_any_layout_have_times() {
    #[derive(Clone)]
    #[repr(align(64))]
    struct Aligned;
    check_layout(&());
    check_layout(&Aligned);
    check_layout(&[0u8; 3]);
    check_layout(&[0u8; 4096]);
    check_layout(&String::from("owned"));
}

/// Segments, pages, nodes and runs are freed and reused while another thread reads the oldest time.
#[test]
fn the_oldest_is_found_while_others_work() {
    const ROUNDS: usize = if cfg!(miri) { 4 } else { 100 };
    let shards = timed();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let (shards, done) = (&shards, &done);
        let workers = [0, 1].map(|_| {
            scope.spawn(move || {
                let mut endpoint = endpoint(shards);
                for round in 0..ROUNDS {
                    fill(shards, &mut endpoint);
                    while endpoint.hold() {}
                    if round % 2 == 0 {
                        endpoint.abort(UNBORROWED);
                    }
                    endpoint.commit(UNBORROWED);
                    endpoint.drop_taken(UNBORROWED);
                }
            })
        });
        scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                assert!(shards.oldest().map_or(true, |since| since <= TIMES));
            }
        });
        for worker in workers {
            worker.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
}
