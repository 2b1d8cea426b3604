//! Copies of stores that are in use.

use super::{directory, open, options};
use requeue_durable::{Durability, DurableQueue, Store, StoreError};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// Says to the other threads that the test has ended, also by a panic.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn copied(store: &Store, path: &Path) -> Store {
    store.snapshot_to(path).unwrap();
    options().open(path).unwrap()
}

/// Two queues that are changed by one commit have the same in each copy, and at least what was acknowledged before.
#[test]
fn each_copy_is_a_prefix_with_all_that_was_acknowledged() {
    let directory = directory();
    let store = options().memtable(64 << 10).open(directory.path()).unwrap();
    let [in_queue, out]: [DurableQueue<u64>; 2] =
        ["in", "out"].map(|name| store.queue(name).unwrap());
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let _stop = Stop(&stop);
        scope.spawn(|| {
            for number in 0.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                // Each number is pushed to `in`, and moved to `out` with the next one's push.
                let [first, second] = [in_queue.begin_owned(), out.begin_owned()];
                if number > 0 {
                    second.push(first.pop().unwrap().to_owned()).unwrap();
                }
                first.push(number).unwrap();
                let durability = if number % 3 == 0 {
                    Durability::Synced
                } else {
                    let at_most = Duration::from_secs(3600);
                    Durability::Buffered { at_most }
                };
                requeue_durable::commit_all_with((first, second), durability).unwrap();
                done.store(number + 1, Ordering::Release);
            }
        });
        for copy in 0..5 {
            while done.load(Ordering::Acquire) < copy * 500 {
                thread::yield_now();
            }
            let acknowledged = done.load(Ordering::Acquire);
            let path = directory.path().join(format!("copy {copy}"));
            let copy = copied(&store, &path);
            let [in_copy, out_copy]: [DurableQueue<u64>; 2] =
                ["in", "out"].map(|name| copy.queue(name).unwrap());
            let moved = out_copy.pop_batch(usize::MAX).unwrap();
            let left = in_copy.pop_batch(usize::MAX).unwrap();
            let all: Vec<_> = moved.iter().chain(&left).copied().collect();
            assert_eq!(all, (0..all.len() as u64).collect::<Vec<_>>());
            assert_eq!(left.len(), usize::from(!all.is_empty()));
            assert!(
                all.len() as u64 >= acknowledged,
                "{} of {acknowledged}",
                all.len()
            );
        }
    });
}

#[test]
fn a_copy_goes_on_as_a_store_of_its_own() {
    let directory = directory();
    let path = directory.path().join("copy");
    let store = open(&directory);
    let jobs = store
        .builder::<String>("jobs")
        .max_attempts(3)
        .build()
        .unwrap();
    jobs.push_batch(["first", "second"].map(String::from))
        .unwrap();
    let tx = jobs.begin_owned();
    tx.fail(tx.pop().unwrap(), "no page").unwrap();
    tx.commit().unwrap();
    drop(copied(&store, &path));
    for expected in 1..3 {
        let copy = options().open(&path).unwrap();
        let jobs = copy.queue::<String>("jobs").unwrap();
        assert_eq!((jobs.len(), jobs.dead_letters().len()), (expected, 1));
        jobs.push("third".into()).unwrap();
    }
    assert_eq!(jobs.pop_batch(9).unwrap(), ["second"]);
    let copy = options().open(&path).unwrap();
    let again = directory.path().join("again");
    let again = copied(&copy, &again);
    let jobs = again.queue::<String>("jobs").unwrap();
    assert_eq!(jobs.pop_batch(9).unwrap(), ["second", "third", "third"]);
}

#[test]
fn what_is_there_is_not_replaced() {
    let directory = directory();
    let store = open(&directory);
    let [file, copy] = ["file", "copy"].map(|name| directory.path().join(name));
    fs::write(&file, "mine").unwrap();
    fs::create_dir(&copy).unwrap();
    assert!(store.snapshot_to(&copy).is_err());
    fs::remove_dir(&copy).unwrap();
    let refused = store.snapshot_to(&file);
    assert!(matches!(&refused, Err(StoreError::Io(_))), "{refused:?}");
    assert!(refused.unwrap_err().to_string().contains("file"));
    fs::create_dir(directory.path().join("copy.incomplete")).unwrap();
    assert!(store.snapshot_to(&copy).is_err());
    assert!(!copy.exists());
    fs::remove_dir(directory.path().join("copy.incomplete")).unwrap();
    assert!(store
        .snapshot_to(directory.path().join("no/such/folder"))
        .is_err());
    drop(copied(&store, &copy));
    assert!(store.snapshot_to(&copy).is_err());
    assert_eq!(fs::read(&file).unwrap(), b"mine");
}

#[test]
fn a_buffered_commit_is_in_the_copy() {
    let directory = directory();
    let at_most = Duration::from_secs(3600);
    let options = options().durability(Durability::Buffered { at_most });
    let store = options.open(directory.path()).unwrap();
    let jobs = store.queue::<u8>("jobs").unwrap();
    jobs.push(1).unwrap();
    let copy = copied(&store, &directory.path().join("copy"));
    assert_eq!(copy.queue::<u8>("jobs").unwrap().pop().unwrap(), 1);
}
