//! The times of items in all lanes of a queue: each item carries its own, so that a wrong one shows.

use crate::raw::testing::UNBORROWED;
use crate::raw::{Lanes, Seat};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;

/// More than two segments or nodes of numbers, and a part of one.
const MANY: u64 = 600;

fn timed<T>() -> Arc<Lanes<T>> {
    Arc::new(Lanes::new(true))
}

fn seat<T>(lanes: &Arc<Lanes<T>>) -> Seat<T> {
    Seat::new(Arc::clone(lanes))
}

/// Holds all ready items, and checks that each has the time that it names, and `attempts`.
fn hold_all(seat: &mut Seat<u64>, attempts: u32) -> usize {
    let before = seat.held();
    while seat.hold_batch(usize::MAX) > 0 {}
    let held = seat.held_items();
    for (item, tag) in &held[before..] {
        assert_eq!((tag.since, tag.attempts), (*item, attempts));
    }
    held.len() - before
}

/// Stages an item with its time.
fn stage_since(seat: &mut Seat<u64>, item: u64, since: u64) {
    seat.note_time(since);
    seat.stage_one(item);
}

/// Pushes with and without a handle: more than a segment and a node of each.
fn fill(lanes: &Lanes<u64>, seat: &mut Seat<u64>) {
    for since in 1..=MANY {
        seat.push_since(since, since);
        lanes.push(since, since, || true).unwrap();
    }
}

#[test]
fn items_keep_their_times_through_aborts() {
    let lanes = timed();
    let mut seat = seat(&lanes);
    fill(&lanes, &mut seat);
    for attempts in 1..4 {
        assert_eq!(lanes.oldest(), Some(1));
        assert_eq!(hold_all(&mut seat, attempts), 2 * 600);
        assert_eq!(lanes.oldest(), None);
        seat.abort(UNBORROWED);
    }
}

#[test]
fn what_is_forgotten_or_left_by_a_dropped_handle_keeps_its_time() {
    let lanes = timed();
    let mut first = seat(&lanes);
    fill(&lanes, &mut first);
    hold_all(&mut first, 1);
    assert!(first.is_unsettled());
    first.abort(UNBORROWED);
    assert_eq!(hold_all(&mut first, 2), 2 * 600);
    drop(first);
    assert_eq!(hold_all(&mut seat(&lanes), 3), 2 * 600);
}

#[test]
fn a_shard_that_is_handed_on_goes_on_with_its_times() {
    let lanes = timed();
    for since in 1..=MANY {
        seat(&lanes).push_since(since, since);
        if since % 7 == 0 {
            assert_eq!(lanes.oldest(), Some(since - 6));
            assert_eq!(hold_all(&mut seat(&lanes), 1), 7);
            let mut popper = seat(&lanes);
            assert_eq!(popper.pop_into(7, &mut Vec::<u64>::new()), 7);
        }
    }
}

#[test]
fn emptied_segments_take_new_times() {
    let lanes = timed();
    let mut seat = seat(&lanes);
    for since in 1..=10 * MANY {
        seat.push_since(since, since);
        assert_eq!(lanes.oldest(), Some(since));
        assert_eq!(hold_all(&mut seat, 1), 1);
        seat.commit(UNBORROWED);
        seat.drop_taken(UNBORROWED);
    }
}

#[test]
fn a_batch_has_one_time() {
    let lanes = timed();
    let mut seat = seat(&lanes);
    (0..600).for_each(|_| stage_since(&mut seat, 5, 5));
    assert_eq!(lanes.oldest(), None);
    seat.commit(UNBORROWED);
    seat.push_since(6, 6);
    assert_eq!(lanes.oldest(), Some(5));
    assert_eq!(hold_all(&mut seat, 1), 601);
}

#[test]
fn what_is_not_published_leaves_no_time() {
    let lanes = timed();
    let mut seat = seat(&lanes);
    seat.push_since(0, 0);
    assert_eq!(seat.pop(), Some(0));
    (0..3 * MANY).for_each(|item| stage_since(&mut seat, item, 1));
    seat.abort(UNBORROWED);
    seat.note_time(2);
    seat.begin_staging();
    seat.end_staging();
    seat.push_since(3, 3);
    assert_eq!(seat.retract().map(|entry| entry.item), Some(3));
    assert_eq!(lanes.push(4, 4, || false), Err(4));
    assert_eq!(lanes.oldest(), None);
    stage_since(&mut seat, 5, 5);
    seat.commit(UNBORROWED);
    assert_eq!(lanes.oldest(), Some(5));
    assert_eq!(hold_all(&mut seat, 1), 1);
}

