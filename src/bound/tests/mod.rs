//! Single-threaded tests of permits.

mod stress;

use super::{Capacity, PermitCache, Took};

/// Takes permits one by one until none is free.
fn drain(cache: &mut PermitCache, capacity: &Capacity) -> usize {
    std::iter::from_fn(|| cache.take_one(capacity, true)).count()
}

#[test]
fn a_cache_takes_the_limit_and_no_more() {
    for limit in [1, 2, 3, 7, 64, 1000] {
        let capacity = Capacity::new(limit);
        let mut cache = PermitCache::new(&capacity);
        for round in 0..3 {
            assert_eq!(drain(&mut cache, &capacity), limit, "round {round}");
            assert_eq!(capacity.free(), 0);
            (0..limit).for_each(|_| assert!(cache.give(&capacity, 1) > 0));
            assert_eq!(capacity.free(), limit);
        }
    }
}

#[test]
fn permits_taken_ahead_are_found_by_others() {
    for limit in [1, 2, 3, 7, 64, 1000] {
        let capacity = Capacity::new(limit);
        let mut caches = [(); 3].map(|()| PermitCache::new(&capacity));
        let ahead: Vec<_> = caches
            .iter_mut()
            .filter_map(|cache| cache.take_one(&capacity, true))
            .collect();
        assert_eq!(ahead.len(), limit.min(3));
        let out = ahead.len();
        assert_eq!(capacity.free(), limit - out);
        let rest = drain(&mut caches[0], &capacity);
        assert_eq!(rest, limit - out);
        assert_eq!(caches[1].give(&capacity, out), out);
        assert_eq!(capacity.take_shared(usize::MAX), out);
        assert_eq!(caches[2].take_one(&capacity, true), None);
        assert_eq!(capacity.give_shared(limit), limit);
        assert_eq!(drain(&mut caches[1], &capacity), limit);
    }
}

#[test]
fn a_call_without_a_cache_revokes_what_caches_hold() {
    let capacity = Capacity::new(1000);
    let mut caches = [(); 40].map(|()| PermitCache::new(&capacity));
    for cache in &mut caches {
        assert!(cache.take_one(&capacity, true).is_some());
    }
    let took = capacity.take_shared(1000);
    assert_eq!(took, 960);
    assert!(caches
        .iter_mut()
        .all(|cache| cache.take_one(&capacity, true).is_none()));
}

#[test]
fn batches_come_from_the_cache_and_from_elsewhere() {
    let capacity = Capacity::new(100);
    let mut cache = PermitCache::new(&capacity);
    assert_eq!(cache.take(&capacity, 0).got, 0);
    let took = cache.take(&capacity, 1);
    assert_eq!(
        took,
        Took {
            got: 1,
            visible: 24
        }
    );
    assert_eq!(
        cache.take(&capacity, 20),
        Took {
            got: 20,
            visible: 0
        }
    );
    assert_eq!(cache.take(&capacity, 60).got, 60);
    assert_eq!(
        cache.take(&capacity, 60),
        Took {
            got: 19,
            visible: 0
        }
    );
    assert_eq!(cache.take(&capacity, 0).got, 0);
    assert_eq!(capacity.free(), 0);
}

#[test]
fn leaving_gives_everything_back() {
    let capacity = Capacity::new(100);
    for _ in 0..3 {
        let mut cache = PermitCache::new(&capacity);
        assert!(cache.take(&capacity, 10).got == 10);
        assert_eq!(cache.give(&capacity, 10), 10);
        assert_eq!(capacity.free(), 100);
        assert_eq!(cache.leave(&capacity), 15);
        assert_eq!(capacity.take_shared(100), 100);
        assert_eq!(capacity.give_shared(100), 100);
    }
    assert_eq!(capacity.records.len(), 1);
}

#[test]
fn leaving_reports_the_permits_that_reach_the_pool() {
    let capacity = Capacity::new(400);
    let mut cache = PermitCache::new(&capacity);
    assert_eq!(cache.take(&capacity, 10).got, 10);
    assert_eq!(cache.give(&capacity, 10), 10);
    assert_eq!(cache.left(), 90);
    assert_eq!(cache.leave(&capacity), 100, "all were in hand for a moment");
    assert_eq!(capacity.pool.snapshot().free, 400);
}

/// A thief marks the range, and finds the positions used that the owner has only tried.
#[test]
fn permits_tried_in_vain_are_given_back() {
    let capacity = Capacity::new(400);
    let mut cache = PermitCache::new(&capacity);
    assert_eq!(cache.take(&capacity, 10).got, 10);
    let ahead = cache.left();
    assert!(ahead > 0);
    capacity.records.get(0).range.mark();
    assert!(!cache.take_ahead(ahead));
    assert_eq!(capacity.free(), 390 - ahead);
    assert_eq!(cache.give_ahead(&capacity), ahead);
    assert_eq!(capacity.free(), 390);
}

