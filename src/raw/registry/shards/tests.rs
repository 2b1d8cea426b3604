//! Shards and counters of handles that were dropped.

use super::Shards;
use crate::raw::memory::segment::{Segment, FIRST_STAMP};
use crate::raw::registry::consumer::Consumer;
use crate::raw::registry::strict::Remainder;
use crate::raw::shard::front::FIRST;
use crate::raw::testing::UNBORROWED;
use crate::raw::{Endpoint, Intake};
use crate::sync::barrier;
use std::sync::Arc;

/// More than the permanent records.
const ENDPOINTS: u32 = if cfg!(miri) { 20 } else { 1_000 };
/// Records that are never retired: those that are acquired first.
const PERMANENT: usize = 8;

fn endpoints(shards: &Arc<Shards<u32>>) -> Vec<Endpoint<u32>> {
    (0..ENDPOINTS)
        .map(|_| Endpoint::new(Arc::clone(shards)))
        .collect()
}

/// Shards with a [`crowd`] of endpoints, and the number of the last shard.
fn crowded() -> (Arc<Shards<u32>>, Vec<Endpoint<u32>>, usize) {
    let shards = Arc::new(Shards::new(true));
    let endpoints = crowd(&shards);
    (shards, endpoints, ENDPOINTS as usize)
}

/// Endpoints that own an empty shard each.
fn crowd(shards: &Arc<Shards<u32>>) -> Vec<Endpoint<u32>> {
    let mut endpoints = endpoints(shards);
    for endpoint in &mut endpoints {
        endpoint.push(0);
        assert!(endpoint.retract().is_some());
    }
    endpoints
}

fn drain(shards: &Shards<u32>) -> Vec<u32> {
    let mut consumer = Consumer::new(shards, 0);
    let items: Vec<_> = std::iter::from_fn(|| consumer.take_one(shards)).collect();
    consumer.leave();
    shards.count_popped(items.len());
    items
}

fn age(shards: &Shards<u32>, shard: usize) -> Option<u64> {
    shards.records.get(shard).age()
}

/// Holds all items that are ready.
fn hold_all(holder: &mut Endpoint<u32>) {
    while holder.hold() {}
}

#[test]
fn an_owner_takes_no_item_of_a_segment_that_it_has_used_up() {
    let shards = Arc::new(Shards::new(false));
    let mut owner = Endpoint::new(Arc::clone(&shards));
    assert_eq!(owner.pop_last(), None);
    for item in 0..10_000 {
        owner.push(item);
        if owner.producer.is_full() {
            // Nothing is in the segment that it opens.
            owner.make_room_for_one();
            assert_eq!(owner.pop_last(), None);
            assert_eq!(owner.pop(), Some(item));
        } else {
            assert_eq!(owner.pop_last(), Some(item));
            assert_eq!(owner.pop_last(), None);
        }
    }
}

#[test]
fn walks_skip_empty_shards_of_dropped_handles() {
    let shards = Arc::new(Shards::new(false));
    let mut endpoints = endpoints(&shards);
    for (item, endpoint) in (0..).zip(&mut endpoints) {
        endpoint.push(item);
    }
    assert_eq!(shards.count(), ENDPOINTS as usize);
    assert_eq!(shards.handles.used().from(0).count(), ENDPOINTS as usize);
    drop(endpoints);
    assert_eq!(shards.ready(), u64::from(ENDPOINTS));
    let mut items = drain(&shards);
    items.sort_unstable();
    assert!(items.into_iter().eq(0..ENDPOINTS));
    assert!(shards.count() <= PERMANENT, "{} shards", shards.count());
    assert!(shards.handles.used().from(0).count() <= PERMANENT);
    assert_eq!(shards.pushed(), u64::from(ENDPOINTS));
    assert_eq!(shards.tally().committed, u64::from(ENDPOINTS));
}

