//! Shards and counters of handles that were dropped.

use super::Shards;
use crate::raw::consumer::Consumer;
use crate::raw::strict::Remainder;
use crate::raw::testing::UNBORROWED;
use crate::raw::Endpoint;
use std::sync::Arc;

/// More than the permanent records.
const MANY: u32 = 1_000;
/// Shards that may be in use without a handle: the injector, and the permanent ones.
const FEW: usize = 9;

fn endpoints(shards: &Arc<Shards<u32>>) -> Vec<Endpoint<u32>> {
    (0..MANY)
        .map(|_| Endpoint::new(Arc::clone(shards)))
        .collect()
}

/// Shards with a [`crowd`] of endpoints, and the number of the last shard.
fn crowded() -> (Arc<Shards<u32>>, Vec<Endpoint<u32>>, usize) {
    let shards = Arc::new(Shards::new(true));
    let endpoints = crowd(&shards);
    (shards, endpoints, MANY as usize)
}

/// Endpoints that own an empty shard each.
fn crowd(shards: &Arc<Shards<u32>>) -> Vec<Endpoint<u32>> {
    let mut endpoints = endpoints(shards);
    for endpoint in &mut endpoints {
        endpoint.stage_one(0);
        endpoint.abort(UNBORROWED);
    }
    endpoints
}

fn drain(shards: &Shards<u32>) -> Vec<u32> {
    let mut consumer = Consumer::new(0);
    let items: Vec<_> = std::iter::from_fn(|| consumer.take_one(shards)).collect();
    consumer.leave();
    shards.count_popped(items.len());
    items
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
fn walks_skip_empty_shards_of_dropped_handles() {
    let shards = Arc::new(Shards::new(false));
    let mut endpoints = endpoints(&shards);
    for (item, endpoint) in (0..).zip(&mut endpoints) {
        endpoint.push(item);
    }
    assert_eq!(shards.count(), 1 + MANY as usize);
    assert_eq!(shards.handles().count_in_use(), MANY as usize);
    drop(endpoints);
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
fn a_shard_that_is_empty_when_its_handle_is_dropped_is_retired_at_once() {
    let (shards, endpoints, last) = crowded();
    assert!(shards.is_in_use(last));
    drop(endpoints);
    assert!(shards.count() <= FEW, "{} shards", shards.count());
    assert!(!shards.is_in_use(last));
    assert_eq!(shards.end(), last + 1);
}

#[test]
fn items_returned_to_a_retired_shard_come_in_their_order() {
    let (shards, mut endpoints, last) = crowded();
    (1..=5).for_each(|item| endpoints[last - 1].push(item));
    let mut holder = Endpoint::new(Arc::clone(&shards));
    hold_all(&mut holder);
    drop(endpoints);
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
fn a_shard_stays_in_use_while_it_has_returned_items() {
    let (shards, mut endpoints, last) = crowded();
    endpoints[last - 1].push(1);
    let mut holder = Endpoint::new(Arc::clone(&shards));
    hold_all(&mut holder);
    holder.abort(UNBORROWED);
    drop(endpoints);
    shards.vacate_all();
    assert!(shards.is_in_use(last));
    assert_eq!(shards.pop_one(), Some(1));
    shards.vacate_all();
    assert!(!shards.is_in_use(last));
}

#[test]
fn a_consumer_of_a_retired_shard_sees_no_item() {
    for timed in [false, true] {
        let shards = Arc::new(Shards::new(timed));
        let mut endpoints = crowd(&shards);
        let mut pusher = endpoints.pop().unwrap();
        (1..=3).for_each(|item| pusher.push(item));
        let [consumer, other, ..] = &mut *endpoints else {
            unreachable!("a crowd");
        };
        assert_eq!(consumer.pop(), Some(1));
        assert_eq!((other.pop(), other.pop()), (Some(2), Some(3)));
        drop(pusher);
        assert_eq!(consumer.pop(), None);
        assert!(!consumer.sees_one());
    }
}

#[test]
fn a_retired_shard_is_as_new_for_the_next_handle() {
    let (shards, endpoints, _) = crowded();
    drop(endpoints);
    let (mut endpoints, mut holder) =
        (self::endpoints(&shards), Endpoint::new(Arc::clone(&shards)));
    for round in 0..3 {
        for endpoint in &mut endpoints {
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
        endpoints.truncate(100);
        endpoints.extend((100..MANY).map(|_| Endpoint::new(Arc::clone(&shards))));
    }
}

#[test]
fn an_item_of_a_former_handle_comes_before_those_of_the_next_one() {
    let (shards, mut endpoints, last) = crowded();
    endpoints[last - 1].push(1);
    let mut holder = Endpoint::new(Arc::clone(&shards));
    hold_all(&mut holder);
    drop(endpoints);
    let mut endpoints = self::endpoints(&shards);
    for endpoint in &mut endpoints {
        endpoint.push(2);
    }
    holder.abort(UNBORROWED);
    let mut shard = last;
    assert!(holder.hold_shard(&mut shard));
    assert_eq!(shard, last + 1);
    assert_eq!(items_of(&holder), [1, 2]);
}

#[test]
fn a_version_that_is_removed_is_not_balanced_by_one_that_grows() {
    let (shards, mut endpoints, _) = crowded();
    let mut calls = 0;
    let remainder = shards.remainder(|| {
        calls += 1;
        if calls == 1 {
            // A retired shard takes one off the sum of the versions, and a pop adds one.
            drop(endpoints.pop());
            endpoints[0].push(1);
            assert_eq!(endpoints[0].pop(), Some(1));
        }
        true
    });
    assert_eq!((remainder, calls), (Remainder::Nothing, 2));
}

#[test]
fn items_returned_to_two_shards_go_back_to_one() {
    let (shards, mut endpoints, last) = crowded();
    let [mut first, mut second, mut both] = [(); 3].map(|()| Endpoint::new(Arc::clone(&shards)));
    for (item, holder) in [(1, &mut first), (2, &mut second)] {
        endpoints[last - 1].push(item);
        hold_all(holder);
    }
    drop(endpoints);
    first.abort(UNBORROWED);
    assert!(!shards.is_in_use(last));
    let _endpoints = crowd(&shards);
    assert!(shards.is_in_use(last));
    second.abort(UNBORROWED);

    // One of them is in the injector, the other in the shard of the next handle.
    for mut shard in [0, last] {
        assert!(both.hold_shard(&mut shard));
    }
    assert_eq!(items_of(&both), [1, 2]);
    both.abort(UNBORROWED);
    assert!(both.hold_shard(&mut { last }));
    assert_eq!(items_of(&both), [1, 2]);
}
