//! A disk that is full.

use crate::options;
use requeue_durable::{DurableQueue, PushError, StoreError, StoreOptions};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A small file system, unmounted when this is dropped.
struct Disk(TempDir);

impl Disk {
    /// `None`: this process may not mount one.
    fn mount(megabytes: u32) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={megabytes}m"), "none"]);
        match mount.arg(directory.path()).output() {
            Ok(output) if output.status.success() => Some(Self(directory)),
            _ => {
                println!("skipped, since nothing can be mounted here");
                None
            }
        }
    }

    fn store(&self) -> PathBuf {
        self.path().join("store")
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.path()).status();
    }
}

#[test]
fn a_full_disk_refuses_pushes_and_can_be_drained() {
    let Some(disk) = Disk::mount(24) else {
        return;
    };
    let options = || options().memtable(1 << 20).reserve(12 << 20);
    let store = options().open(disk.store()).unwrap();
    let queue: DurableQueue<Vec<u8>> = store.queue("pages").unwrap();
    let mut handle = queue.handle();
    let mut pushed = 0;
    let page = |number: usize| vec![u8::try_from(number % 251).unwrap(); 10_000];
    let mut fill = || loop {
        match queue.push(page(pushed)) {
            Ok(()) => pushed += 1,
            Err(PushError::Store(StoreError::DiskFull)) => break pushed,
            Err(error) => panic!("{error:?}"),
        }
    };
    let first = fill();
    assert!(first > 100, "{first}");
    assert_eq!(handle.pop().unwrap(), page(0));
    let pushed = fill(); // tables may have been merged meanwhile
    assert_eq!(
        queue.len(),
        pushed - 1,
        "what was refused left nothing behind"
    );
    // A transaction that pops and pushes is aborted as a whole.
    let tx = handle.begin();
    tx.pop().unwrap();
    tx.push(page(0)).unwrap();
    assert!(matches!(tx.commit(), Err(StoreError::DiskFull)));
    assert_eq!(queue.len(), pushed - 1);
    for number in 1..pushed / 2 {
        assert_eq!(handle.pop().unwrap(), page(number));
    }
    drop((handle, queue, store));
    let store = options().open(disk.store()).unwrap();
    let queue: DurableQueue<Vec<u8>> = store.queue("pages").unwrap();
    assert_eq!(queue.len(), pushed - pushed / 2);
    for number in pushed / 2..pushed {
        assert_eq!(queue.pop().unwrap(), page(number));
    }
    assert!(store.failure().is_none());
    println!("{pushed} pages");
}

/// What is left is enough for the storage engine to write what it has in memory only, whatever the reserve is.
#[test]
fn a_disk_has_room_for_what_is_not_in_tables_yet() {
    const PAGES: usize = 1_000;
    let Some(disk) = Disk::mount(300) else {
        return;
    };
    let page = |number: usize| format!("{number}{}", " ".repeat(100_000));
    let open = || StoreOptions::new().open(disk.store()).unwrap();
    let store = open();
    let queue: DurableQueue<String> = store.queue("pages").unwrap();
    let push = |first: usize| {
        let tx = queue.begin_owned();
        tx.push_batch((first..first + PAGES).map(page)).unwrap();
        tx
    };
    // The second one is committed before the first one is in a table.
    let transactions = [push(0), push(PAGES)];
    let mut pushed = 0;
    for tx in transactions {
        match tx.commit() {
            Ok(_) => pushed += PAGES,
            Err(error) => assert!(matches!(error, StoreError::DiskFull), "{error:?}"),
        }
    }
    println!("{pushed} pages");
    assert!(pushed > 0);
    let mut left: HashSet<_> = (0..pushed).map(page).collect();
    let mut pop = |queue: &DurableQueue<String>| {
        let popped = queue.pop().map_err(|error| (left.len(), error.to_string()));
        assert!(left.remove(&popped.unwrap()));
    };
    (0..pushed / 2).for_each(|_| pop(&queue));
    drop((queue, store));
    let store = open();
    let queue: DurableQueue<String> = store.queue("pages").unwrap();
    (pushed / 2..pushed).for_each(|_| pop(&queue));
    assert!(store.failure().is_none(), "{:?}", store.failure());
    queue.push(page(0)).unwrap();
}