#[test]
fn a_shard_that_is_empty_when_its_handle_is_dropped_is_detached_at_once() {
    let (shards, endpoints, last) = crowded();
    assert!(shards.is_attached(last));
    drop(endpoints);
    assert!(shards.count() <= PERMANENT, "{} shards", shards.count());
    assert!(!shards.is_attached(last));
    assert_eq!(shards.records.len(), last + 1);
}

#[test]
fn nothing_is_left_to_do_for_a_detached_shard_without_an_owner() {
    let (shards, mut endpoints, last) = crowded();
    assert!(!shards.is_done_with(last));
    endpoints[last - 1].push(1);
    let mut holder = Endpoint::new(Arc::clone(&shards));
    hold_all(&mut holder);
    drop(endpoints);
    assert!(shards.is_done_with(last));
    holder.abort(UNBORROWED);
    assert!(!shards.is_done_with(last));
}

#[test]
fn an_idle_mark_in_an_attached_shard_hides_nothing() {
    let shards = Arc::new(Shards::new(false));
    let mut owner = Endpoint::new(Arc::clone(&shards));
    owner.push(1);
    let shard = shards.records.get(1);
    assert!(shard.mark_idle());
    assert_eq!(shard.tail_without_joint(), Some(FIRST + 1));
    assert!(!shard.looks_empty());
    assert_eq!(shards.pop_one(), Some(1));
    assert!(shard.looks_empty());
}

#[test]
fn a_closed_front_has_no_runs_to_visit() {
    let (shards, endpoints, last) = crowded();
    drop(endpoints);
    let front = shards.records.get(last).front();
    assert!(front.is_detached() && !front.has_runs());
}

