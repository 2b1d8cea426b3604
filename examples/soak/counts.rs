//! What happened, as numbers.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, more: usize) {
        // ORDERING: Relaxed; a number on its own. Exact reads follow the join of all threads.
        self.0.fetch_add(more as u64, Ordering::Relaxed);
    }

    pub(crate) fn one(&self) {
        self.add(1);
    }

    pub(crate) fn get(&self) -> u64 {
        // ORDERING: as in `add`.
        self.0.load(Ordering::Relaxed)
    }
}

/// Makes the counters, and prints them under their names.
macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        #[derive(Default)]
        pub(crate) struct Counts {
            $($(#[$doc])* pub(crate) $name: Counter,)*
        }

        impl fmt::Display for Counts {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                $(writeln!(f, "  {:12}{:>12}", stringify!($name), self.$name.get())?;)*
                Ok(())
            }
        }
    };
}

counts! {
    /// Items whose push was committed.
    pushed,
    /// Pushes that were refused: no room, also after a timeout, or closed.
    refused,
    /// Items whose pop was committed.
    committed,
    /// Transactions with items that were aborted, dropped or forgotten.
    aborted,
    /// Panics on purpose in transactions and in workers.
    panicked,
    /// Futures that were dropped before they were ready.
    cancelled,
    /// Tasks that were aborted.
    killed,
    /// Commits that failed since a lease was over.
    expired,
    /// Leases that were renewed.
    renewed,
    /// Items taken back by name.
    recovered,
    /// Items that were given back with a delay.
    retried,
    /// Items that were given up.
    failed,
    /// Dead letters that were drained, or removed by an overflow.
    letters,
    /// Dead letters that were pushed again.
    requeued,
    /// Commits over several queues.
    joint,
    /// Handles that were made.
    handles,
    /// Items that were looked at.
    peeked,
    /// Pauses of a queue.
    paused,
    /// Queues that were closed.
    closed,
}
