//! Unique keys of items that are on the disk only.

use super::drain;
use crate::codec::{Codec, CodecError, OnUndecodable};
use crate::format::{key_rows, MARKS};
use crate::order::Order;
use crate::{Builder, Durability, DurableQueue, ItemInfo, Kind, PushError, Record, StoreOptions};
use requeue::{DuplicateOf, OnDuplicate};
use std::collections::BTreeSet;
use std::iter;
use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);
const BUFFERED: Durability = Durability::Buffered { at_most: HOUR };

fn builder(path: &Path) -> Builder<u64> {
    let options = StoreOptions::new().memory(0).durability(BUFFERED);
    options.open(path).unwrap().builder("numbers")
}

/// The key of a number is its last two digits.
fn open(path: &Path) -> DurableQueue<u64> {
    let builder = builder(path).unique_by(|number| number % 100);
    builder.build().unwrap()
}

fn replacing(path: &Path) -> DurableQueue<u64> {
    let builder = builder(path).unique_by(|number| number % 100);
    builder.on_duplicate(OnDuplicate::Replace).build().unwrap()
}

impl<O: Order<u64>> DurableQueue<u64, O> {
    /// How many rows of unique keys there are.
    fn rows(&self) -> usize {
        self.shared.log().settle().unwrap();
        let marks = &self.shared.log().disk().tables[MARKS];
        marks.range(key_rows(self.shared.id)).count()
    }

    fn refuses(&self, number: u64) -> bool {
        let refused = self.push(number).err();
        refused.is_some_and(|refused| of(&refused) == Some(DuplicateOf::Queued))
    }
}

fn of<T>(refused: &PushError<T>) -> Option<DuplicateOf> {
    match refused {
        PushError::Duplicate(_, of) => Some(*of),
        _ => None,
    }
}

#[test]
fn keys_are_taken_until_their_items_are_gone() {
    let files = tempfile::tempdir().unwrap();
    let numbers = open(files.path());
    numbers.push_batch(0..60).unwrap();
    assert!((100..160).all(|number| numbers.refuses(number)));
    assert!(numbers.push_batch([70, 71, 155]).is_err());
    assert_eq!((numbers.len(), numbers.rows()), (60, 60));
    assert!(numbers.hot() < 20 && numbers.shared.log().disk().known_keys() < 20);
    let tx = numbers.begin_owned();
    assert_eq!(tx.pop_batch(20).unwrap().len(), 20);
    let refused = numbers.push(105).unwrap_err();
    assert_eq!(of(&refused), Some(DuplicateOf::Held));
    tx.commit().unwrap();
    assert_eq!(numbers.rows(), 40);
    numbers.push_batch(100..120).unwrap();
    drop(numbers);

    let numbers = open(files.path());
    assert_eq!((numbers.len(), numbers.rows()), (60, 60));
    assert!((200..260).all(|number| numbers.refuses(number)));
    let tx = numbers.begin_owned();
    tx.push(99).unwrap();
    tx.abort();
    numbers.push(99).unwrap();
    let expected = (20..60).chain(100..120).chain([99]);
    assert!(drain(&numbers, 20).into_iter().eq(expected));
    assert_eq!(numbers.rows(), 0);
    numbers.stats().check().unwrap();
}

#[test]
fn keys_of_commits_that_are_not_written_are_taken() {
    let files = tempfile::tempdir().unwrap();
    let numbers = open(files.path());
    numbers.push_batch(0..20).unwrap();
    for number in 20..60 {
        numbers.push(number).unwrap();
        assert!(numbers.refuses(100 + number), "{number}");
    }
    assert!(!numbers.shared.log().is_written());
    assert!(drain(&numbers, 20).into_iter().eq(0..60));
}

