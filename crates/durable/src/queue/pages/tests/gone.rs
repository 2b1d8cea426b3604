//! Items that are gone without a change of their rows.

use super::{drain, open, rows};
use crate::format::ITEMS;
use crate::{Durability, DurableQueue, Store, StoreOptions};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const MEMTABLE: u64 = 256 << 10;
const LEN: usize = 1_000;

fn ranges<T: Send + 'static>(queue: &DurableQueue<T>) -> usize {
    let log = queue.shared.log();
    log.settle().unwrap();
    log.disk().gone(queue.shared.id).unwrap().len()
}

fn all_rows(queue: &DurableQueue<u64>) -> usize {
    let items = &queue.shared.log().disk().tables[ITEMS];
    items.range::<&[u8], _>(..).count()
}

fn small(path: &Path) -> Store {
    let at_most = Duration::from_secs(3600);
    let options = StoreOptions::new().memory(0).memtable(MEMTABLE).reserve(0);
    let options = options.durability(Durability::Buffered { at_most });
    options.open(path).unwrap()
}

fn page(number: u64) -> Vec<u8> {
    let mut page = number.to_be_bytes().to_vec();
    // Bytes that cannot be compressed.
    let mut word = number;
    page.resize_with(LEN, || {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        word.to_be_bytes()[0]
    });
    page
}

fn number(page: &[u8]) -> u64 {
    u64::from_be_bytes(page[..8].try_into().unwrap())
}

#[test]
fn what_is_popped_in_order_is_one_range() {
    let files = tempfile::tempdir().unwrap();
    let numbers = open(files.path());
    for first in [0, 20, 40] {
        numbers.push_batch(first..first + 20).unwrap();
    }
    let written = all_rows(&numbers);
    let [one, other] = [numbers.begin_owned(), numbers.begin_owned()];
    assert_eq!(one.pop_batch(25).unwrap().count(), 25);
    assert_eq!(*other.pop().unwrap(), 25);
    other.commit().unwrap();
    assert_eq!(ranges(&numbers), 1);
    one.commit().unwrap();
    assert_eq!((ranges(&numbers), rows(&numbers)), (1, 2));
    assert_eq!(all_rows(&numbers), written + 1); // which has the range
    drop(numbers);
    let numbers = open(files.path());
    assert!(drain(&numbers, 8).into_iter().eq(26..60));
    assert_eq!((ranges(&numbers), rows(&numbers)), (1, 0));
    numbers.push_batch(60..80).unwrap();
    let copy = files.path().join("copy");
    let store = &numbers.shared.store;
    store.log.disk().snapshot_to(&copy).unwrap();
    drop(numbers);
    for path in [files.path(), &copy] {
        let checked = StoreOptions::new().memory(0).check().open(path).unwrap();
        let numbers = checked.queue::<u64>("numbers").unwrap();
        assert!(drain(&numbers, 8).into_iter().eq(60..80));
    }
}

/// Of a store of an earlier version.
#[test]
fn what_is_before_the_first_items_is_written_down_at_the_opening() {
    let files = tempfile::tempdir().unwrap();
    drop(Store::open(files.path()).unwrap());
    std::fs::write(files.path().join("version"), "requeue-durable, version 1").unwrap();
    let numbers: DurableQueue<u64> = Store::open(files.path()).unwrap().queue("numbers").unwrap();
    numbers.push_batch(0..20).unwrap();
    assert_eq!(rows(&numbers), 20);
    assert_eq!(numbers.pop_batch(15).unwrap().len(), 15);
    assert_eq!(ranges(&numbers), 0);
    drop(numbers);
    let numbers = open(files.path());
    assert_eq!(ranges(&numbers), 1);
    assert_eq!(drain(&numbers, 8), [15, 16, 17, 18, 19]);
    assert_eq!((ranges(&numbers), rows(&numbers)), (1, 0));
}

#[test]
fn an_item_that_comes_late_is_not_gone() {
    for reopens in [false, true] {
        let files = tempfile::tempdir().unwrap();
        let mut numbers = open(files.path());
        numbers.push_batch(0..20).unwrap();
        let late = numbers.begin_owned();
        late.push(100).unwrap();
        numbers.push_batch(20..40).unwrap();
        assert_eq!(numbers.pop_batch(40).unwrap().len(), 40);
        assert_eq!(ranges(&numbers), 1);
        numbers.shared.log().disk().give_back();
        late.commit().unwrap();
        assert_eq!(ranges(&numbers), 2);
        numbers.shared.log().disk().give_back();
        if reopens {
            drop(numbers);
            numbers = open(files.path());
        }
        assert_eq!(numbers.pop_batch(2).unwrap(), [100]);
        assert_eq!((ranges(&numbers), rows(&numbers)), (1, 0));
    }
}

