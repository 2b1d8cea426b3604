//! The values of threads: threads that end, and tables that are dropped meanwhile.

use super::*;
use crate::raw::handle::thread_cells::{end_thread, ThreadCells, ThreadValue};
use crate::sync::{AtomicBool, AtomicUsize, Ordering};
use std::cell::Cell;

/// Uses the value of this thread, and returns how often it was used before.
fn uses(cells: &ThreadCells<Cell<u32>>) -> u32 {
    let own = cells.own(Cell::default).expect("it is not in use");
    own.replace(own.get() + 1)
}

/// What a value borrows.
#[derive(Default)]
struct Lender {
    is_gone: AtomicBool,
    dropped: AtomicUsize,
}

/// A value that borrows.
struct Borrower(Arc<Lender>);

impl ThreadValue for Borrower {
    fn may_end(&mut self) -> bool {
        true
    }
}

impl Drop for Borrower {
    fn drop(&mut self) {
        // ORDERING: Relaxed, all here: the lock of the table orders them.
        assert!(!self.0.is_gone.load(Ordering::Relaxed));
        self.0.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn each_thread_has_a_value_of_its_own() {
    model(|| {
        let cells = Arc::new(ThreadCells::new());
        let other = thread::spawn({
            let cells = Arc::clone(&cells);
            move || {
                let used = [uses(&cells), uses(&cells)];
                end_thread();
                used
            }
        });
        assert_eq!([uses(&cells), uses(&cells)], [0, 1]);
        assert_eq!(other.join().unwrap(), [0, 1]);
    });
}

/// What the values borrow lives until the table is dropped, and no longer.
#[test]
fn a_value_is_dropped_once_and_before_the_table_is_gone() {
    model(|| {
        let lender = Arc::new(Lender::default());
        let cells = Arc::new(ThreadCells::new());
        let other = thread::spawn({
            let (cells, lender) = (Arc::clone(&cells), Arc::clone(&lender));
            move || {
                assert!(cells.own(|| Borrower(lender)).is_some());
                drop(cells);
                end_thread();
            }
        });
        // The count of the `Arc` is none of loom's: this lets the other thread run before.
        let _: usize = lender.dropped.load(Ordering::Relaxed);
        let is_last = Arc::into_inner(cells).map(drop).is_some();
        lender.is_gone.store(is_last, Ordering::Relaxed);
        other.join().unwrap();
        let dropped = lender.dropped.load(Ordering::Relaxed);
        assert_eq!(dropped, 1);
    });
}

#[test]
fn the_end_of_a_thread_drops_its_value() {
    model(|| {
        let lender = Arc::new(Lender::default());
        let cells = Arc::new(ThreadCells::new());
        let other = thread::spawn({
            let (cells, lender) = (Arc::clone(&cells), Arc::clone(&lender));
            move || {
                assert!(cells.own(|| Borrower(lender)).is_some());
                end_thread();
            }
        });
        assert!(cells.own(|| Borrower(Arc::clone(&lender))).is_some());
        other.join().unwrap();
        assert_eq!(lender.dropped.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn a_value_in_use_is_not_given_to_its_thread_again() {
    model(|| {
        let cells = ThreadCells::new();
        let own = cells.own(|| Cell::new(1));
        assert!(own.is_some());
        assert!(cells.own(|| Cell::new(2)).is_none());
        drop(own);
        assert_eq!(cells.own(|| Cell::new(3)).map(|own| own.get()), Some(1));
    });
}
