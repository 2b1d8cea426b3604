//! Record pools: records that another thread has created.

use super::*;
use crate::raw::RecordPool;
use loom::cell::Cell;

/// A record tracked by loom: a read that does not happen after its creation is an error.
struct Counted(Cell<u32>);

impl Default for Counted {
    fn default() -> Self {
        Self(Cell::new(0))
    }
}

#[test]
fn two_threads_acquire_different_records() {
    model(|| {
        let pool = Arc::new(RecordPool::<Counted>::new(0));
        let other = thread::spawn({
            let pool = Arc::clone(&pool);
            move || pool.get(pool.acquire()).0.get()
        });
        assert_eq!(pool.get(pool.acquire()).0.get(), 0);
        assert_eq!(other.join().unwrap(), 0);
    });
}

#[test]
fn a_counted_record_is_found() {
    model(|| {
        let pool = Arc::new(RecordPool::<Counted>::new(0));
        // The first record has a box of its own.
        pool.acquire_for_use();
        let other = thread::spawn({
            let pool = Arc::clone(&pool);
            move || {
                assert!(pool.iter().all(|record| record.0.get() == 0));
                assert!(pool.in_use().all(|record| record.0.get() == 0));
            }
        });
        pool.acquire_for_use();
        other.join().unwrap();
    });
}

#[test]
fn the_next_holder_sees_what_the_last_one_did() {
    model(|| {
        let pool = Arc::new(RecordPool::<Counted>::new(0));
        let number = pool.acquire();
        let other = thread::spawn({
            let pool = Arc::clone(&pool);
            move || {
                pool.get(number).0.set(1);
                pool.release(number);
            }
        });
        if pool.acquire_if_free(number) {
            assert_eq!(pool.get(number).0.get(), 1);
        }
        other.join().unwrap();
    });
}
