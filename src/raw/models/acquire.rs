//! Ownership: shards that change owners, and consumers and cells that are borrowed.

use super::*;
use crate::raw::{LocalCell, Session, Unborrowed};

#[test]
fn a_shard_goes_on_with_the_next_handle() {
    model(|| {
        let shards = Arc::new(Shards::new(false));
        let mut first = Endpoint::new(Arc::clone(&shards));
        first.push(1);
        let leaver = thread::spawn(move || drop(first));
        let mut second = Endpoint::new(Arc::clone(&shards));
        second.push(2);
        leaver.join().unwrap();
        let items = std::iter::from_fn(|| second.pop());
        assert_eq!(sorted(items), [1, 2]);
    });
}

#[test]
fn a_shard_is_handed_back_while_it_is_popped() {
    model(|| {
        let shards = Arc::new(Shards::new(false));
        let mut first = Endpoint::new(Arc::clone(&shards));
        first.push(1);
        let mut popper = Endpoint::new(Arc::clone(&shards));
        let leaver = thread::spawn(move || drop(first));
        assert_eq!(popper.pop(), Some(1));
        leaver.join().unwrap();
        assert_eq!(popper.pop(), None);
        assert_eq!(shards.ready(), 0);
    });
}

#[test]
fn two_owners_acquire_different_shards() {
    model(|| {
        let shards = Arc::new(Shards::new(false));
        let pushers = [1, 2].map(|item| {
            let mut endpoint = Endpoint::new(Arc::clone(&shards));
            thread::spawn(move || {
                endpoint.push(item);
                endpoint
            })
        });
        let endpoints = pushers.map(|pusher| pusher.join().unwrap());
        let mut popper = Endpoint::new(Arc::clone(&shards));
        assert_eq!(sorted(std::iter::from_fn(|| popper.pop())), [1, 2]);
        drop(endpoints);
    });
}

#[test]
fn a_shard_joins_while_others_look() {
    model(|| {
        let shards = Arc::new(Shards::new(false));
        let mut endpoint = Endpoint::new(Arc::clone(&shards));
        let pusher = thread::spawn(move || {
            endpoint.push(1);
            endpoint
        });
        let ready = !shards.is_empty();
        assert!(shards.pushed() < 2);
        let endpoint = pusher.join().unwrap();
        assert!(ready || shards.pop_one() == Some(1));
        drop(endpoint);
    });
}

/// An endpoint in a cell.
struct CellOwner(Endpoint<u32>);

impl Session for CellOwner {
    type Stored = u32;

    fn endpoint(&mut self) -> &mut Endpoint<u32> {
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

/// Threads that share a lent cell borrow it one after the other.
#[test]
fn a_lent_cell_is_borrowed_by_one_thread_at_a_time() {
    model(|| {
        let shards = Arc::new(Shards::new(false));
        let mut cell = LocalCell::new(CellOwner(Endpoint::new(Arc::clone(&shards))));
        cell.lend(true);
        let cell = Box::into_raw(Box::new(cell));
        // SAFETY: freed at the end.
        let shared: &'static LocalCell<CellOwner> = unsafe { &*cell };
        let stage = |item| {
            assert!(shared.hold_by(|_| true, Endpoint::hold_next).is_none()); // without a borrow
            shared
                .try_borrow()
                .map(|mut borrow| borrow.endpoint().stage_one(item))
                .is_some()
        };
        let other = thread::spawn(move || stage(1));
        let staged = stage(2);
        let staged = usize::from(staged) + usize::from(other.join().unwrap());
        assert!(staged >= 1);
        assert_eq!(shared.borrow().endpoint().staged(), staged);
        // SAFETY: created by `Box::into_raw`, and no longer in use elsewhere.
        drop(unsafe { Box::from_raw(cell) });
    });
}

/// The transaction is used on another thread than the borrow.
#[test]
fn a_thread_that_finds_a_borrow_ended_uses_the_cell() {
    model(|| {
        let shards = Arc::new(Shards::new(false));
        let cell = LocalCell::new(CellOwner(Endpoint::new(Arc::clone(&shards))));
        let cell = Box::into_raw(Box::new(cell));
        // SAFETY: freed at the end.
        let shared: &'static LocalCell<CellOwner> = unsafe { &*cell };
        let mut borrow = shared.borrow();
        let user = thread::spawn(move || {
            if let Some(mut borrow) = shared.try_borrow() {
                assert_eq!(borrow.endpoint().staged(), 1);
            }
        });
        borrow.endpoint().stage_one(1);
        drop(borrow);
        user.join().unwrap();
        // SAFETY: created by `Box::into_raw`, and no longer in use elsewhere.
        drop(unsafe { Box::from_raw(cell) });
    });
}
