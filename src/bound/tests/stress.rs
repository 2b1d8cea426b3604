//! Stress tests: threads take permits and give them back, and all permits are counted.

use super::super::{Capacity, RecordOwner};
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
    /// Uses one record all the time.
    Both,
    /// Puts permits into the pool.
    Shared,
    /// Releases its record now and then.
    Visitor,
}

fn work(role: Role, capacity: &Capacity, out: &AtomicUsize, mut seed: u64) {
    let took = |count: usize| {
        // ORDERING: SeqCst, all of `out`; a count that is exact between a give and a take.
        let before = out.fetch_add(count, Ordering::SeqCst);
        assert!(before + count <= capacity.limit(), "more than the limit");
    };
    let gives = |count: usize| out.fetch_sub(count, Ordering::SeqCst);
    let mut owner = RecordOwner::new(capacity);
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
                _ => owner.put_back(count),
            }
            continue;
        }
        let got = match role {
            Role::Shared => usize::from(capacity.take_shared()),
            _ if choice % 8 < 2 => owner.take(capacity, batch, true),
            _ if choice % 8 == 3 => batch * usize::from(owner.take_all(capacity, batch)),
            _ => owner.take(capacity, 1, true),
        };
        took(got);
        mine += got;
        if matches!(role, Role::Visitor) && choice % 64 == 1 {
            owner.leave(capacity);
            owner = RecordOwner::new(capacity);
        }
    }
    gives(mine);
    owner.put_back(mine);
    if matches!(role, Role::Visitor) {
        owner.leave(capacity);
    }
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
        assert_eq!(
            super::drain(&mut RecordOwner::new(&capacity), &capacity),
            limit
        );
    }
}

/// No thread ever has more than one permit, so one is free for a thread that has none.
#[test]
fn a_moving_permit_is_found() {
    let movers = 3;
    let capacity = Capacity::new(movers);
    let start = Barrier::new(movers);
    thread::scope(|scope| {
        for _ in 0..movers {
            scope.spawn(|| {
                let mut owner = RecordOwner::new(&capacity);
                start.wait();
                for _ in 0..rounds() {
                    assert_eq!(owner.take(&capacity, 1, true), 1);
                    owner.put_back(1);
                }
            });
        }
    });
    assert_eq!(capacity.free(), movers);
}
