//! Tests of whole stores.

mod aborts;
mod basics;
mod both;
mod bounded;
mod differential;
mod failing;
mod formats;
mod jobs;
#[cfg(feature = "metrics")]
mod metrics;
mod orders;
#[path = "../common/random.rs"]
mod random;
#[cfg(feature = "metrics")]
#[path = "../common/recorder.rs"]
mod recorder;
mod refused;
mod removal;
mod reopened;
mod snapshot;
#[cfg(feature = "stream")]
mod stream;
mod superseded;
mod surface;
mod threads;
mod ttl;
mod undecodable;
mod workers;

use requeue_durable::{Store, StoreOptions};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// A directory for a store.
fn directory() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

/// A store that needs little room.
fn open(directory: &TempDir) -> Store {
    options().open(directory.path()).expect("a store")
}

fn options() -> StoreOptions {
    StoreOptions::new().memtable(1 << 20).reserve(0)
}

/// A copy of the directory of an open store, as a process that is killed leaves it.
fn copy_of(directory: &TempDir) -> TempDir {
    let copy = self::directory();
    copy_all(directory.path(), copy.path());
    copy
}

fn copy_all(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir_all(&to).unwrap();
            copy_all(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}