#[test]
fn the_oldest_is_looked_for_in_every_lane() {
    let lanes = timed();
    let mut seats = [seat(&lanes), seat(&lanes), seat(&lanes)];
    assert_eq!(lanes.oldest(), None);
    lanes.push(40, 40, || true).unwrap();
    for (seat, since) in seats.iter_mut().zip([30, 10, 20]) {
        seat.push_since(since, since);
    }
    assert_eq!(lanes.oldest(), Some(10));
    assert_eq!(hold_all(&mut seats[0], 1), 4);
    lanes.push(50, 50, || true).unwrap();
    assert_eq!(lanes.oldest(), Some(50));
    seats[0].abort(UNBORROWED);
    assert_eq!(lanes.oldest(), Some(10));
    assert_eq!(seats[2].pop_into(5, &mut Vec::<u64>::new()), 5);
    assert_eq!(lanes.oldest(), None);
}

#[test]
fn the_oldest_of_a_partly_used_run_is_what_is_left() {
    let lanes = timed();
    let mut seat = seat(&lanes);
    (1..=9).for_each(|since| seat.push_since(since, since));
    hold_all(&mut seat, 1);
    seat.abort(UNBORROWED);
    for since in 1..9 {
        assert_eq!(seat.pop(), Some(since));
        assert_eq!(lanes.oldest(), Some(since + 1));
    }
}

#[test]
fn a_plain_queue_keeps_no_times() {
    let lanes = Arc::new(Lanes::new(false));
    let mut seat = seat(&lanes);
    seat.push_since(1, 1);
    lanes.push(2, 2, || true).unwrap();
    assert_eq!(lanes.oldest(), None);
    while seat.hold() {}
    assert!(seat.held_items().iter().all(|(_, tag)| tag.since == 0));
    assert_eq!(seat.held(), 2);
    seat.abort(UNBORROWED);
    assert_eq!(lanes.oldest(), None);
}

#[test]
fn items_without_a_time_are_not_the_oldest() {
    let lanes = timed();
    let mut seats = [seat(&lanes), seat(&lanes)];
    seats[0].push(1);
    assert_eq!(lanes.oldest(), None);
    seats[1].push_since(2, 2);
    assert_eq!(lanes.oldest(), Some(2));
}

/// Items of any layout, each in both kinds of lane.
fn check_layout<T: Clone>(item: &T) {
    let lanes = timed();
    let mut seat = seat(&lanes);
    for since in 1..=MANY {
        seat.push_since(item.clone(), since);
        assert!(lanes.push(item.clone(), since, || true).is_ok());
    }
    for attempts in 1..3 {
        while seat.hold() {}
        let held = seat.held_items();
        assert!(held.iter().all(|(_, tag)| tag.attempts == attempts));
        let sum: u64 = held.iter().map(|(_, tag)| tag.since).sum();
        assert_eq!(sum, MANY * (MANY + 1));
        seat.abort(UNBORROWED);
        assert_eq!(lanes.oldest(), Some(1));
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

/// Segments, pages, nodes and runs are freed and used again while somebody looks for the oldest.
#[test]
fn the_oldest_is_found_while_others_work() {
    let lanes = timed();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let (lanes, done) = (&lanes, &done);
        let workers = [0, 1].map(|_| {
            scope.spawn(move || {
                let mut seat = seat(lanes);
                for round in 0..100 {
                    fill(lanes, &mut seat);
                    while seat.hold() {}
                    if round % 2 == 0 {
                        seat.abort(UNBORROWED);
                    }
                    seat.commit(UNBORROWED);
                    seat.drop_taken(UNBORROWED);
                }
            })
        });
        scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                assert!(lanes.oldest().map_or(true, |since| since <= MANY));
            }
        });
        for worker in workers {
            worker.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
}
