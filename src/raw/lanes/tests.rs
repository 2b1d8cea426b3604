//! Shards and desks of handles that were dropped.

use super::Lanes;
use crate::raw::strict::Remainder;
use crate::raw::testing::UNBORROWED;
use crate::raw::Seat;
use std::sync::Arc;

/// More than stay in use though nobody leases them.
const MANY: u32 = 1_000;
/// Lanes that may be in use without a handle: the common one, and those that stay.
const FEW: usize = 9;

fn seats(lanes: &Arc<Lanes<u32>>) -> Vec<Seat<u32>> {
    (0..MANY).map(|_| Seat::new(Arc::clone(lanes))).collect()
}

/// Lanes with a [`crowd`], and the number of the last one's lane.
fn crowded() -> (Arc<Lanes<u32>>, Vec<Seat<u32>>, usize) {
    let lanes = Arc::new(Lanes::new(true));
    let seats = crowd(&lanes);
    (lanes, seats, MANY as usize)
}

/// Seats that have a shard each, which is empty.
fn crowd(lanes: &Arc<Lanes<u32>>) -> Vec<Seat<u32>> {
    let mut seats = seats(lanes);
    for seat in &mut seats {
        seat.stage_one(0);
        seat.abort(UNBORROWED);
    }
    seats
}

fn drain(lanes: &Lanes<u32>) -> Vec<u32> {
    std::iter::from_fn(|| lanes.pop(false)).collect()
}

fn items_of(holder: &Seat<u32>) -> Vec<u32> {
    holder
        .held_items()
        .into_iter()
        .map(|(item, _)| item)
        .collect()
}

/// Holds all items that are ready.
fn hold_all(holder: &mut Seat<u32>) {
    while holder.hold() {}
}

#[test]
fn walks_skip_what_was_dropped_and_is_empty() {
    let lanes = Arc::new(Lanes::new(false));
    let mut seats = seats(&lanes);
    for (item, seat) in (0..).zip(&mut seats) {
        seat.push(item);
    }
    assert_eq!(lanes.count(), 1 + MANY as usize);
    assert_eq!(lanes.desks().count_in_use(), MANY as usize);
    drop(seats);
    assert_eq!(lanes.ready(), u64::from(MANY));
    let mut items = drain(&lanes);
    items.sort_unstable();
    assert!(items.into_iter().eq(0..MANY));
    assert!(lanes.count() <= FEW, "{} lanes", lanes.count());
    assert!(lanes.desks().count_in_use() <= FEW);
    assert_eq!(lanes.pushed(), u64::from(MANY));
    assert_eq!(lanes.tally().committed, u64::from(MANY));
}

#[test]
fn a_shard_that_is_empty_when_its_handle_is_dropped_goes_at_once() {
    let (lanes, seats, last) = crowded();
    assert!(lanes.is_in_use(last));
    drop(seats);
    assert!(lanes.count() <= FEW, "{} lanes", lanes.count());
    assert!(!lanes.is_in_use(last));
    assert_eq!(lanes.end(), last + 1);
}

#[test]
fn what_is_given_back_to_a_shard_that_is_gone_comes_in_its_order() {
    let (lanes, mut seats, last) = crowded();
    (1..=5).for_each(|item| seats[last - 1].push(item));
    let mut holder = Seat::new(Arc::clone(&lanes));
    hold_all(&mut holder);
    drop(seats);
    assert!(!lanes.is_in_use(last));
    assert_eq!(holder.pop(), None);
    let none = || lanes.left_when_closed(|| true, || true);
    assert_eq!(none(), Remainder::Open);

    holder.abort(UNBORROWED);
    assert_eq!(none(), Remainder::Ready);
    assert!(!lanes.is_empty());
    assert_eq!(lanes.ready(), 5);
    hold_all(&mut holder);
    holder.abort(UNBORROWED);
    assert_eq!(drain(&lanes), [1, 2, 3, 4, 5]);
    assert_eq!(none(), Remainder::Nothing);
}

#[test]
fn a_shard_stays_while_something_that_was_given_back_is_in_it() {
    let (lanes, mut seats, last) = crowded();
    seats[last - 1].push(1);
    let mut holder = Seat::new(Arc::clone(&lanes));
    hold_all(&mut holder);
    holder.abort(UNBORROWED);
    drop(seats);
    lanes.vacate_all();
    assert!(lanes.is_in_use(last));
    assert_eq!(lanes.pop(false), Some(1));
    lanes.vacate_all();
    assert!(!lanes.is_in_use(last));
}

#[test]
fn a_shard_that_was_gone_is_as_new_for_the_next_handle() {
    let (lanes, seats, _) = crowded();
    drop(seats);
    let (mut seats, mut holder) = (self::seats(&lanes), Seat::new(Arc::clone(&lanes)));
    for round in 0..3 {
        for seat in &mut seats {
            seat.stage_one(0);
            seat.abort(UNBORROWED);
            for item in 0..300 {
                let since = u64::from(item) + 1;
                seat.push_since(item, since);
            }
        }
        assert_eq!(lanes.oldest(), Some(1));
        assert_eq!(lanes.ready(), 300 * u64::from(MANY));
        if round == 1 {
            hold_all(&mut holder);
            assert!(lanes.is_empty());
            holder.abort(UNBORROWED);
        }
        assert_eq!(drain(&lanes).len(), 300 * MANY as usize);
        assert_eq!(lanes.oldest(), None);
        seats.truncate(100);
        seats.extend((100..MANY).map(|_| Seat::new(Arc::clone(&lanes))));
    }
}

#[test]
fn an_item_of_a_former_handle_goes_before_those_of_the_next_one() {
    let (lanes, mut seats, last) = crowded();
    seats[last - 1].push(1);
    let mut holder = Seat::new(Arc::clone(&lanes));
    hold_all(&mut holder);
    drop(seats);
    let mut seats = self::seats(&lanes);
    for seat in &mut seats {
        seat.push(2);
    }
    holder.abort(UNBORROWED);
    let mut lane = last;
    assert!(holder.hold_lane(&mut lane));
    assert_eq!(lane, last + 1);
    assert_eq!(items_of(&holder), [1, 2]);
}

#[test]
fn a_mark_that_went_is_not_made_up_for_by_another() {
    let (lanes, mut seats, _) = crowded();
    let mut looks = 0;
    let remainder = lanes.remainder(|| {
        looks += 1;
        if looks == 1 {
            // The marks lose one, and win one.
            drop(seats.pop());
            seats[0].push(1);
            assert_eq!(seats[0].pop(), Some(1));
        }
        true
    });
    assert_eq!((remainder, looks), (Remainder::Nothing, 2));
}

#[test]
fn what_came_back_in_two_places_goes_back_to_one() {
    let (lanes, mut seats, last) = crowded();
    let [mut first, mut second, mut both] = [(); 3].map(|()| Seat::new(Arc::clone(&lanes)));
    for (item, holder) in [(1, &mut first), (2, &mut second)] {
        seats[last - 1].push(item);
        hold_all(holder);
    }
    drop(seats);
    first.abort(UNBORROWED);
    assert!(!lanes.is_in_use(last));
    let _seats = crowd(&lanes);
    assert!(lanes.is_in_use(last));
    second.abort(UNBORROWED);

    // One of them is in the common lane, the other in that of the next handle.
    for mut lane in [0, last] {
        assert!(both.hold_lane(&mut lane));
    }
    assert_eq!(items_of(&both), [1, 2]);
    both.abort(UNBORROWED);
    assert!(both.hold_lane(&mut { last }));
    assert_eq!(items_of(&both), [1, 2]);
}
