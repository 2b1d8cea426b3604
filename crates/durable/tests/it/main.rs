//! Tests of whole stores.

mod basics;
mod both;
mod differential;
mod jobs;
mod model;
mod orders;
#[path = "../common/random.rs"]
mod random;
#[cfg(feature = "stream")]
mod stream;
mod surface;
mod workers;

use requeue_durable::{Store, StoreOptions};
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