#[test]
fn keys_of_removed_items_are_free_at_once() {
    let files = tempfile::tempdir().unwrap();
    let numbers = open(files.path());
    numbers.push_batch(0..10).unwrap();
    numbers.push_batch(10..50).unwrap();
    assert_eq!(numbers.retain(|number, _| number % 2 == 0).unwrap(), 25);
    assert!(!numbers.shared.log().is_written());
    let mut all = (0..50).rev();
    assert!(all.all(|number| numbers.refuses(number + 100) == (number % 2 == 0)));
    assert_eq!((numbers.len(), numbers.rows()), (50, 50));
    assert_eq!(numbers.clear_all().unwrap(), 50);
    assert_eq!(numbers.rows(), 0);
    numbers.push_batch(200..250).unwrap();
    assert_eq!(numbers.clear().unwrap(), 50);
    assert_eq!(numbers.rows(), 0);
    numbers.push_batch(300..350).unwrap();
    numbers.stats().check().unwrap();
}

#[test]
fn a_key_that_is_taken_again_at_once_has_a_row() {
    let files = tempfile::tempdir().unwrap();
    let numbers = open(files.path());
    numbers.push_batch(0..60).unwrap();
    numbers.shared.log().settle().unwrap();
    // In one group.
    assert_eq!(numbers.pop_batch(10).unwrap().len(), 10);
    numbers.push_batch(100..110).unwrap();
    assert_eq!(numbers.rows(), 60);
    drop(numbers);
    let numbers = open(files.path());
    assert!((200..260).all(|number| numbers.refuses(number)));
    drop(numbers);

    // Before the removal of the first one is in the log.
    let all_in_memory = builder(files.path()).memory(1 << 20);
    let numbers = all_in_memory.unique_by(|number| number % 100);
    let numbers = numbers.build().unwrap();
    assert_eq!(numbers.hot(), 60);
    let removed = numbers.retain(|number, _| {
        if *number == 109 {
            numbers.push(310).unwrap();
            numbers.shared.log().settle().unwrap();
        }
        *number != 10
    });
    assert_eq!((removed.unwrap(), numbers.rows()), (1, 60));
    drop(numbers);
    let numbers = open(files.path());
    assert!((200..260).all(|number| numbers.refuses(number)));
    assert_eq!(drain(&numbers, 20).last(), Some(&310));
    assert_eq!(numbers.rows(), 0);
}

#[test]
fn a_row_that_was_left_takes_no_key() {
    let files = tempfile::tempdir().unwrap();
    let numbers = open(files.path());
    numbers.push_batch(0..50).unwrap();
    drop(numbers);
    let store = StoreOptions::new().open(files.path()).unwrap();
    let inspector = store.inspector();
    let items = inspector.items("numbers", ..).unwrap();
    let ids: Vec<_> = items.map(|item| item.unwrap().id).collect();
    let id = |nth: usize| ids[nth];
    assert_eq!(
        inspector
            .remove("numbers", Kind::Items, id(30)..=id(40))
            .unwrap(),
        11
    );
    drop((inspector, store));
    let numbers = open(files.path());
    assert_eq!((numbers.len(), numbers.rows()), (39, 50));
    assert!((0..50).all(|number| numbers.refuses(number) != (30..=40).contains(&number)));
    drain(&numbers, 20);
    assert_eq!(numbers.rows(), 0);
}

#[test]
fn rows_are_written_when_a_queue_is_opened_without_them() {
    let files = tempfile::tempdir().unwrap();
    let plain = builder(files.path()).build().unwrap();
    plain.push_batch(0..50).unwrap();
    drop(plain);
    let numbers = open(files.path());
    assert!((100..150).all(|number| numbers.refuses(number)));
    assert_eq!(numbers.rows(), 50);
    drop(numbers);

    // Another key function.
    let tens = builder(files.path()).unique_by(|number| number / 10);
    let tens = tens.build().unwrap();
    assert_eq!(tens.rows(), 5);
    assert!((0..100)
        .step_by(10)
        .all(|number| tens.refuses(number) == (number < 50)));
    drop(tens);

    // What is added without the function.
    let insert = |number: u64| {
        let store = StoreOptions::new().open(files.path()).unwrap();
        let bytes = postcard::to_allocvec(&number).unwrap();
        let bytes = [bytes].into_iter().chain(iter::repeat_n(vec![255; 11], 16));
        let items = bytes.map(|bytes| Record::Item(ItemInfo::new(bytes)));
        store.inspector().insert("numbers", items).unwrap();
    };
    insert(77);
    let numbers = open(files.path());
    assert_eq!(numbers.rows(), 56);
    assert!(numbers.refuses(177));
    drop(numbers);
    insert(88);
    let numbers = open(files.path());
    assert!(numbers.refuses(188));
    drop(numbers);
    let plain = builder(files.path()).build().unwrap();
    plain.push_batch(0..50).unwrap();
    drop(plain);

    // Some have the same keys.
    let numbers = open(files.path());
    assert!((100..150).all(|number| numbers.refuses(number)));
    let mut all = drain(&numbers, 20);
    all.sort_unstable();
    let expected = (0..50).flat_map(|number| [number; 2]);
    assert!(all
        .into_iter()
        .eq(expected.chain([50, 60, 70, 77, 80, 88, 90])));
    numbers.push_batch(0..100).unwrap();
    numbers.stats().check().unwrap();
}

