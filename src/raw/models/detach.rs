//! Idle shards that are detached, against their owners, aborts and consumers.
//!
//! The endpoints are warmed up first, as in `empty.rs`.

use super::*;
use crate::raw::shard::joint::{JointRecord, Tails};
use crate::raw::{commit_together, Intake, Party};
use crate::sync::model::model_of;

/// Shards that were idle when they were detached last, with endpoints that own one each.
fn idle<const N: usize>() -> (Arc<Shards<u32>>, [Endpoint<u32>; N]) {
    let shards = Arc::new(Shards::new(false));
    let endpoints = used_up(&shards);
    shards.detach_idle();
    (shards, endpoints)
}

/// Detached shards with endpoints that own one each.
fn detached<const N: usize>() -> (Arc<Shards<u32>>, [Endpoint<u32>; N]) {
    let (shards, endpoints) = idle();
    shards.detach_idle();
    assert_eq!(shards.count(), 0);
    (shards, endpoints)
}

/// Detaches idle shards in another thread.
fn detaching(shards: &Arc<Shards<u32>>) -> thread::JoinHandle<()> {
    let shards = Arc::clone(shards);
    thread::spawn(move || shards.detach_idle())
}

#[test]
fn a_pusher_finds_its_item_while_its_shard_is_detached() {
    model(|| {
        let (shards, [mut pusher]) = idle();
        let detacher = detaching(&shards);
        pusher.push(1);
        assert!(is_found(&shards));
        detacher.join().unwrap();
        assert!(is_found(&shards));
        assert_eq!(shards.pop_one(), Some(1));
    });
}

#[test]
fn an_intake_finds_what_was_pushed() {
    model(|| {
        let (shards, [mut pusher]) = idle();
        let (mut intake, mut items) = (Intake::new(Arc::clone(&shards), None), Vec::new());
        intake.take_arrived(&mut items);
        let detacher = detaching(&shards);
        pusher.push(1);
        intake.take_arrived(&mut items);
        let items = items.into_iter().map(|entry| entry.item);
        assert!(items.eq([1]));
        detacher.join().unwrap();
    });
}

#[test]
fn a_push_to_a_detached_shard() {
    model(|| {
        let (shards, [mut pusher]) = detached();
        let popper = thread::spawn({
            let shards = Arc::clone(&shards);
            move || shards.pop_one()
        });
        pusher.push(1);
        let theirs = popper.join().unwrap();
        assert!(theirs.is_some() || shards.pop_one().is_some());
    });
}

/// The first item was attached, taken, and its shard detached again before the owner has taken the mark off.
#[test]
fn a_second_push_is_found_after_the_first_was_taken() {
    model_of(1, || {
        let (shards, [mut pusher]) = detached();
        let taker = thread::spawn({
            let shards = Arc::clone(&shards);
            move || {
                let item = shards.pop_one();
                shards.detach_idle();
                shards.detach_idle();
                item
            }
        });
        pusher.push(1);
        pusher.push(2);
        let theirs = taker.join().unwrap();
        let mine = std::iter::from_fn(|| shards.pop_one());
        assert_eq!(sorted(mine.chain(theirs)), [1, 2]);
    });
}

/// In the models nothing keeps two threads from detaching at once.
#[test]
fn two_who_detach() {
    model_of(1, || {
        let (shards, [mut pusher]) = idle();
        let pusher = thread::spawn(move || {
            pusher.push(1);
            pusher.push(2);
            pusher
        });
        let detacher = detaching(&shards);
        let mut popper = Endpoint::new(Arc::clone(&shards));
        let first = popper.pop();
        shards.detach_idle();
        detacher.join().unwrap();
        let _pusher = pusher.join().unwrap();
        let items = std::iter::from_fn(|| popper.pop());
        assert_eq!(sorted(items.chain(first)), [1, 2]);
    });
}

/// Whether walks find the first shard.
fn is_found(shards: &Shards<u32>) -> bool {
    shards.attached().from(1).next() == Some(1)
}

/// A cursor on the first shard that has entered the segment of the next item, and the owner of the shard.
fn entered(shards: &Arc<Shards<u32>>) -> (Cursor<u32>, Endpoint<u32>) {
    let mut owner = Endpoint::new(Arc::clone(shards));
    owner.push(100);
    let mut cursor = shards.cursor(1);
    cursor.enter();
    assert_eq!(cursor.take_pushed(&mut None, 1), Take::Got(1));
    shards.detach_idle();
    (cursor, owner)
}

/// A consumer on the shard takes the first item of a commit before the owner has attached the shard.
#[test]
fn a_consumer_that_takes_one_item_finds_the_others() {
    model(|| {
        let shards = Arc::new(Shards::new(false));
        let (mut cursor, mut pusher) = entered(&shards);
        pusher.stage_one(1);
        pusher.stage(2);
        let detacher = detaching(&shards);
        let pusher = thread::spawn(move || {
            pusher.commit(UNBORROWED);
            pusher
        });
        let took = cursor.take_pushed(&mut None, 1) == Take::Got(1);
        assert!(!took || is_found(&shards));
        detacher.join().unwrap();
        let _pusher = pusher.join().unwrap();
        assert!(is_found(&shards));
        cursor.flush();
    });
}

