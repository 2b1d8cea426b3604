//! Single-threaded tests of permits.

mod stress;

use super::{Capacity, RecordOwner};

/// Takes permits one by one until none is free.
fn drain(owner: &mut RecordOwner, capacity: &Capacity) -> usize {
    std::iter::from_fn(|| (owner.take(capacity, 1, true) == 1).then_some(())).count()
}

/// The same without a record.
fn drain_shared(capacity: &Capacity) -> usize {
    std::iter::from_fn(|| capacity.take_shared().then_some(())).count()
}

#[test]
fn an_owner_takes_the_limit_and_no_more() {
    for limit in [1, 2, 3, 7, 64, 1000] {
        let capacity = Capacity::new(limit);
        let mut owner = RecordOwner::new(&capacity);
        for round in 0..3 {
            assert_eq!(drain(&mut owner, &capacity), limit, "round {round}");
            assert_eq!(capacity.free(), 0);
            (0..limit).for_each(|_| owner.put_back(1));
            assert_eq!(capacity.free(), limit);
        }
    }
}

#[test]
fn permits_put_back_are_found_by_others() {
    for limit in [3, 7, 64, 1000] {
        let capacity = Capacity::new(limit);
        let mut owners = [(); 3].map(|()| RecordOwner::new(&capacity));
        assert!(owners
            .iter_mut()
            .all(|owner| owner.take(&capacity, 1, true) == 1));
        assert_eq!(capacity.free(), limit - 3);
        assert_eq!(drain(&mut owners[0], &capacity), limit - 3);
        owners[1].put_back(3);
        assert_eq!(drain_shared(&capacity), 3);
        assert_eq!(owners[2].take(&capacity, 1, true), 0);
        assert_eq!(capacity.give_shared(limit), limit);
        assert_eq!(drain(&mut owners[1], &capacity), limit);
    }
}

#[test]
fn a_take_collects_from_wherever_permits_are() {
    let capacity = Capacity::new(100);
    let mut owners = [(); 3].map(|()| RecordOwner::new(&capacity));
    assert_eq!(owners[0].take(&capacity, 0, true), 0);
    assert_eq!(owners[0].take(&capacity, 90, true), 90);
    owners[1].put_back(30);
    owners[2].put_back(20);
    assert_eq!(owners[0].take(&capacity, 55, true), 55);
    assert_eq!(owners[0].take(&capacity, 10, true), 5);
    assert_eq!(owners[0].take(&capacity, 0, true), 0);
    assert_eq!(capacity.free(), 0);
}

#[test]
fn a_record_of_nobody_keeps_its_permits() {
    let capacity = Capacity::new(100);
    for _ in 0..3 {
        let mut owner = RecordOwner::new(&capacity);
        assert_eq!(owner.take(&capacity, 10, true), 10);
        owner.put_back(10);
        owner.leave(&capacity);
        assert_eq!(capacity.free(), 100);
        assert_eq!(drain_shared(&capacity), 100);
        assert_eq!(capacity.give_shared(100), 100);
    }
    assert_eq!(capacity.records.len(), 1);
}

#[test]
fn a_batch_takes_all_or_nothing_from_wherever_it_is() {
    let capacity = Capacity::new(1000);
    let mut owners = [(); 3].map(|()| RecordOwner::new(&capacity));
    assert!(owners[0].take_all(&capacity, 0));
    for owner in &mut owners {
        assert_eq!(owner.take(&capacity, 100, true), 100);
        owner.put_back(40);
    }
    let free = capacity.free();
    assert_eq!(free, 820);
    assert!(!owners[0].take_all(&capacity, free + 1));
    assert_eq!(capacity.free(), free);
    assert!(owners[0].take_all(&capacity, free));
    assert_eq!(capacity.free(), 0);
}

#[test]
fn what_is_taken_ahead_is_revoked() {
    let capacity = Capacity::new(400);
    let mut owner = RecordOwner::new(&capacity);
    assert_eq!(owner.take(&capacity, 1, true), 1);
    assert_eq!((0..300).filter(|_| capacity.take_shared()).count(), 300);
    let left = owner.left();
    assert!(left > 1);
    let mut revoker = RecordOwner::new(&capacity);
    assert_eq!(revoker.take(&capacity, 1, true), 1);
    assert_eq!(revoker.unsaid(), left / 2 - 1);
    assert_eq!(drain(&mut owner, &capacity), left - 1);
    assert_eq!(capacity.free(), 0);
}