#[test]
fn a_commit_that_has_both_loses_nothing() {
    let files = tempfile::tempdir().unwrap();
    let numbers = open(files.path());
    numbers.push_batch(0..20).unwrap();
    let late = numbers.begin_owned();
    late.push_batch([100, 101]).unwrap();
    numbers.push_batch(20..40).unwrap();
    // What is before and behind its pushes is removed with them.
    assert_eq!(late.pop_batch(40).unwrap().count(), 40);
    late.commit().unwrap();
    assert_eq!(rows(&numbers), 1);
    drop(numbers);
    let numbers = open(files.path());
    assert_eq!(numbers.pop_batch(9).unwrap(), [100, 101]);
}

#[test]
fn too_many_ranges_are_tombstones() {
    let files = tempfile::tempdir().unwrap();
    let numbers = open(files.path());
    numbers.push_batch(0..200).unwrap();
    assert_eq!(numbers.retain(|number, _| number % 10 > 0).unwrap(), 20);
    assert_eq!((ranges(&numbers), rows(&numbers)), (4, 17));
    let left: Vec<u64> = (0..200).filter(|number| number % 10 > 0).collect();
    let (first, last) = left.split_at(100);
    assert_eq!(numbers.pop_batch(100).unwrap(), first);
    numbers.shared.log().disk().give_back();
    drop(numbers);
    let numbers = open(files.path());
    assert_eq!(drain(&numbers, 8), last);
    assert_eq!((ranges(&numbers), rows(&numbers)), (1, 0));
}

#[test]
fn their_room_is_given_back_while_others_are_left() {
    let files = tempfile::tempdir().unwrap();
    let store = small(files.path());
    let pages: DurableQueue<Vec<u8>> = store.queue("pages").unwrap();
    let all = 6_000;
    let give_back = || {
        store.flush().unwrap();
        store.inner.log.disk().give_back()
    };
    let mut full = 0;
    for first in (0..all).step_by(100) {
        pages.push_batch((first..first + 100).map(page)).unwrap();
        // Tables of a thousand, however many commits a group has.
        if (first + 100) % 1_000 == 0 {
            full = give_back();
        }
    }
    assert!(full >= all * LEN as u64, "{full}");
    let popped = pages.pop_batch(4_000).unwrap();
    assert!(popped.iter().map(|page| number(page)).eq(0..4_000));
    // The last thousand numbers may be those of a chunk.
    let left = give_back();
    assert!(left < full * 7 / 10, "{left} of {full}");
    drop((pages, store));
    let store = small(files.path());
    let pages: DurableQueue<Vec<u8>> = store.queue("pages").unwrap();
    let popped = pages.pop_batch(9_999).unwrap();
    assert!(popped.iter().map(|page| number(page)).eq(4_000..all));
}

#[test]
fn a_backlog_that_lasts_takes_no_more_room() {
    let files = tempfile::tempdir().unwrap();
    let store = small(files.path());
    let pages: DurableQueue<Vec<u8>> = store.queue("pages").unwrap();
    let (backlog, all) = (2_000, 60_000);
    pages.push_batch((0..backlog).map(page)).unwrap();
    for first in (0..all).step_by(100) {
        let next = backlog + first;
        pages.push_batch((next..next + 100).map(page)).unwrap();
        let popped = pages.pop_batch(100).unwrap();
        assert!(popped
            .iter()
            .map(|page| number(page))
            .eq(first..first + 100));
        // On a busy machine the thread must not fall behind.
        store.inner.log.disk().end_trim();
    }
    store.flush().unwrap();
    let size = store.inner.log.disk().tables[ITEMS].disk_space();
    assert!(size < (backlog + all / 2) * LEN as u64, "{size}");
}