#[test]
fn a_consumer_that_sees_an_item_finds_it() {
    model(|| {
        let (shards, [mut pusher]) = idle();
        let detacher = detaching(&shards);
        let pusher = thread::spawn(move || {
            pusher.push(1);
            pusher
        });
        assert!(shards.looks_empty(1) || is_found(&shards));
        detacher.join().unwrap();
        let _pusher = pusher.join().unwrap();
        assert!(is_found(&shards));
    });
}

/// An endpoint that holds the only item of the first endpoint's shard.
fn holding(shards: &Arc<Shards<u32>>, owner: &mut Endpoint<u32>) -> Endpoint<u32> {
    let mut holder = Endpoint::new(Arc::clone(shards));
    owner.push(1);
    assert!(holder.hold());
    shards.detach_idle();
    holder
}

#[test]
fn an_aborter_finds_its_item() {
    model(|| {
        let (shards, [mut owner]) = idle();
        let mut holder = holding(&shards, &mut owner);
        let detacher = detaching(&shards);
        holder.abort(UNBORROWED);
        assert!(!shards.is_empty());
        detacher.join().unwrap();
        assert_eq!(shards.pop_one(), Some(1));
    });
}

/// The abort adds the shard; then the owner attaches it, its item is taken, and it is detached again before the abort
/// links its runs.
#[test]
fn an_abort_to_a_shard_that_is_detached_again() {
    model(|| {
        let (shards, [mut owner]) = idle();
        let mut holder = holding(&shards, &mut owner);
        shards.detach_idle();
        let aborter = thread::spawn(move || {
            holder.abort(UNBORROWED);
            holder
        });
        owner.push(2);
        let first = owner.pop();
        shards.detach_idle();
        shards.detach_idle();
        drop(aborter.join().unwrap());
        let items = std::iter::from_fn(|| shards.pop_one());
        assert_eq!(sorted(items.chain(first)), [1, 2]);
    });
}

#[test]
fn an_item_that_is_taken_back() {
    model(|| {
        let (shards, [mut pusher]) = idle();
        let detacher = detaching(&shards);
        pusher.push(1);
        let back = pusher.retract();
        assert_eq!(back, Some(1));
        pusher.push(2);
        detacher.join().unwrap();
        assert_eq!(shards.pop_one(), Some(2));
        assert!(shards.is_empty());
    });
}

/// A shard changes its owner while it is detached.
#[test]
fn a_detached_shard_changes_its_owner() {
    model_of(1, || {
        let (shards, [leaver]) = idle();
        let detacher = detaching(&shards);
        drop(leaver);
        let mut next = Endpoint::new(Arc::clone(&shards));
        next.push(1);
        detacher.join().unwrap();
        assert!(is_found(&shards));
    });
}

/// The last item of a shard is taken while its owner leaves, and another thread detaches it.
#[test]
fn a_leaving_owner_frees_the_memory_of_a_detached_shard() {
    model_of(1, || {
        let (shards, [mut leaver]) = idle();
        leaver.push(1);
        let mut consumer = Endpoint::new(Arc::clone(&shards));
        assert_eq!(shards.count(), 1);
        let taker = thread::spawn({
            let shards = Arc::clone(&shards);
            move || {
                assert_eq!(consumer.pop(), Some(1));
                shards.detach_idle();
                shards.detach_idle();
                consumer
            }
        });
        drop(leaver);
        drop(taker.join().unwrap());
        let detached = shards.count() == 0;
        assert!(!detached || shards.records.get(1).is_retired());
        shards.vacate_all();
        assert!(shards.records.get(1).is_retired());
    });
}

impl Party for Endpoint<u32> {
    fn collect(&mut self, tails: &mut Tails) {
        Endpoint::collect(self, tails);
    }

    fn announce(&mut self, record: JointRecord) {
        Endpoint::announce(self, record);
    }

    fn conclude(&mut self) {
        Endpoint::conclude(self);
    }

    fn commit_held(&mut self) {
        Endpoint::commit_concluded(self, UNBORROWED);
    }
}

#[test]
fn a_consumer_of_a_joint_commit_finds_its_other_item() {
    model_of(1, || {
        let (left, mut a) = filled([100]);
        let mut popper = Popper::new(&left);
        assert_eq!(popper.pop(), Some(100));
        let (right, [mut b]) = idle();
        a.stage(1);
        b.stage_one(2);
        let detacher = detaching(&right);
        let committer = thread::spawn(move || {
            drop(commit_together(&mut [&mut a, &mut b]));
            (a, b)
        });
        assert!(popper.pop().is_none() || is_found(&right));
        detacher.join().unwrap();
        let _parties = committer.join().unwrap();
        assert!(is_found(&right));
    });
}

#[test]
fn a_single_commit_is_found() {
    model(|| {
        let (shards, [mut pusher]) = idle();
        pusher.stage_one(1);
        let detacher = detaching(&shards);
        drop(commit_together(&mut [&mut pusher]));
        assert!(is_found(&shards));
        detacher.join().unwrap();
        assert!(is_found(&shards));
    });
}
