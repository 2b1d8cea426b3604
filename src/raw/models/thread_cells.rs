//! The values of threads: numbers that change hands, and buckets that another thread has made.

use super::*;
use crate::raw::thread_cells::{end_thread, ThreadCells};
use std::cell::Cell;

/// Uses the value of this thread, and returns how often it was used before.
fn uses(cells: &ThreadCells<Cell<u32>>) -> u32 {
    let own = cells.own(Cell::default).expect("it is not in use");
    own.replace(own.get() + 1)
}

#[test]
fn a_number_belongs_to_one_thread_at_a_time() {
    model(|| {
        let cells = Arc::new(ThreadCells::new());
        let other = thread::spawn({
            let cells = Arc::clone(&cells);
            move || {
                let used = uses(&cells);
                end_thread();
                used
            }
        });
        let mine = uses(&cells);
        let theirs = other.join().unwrap();
        // The other thread may end first, and this one take its number over, but not the other way round.
        assert_eq!(theirs, 0);
        assert!(mine <= 1);
    });
}

#[test]
fn a_bucket_of_another_thread_is_found() {
    model(|| {
        let cells = Arc::new(ThreadCells::new());
        // The first number; the next two are in the same bucket.
        assert_eq!(uses(&cells), 0);
        let others = [(); 2].map(|()| {
            let cells = Arc::clone(&cells);
            thread::spawn(move || uses(&cells))
        });
        for other in others {
            other.join().unwrap();
        }
    });
}

#[test]
fn a_value_in_use_is_not_given_to_its_thread_again() {
    model(|| {
        let cells = ThreadCells::new();
        let own = cells.own(|| 1);
        assert!(own.is_some());
        assert!(cells.own(|| 2).is_none());
        drop(own);
        assert_eq!(cells.own(|| 3).as_deref(), Some(&1));
    });
}
