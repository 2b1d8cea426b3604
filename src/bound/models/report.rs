//! Models of the reports: no pusher sleeps while a permit is free.

use super::*;
use loom::sync::atomic::{fence, AtomicUsize};

/// The number of pushers that found no permit and sleep, and of those that were woken.
#[derive(Default)]
struct Sleepers {
    asleep: AtomicUsize,
    woken: AtomicUsize,
}

impl Sleepers {
    /// Enters the wait queue, and sleeps unless it finds a permit.
    fn enter(&self, bank: &Bank) {
        // ORDERING: Relaxed, all of them; ordered by the fences, like those of a wait queue.
        self.asleep.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if bank.take_shared() == 1 {
            self.asleep.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Wakes one sleeper for each permit reported.
    fn wake(&self, permits: usize) {
        fence(Ordering::SeqCst);
        let asleep = self.asleep.load(Ordering::Relaxed);
        self.woken.fetch_add(permits.min(asleep), Ordering::Relaxed);
    }

    /// Whether no permit is free beside a sleeper once all woken pushers have taken theirs.
    fn is_served(&self, bank: &Bank) -> bool {
        let asleep = self.asleep.load(Ordering::Relaxed);
        let woken = self.woken.load(Ordering::Relaxed);
        asleep <= woken || bank.capacity.free() <= woken
    }
}

/// Two sleeping pushers, whose tasks share a thread, against a call that returns how many permits
/// it makes available to others.
fn two_pushers(prepare: fn() -> Owner, call: fn(Owner) -> usize) {
    pushers(2, prepare, call);
}

fn pushers(count: usize, prepare: fn() -> Owner, call: fn(Owner) -> usize) {
    model(move || {
        let mut owner = prepare();
        owner.unsaid();
        let bank = Arc::clone(&owner.bank);
        let sleepers = Arc::new(Sleepers::default());
        let pushers = spawn({
            let (bank, sleepers) = (Arc::clone(&bank), Arc::clone(&sleepers));
            move || (0..count).for_each(|_| sleepers.enter(&bank))
        });
        sleepers.wake(call(owner));
        pushers.join().unwrap();
        let served = sleepers.is_served(&bank);
        assert!(served, "a pusher sleeps beside a free permit");
    });
}

/// One permit is in the free count of the record and one in its range.
fn one_in_each() -> Owner {
    let bank = Bank::new(4);
    let mut owner = Owner::with(&bank, 1);
    assert_eq!(bank.take_many(2), 2);
    owner.give(1);
    owner
}

/// One permit is in the free count of the record, and one in the pool.
fn one_in_the_pool_too() -> Owner {
    let bank = Bank::new(3);
    let mut owner = Owner::new(&bank);
    assert_eq!(owner.take(2), 2);
    owner.give(1);
    owner
}

/// Three permits are in the range of the record, which a revoker has marked.
fn three_marked() -> Owner {
    let bank = Bank::new(8);
    let owner = Owner::with(&bank, 3);
    assert_eq!(bank.take_many(4), 4);
    bank.capacity.records.get(0).range.mark();
    owner
}

/// One permit is in the free count of the record, and nothing in the pool.
fn one_in_the_free_count() -> Owner {
    let bank = Bank::new(2);
    let mut owner = Owner::new(&bank);
    assert_eq!(owner.take(2), 2);
    assert_eq!(owner.give_tidily(1), 1);
    owner
}

#[test]
fn giving_back_reports_the_permits_moved_to_the_pool() {
    two_pushers(one_in_the_free_count, |mut owner| owner.give_tidily(1));
}

#[test]
fn taking_one_reports_the_rest_of_a_marked_range() {
    two_pushers(three_marked, |mut owner| {
        owner.take(1);
        owner.unsaid()
    });
}

#[test]
fn taking_one_reports_the_permits_kept() {
    pushers(3, four_in_the_pool, |mut owner| {
        owner.take(1);
        owner.unsaid()
    });
}

/// Four permits are in the pool.
fn four_in_the_pool() -> Owner {
    Owner::new(&Bank::new(4))
}

#[test]
fn a_batch_that_fails_reports_its_range() {
    two_pushers(one_in_each, |mut owner| {
        owner.take_all(2);
        owner.unsaid()
    });
}

#[test]
fn a_batch_that_fails_reports_what_it_moves_to_the_pool() {
    two_pushers(one_in_the_pool_too, |mut owner| {
        owner.take_all(2);
        owner.unsaid()
    });
}
