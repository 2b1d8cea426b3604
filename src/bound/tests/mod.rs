//! Single-threaded tests of permits.

mod stress;

use super::{Capacity, RecordOwner};

/// Takes permits one by one until none is free.
fn drain(owner: &mut RecordOwner, capacity: &Capacity) -> usize {
    std::iter::from_fn(|| (owner.take(capacity, 1) == 1).then_some(())).count()
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
        assert!(owners.iter_mut().all(|owner| owner.take(&capacity, 1) == 1));
        assert_eq!(capacity.free(), limit - 3);
        assert_eq!(drain(&mut owners[0], &capacity), limit - 3);
        owners[1].put_back(3);
        assert_eq!(drain_shared(&capacity), 3);
        assert_eq!(owners[2].take(&capacity, 1), 0);
        assert_eq!(capacity.give_shared(limit), limit);
        assert_eq!(drain(&mut owners[1], &capacity), limit);
    }
}

#[test]
fn a_take_collects_from_wherever_permits_are() {
    let capacity = Capacity::new(100);
    let mut owners = [(); 3].map(|()| RecordOwner::new(&capacity));
    assert_eq!(owners[0].take(&capacity, 0), 0);
    assert_eq!(owners[0].take(&capacity, 90), 90);
    owners[1].put_back(30);
    owners[2].put_back(20);
    assert_eq!(owners[0].take(&capacity, 55), 55);
    assert_eq!(owners[0].take(&capacity, 10), 5);
    assert_eq!(owners[0].take(&capacity, 0), 0);
    assert_eq!(capacity.free(), 0);
}

#[test]
fn a_record_of_nobody_keeps_its_permits() {
    let capacity = Capacity::new(100);
    for _ in 0..3 {
        let mut owner = RecordOwner::new(&capacity);
        assert_eq!(owner.take(&capacity, 10), 10);
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
    assert_eq!(owners[0].take_all(&capacity, 0), Ok(()));
    for owner in &mut owners {
        assert_eq!(owner.take(&capacity, 100), 100);
        owner.put_back(40);
    }
    let free = capacity.free();
    assert_eq!(free, 820);
    assert_eq!(owners[0].take_all(&capacity, free + 1), Err(0));
    assert_eq!(capacity.free(), free);
    assert_eq!(owners[0].take_all(&capacity, free), Ok(()));
    assert_eq!(capacity.free(), 0);
}

/// Two that push take from two records, though one has enough for both.
#[test]
fn a_source_that_another_takes_from_is_left() {
    let capacity = Capacity::new(100);
    let mut owners = [(); 4].map(|()| RecordOwner::new(&capacity));
    assert_eq!(owners[0].take(&capacity, 100), 100);
    owners[2].put_back(50);
    owners[3].put_back(50);
    for round in 0..40 {
        for owner in &mut owners[..2] {
            let took_seen = owner.take_seen(1);
            assert!(took_seen || round < 5, "both have a source of their own");
            assert!(took_seen || owner.take(&capacity, 1) == 1);
        }
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
        (0..1000).for_each(|_| assert_eq!(owner.take(&capacity, 1), 1));
        assert_eq!(capacity.free(), limit - 1000);
        owner.put_back(1000);
        assert_eq!(capacity.free(), limit);
        let took = owner.take(&capacity, usize::MAX);
        assert_eq!(took, limit.min(super::MAX_CAPACITY));
    }
}

#[test]
fn searches_skip_retired_records() {
    let capacity = Capacity::new(4_000);
    let mut owners: Vec<_> = (0..1_000).map(|_| RecordOwner::new(&capacity)).collect();
    for owner in &mut owners {
        assert_eq!(owner.take(&capacity, 4), 4);
        owner.put_back(3);
    }
    assert_eq!(capacity.records.used().from(0).count(), 1_000);
    for owner in owners {
        owner.leave(&capacity);
    }
    assert_eq!(capacity.free(), 3_000);
    assert_eq!(drain_shared(&capacity), 3_000);
    assert!(capacity.records.used().from(0).count() < 10);
    assert_eq!(RecordOwner::new(&capacity).take(&capacity, 1), 0);
}
