//! Shards and desks that are retired, against those who give back, look, or lease them again.
//!
//! What a thread does is warmed up first, as in `empty.rs`.

use super::*;
use crate::raw::strict::Remainder;

fn seat(lanes: &Arc<Lanes<u32>>) -> Seat<u32> {
    Seat::new(Arc::clone(lanes))
}

/// A seat whose shard is empty.
fn used_up(lanes: &Arc<Lanes<u32>>) -> Seat<u32> {
    let mut seat = seat(lanes);
    seat.push(100);
    assert_eq!(seat.pop(), Some(100));
    seat
}

/// The first shard is that of the first seat, and the second seat holds its only item.
fn held(lanes: &Arc<Lanes<u32>>) -> (Seat<u32>, Seat<u32>) {
    let (mut owner, mut holder) = (seat(lanes), seat(lanes));
    owner.push(1);
    assert!(holder.hold());
    (owner, holder)
}

#[test]
fn an_abort_against_the_retirement() {
    model(|| {
        let lanes = Arc::new(Lanes::new(false));
        let (owner, mut holder) = held(&lanes);
        let leaver = thread::spawn(move || drop(owner));
        holder.abort(UNBORROWED);
        assert!(!lanes.is_empty(), "an item was given back");
        leaver.join().unwrap();
        assert_eq!(lanes.ready(), 1);
        assert_eq!(holder.pop(), Some(1));
        assert_eq!(holder.pop(), None);
        assert_eq!(lanes.count(), 1);
    });
}

#[test]
fn an_abort_against_the_next_lease() {
    model(|| {
        let lanes = Arc::new(Lanes::new(false));
        let (owner, mut holder) = held(&lanes);
        drop(owner);
        assert_eq!(lanes.count(), 1);
        let mut next = seat(&lanes);
        let pusher = thread::spawn(move || {
            next.stage_one(2);
            next
        });
        holder.abort(UNBORROWED);
        assert!(!lanes.is_empty(), "an item was given back");
        drop(pusher.join().unwrap());
        assert_eq!(lanes.pop(false), Some(1));
    });
}

#[test]
fn two_who_would_retire_a_shard() {
    model(|| {
        let lanes = Arc::new(Lanes::new(false));
        let owner = used_up(&lanes);
        let leaver = thread::spawn(move || drop(owner));
        lanes.vacate(0);
        leaver.join().unwrap();
        assert_eq!(lanes.count(), 1);
        let mut next = seat(&lanes);
        next.push(1);
        assert_eq!(next.pop(), Some(1));
    });
}

#[test]
fn never_empty_while_a_push_precedes_the_retirement() {
    model(|| {
        let lanes = Arc::new(Lanes::new(false));
        let (mut popper, mut pusher) = (used_up(&lanes), used_up(&lanes));
        popper.push(1);
        let mover = thread::spawn(move || {
            pusher.push(2);
            assert_eq!(popper.pop(), Some(1));
            drop(popper);
            pusher
        });
        assert!(!lanes.is_empty(), "one of two items was ready all the time");
        drop(mover.join().unwrap());
    });
}

#[test]
fn never_empty_while_a_shard_is_leased_again() {
    model(|| {
        let lanes = Arc::new(Lanes::new(false));
        let first = used_up(&lanes);
        let mut popper = used_up(&lanes);
        popper.push(1);
        drop(first);
        let mut pusher = seat(&lanes);
        let mover = thread::spawn(move || {
            pusher.push(2);
            assert_eq!(popper.pop(), Some(1));
            (pusher, popper)
        });
        assert!(!lanes.is_empty(), "one of two items was ready all the time");
        drop(mover.join().unwrap());
    });
}

#[test]
fn never_drained_while_a_holder_gives_back_and_leaves() {
    model(|| {
        let lanes = Arc::new(Lanes::new(false));
        let (owner, holder) = held(&lanes);
        let leaver = thread::spawn(move || drop(holder));
        let left = lanes.left_when_closed(|| true, || true);
        assert_ne!(left, Remainder::Nothing);
        leaver.join().unwrap();
        drop(owner);
    });
}

#[test]
fn a_consumer_stays_on_a_shard_that_goes_and_comes_back() {
    model(|| {
        let (shard, mut pusher) = filled([100]);
        let mut popper = Popper::new(&shard);
        assert_eq!(popper.pop(), Some(100));
        let next = thread::spawn(move || {
            pusher.producer.vacate(&pusher.shard);
            if pusher.producer.retire(&pusher.shard) {
                pusher.shard.reopen();
            }
            pusher.push(1);
            pusher.push(2);
            pusher.push(3);
            pusher
        });
        let mut items = popper.drain();
        let pusher = next.join().unwrap();
        items.extend(popper.drain());
        assert_eq!(items, [1, 2, 3]);
        drop(pusher);
    });
}
