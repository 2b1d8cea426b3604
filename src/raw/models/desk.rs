//! What the desks say of a closed queue while a transaction ends, which leaves an item behind.
//!
//! The seats are warmed up first, as in `empty.rs`.

use super::*;
use crate::raw::{Entry, Remainder, Tag};

/// A seat with a shard, whose transaction holds the only item of the queue.
fn holder(lanes: &Arc<Lanes<u32>>) -> Seat<u32> {
    let mut seat = Seat::new(Arc::clone(lanes));
    seat.push(1);
    assert!(seat.hold());
    seat
}

/// Asks whether the queue is drained while `end` puts an item there.
///
/// On the other thread: loom explores no write that its thread has loaded the word for, ahead of another
/// thread's load that it has seen first.
fn never_drained<R>(lanes: &Arc<Lanes<u32>>, end: impl FnOnce() -> R) {
    let other = thread::spawn({
        let lanes = Arc::clone(lanes);
        move || {
            let left = lanes.left_when_closed(|| true, || true);
            assert_ne!(left, Remainder::Nothing);
        }
    });
    end();
    other.join().unwrap();
}

#[test]
fn never_drained_while_a_transaction_aborts() {
    model(|| {
        let lanes = Arc::new(Lanes::new(false));
        let mut seat = holder(&lanes);
        never_drained(&lanes, || seat.give_back(UNBORROWED));
    });
}

#[test]
fn never_drained_while_an_item_is_put_back() {
    model(|| {
        let lanes = Arc::new(Lanes::new(false));
        let mut seat = holder(&lanes);
        never_drained(&lanes, || seat.give_back_uncounted(UNBORROWED));
    });
}

#[test]
fn never_drained_while_staged_items_are_committed() {
    model(|| {
        let lanes = Arc::new(Lanes::new(false));
        let mut seat = Seat::new(Arc::clone(&lanes));
        seat.push(100);
        assert_eq!(seat.pop(), Some(100));
        seat.stage_one(1);
        never_drained(&lanes, || seat.commit(UNBORROWED));
    });
}

#[test]
fn never_drained_while_a_follow_up_is_committed() {
    model(|| {
        let lanes = Arc::new(Lanes::new(false));
        let mut seat = holder(&lanes);
        never_drained(&lanes, || {
            seat.stage_one(2);
            seat.commit(UNBORROWED);
            seat.drop_taken(UNBORROWED);
        });
    });
}

#[test]
fn never_drained_while_an_item_is_taken_away() {
    model(|| {
        let lanes = Arc::new(Lanes::new(false));
        let seat = holder(&lanes);
        let desk = seat.number();
        let other = thread::spawn({
            let lanes = Arc::clone(&lanes);
            move || {
                let tag = Tag::first(0);
                lanes.put_at_head([Entry { item: 1, tag }]);
                lanes.count_expired(desk, 1);
            }
        });
        let left = lanes.left_when_closed(|| true, || true);
        assert_ne!(left, Remainder::Nothing);
        other.join().unwrap();
    });
}
