//! Shards and counters of handles that were dropped.

use super::Shards;
use crate::raw::strict::Remainder;
use crate::raw::testing::UNBORROWED;
use crate::raw::Endpoint;
use std::sync::Arc;

/// More than stay in use though nobody leases them.
const MANY: u32 = 1_000;
/// Shards that may be in use without a handle: the injector, and those that stay.
const FEW: usize = 9;

fn seats(shards: &Arc<Shards<u32>>) -> Vec<Endpoint<u32>> {
    (0..MANY)
        .map(|_| Endpoint::new(Arc::clone(shards)))
        .collect()
}

/// Shards with a [`crowd`], and the number of the last one's shard.
fn crowded() -> (Arc<Shards<u32>>, Vec<Endpoint<u32>>, usize) {
    let shards = Arc::new(Shards::new(true));
    let seats = crowd(&shards);
    (shards, seats, MANY as usize)
}

/// Seats that have a shard each, which is empty.
fn crowd(shards: &Arc<Shards<u32>>) -> Vec<Endpoint<u32>> {
    let mut seats = seats(shards);
    for endpoint in &mut seats {
        endpoint.stage_one(0);
        endpoint.abort(UNBORROWED);
    }
    seats
}

fn drain(shards: &Shards<u32>) -> Vec<u32> {
    std::iter::from_fn(|| shards.pop(false)).collect()
}

fn items_of(holder: &Endpoint<u32>) -> Vec<u32> {
    holder
        .held_items()
        .into_iter()
        .map(|(item, _)| item)
        .collect()
}

/// Holds all items that are ready.
fn hold_all(holder: &mut Endpoint<u32>) {
    while holder.hold() {}
}

#[test]
fn walks_skip_what_was_dropped_and_is_empty() {
    let shards = Arc::new(Shards::new(false));
    let mut seats = seats(&shards);
    for (item, endpoint) in (0..).zip(&mut seats) {
        endpoint.push(item);
    }
    assert_eq!(shards.count(), 1 + MANY as usize);
    assert_eq!(shards.handles().count_in_use(), MANY as usize);
    drop(seats);
    assert_eq!(shards.ready(), u64::from(MANY));
    let mut items = drain(&shards);
    items.sort_unstable();
    assert!(items.into_iter().eq(0..MANY));
    assert!(shards.count() <= FEW, "{} shards", shards.count());
    assert!(shards.handles().count_in_use() <= FEW);
    assert_eq!(shards.pushed(), u64::from(MANY));
    assert_eq!(shards.tally().committed, u64::from(MANY));
}

#[test]
fn a_shard_that_is_empty_when_its_handle_is_dropped_goes_at_once() {
    let (shards, seats, last) = crowded();
    assert!(shards.is_in_use(last));
    drop(seats);
    assert!(shards.count() <= FEW, "{} shards", shards.count());
    assert!(!shards.is_in_use(last));
    assert_eq!(shards.end(), last + 1);
}

#[test]
fn what_is_given_back_to_a_shard_that_is_gone_comes_in_its_order() {
    let (shards, mut seats, last) = crowded();
    (1..=5).for_each(|item| seats[last - 1].push(item));
    let mut holder = Endpoint::new(Arc::clone(&shards));
    hold_all(&mut holder);
    drop(seats);
    assert!(!shards.is_in_use(last));
    assert_eq!(holder.pop(), None);
    let none = || shards.left_when_closed(|| true, || true);
    assert_eq!(none(), Remainder::Open);

    holder.abort(UNBORROWED);
    assert_eq!(none(), Remainder::Ready);
    assert!(!shards.is_empty());
    assert_eq!(shards.ready(), 5);
    hold_all(&mut holder);
    holder.abort(UNBORROWED);
    assert_eq!(drain(&shards), [1, 2, 3, 4, 5]);
    assert_eq!(none(), Remainder::Nothing);
}

#[test]
fn a_shard_stays_while_something_that_was_given_back_is_in_it() {
    let (shards, mut seats, last) = crowded();
    seats[last - 1].push(1);
    let mut holder = Endpoint::new(Arc::clone(&shards));
    hold_all(&mut holder);
    holder.abort(UNBORROWED);
    drop(seats);
    shards.vacate_all();
    assert!(shards.is_in_use(last));
    assert_eq!(shards.pop(false), Some(1));
    shards.vacate_all();
    assert!(!shards.is_in_use(last));
}

#[test]
fn a_shard_that_was_gone_is_as_new_for_the_next_handle() {
    let (shards, seats, _) = crowded();
    drop(seats);
    let (mut seats, mut holder) = (self::seats(&shards), Endpoint::new(Arc::clone(&shards)));
    for round in 0..3 {
        for endpoint in &mut seats {
            endpoint.stage_one(0);
            endpoint.abort(UNBORROWED);
            for item in 0..300 {
                let since = u64::from(item) + 1;
                endpoint.push_since(item, since);
            }
        }
        assert_eq!(shards.oldest(), Some(1));
        assert_eq!(shards.ready(), 300 * u64::from(MANY));
        if round == 1 {
            hold_all(&mut holder);
            assert!(shards.is_empty());
            holder.abort(UNBORROWED);
        }
        assert_eq!(drain(&shards).len(), 300 * MANY as usize);
        assert_eq!(shards.oldest(), None);
        seats.truncate(100);
        seats.extend((100..MANY).map(|_| Endpoint::new(Arc::clone(&shards))));
    }
}

#[test]
fn an_item_of_a_former_handle_goes_before_those_of_the_next_one() {
    let (shards, mut seats, last) = crowded();
    seats[last - 1].push(1);
    let mut holder = Endpoint::new(Arc::clone(&shards));
    hold_all(&mut holder);
    drop(seats);
    let mut seats = self::seats(&shards);
    for endpoint in &mut seats {
        endpoint.push(2);
    }
    holder.abort(UNBORROWED);
    let mut shard = last;
    assert!(holder.hold_shard(&mut shard));
    assert_eq!(shard, last + 1);
    assert_eq!(items_of(&holder), [1, 2]);
}

#[test]
fn a_mark_that_went_is_not_made_up_for_by_another() {
    let (shards, mut seats, _) = crowded();
    let mut looks = 0;
    let remainder = shards.remainder(|| {
        looks += 1;
        if looks == 1 {
            // The versions lose one, and win one.
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
    let (shards, mut seats, last) = crowded();
    let [mut first, mut second, mut both] = [(); 3].map(|()| Endpoint::new(Arc::clone(&shards)));
    for (item, holder) in [(1, &mut first), (2, &mut second)] {
        seats[last - 1].push(item);
        hold_all(holder);
    }
    drop(seats);
    first.abort(UNBORROWED);
    assert!(!shards.is_in_use(last));
    let _seats = crowd(&shards);
    assert!(shards.is_in_use(last));
    second.abort(UNBORROWED);

    // One of them is in the injector, the other in that of the next handle.
    for mut shard in [0, last] {
        assert!(both.hold_shard(&mut shard));
    }
    assert_eq!(items_of(&both), [1, 2]);
    both.abort(UNBORROWED);
    assert!(both.hold_shard(&mut { last }));
    assert_eq!(items_of(&both), [1, 2]);
}
