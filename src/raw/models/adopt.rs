//! Adopted blocks.

use super::*;
use crate::raw::hold::position::HeldPosition;

/// A hold with a spare block and no other one, which may adopt.
fn adopter() -> Hold<u32> {
    let (shard, pusher) = filled([100]);
    let mut popper = Popper::new(&shard);
    let mut hold = Hold::new();
    popper.hold(&mut hold, 1);
    hold.give_back();
    assert_eq!(shard.front().take(&mut hold, 1), 1);
    hold.give_back();
    assert_eq!(popper.drain(), [100]);
    drop(pusher);
    hold
}

/// A shard to which one transaction has returned these items.
fn returned(items: impl IntoIterator<Item = u32>) -> (Arc<Shard<u32>>, Pusher) {
    let (shard, pusher) = filled(items);
    let mut hold = Hold::new();
    Popper::new(&shard).hold(&mut hold, 2);
    hold.give_back();
    (shard, pusher)
}

/// The number of deliveries of each item in the hold.
fn attempts(hold: &Hold<u32>) -> Vec<u32> {
    let mut position = HeldPosition::default();
    let next = || hold.next_at(&mut position);
    // SAFETY: held, and nobody else uses the slot.
    std::iter::from_fn(next)
        .map(|slot| unsafe { slot.delivery() }.attempts)
        .collect()
}

#[test]
fn a_visitor_may_still_read_what_is_taken() {
    model(|| {
        let (shard, pusher) = returned([1, 2]);
        let mut hold = adopter();
        let visitor = thread::spawn({
            let shard = Arc::clone(&shard);
            move || shard.front().oldest()
        });
        assert_eq!(shard.front().take_whole(&mut hold, 2), 2);
        assert_eq!(attempts(&hold), [2, 2]);
        visitor.join().unwrap();
        hold.give_back();
        assert_eq!(Popper::new(&shard).drain(), [1, 2]);
        drop(pusher);
    });
}

#[test]
fn a_block_is_adopted_once() {
    model(|| {
        let (shard, pusher) = returned([1]);
        let (mut mine, mut theirs) = (adopter(), adopter());
        let other = thread::spawn({
            let shard = Arc::clone(&shard);
            move || {
                let taken = shard.front().take_whole(&mut theirs, 1);
                assert_eq!(theirs.len(), taken);
                theirs.give_back();
            }
        });
        assert_eq!(shard.front().take_whole(&mut mine, 1), mine.len());
        mine.give_back();
        other.join().unwrap();
        assert_eq!(Popper::new(&shard).drain(), [1]);
        drop(pusher);
    });
}

#[test]
fn an_adopted_block_is_given_back_while_others_come() {
    model(|| {
        let (shard, pusher) = returned([1]);
        let mut hold = adopter();
        let consumer = thread::spawn({
            let mut popper = Popper::new(&shard);
            move || popper.drain()
        });
        for _ in 0..2 {
            shard.front().take_whole(&mut hold, 1);
            hold.give_back();
        }
        let mine = Popper::new(&shard).drain();
        let theirs = consumer.join().unwrap();
        assert_eq!(sorted(mine.into_iter().chain(theirs)), [1]);
        drop(pusher);
    });
}

#[test]
fn an_abort_may_cover_the_run() {
    model(|| {
        let (shard, pusher) = filled([1, 2]);
        let (mut first, mut second) = (Hold::new(), Hold::new());
        let mut popper = Popper::new(&shard);
        popper.hold(&mut first, 1);
        popper.hold(&mut second, 1);
        first.give_back();
        let mut hold = adopter();
        let aborter = thread::spawn(move || second.give_back());
        assert_eq!(shard.front().take_whole(&mut hold, 1), 1);
        aborter.join().unwrap();
        hold.give_back();
        assert_eq!(sorted(popper.drain()), [1, 2]);
        drop(pusher);
    });
}

#[test]
fn a_shard_may_be_about_to_be_detached() {
    model(|| {
        let (shard, pusher) = returned([1]);
        let mut hold = adopter();
        let closer = thread::spawn({
            let shard = Arc::clone(&shard);
            move || shard.front().close(1)
        });
        assert_eq!(shard.front().take_whole(&mut hold, 1), 1);
        let closed = closer.join().unwrap();
        assert_eq!(shard.front().is_detached(), closed);
        hold.give_back();
        assert!(!shard.front().is_detached());
        assert_eq!(Popper::new(&shard).drain(), [1]);
        drop(pusher);
    });
}

#[test]
fn a_run_is_adopted_as_a_whole() {
    model(|| {
        let (shard, pusher) = returned([1, 2]);
        let mut hold = adopter();
        let consumer = thread::spawn({
            let mut popper = Popper::new(&shard);
            move || popper.pop()
        });
        shard.front().take_whole(&mut hold, 2);
        hold.give_back();
        let theirs = consumer.join().unwrap();
        let mine = Popper::new(&shard).drain();
        assert_eq!(sorted(mine.into_iter().chain(theirs)), [1, 2]);
        drop(pusher);
    });
}