#[test]
fn an_item_of_a_chunk_can_be_replaced() {
    let files = tempfile::tempdir().unwrap();
    let numbers = replacing(files.path());
    numbers.push_batch(0..60).unwrap();
    numbers.shared.log().settle().unwrap();
    assert!(numbers.is_chunk(0));
    numbers.push(105).unwrap(); // in memory
    numbers.push(150).unwrap(); // on the disk
    numbers.push(250).unwrap();
    numbers.push(151).unwrap();
    let removed = numbers.retain(|number, _| number % 100 != 51).unwrap();
    assert_eq!((removed, numbers.len()), (1, 59));
    let tx = numbers.begin_owned();
    let first: Vec<_> = tx.pop_batch(10).unwrap().map(|item| *item).collect();
    assert!(first.contains(&105));
    tx.commit().unwrap();
    numbers.stats().check().unwrap();
    drop(numbers);
    let numbers = replacing(files.path());
    let left = drain(&numbers, 20).into_iter();
    let all: BTreeSet<_> = left.chain(first).collect();
    let expected = (0..60).filter(|number| ![5, 50, 51].contains(number));
    assert!(all.into_iter().eq(expected.chain([105, 250])));
}

/// Removals that have read a chunk before another thread replaced one of its items, so that it is none any more.
#[test]
fn an_item_of_a_former_chunk_is_removed() {
    let files = tempfile::tempdir().unwrap();
    let numbers = replacing(files.path());
    numbers.push_batch(0..60).unwrap();
    numbers.shared.log().settle().unwrap();
    // More than there are ranges for.
    let are_left = |number: u64| number < 10 || !number.is_multiple_of(5);
    let replace = |number: &u64, _| {
        if *number == 51 {
            numbers.push(151).unwrap();
            numbers.shared.log().settle().unwrap();
        }
        are_left(*number)
    };
    assert_eq!(numbers.retain(replace).unwrap(), 10);
    drop(numbers);
    let numbers = replacing(files.path());
    let left: BTreeSet<_> = drain(&numbers, 20).into_iter().collect();
    let expected = (0..60).filter(|number| are_left(*number) && *number != 51);
    assert!(left.into_iter().eq(expected.chain([151])));
}

/// Whether a call waits until a lock is free.
fn waits(lock: impl Sized, call: impl FnOnce() + Send) -> bool {
    thread::scope(|scope| {
        let (done, is_done) = channel();
        scope.spawn(move || {
            call();
            done.send(()).unwrap();
        });
        let waits = (0..10_000).all(|_| {
            thread::yield_now();
            is_done.try_recv().is_err()
        });
        drop(lock);
        waits && is_done.recv().is_ok()
    })
}

/// Until a group is written that spreads a chunk, the tables may have neither that nor a row of the item.
#[test]
fn who_looks_for_an_item_does_not_meet_a_group_that_spreads_its_chunk() {
    let files = tempfile::tempdir().unwrap();
    let numbers = replacing(files.path());
    numbers.push_batch(0..60).unwrap();
    let log = numbers.shared.log();
    log.settle().unwrap();
    let spreading = &log.disk().reads.spreading;
    let key = numbers.shared.key(50);
    assert!(waits(spreading.write(), || {
        assert!(log.disk().item(key).unwrap().is_some());
    }));
    assert!(waits(spreading.read(), || {
        numbers.push(150).unwrap();
        log.settle().unwrap();
    }));
}

