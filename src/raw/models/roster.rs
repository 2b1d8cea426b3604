//! Rosters: records that another thread has made.

use super::*;
use crate::raw::Roster;
use loom::cell::Cell;

/// A record that loom knows: reading it without having seen it made is an error.
struct Record(Cell<u32>);

impl Default for Record {
    fn default() -> Self {
        Self(Cell::new(0))
    }
}

#[test]
fn who_leases_finds_the_records_of_another_thread() {
    model(|| {
        let roster = Arc::new(Roster::<Record>::new(0));
        let other = thread::spawn({
            let roster = Arc::clone(&roster);
            move || roster.get(roster.lease()).0.get()
        });
        assert_eq!(roster.get(roster.lease()).0.get(), 0);
        assert_eq!(other.join().unwrap(), 0);
    });
}

#[test]
fn who_counts_a_record_finds_it() {
    model(|| {
        let roster = Arc::new(Roster::<Record>::new(0));
        let other = thread::spawn({
            let roster = Arc::clone(&roster);
            move || roster.lease()
        });
        assert!(roster.iter().all(|record| record.0.get() == 0));
        assert!(roster.in_use().all(|record| record.0.get() == 0));
        other.join().unwrap();
    });
}

#[test]
fn the_next_holder_sees_what_the_last_one_did() {
    model(|| {
        let roster = Arc::new(Roster::<Record>::new(0));
        let number = roster.lease();
        let other = thread::spawn({
            let roster = Arc::clone(&roster);
            move || {
                roster.get(number).0.set(1);
                roster.release(number);
            }
        });
        if roster.lease_if_free(number) {
            assert_eq!(roster.get(number).0.get(), 1);
        }
        other.join().unwrap();
    });
}
