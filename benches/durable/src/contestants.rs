//! The tables of jobs.

mod fjall;
mod memory;
mod redb;
mod requeue;
mod sqlite;

use crate::Failure;
use std::path::Path;

/// A table of jobs: numbers, popped about in the order of their pushes.
pub(crate) trait Jobs: Send + Sync {
    /// The access of one thread.
    fn user(&self) -> Box<dyn User + '_>;

    /// Makes buffered commits durable.
    fn flush(&self) -> Result<(), Failure>;

    fn len(&self) -> Result<u64, Failure>;
}

pub(crate) trait User {
    /// Pushes all, in one commit.
    fn push(&mut self, jobs: &[u64]) -> Result<(), Failure>;

    /// Takes up to `max`, in one commit.
    fn pop(&mut self, max: usize, jobs: &mut Vec<u64>) -> Result<(), Failure>;
}

type Open = fn(&Path, bool) -> Result<Box<dyn Jobs>, Failure>;

pub(crate) struct Contestant {
    pub(crate) name: &'static str,
    pub(crate) on_disk: bool,
    /// Opens the table in a directory, or creates it; with synced commits or with buffered ones.
    pub(crate) open: Open,
}

pub(crate) const DURABLE: &str = "requeue-durable";
pub(crate) const FJALL: &str = "fjall alone";
pub(crate) const REDB: &str = "redb";
pub(crate) const SQLITE: &str = "SQLite";
pub(crate) const MEMORY: &str = "requeue, in memory";

pub(crate) const ALL: [Contestant; 5] = [
    Contestant {
        name: DURABLE,
        on_disk: true,
        open: requeue::open,
    },
    Contestant {
        name: FJALL,
        on_disk: true,
        open: fjall::open,
    },
    Contestant {
        name: REDB,
        on_disk: true,
        open: redb::open,
    },
    Contestant {
        name: SQLITE,
        on_disk: true,
        open: sqlite::open,
    },
    Contestant {
        name: MEMORY,
        on_disk: false,
        open: memory::open,
    },
];

/// How long a buffered commit may be lost by a crash, for those that can say it.
pub(crate) const AT_MOST: std::time::Duration = std::time::Duration::from_millis(100);