#[test]
fn a_duplicate_waits_for_no_room() {
    let files = tempfile::tempdir().unwrap();
    let numbers = builder(files.path()).capacity(30);
    let numbers = numbers.unique_by(|number| number % 100).build().unwrap();
    numbers.push_batch(0..30).unwrap();
    let refused = numbers.push_timeout(129, HOUR).unwrap_err();
    assert_eq!(of(&refused), Some(DuplicateOf::Queued));
    assert!(numbers.push(30).unwrap_err().is_full());
    numbers.pop().unwrap();
    numbers.push(130).unwrap();
    assert!(numbers.push(131).unwrap_err().is_full());
    numbers.stats().check().unwrap();
}

/// Encodes anything, and decodes no number that is divisible by ten.
struct NoTens;

impl Codec<u64> for NoTens {
    fn encode(&self, item: &u64, bytes: &mut Vec<u8>) -> Result<(), CodecError> {
        bytes.extend_from_slice(&item.to_be_bytes());
        Ok(())
    }

    fn decode(&self, bytes: &[u8]) -> Result<u64, CodecError> {
        let number = u64::from_be_bytes(bytes.try_into().map_err(CodecError::new)?);
        let is_ten = number.is_multiple_of(10);
        (!is_ten)
            .then_some(number)
            .ok_or_else(|| CodecError::new("a ten"))
    }
}

#[test]
fn an_item_that_cannot_be_decoded_has_no_key() {
    let files = tempfile::tempdir().unwrap();
    let open = || {
        let builder = builder(files.path()).codec(NoTens);
        let builder = builder.unique_by(|number| match number % 100 {
            13 => panic!("no such key"),
            key => key,
        });
        builder.on_undecodable(OnUndecodable::Bury).build().unwrap()
    };
    let numbers = open();
    numbers
        .push_batch((0..60).filter(|number| *number != 13))
        .unwrap();
    assert!((100..160).all(|number| number == 113 || numbers.refuses(number) == (number % 10 > 0)));
    assert_eq!(drain(&numbers, 20).len(), 53);
    assert_eq!(numbers.dead_letters().undecodable().unwrap().len(), 12);
}

#[test]
fn of_several_threads_one_has_a_key() {
    const ROUNDS: u64 = 400;
    const KEYS: u64 = 30;
    let files = tempfile::tempdir().unwrap();
    let numbers = builder(files.path()).unique_by(|number| number % KEYS);
    let numbers = numbers.build().unwrap();
    let alive: Vec<_> = (0..KEYS).map(|_| AtomicI32::new(0)).collect();
    let alive = |number: u64| &alive[usize::try_from(number % KEYS).unwrap()];
    thread::scope(|scope| {
        for seed in 0..3 {
            let numbers = &numbers;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let number = (round * 7 + seed * 11) % KEYS + KEYS * seed;
                    if numbers.push(number).is_ok() {
                        // A pop may come before.
                        let others = alive(number).fetch_add(1, Ordering::SeqCst);
                        assert!(others <= 0, "{number}: {others}");
                    }
                    if round % 3 > 0 {
                        let tx = numbers.begin_owned();
                        for item in tx.pop_batch(2).unwrap() {
                            if round % 5 > 0 {
                                alive(*item).fetch_sub(1, Ordering::SeqCst);
                            }
                        }
                        if round % 5 > 0 {
                            tx.commit().unwrap();
                        }
                    }
                }
            });
        }
    });
    let left = drain(&numbers, 40);
    let keys: std::collections::HashSet<_> = left.iter().map(|number| number % KEYS).collect();
    assert_eq!(keys.len(), left.len());
    assert_eq!(numbers.rows(), 0);
    numbers.stats().check().unwrap();
}
