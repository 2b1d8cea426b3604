//! Stress tests: threads take permits and give them back, and all permits are counted.

use super::super::{Capacity, PermitCache};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Barrier;
use std::thread;

fn rounds() -> usize {
    let scale = std::env::var("REQUEUE_STRESS").ok();
    let rounds = if cfg!(miri) { 30 } else { 20_000 };
    rounds * scale.map_or(1, |scale| scale.parse().unwrap())
}

/// What a thread of the stress test does.
#[derive(Clone, Copy)]
enum Role {
    /// Uses one cache all the time.
    Both,
    /// Uses no cache.
    Shared,
    /// Releases its cache now and then.
    Visitor,
}

fn work(role: Role, capacity: &Capacity, out: &AtomicUsize, mut seed: u64) {
    let took = |count: usize| {
        // ORDERING: SeqCst, all of `out`; a count that is exact between a give and a take.
        let before = out.fetch_add(count, Ordering::SeqCst);
        assert!(before + count <= capacity.limit(), "more than the limit");
    };
    let gives = |count: usize| out.fetch_sub(count, Ordering::SeqCst);
    let mut cache = PermitCache::new(capacity);
    let mut mine = 0;
    for _ in 0..rounds() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let choice = (seed >> 33) as usize;
        let batch = choice / 8 % 5;
        if choice % 2 == 0 && mine > 0 {
            let count = mine.min(1 + batch);
            gives(count);
            mine -= count;
            match role {
                Role::Shared => assert_eq!(capacity.give_shared(count), count),
                _ => assert!(cache.give(capacity, count) >= count),
            }
            continue;
        }
        let got = match role {
            Role::Shared => capacity.take_shared(batch),
            _ if choice % 8 < 2 => cache.take(capacity, batch).got,
            _ if choice % 8 == 3 => take_all(&mut cache, capacity, batch),
            _ => usize::from(cache.take_one(capacity, true).is_some()),
        };
        took(got);
        mine += got;
        if matches!(role, Role::Visitor) && choice % 64 == 1 {
            let _ = cache.leave(capacity);
            cache = PermitCache::new(capacity);
        }
    }
    gives(mine);
    assert!(cache.give(capacity, mine) >= mine);
    if matches!(role, Role::Visitor) {
        let _ = cache.leave(capacity);
    }
}

fn take_all(cache: &mut PermitCache, capacity: &Capacity, want: usize) -> usize {
    let got = cache.take_all(capacity, want).got;
    assert!(got == 0 || got == want);
    got
}

#[test]
fn no_permit_is_doubled_or_lost_under_stress() {
    for limit in [1, 2, 7, 64, 1000] {
        let (capacity, out) = (Capacity::new(limit), AtomicUsize::new(0));
        let roles = [Role::Both, Role::Both, Role::Shared, Role::Visitor];
        thread::scope(|scope| {
            for (seed, role) in (1..).zip(roles) {
                let (capacity, out) = (&capacity, &out);
                scope.spawn(move || work(role, capacity, out, seed));
            }
        });
        assert_eq!(out.load(Ordering::SeqCst), 0);
        assert_eq!(capacity.free(), limit);
        assert_eq!(capacity.take_shared(limit + 1), limit);
    }
}

/// No thread ever has more than one permit, in hand or taken, so one is free for a thread that has none.
#[test]
fn a_moving_permit_is_found() {
    let movers = 3;
    let capacity = Capacity::new(movers);
    let start = Barrier::new(movers);
    thread::scope(|scope| {
        for _ in 0..movers {
            scope.spawn(|| {
                let mut cache = PermitCache::new(&capacity);
                start.wait();
                for _ in 0..rounds() {
                    assert_eq!(cache.take_one(&capacity, true), Some(0));
                    assert!(cache.give(&capacity, 1) > 0);
                }
            });
        }
    });
    assert_eq!(capacity.free(), movers);
}
