//! Leases: shards that change hands, and consumers that are lent.

use super::*;
use crate::raw::{LocalCell, Session, Unborrowed};

#[test]
fn a_shard_goes_on_with_the_next_leaseholder() {
    model(|| {
        let lanes = Arc::new(Lanes::new(false));
        let mut first = Seat::new(Arc::clone(&lanes));
        first.push(1);
        let leaver = thread::spawn(move || drop(first));
        let mut second = Seat::new(Arc::clone(&lanes));
        second.push(2);
        leaver.join().unwrap();
        let items = std::iter::from_fn(|| second.pop());
        assert_eq!(sorted(items), [1, 2]);
    });
}

#[test]
fn a_shard_is_handed_back_while_it_is_popped() {
    model(|| {
        let lanes = Arc::new(Lanes::new(false));
        let mut first = Seat::new(Arc::clone(&lanes));
        first.push(1);
        let mut popper = Seat::new(Arc::clone(&lanes));
        let leaver = thread::spawn(move || drop(first));
        assert_eq!(popper.pop(), Some(1));
        leaver.join().unwrap();
        assert_eq!(popper.pop(), None);
        assert_eq!(lanes.ready(), 0);
    });
}

#[test]
fn two_leases_are_different() {
    model(|| {
        let lanes = Arc::new(Lanes::new(false));
        let pushers = [1, 2].map(|item| {
            let mut seat = Seat::new(Arc::clone(&lanes));
            thread::spawn(move || {
                seat.push(item);
                seat
            })
        });
        let seats = pushers.map(|pusher| pusher.join().unwrap());
        let mut popper = Seat::new(Arc::clone(&lanes));
        assert_eq!(sorted(std::iter::from_fn(|| popper.pop())), [1, 2]);
        drop(seats);
    });
}

#[test]
fn a_shard_joins_while_others_look() {
    model(|| {
        let lanes = Arc::new(Lanes::new(false));
        let mut seat = Seat::new(Arc::clone(&lanes));
        let pusher = thread::spawn(move || {
            seat.push(1);
            seat
        });
        let ready = !lanes.is_empty();
        assert!(lanes.pushed() < 2);
        let seat = pusher.join().unwrap();
        assert!(ready || lanes.pop(false) == Some(1));
        drop(seat);
    });
}

#[test]
fn a_lent_consumer_is_used_by_one_at_a_time() {
    model(|| {
        let lanes = Arc::new(Lanes::new(false));
        let mut seat = Seat::new(Arc::clone(&lanes));
        seat.push(1);
        seat.push(2);
        let other = thread::spawn({
            let lanes = Arc::clone(&lanes);
            move || lanes.pop(false)
        });
        let mine = lanes.pop(false);
        let theirs = other.join().unwrap();
        assert_eq!(sorted(mine.into_iter().chain(theirs)), [1, 2]);
        drop(seat);
    });
}

/// A seat in a cell.
struct Owner(Seat<u32>);

impl Session for Owner {
    type Stored = u32;

    fn seat(&mut self) -> &mut Seat<u32> {
        &mut self.0
    }

    fn end_waiting(&mut self) {}

    fn settle(&mut self, unborrowed: &Unborrowed<'_>) {
        self.0.abort(unborrowed);
    }

    fn abort(&mut self, unborrowed: &Unborrowed<'_>) {
        self.0.abort(unborrowed);
    }
}

/// A borrow that is on another thread than the transaction.
#[test]
fn who_finds_a_borrow_ended_uses_the_cell() {
    model(|| {
        let lanes = Arc::new(Lanes::new(false));
        let cell = LocalCell::new(Owner(Seat::new(Arc::clone(&lanes))));
        let cell = Box::into_raw(Box::new(cell));
        // SAFETY: freed at the end.
        let shared: &'static LocalCell<Owner> = unsafe { &*cell };
        let mut borrow = shared.borrow();
        let borrower = thread::spawn(move || borrow.seat().stage_one(1));
        if !shared.is_lent() {
            assert_eq!(shared.borrow().seat().staged(), 1);
        }
        borrower.join().unwrap();
        // SAFETY: made by `Box::into_raw`, and nobody else uses it.
        drop(unsafe { Box::from_raw(cell) });
    });
}