/// The default options: small commits until the disk is full, then one pop after the other, half of them by the next opening.
#[test]
fn a_disk_that_small_commits_have_filled_can_be_drained() {
    let Some(disk) = Disk::mount(300) else {
        return;
    };
    let page = |number: usize| format!("{number}{}", " ".repeat(20_000));
    let open = || {
        let store = StoreOptions::new().open(disk.store()).unwrap();
        let queue: DurableQueue<String> = store.queue("pages").unwrap();
        (store, queue)
    };
    let (store, queue) = open();
    let mut pushed = 0;
    loop {
        match queue.push(page(pushed)) {
            Ok(()) => pushed += 1,
            Err(PushError::Store(StoreError::DiskFull)) => break,
            Err(error) => panic!("{pushed}: {error}"),
        }
    }
    println!("{pushed} pages");
    for number in 0..pushed / 2 {
        let popped = queue.pop();
        assert_eq!(
            popped.map_err(|error| (number, error.to_string())),
            Ok(page(number))
        );
    }
    assert!(store.failure().is_none(), "{:?}", store.failure());
    drop((store, queue));
    let (store, queue) = open();
    for number in pushed / 2..pushed {
        let popped = queue.pop();
        assert_eq!(
            popped.map_err(|error| (number, error.to_string())),
            Ok(page(number))
        );
    }
    assert!(store.failure().is_none(), "{:?}", store.failure());
    queue.push(page(0)).unwrap();
}

/// The number of the list of tables grows with each flush.
#[test]
fn a_small_reserve_does_not_flush_all_tables_at_each_commit() {
    const POPS: u64 = 200;
    let Some(disk) = Disk::mount(24) else {
        return;
    };
    let store = options().memtable(1 << 20).reserve(1).open(disk.store());
    let store = store.unwrap();
    let queue: DurableQueue<Vec<u8>> = store.queue("pages").unwrap();
    while queue.push(vec![1; 10_000]).is_ok() {}
    assert!(store.failure().is_none(), "{:?}", store.failure());
    let flushes = || {
        let current = fs::read(disk.store().join("db/keyspaces/5/current")).unwrap();
        u64::from_le_bytes(current[..8].try_into().unwrap())
    };
    let before = flushes();
    (0..POPS).for_each(|_| drop(queue.pop().unwrap()));
    let flushes = flushes() - before;
    assert!(flushes < POPS / 10, "{flushes}");
}

#[test]
fn pushes_work_again_after_a_full_disk_was_drained() {
    let Some(disk) = Disk::mount(192) else {
        return;
    };
    let options = || options().memtable(4 << 20).reserve(40 << 20);
    let store = options().open(disk.store()).unwrap();
    let queue: DurableQueue<Vec<u8>> = store.queue("pages").unwrap();
    let batch = || (0..100).map(|number| vec![number; 10_000]);
    let mut pushed = 0;
    while queue.push_batch(batch()).is_ok() {
        pushed += 100;
    }
    assert!(store.failure().is_none(), "{:?}", store.failure());
    let mut popped = 0;
    while popped < pushed {
        popped += queue.pop_batch(10).unwrap().len();
    }
    println!("{pushed} pushed, {popped} popped");
    queue.push_batch(batch()).unwrap();
}

#[test]
fn without_a_reserve_a_full_disk_poisons_and_loses_nothing() {
    let Some(disk) = Disk::mount(12) else {
        return;
    };
    let store = options().open(disk.store()).unwrap();
    let queue: DurableQueue<Vec<u8>> = store.queue("pages").unwrap();
    let mut handle = queue.handle();
    let mut pushed = 0_usize;
    let page = |number: usize| vec![u8::try_from(number % 251).unwrap(); 10_000];
    while handle.push(page(pushed)).is_ok() {
        pushed += 1;
    }
    let Some(StoreError::Poisoned(why)) = store.failure() else {
        panic!("{:?}", store.failure());
    };
    assert!(why.contains("bytes of the disk are free"), "{why}");
    assert!(!why.contains("damaged"), "{why}");
    drop((handle, queue, store));
    // Somebody makes room.
    let remount = Command::new("mount")
        .args(["-o", "remount,size=64m"])
        .arg(disk.path())
        .status();
    assert!(remount.unwrap().success());
    let store = options().open(disk.store()).unwrap();
    let queue: DurableQueue<Vec<u8>> = store.queue("pages").unwrap();
    let len = queue.len();
    assert!(len == pushed || len == pushed + 1, "{len} of {pushed}");
    for number in 0..len {
        assert_eq!(queue.pop().unwrap(), page(number));
    }
    queue.push(page(0)).unwrap();
}