#[test]
fn items_returned_to_a_detached_shard_come_in_their_order() {
    let (shards, mut endpoints, last) = crowded();
    (1..=5).for_each(|item| endpoints[last - 1].push(item));
    let mut holder = Endpoint::new(Arc::clone(&shards));
    hold_all(&mut holder);
    drop(endpoints);
    assert!(!shards.is_attached(last));
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
fn a_shard_stays_attached_while_it_has_returned_items() {
    let (shards, mut endpoints, last) = crowded();
    endpoints[last - 1].push(1);
    let mut holder = Endpoint::new(Arc::clone(&shards));
    hold_all(&mut holder);
    holder.abort(UNBORROWED);
    drop(endpoints);
    shards.vacate_all();
    assert!(shards.is_attached(last));
    assert_eq!(shards.pop_one(), Some(1));
    shards.vacate_all();
    assert!(!shards.is_attached(last));
}

#[test]
fn returned_items_make_their_shard_the_oldest() {
    let (shards, mut endpoints, last) = crowded();
    endpoints[last - 1].push(1);
    assert!(age(&shards, last) > Some(0));
    let mut holder = Endpoint::new(Arc::clone(&shards));
    assert!(holder.hold());
    assert_eq!(age(&shards, last), None);
    holder.abort(UNBORROWED);
    assert_eq!(age(&shards, last), Some(0));
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
    const EACH: u32 = if cfg!(miri) { 5 } else { 300 };
    let (shards, endpoints, _) = crowded();
    drop(endpoints);
    let (mut endpoints, mut holder) =
        (self::endpoints(&shards), Endpoint::new(Arc::clone(&shards)));
    for round in 0..3 {
        for endpoint in &mut endpoints {
            endpoint.stage_one(0);
            endpoint.abort(UNBORROWED);
            for item in 0..EACH {
                let since = u64::from(item) + 1;
                endpoint.push_since(item, since);
            }
        }
        assert_eq!(shards.oldest(), Some(1));
        assert_eq!(shards.ready(), u64::from(EACH * ENDPOINTS));
        if round == 1 {
            hold_all(&mut holder);
            assert!(shards.is_empty());
            holder.abort(UNBORROWED);
        }
        assert_eq!(drain(&shards).len(), (EACH * ENDPOINTS) as usize);
        assert_eq!(shards.oldest(), None);
        endpoints.truncate(ENDPOINTS as usize / 10);
        endpoints.extend((ENDPOINTS / 10..ENDPOINTS).map(|_| Endpoint::new(Arc::clone(&shards))));
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
    assert_eq!(holder.seen(last), [1, 2]);
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
fn items_of_a_former_handle_return_to_its_shard() {
    let (shards, mut endpoints, last) = crowded();
    let [mut first, mut second, mut both] = [(); 3].map(|()| Endpoint::new(Arc::clone(&shards)));
    for (item, holder) in [(1, &mut first), (2, &mut second)] {
        endpoints[last - 1].push(item);
        hold_all(holder);
    }
    drop(endpoints);
    assert!(!shards.is_attached(last));
    first.abort(UNBORROWED);
    assert!(shards.is_attached(last));
    let _endpoints = crowd(&shards);
    second.abort(UNBORROWED);
    assert_eq!(both.seen(last), [2, 1]);
    assert_eq!(both.seen(last), [2, 1]);
}

/// Whether shards of living handles are detached: not where the kernel refuses `membarrier`.
fn detaches() -> bool {
    barrier::is_asymmetric()
}

/// Detaches what is idle: what was used before the first call is not idle at the second one.
fn settle(shards: &Shards<u32>) {
    (0..2).for_each(|_| shards.detach_idle());
}

#[test]
fn idle_shards_are_detached_until_their_next_push() {
    let (shards, mut endpoints, _) = crowded();
    if !detaches() {
        return;
    }
    assert_eq!(shards.count(), endpoints.len());
    settle(&shards);
    assert_eq!(shards.count(), 0);
    assert!(shards.is_empty());
    for (index, item) in [(700, 1), (3, 2), (999, 3), (700, 4)] {
        endpoints[index].push(item);
    }
    assert_eq!(shards.count(), 3);
    assert_eq!(shards.ready(), 4);
    let mut items = drain(&shards);
    items.sort_unstable();
    assert_eq!(items, [1, 2, 3, 4]);
    endpoints[5].stage_one(5);
    endpoints[5].commit(UNBORROWED);
    assert_eq!(drain(&shards), [5]);
}

#[test]
fn shards_that_are_used_stay_attached() {
    let (shards, mut endpoints, _) = crowded();
    if !detaches() {
        return;
    }
    let mut holder = Endpoint::new(Arc::clone(&shards));
    settle(&shards);
    endpoints[10].push(1);
    for item in 0..3 {
        endpoints[20].push(item);
        hold_all(&mut holder);
        shards.detach_idle();
        assert!(shards.is_attached(21));
        holder.commit(UNBORROWED);
        holder.drop_taken(UNBORROWED);
        endpoints[10].push(1);
        shards.detach_idle();
        assert!(shards.is_attached(11));
    }
    hold_all(&mut holder);
    settle(&shards);
    assert_eq!(shards.count(), 0);
}

#[test]
fn an_abort_attaches_the_shard_and_comes_before_the_next_push() {
    let (shards, mut endpoints, last) = crowded();
    if !detaches() {
        return;
    }
    let mut holder = Endpoint::new(Arc::clone(&shards));
    (1..=3).for_each(|item| endpoints[last - 1].push(item));
    hold_all(&mut holder);
    settle(&shards);
    assert_eq!((shards.count(), shards.is_empty()), (0, true));
    holder.abort(UNBORROWED);
    assert_eq!((shards.count(), shards.is_empty()), (1, false));
    endpoints[last - 1].push(4);
    assert_eq!(drain(&shards), [1, 2, 3, 4]);
    settle(&shards);
    assert_eq!(shards.count(), 0);
}

/// The shards of idle handles cost nothing once somebody has looked at them often enough.
#[test]
fn pops_in_vain_detach_what_is_idle() {
    let (shards, mut endpoints, _) = crowded();
    if !detaches() {
        return;
    }
    let [pusher, popper, ..] = &mut *endpoints else {
        unreachable!("a crowd");
    };
    for item in 0..20 {
        pusher.push(item);
        assert_eq!((popper.pop(), popper.pop()), (Some(item), None));
    }
    assert!(shards.count() <= 1, "{} shards", shards.count());
    drop(endpoints);
    let mut only = Endpoint::new(Arc::clone(&shards));
    for item in 0..10 * ENDPOINTS {
        only.push(item);
        assert_eq!((only.pop(), only.pop()), (Some(item), None));
    }
    assert!(shards.count() <= 1, "{} shards", shards.count());
}

#[test]
fn an_intake_detaches_what_is_idle_too() {
    let (shards, mut endpoints, _) = crowded();
    if !detaches() {
        return;
    }
    let mut intake = Intake::new(Arc::clone(&shards), None);
    let mut arrived = Vec::new();
    for item in 0..20 {
        endpoints[500].push(item);
        intake.take_arrived(&mut arrived);
    }
    assert!(shards.count() <= 1, "{} shards", shards.count());
    endpoints[700].push(20);
    intake.take_arrived(&mut arrived);
    let arrived = arrived.into_iter().map(|entry| entry.item);
    assert!(arrived.eq(0..=20));
}

#[test]
fn ages_lie_between_the_stamps_of_segments() {
    const LEN: usize = Segment::<u32>::SHORT;
    const FIRST_LEN: usize = Segment::<u32>::FIRST;
    let shards = Arc::new(Shards::new(false));
    let mut producers = [(); 2].map(|()| Endpoint::new(Arc::clone(&shards)));
    let mut consumer = Consumer::new(&shards, 0);
    let mut age_after = |pops| {
        let taken = consumer.take_shard(&shards, 1, &mut Vec::<u32>::new(), pops);
        assert_eq!(taken, pops);
        age(&shards, 1)
    };
    // The first segments are shorter, and opened at two ticks.
    for producer in &mut producers {
        (0..FIRST_LEN).for_each(|_| producer.push(0));
    }
    // Full segments of both in turn, on several pages: those of the first shard are opened at the ticks 1, 3, 5, ... behind these.
    for segment in 0..40 {
        (0..LEN).for_each(|_| producers[segment % 2].push(0));
    }
    let ticks = |ticks: u64| (FIRST_STAMP + 2 + ticks) * LEN as u64;
    age_after(FIRST_LEN);
    for opened in (1..39).step_by(2) {
        assert_eq!(age_after(0), Some(ticks(opened)));
        assert_eq!(age_after(LEN / 2), Some(ticks(opened + 1)));
        assert_eq!(age_after(LEN / 2 - 1), Some(ticks(opened + 2) - 2));
        age_after(1);
    }
    // The last segment lasts one tick.
    assert_eq!(age_after(LEN - 1), Some(ticks(40) - 1));
    assert_eq!(age_after(1), None);
    consumer.leave();
}

#[test]
fn a_run_that_was_used_up_below_another_one_is_unlinked_in_the_end() {
    let shards = Arc::new(Shards::<u32>::new(false));
    let [mut owner, mut one, mut two, mut three] =
        std::array::from_fn(|_| Endpoint::new(Arc::clone(&shards)));
    owner.push(1);
    owner.push(2);
    assert!(one.hold() && two.hold());
    one.abort(UNBORROWED);
    let front = shards.records.get(1).front();
    {
        // A consumer takes the item of the run, and before it can unlink the run, another run comes on top of it.
        let _visit = front.visit();
        // SAFETY: in a visit.
        let run = unsafe { front.top() }.unwrap();
        let (from, to) = (run.cursor(), run.cursor().after(1));
        assert!(front.claim_run(run, from, to));
        let mut item: Option<u32> = None;
        // SAFETY: claimed; there is room for one item.
        unsafe { run.move_out(from, 1, &mut item) };
        assert_eq!(item, Some(1));
        two.abort(UNBORROWED);
        assert!(!front.unlink(run));
    }
    assert_eq!(three.pop(), Some(2));
    assert!(front.has_runs(), "the used-up one");
    shards.unlink_runs();
    assert!(!front.has_runs());
}