/// No table has only rows of one of them, so merges leave out what is gone.
#[test]
fn nor_do_many_queues() {
    let files = tempfile::tempdir().unwrap();
    let store = small(files.path());
    let queue = |name| {
        let queue = store.builder(&format!("queue {name}"));
        queue.memory(1 << 20).build().unwrap()
    };
    let queues: Vec<DurableQueue<Vec<u8>>> = (0..20).map(queue).collect();
    let (round, rounds, len) = (50, 160, 100);
    let item = |number| page(number)[..len].to_vec();
    for queue in &queues {
        queue.push(item(0)).unwrap();
    }
    for first in (0..rounds * round).step_by(50) {
        for queue in &queues {
            queue.push_batch((first..first + round).map(item)).unwrap();
            store.inner.log.settle().unwrap();
            assert_eq!(queue.pop_batch(50).unwrap().len(), 50);
        }
        store.inner.log.disk().end_trim();
    }
    store.flush().unwrap();
    let size = store.inner.log.disk().tables[ITEMS].disk_space();
    let pushed = 20 * rounds * round * len as u64;
    assert!(size < pushed / 3, "{size} of {pushed}");
}

/// Rows at the end of a range, which may be chunks that have others, are no such chunks.
#[test]
fn the_room_of_a_few_large_items_is_given_back() {
    let files = tempfile::tempdir().unwrap();
    let store = small(files.path());
    let pages: DurableQueue<Vec<u8>> = store.queue("pages").unwrap();
    let large = |number| page(number).repeat(20);
    for number in 0..200 {
        pages.push(large(number)).unwrap();
    }
    assert_eq!(pages.pop_batch(999).unwrap().len(), 200);
    pages.push(large(200)).unwrap();
    store.flush().unwrap();
    let size = store.inner.log.disk().merge();
    assert!(size < 10 * 20 * LEN as u64, "{size}");
    assert_eq!(number(&pages.pop().unwrap()), 200);
}

/// They were delivered by an earlier process, so they are read at the opening.
#[test]
fn removed_items_with_marks_do_not_come_back() {
    let files = tempfile::tempdir().unwrap();
    let open = || {
        let store = StoreOptions::new().memory(0).open(files.path()).unwrap();
        store
            .builder::<u64>("numbers")
            .max_attempts(9)
            .build()
            .unwrap()
    };
    let numbers = open();
    for first in (0..200).step_by(20) {
        numbers.push_batch(first..first + 20).unwrap();
    }
    let held = numbers.begin_owned();
    assert_eq!(held.pop_batch(200).unwrap().count(), 200);
    drop(held);
    drop(numbers);
    let numbers = open();
    let is_left = |number: &u64| number % 20 != 10;
    assert_eq!(numbers.retain(|number, _| is_left(number)).unwrap(), 10);
    drop(numbers);
    let left = open().pop_batch(200).unwrap();
    assert!(left.into_iter().eq((0..200).filter(is_left)));
}

/// A crash brings back what the journals have and the tables do not.
#[test]
fn the_rows_of_a_removed_queue_do_not_come_back() {
    for merge in [false, true] {
        let files = tempfile::tempdir().unwrap();
        let store = small(files.path());
        let pages: DurableQueue<Vec<u8>> = store.queue("pages").unwrap();
        for first in (0..6_000).step_by(100) {
            pages.push_batch((first..first + 100).map(page)).unwrap();
        }
        store.flush().unwrap();
        let disk = store.inner.log.disk();
        disk.give_back();
        assert_eq!(pages.pop_batch(9_999).unwrap().len(), 6_000);
        store.flush().unwrap();
        disk.drop_gone(merge);
        drop(pages);
        assert!(store.remove("pages").unwrap());
        store.flush().unwrap();
        let copies = tempfile::tempdir().unwrap();
        let crashed = copies.path().join("crashed");
        let mut copy = Command::new("cp");
        assert!(copy
            .arg("-r")
            .args([files.path(), &crashed])
            .status()
            .unwrap()
            .success());
        let store = StoreOptions::new().memory(0).check().open(&crashed);
        let store = store.unwrap();
        let others: DurableQueue<Vec<u8>> = store.queue("others").unwrap();
        assert!(others.pop().unwrap_err().is_empty());
        assert_eq!(ranges(&others), 0, "it has a number of its own");
        others.push(page(0)).unwrap();
        drop((others, store));
        let store = StoreOptions::new().memory(0).check().open(&crashed);
        let others: DurableQueue<Vec<u8>> = store.unwrap().queue("others").unwrap();
        assert_eq!(others.pop_batch(9).unwrap(), [page(0)]);
    }
}
