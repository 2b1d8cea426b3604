//! A queue on disk: its items survive the process.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;

use requeue::{Imbalance, Workers};
use requeue_durable::{DurableQueue, Store};

use crate::site::observe_workers;

const INVOICES: &str = "invoices";

/// The queue, its workers, and where it is.
pub(crate) struct Invoices {
    queue: DurableQueue<u32>,
    workers: Workers,
}

impl Invoices {
    /// Opens the queue in a store, which is created if it is not there. Its last part of the path is the label of its metrics.
    pub(crate) fn open(store: &Path) -> Result<Self, Box<dyn Error>> {
        // Deliveries are written, so that one that kills the process counts.
        let builder = Store::open(store)?.builder(INVOICES).timestamps();
        let queue = builder.max_attempts(3).build()?;
        let workers = Workers::builder(&queue).threads(2).name(INVOICES);
        let workers = workers.run(|_invoice, _tx| Ok::<_, String>(()));
        Ok(Self { queue, workers })
    }

    pub(crate) fn load(&self) -> Result<(), Box<dyn Error>> {
        self.queue.push_batch(0..10)?;
        Ok(())
    }

    pub(crate) fn settle(&self) {
        self.queue.wait_idle();
    }

    pub(crate) fn check(&self) -> Result<(), Imbalance> {
        self.queue.stats().check()
    }

    /// Emits the metrics that are read at a scrape: those of the queue and of its store, and those of the program.
    pub(crate) fn observe(&self) {
        self.queue.stats();
        let dead = self.queue.dead_letters().len();
        observe_workers(INVOICES, &self.workers, dead);
    }
}

/// A directory that is removed when this is dropped, if it is for this process only.
pub(crate) struct Place {
    directory: PathBuf,
    is_own: bool,
}

impl Place {
    /// Where the store is from run to run; or one for this process, in which several may run at a time.
    pub(crate) fn new(is_own: bool) -> Self {
        let of = is_own.then(|| format!("-{}", process::id()));
        let name = format!("requeue-exporter{}", of.unwrap_or_default());
        let directory = env::temp_dir().join(name);
        Self { directory, is_own }
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.directory.join("accounts")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.is_own {
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}
