//! The strict Empty, against pushes and aborts.
//!
//! In each model one item is somewhere in the queue from the beginning to the end, but never long
//! in one place.

use super::*;

/// A seat that has pushed these items.
fn seat_with(lanes: &Arc<Lanes<u32>>, items: impl IntoIterator<Item = u32>) -> Seat<u32> {
    let mut seat = Seat::new(Arc::clone(lanes));
    items.into_iter().for_each(|item| seat.push(item));
    seat
}

#[test]
fn never_while_a_push_precedes_each_pop() {
    model(|| {
        let lanes = Arc::new(Lanes::new());
        let mut first = seat_with(&lanes, []);
        let mut second = seat_with(&lanes, [1]);
        let mover = thread::spawn(move || {
            first.push(2);
            let one = second.pop();
            second.push(3);
            (one, first, second)
        });
        let empty = lanes.is_empty();
        let (one, ..) = mover.join().unwrap();
        assert!(one.is_some());
        assert!(!empty, "something was ready all the time");
    });
}

#[test]
fn never_while_an_abort_precedes_each_pop() {
    model(|| {
        let lanes = Arc::new(Lanes::new());
        let holder = seat_with(&lanes, [1]);
        assert!(holder.hold().is_some());
        let mut mover = seat_with(&lanes, [2]);
        let thread = thread::spawn(move || {
            let mut holder = holder;
            holder.abort();
            let item = mover.pop();
            (item, holder, mover)
        });
        let empty = lanes.is_empty();
        let (item, ..) = thread.join().unwrap();
        assert!(item.is_some());
        assert!(!empty, "one of two items was ready all the time");
    });
}

#[test]
fn never_while_returned_items_move_on() {
    model(|| {
        let lanes = Arc::new(Lanes::new());
        let holder = seat_with(&lanes, [1]);
        let mut mover = seat_with(&lanes, [2]);
        assert!(holder.hold().is_some());
        let thread = thread::spawn(move || {
            let mut holder = holder;
            holder.abort();
            // One of the two is popped, then the other moves to a shard that was seen before.
            let one = mover.pop();
            mover.push(3);
            let two = mover.pop();
            (one.and(two), holder, mover)
        });
        let empty = lanes.is_empty();
        let (popped, ..) = thread.join().unwrap();
        assert!(popped.is_some());
        assert!(!empty, "something was ready all the time");
    });
}

#[test]
fn a_pop_finds_what_was_committed_before() {
    model(|| {
        let lanes = Arc::new(Lanes::new());
        let mut first = seat_with(&lanes, [1]);
        let mut second = seat_with(&lanes, [2]);
        let thread = thread::spawn(move || (second.pop(), second));
        let mine = first.pop();
        let (theirs, _) = thread.join().unwrap();
        assert_eq!(sorted(mine.into_iter().chain(theirs)), [1, 2]);
    });
}