#[test]
fn a_batch_takes_all_or_nothing_from_wherever_it_is() {
    let capacity = Capacity::new(1000);
    let mut caches = [(); 3].map(|()| PermitCache::new(&capacity));
    for cache in &mut caches {
        assert_eq!(cache.take(&capacity, 100).got, 100);
        assert_eq!(cache.give(&capacity, 40), 40);
    }
    let free = capacity.free();
    assert_eq!(free, 820);
    assert_eq!(caches[0].take_all(&capacity, free + 1).got, 0);
    assert_eq!(capacity.free(), free);
    let took = caches[0].take_all(&capacity, free);
    assert_eq!(took, Took::all(free));
    assert_eq!(capacity.free(), 0);
}

#[test]
fn a_batch_uses_permits_taken_ahead() {
    let capacity = Capacity::new(1000);
    let mut cache = PermitCache::new(&capacity);
    assert_eq!(cache.take_all(&capacity, 0), Took::all(0));
    let took = cache.take_all(&capacity, 10);
    assert_eq!((took.got, took.visible), (10, cache.left()));
    let ahead = cache.left();
    assert_eq!(cache.take_all(&capacity, ahead), Took::all(ahead));
    assert_eq!(cache.left(), 0);
}

#[test]
fn permits_given_back_by_a_consumer_reach_the_pool() {
    let capacity = Capacity::new(1000);
    let mut pusher = PermitCache::new(&capacity);
    assert_eq!(pusher.take(&capacity, 1000).got, 1000);
    let mut popper = PermitCache::new(&capacity);
    let wakes: Vec<_> = (0..64).map(|_| popper.give(&capacity, 1)).collect();
    assert!(wakes[..63].iter().all(|wakes| *wakes == 1));
    assert_eq!((wakes[63], capacity.pool.snapshot().free), (64, 64));
}

#[test]
fn nothing_is_taken_ahead_when_few_permits_are_free() {
    let capacity = Capacity::new(10);
    let mut caches = [(); 5].map(|()| PermitCache::new(&capacity));
    assert_eq!(caches[0].take_one(&capacity, true), Some(0));
    assert_eq!(caches[0].left(), 0);
}

#[test]
fn all_caches_together_take_ahead_a_part_of_the_capacity() {
    for handles in [1, 2, 4, 16] {
        let capacity = Capacity::new(1024);
        let mut caches: Vec<_> = (0..handles).map(|_| PermitCache::new(&capacity)).collect();
        for cache in &mut caches {
            assert!(cache.take_one(&capacity, true).is_some());
        }
        let ahead: usize = caches.iter().map(PermitCache::left).sum();
        assert!(ahead <= 1024 / 4, "{handles} handles");
        assert!(ahead >= 1024 / 8, "{handles} handles");
    }
}

#[test]
fn a_revocation_takes_half_of_a_range_for_the_next_pushes() {
    let capacity = Capacity::new(400);
    let mut owner = PermitCache::new(&capacity);
    assert!(owner.take_one(&capacity, true).is_some());
    assert_eq!(capacity.take_shared(300), 300);
    let left = owner.left();
    let mut thief = PermitCache::new(&capacity);
    assert_eq!(thief.take_one(&capacity, true), Some(left / 2 - 1));
    assert_eq!(drain(&mut owner, &capacity), left - 1);
    assert_eq!(capacity.free(), 0);
}

#[test]
fn nothing_is_taken_ahead_where_others_wait() {
    let capacity = Capacity::new(1024);
    let mut cache = PermitCache::new(&capacity);
    assert_eq!(cache.take_one(&capacity, false), Some(0));
    assert_eq!(cache.left(), 0);
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
        let mut cache = PermitCache::new(&capacity);
        (0..1000).for_each(|_| assert!(cache.take_one(&capacity, true).is_some()));
        assert_eq!(capacity.free(), limit - 1000);
        assert_eq!(cache.give(&capacity, 1000), 1000);
        assert_eq!(capacity.free(), limit);
        let took = cache.take(&capacity, usize::MAX);
        assert_eq!(took.got, limit.min(super::MAX_CAPACITY));
    }
}

#[test]
fn searches_skip_retired_records() {
    let capacity = Capacity::new(4_000);
    let mut caches: Vec<_> = (0..1_000).map(|_| PermitCache::new(&capacity)).collect();
    for cache in &mut caches {
        assert_eq!(cache.take(&capacity, 4).got, 4);
        assert_eq!(cache.give(&capacity, 3), 3);
    }
    assert_eq!(capacity.records.used().from(0).count(), 1_000);
    for mut cache in caches {
        assert_eq!(cache.leave(&capacity), 0, "it was reported before");
    }
    assert_eq!(capacity.free(), 3_000);
    assert_eq!(capacity.take_shared(4_000), 3_000);
    assert!(capacity.records.used().from(0).count() < 10);
    let mut cache = PermitCache::new(&capacity);
    assert_eq!(cache.take(&capacity, 1).got, 0);
}
