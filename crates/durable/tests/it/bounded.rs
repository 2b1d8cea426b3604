//! The room that a store takes on the disk.

use super::directory;
use requeue_durable::{Durability, StoreOptions};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// How many bytes a directory takes.
fn taken(path: &Path) -> u64 {
    let metadata = path.symlink_metadata().unwrap();
    let mut bytes = metadata.blocks() * 512;
    if metadata.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            // Some are removed meanwhile.
            let path = entry.unwrap().path();
            bytes += if path.exists() { taken(&path) } else { 0 };
        }
    }
    bytes
}

/// Each megabyte of `DURABLE_MEGABYTES` is written to a journal, and to a table.
#[test]
fn when_all_is_popped_three_memtables_are_left_at_most() {
    let megabytes: u64 = std::env::var("DURABLE_MEGABYTES").map_or(88, |it| it.parse().unwrap());
    let memtable = std::env::var("DURABLE_MEMTABLE").map_or(8, |it| it.parse().unwrap());
    let directory = directory();
    let store = StoreOptions::new().memtable(memtable << 20);
    let store = store.durability(Durability::Buffered {
        at_most: Duration::from_secs(3600),
    });
    let store = store.open(directory.path()).unwrap();
    let jobs = store.builder::<String>("jobs").max_attempts(3);
    let jobs = jobs.build().unwrap();
    for _ in 0..megabytes {
        jobs.push("0".repeat(1 << 20)).unwrap();
    }
    store.flush().unwrap();
    let full = taken(directory.path());
    assert!(full >= megabytes << 20, "{full}");
    while jobs.pop().is_ok() {}
    store.flush().unwrap();
    // This waits for the thread that gives back the room.
    drop((jobs, store));
    let left = taken(directory.path());
    let most = (3 * u64::max(memtable, 64)) << 20;
    eprintln!("{full} bytes with all items, {left} with none");
    assert!(left <= most, "{left} bytes of {most}");
    // In the small test nothing would be too much.
    assert!(left < full / 2, "{left} bytes of {full}");
}
