//! Rows that are kept between two pages.

use super::{drain, open};
use crate::format::{is_key, Digest, ITEMS};
use crate::queue::pages::scheduled::Scheduled;
use crate::queue::pages::Index;
use crate::{DurableQueue, StoreOptions};
use std::collections::BTreeSet;

impl DurableQueue<u64> {
    fn keeps(&self) -> bool {
        self.shared.log().disk().reads.kept.lock().is_some()
    }

    /// With the first ones the cold part begins, so that they come late.
    fn fill(&self) {
        self.push_batch(0..20).unwrap();
        self.push_batch(20..100).unwrap();
    }

    /// Pops some, so that the next page was read.
    fn begin_to_pop(&self) {
        assert!(self.pop_batch(25).unwrap().into_iter().eq(0..25));
        assert!(self.keeps());
    }
}

#[test]
fn a_page_goes_on_with_the_rows_of_the_last_one() {
    let files = tempfile::tempdir().unwrap();
    let numbers = open(files.path());
    (0..100).for_each(|number| numbers.push(number).unwrap());
    numbers.begin_to_pop();
    // Behind the back of the store.
    let items = &numbers.shared.log().disk().tables[ITEMS];
    let keys = items.range::<&[u8], _>(..).map(|row| row.key().unwrap());
    let last = keys.filter(|key| is_key(key)).last().unwrap();
    items.remove(last).unwrap();
    numbers.push(100).unwrap();
    assert!(drain(&numbers, 8).into_iter().eq(25..=100));
}

#[test]
fn what_was_removed_since_is_not_delivered() {
    let files = tempfile::tempdir().unwrap();
    let numbers = open(files.path());
    numbers.fill();
    numbers.begin_to_pop();
    assert_eq!(numbers.retain(|number, _| number % 10 > 0).unwrap(), 7);
    let left = (25..100).filter(|number| number % 10 > 0);
    assert!(drain(&numbers, 8).into_iter().eq(left));
}

#[test]
fn what_was_committed_since_is_delivered() {
    let files = tempfile::tempdir().unwrap();
    let numbers = open(files.path());
    numbers.fill();
    let late = numbers.begin_owned();
    late.push(200).unwrap();
    numbers.push_batch(100..130).unwrap();
    numbers.begin_to_pop();
    numbers.push_batch(130..160).unwrap();
    assert!(numbers.pop_batch(9).unwrap().into_iter().eq(25..34));
    late.commit().unwrap();
    let expected = (34..100).chain([200]).chain(100..160);
    assert!(drain(&numbers, 8).into_iter().eq(expected));
}

#[test]
fn each_queue_has_its_own() {
    let files = tempfile::tempdir().unwrap();
    let store = StoreOptions::new().memory(0).open(files.path()).unwrap();
    let [even, odd] = ["even", "odd"].map(|name| store.queue::<u64>(name).unwrap());
    for number in 0..100 {
        even.push(2 * number).unwrap();
        odd.push(2 * number + 1).unwrap();
    }
    for number in 0..100 {
        assert_eq!(even.pop().unwrap(), 2 * number);
        assert_eq!(odd.pop().unwrap(), 2 * number + 1);
    }
}

/// They keep tables and memtables.
#[test]
fn they_are_let_go_before_long() {
    let files = tempfile::tempdir().unwrap();
    let options = StoreOptions::new().memory(0).reserve(0);
    let store = options.memtable(0).open(files.path()).unwrap();
    let [numbers, others] = ["numbers", "others"].map(|name| store.queue::<u64>(name).unwrap());
    numbers.fill();
    numbers.begin_to_pop();
    for _ in 0..40 {
        assert!(others.push_batch(0..1_000).is_ok());
    }
    assert!(!numbers.keeps());
    others.clear().unwrap();
    assert!(numbers.pop_batch(9).unwrap().into_iter().eq(25..34));
    assert!(numbers.keeps());
    drop(numbers);
    assert!(!others.keeps());
    let numbers = store.queue::<u64>("numbers").unwrap();
    assert!(numbers.pop_batch(9).unwrap().into_iter().eq(34..43));
    assert!(numbers.keeps());
    numbers.clear().unwrap();
    assert!(!numbers.keeps());
}

/// While a group spreads a chunk, a snapshot may have that, and rows of its items too.
#[test]
fn what_was_read_is_not_read_again() {
    let scheduled = Scheduled::begin(0);
    let mut index = Index::open(Digest::default(), BTreeSet::new(), None, scheduled, 0);
    let mut pass = |id| index.pass(0, id, id);
    assert!(pass(10) && !pass(5) && !pass(10) && pass(11));
}
