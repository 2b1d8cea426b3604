//! Shards and counters of handles that are dropped, against aborts, checks for items, and reacquisition.
//!
//! The endpoints are warmed up first, as in `empty.rs`.

use super::*;
use crate::raw::registry::strict::Remainder;

fn endpoint(shards: &Arc<Shards<u32>>) -> Endpoint<u32> {
    Endpoint::new(Arc::clone(shards))
}

/// Two endpoints: the first one has the first shard, and the second one holds the only item of that.
fn held(shards: &Arc<Shards<u32>>) -> (Endpoint<u32>, Endpoint<u32>) {
    let (mut owner, mut holder) = (endpoint(shards), endpoint(shards));
    owner.push(1);
    assert!(holder.hold());
    (owner, holder)
}

#[test]
fn an_abort_against_the_retirement() {
    model(|| {
        let shards = Arc::new(Shards::new(false));
        let (owner, mut holder) = held(&shards);
        let leaver = thread::spawn(move || drop(owner));
        holder.abort(UNBORROWED);
        assert!(!shards.is_empty(), "an item was given back");
        leaver.join().unwrap();
        assert_eq!(shards.ready(), 1);
        assert_eq!(holder.pop(), Some(1));
        assert_eq!(holder.pop(), None);
        assert_eq!(shards.count(), 0);
    });
}

#[test]
fn an_abort_against_the_next_owner() {
    model(|| {
        let shards = Arc::new(Shards::new(false));
        let (owner, mut holder) = held(&shards);
        drop(owner);
        assert_eq!(shards.count(), 0);
        let mut next = endpoint(&shards);
        let pusher = thread::spawn({
            let shards = Arc::clone(&shards);
            move || {
                next.push(2);
                assert!(shards.pop_one().is_some());
                next
            }
        });
        holder.abort(UNBORROWED);
        drop(pusher.join().unwrap());
        assert!(shards.pop_one().is_some(), "two items were put here");
    });
}

#[test]
fn two_who_would_retire_a_shard() {
    model(|| {
        let shards = Arc::new(Shards::new(false));
        let [owner] = used_up(&shards);
        let leaver = thread::spawn(move || drop(owner));
        shards.vacate(1);
        leaver.join().unwrap();
        assert_eq!(shards.count(), 0);
        let mut next = endpoint(&shards);
        next.push(1);
        assert_eq!(next.pop(), Some(1));
    });
}

#[test]
fn never_empty_while_a_push_precedes_the_retirement() {
    model(|| {
        let shards = Arc::new(Shards::new(false));
        let [mut popper, mut pusher] = used_up(&shards);
        popper.push(1);
        let mover = thread::spawn(move || {
            pusher.push(2);
            assert_eq!(popper.pop(), Some(1));
            drop(popper);
            pusher
        });
        assert!(
            !shards.is_empty(),
            "one of two items was ready all the time"
        );
        drop(mover.join().unwrap());
    });
}

#[test]
fn never_empty_while_a_shard_is_acquired_again() {
    model(|| {
        let shards = Arc::new(Shards::new(false));
        let [first, mut popper] = used_up(&shards);
        popper.push(1);
        drop(first);
        let mut pusher = endpoint(&shards);
        let mover = thread::spawn(move || {
            pusher.push(2);
            assert_eq!(popper.pop(), Some(1));
            (pusher, popper)
        });
        assert!(
            !shards.is_empty(),
            "one of two items was ready all the time"
        );
        drop(mover.join().unwrap());
    });
}

#[test]
fn never_drained_while_a_holder_gives_back_and_leaves() {
    model(|| {
        let shards = Arc::new(Shards::new(false));
        let (owner, holder) = held(&shards);
        let leaver = thread::spawn(move || drop(holder));
        let left = shards.left_when_closed(|| true, || true);
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
            pusher.producer.retire(&pusher.shard);
            pusher.shard.reopen();
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

#[test]
fn a_consumer_with_an_old_tail_finds_the_first_page_after_the_vacation() {
    model(|| {
        let (shard, mut pusher) = filled([100, 101]);
        let mut popper = Popper::new(&shard);
        let next = thread::spawn(move || {
            let mut other = Popper::new(&pusher.shard);
            assert!(other.drain().len() <= 2);
            drop(other);
            pusher.producer.vacate(&pusher.shard);
            pusher.producer.retire(&pusher.shard);
            pusher.shard.reopen();
            pusher.push(1);
            pusher
        });
        popper.pop();
        drop(next.join().unwrap());
    });
}