/// A revoker marks the range, and finds the positions used that the owner has only tried.
#[test]
fn permits_tried_in_vain_are_given_back() {
    let capacity = Capacity::new(400);
    let mut owner = RecordOwner::new(&capacity);
    assert_eq!(owner.take(&capacity, 10, true), 10);
    let ahead = owner.left();
    assert_eq!(owner.unsaid(), ahead);
    capacity.records.get(0).range.mark();
    assert!(!owner.take_ahead(ahead));
    assert_eq!((owner.unsaid(), owner.left()), (ahead, 0));
    assert_eq!(capacity.free(), 390);
}

#[test]
fn a_range_goes_on_with_the_next_owner() {
    let capacity = Capacity::new(400);
    let mut owner = RecordOwner::new(&capacity);
    assert_eq!(owner.take(&capacity, 10, true), 10);
    let ahead = owner.left();
    owner.leave(&capacity);
    let mut next = RecordOwner::new(&capacity);
    assert_eq!(next.left(), ahead);
    assert!(next.take_ahead(ahead));
    assert_eq!((next.left(), capacity.free()), (0, 390 - ahead));
}

#[test]
fn little_is_taken_ahead_where_little_is_free() {
    let capacity = Capacity::new(10);
    let mut owners = [(); 5].map(|()| RecordOwner::new(&capacity));
    assert_eq!(owners[0].take(&capacity, 1, true), 1);
    assert_eq!(owners[0].left(), 0);
    let capacity = Capacity::new(1024);
    let mut owner = RecordOwner::new(&capacity);
    assert_eq!(owner.take(&capacity, 1, false), 1);
    assert_eq!(owner.left(), 0, "others wait");
}

#[test]
fn all_handles_together_take_ahead_a_part_of_the_capacity() {
    for handles in [1, 2, 4, 16] {
        let capacity = Capacity::new(1024);
        let mut owners: Vec<_> = (0..handles).map(|_| RecordOwner::new(&capacity)).collect();
        let takes = owners
            .iter_mut()
            .all(|owner| owner.take(&capacity, 1, true) == 1);
        let ahead = owners.iter().map(RecordOwner::left).sum::<usize>();
        assert!(takes && ahead <= 256, "{handles}: {ahead}");
    }
}

#[test]
fn limits_beyond_all_memory_are_kept() {
    for limit in [
        usize::MAX,
        usize::MAX - 1,
        super::MAX_CAPACITY,
        super::MAX_CAPACITY + 1,
    ] {
        let capacity = Capacity::new(limit);
        assert_eq!((capacity.limit(), capacity.free()), (limit, limit));
        let mut owner = RecordOwner::new(&capacity);
        (0..1000).for_each(|_| assert_eq!(owner.take(&capacity, 1, true), 1));
        assert_eq!(capacity.free(), limit - 1000);
        owner.put_back(1000);
        assert_eq!(capacity.free(), limit);
        let took = owner.take(&capacity, usize::MAX, true);
        assert_eq!(took, limit.min(super::MAX_CAPACITY));
    }
}

#[test]
fn searches_skip_retired_records() {
    let capacity = Capacity::new(4_000);
    let mut owners: Vec<_> = (0..1_000).map(|_| RecordOwner::new(&capacity)).collect();
    for owner in &mut owners {
        assert_eq!(owner.take(&capacity, 4, true), 4);
        owner.put_back(3);
    }
    assert_eq!(capacity.records.used().from(0).count(), 1_000);
    for owner in owners {
        owner.leave(&capacity);
    }
    assert_eq!(capacity.free(), 3_000);
    assert_eq!(drain_shared(&capacity), 3_000);
    assert!(capacity.records.used().from(0).count() < 10);
    assert_eq!(RecordOwner::new(&capacity).take(&capacity, 1, true), 0);
}
