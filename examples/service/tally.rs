//! Counts the outcomes of the jobs.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// The counts, and the numbers of the accepted jobs that are not done.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    received: u64,
    rejected: u64,
    done: u64,
    failures: u64,
    open: HashSet<u64>,
}

impl Tally {
    fn counts<R>(&self, change: impl FnOnce(&mut Counts) -> R) -> R {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut counts)
    }

    /// Counts a received line, and returns the number of its job. Until it is rejected it counts as accepted.
    pub(crate) fn receive(&self) -> u64 {
        self.counts(|counts| {
            counts.received += 1;
            counts.open.insert(counts.received);
            counts.received
        })
    }

    pub(crate) fn reject(&self, job: u64) {
        self.counts(|counts| {
            assert!(counts.open.remove(&job), "a job that was rejected was done");
            counts.rejected += 1;
        });
    }

    pub(crate) fn finish(&self, job: u64) {
        self.counts(|counts| {
            assert!(counts.open.remove(&job), "a job was done twice");
            counts.done += 1;
        });
    }

    /// Counts a failed step, which will be retried.
    pub(crate) fn fail(&self) {
        self.counts(|counts| counts.failures += 1);
    }

    pub(crate) fn accepted(&self) -> u64 {
        self.counts(|counts| counts.received - counts.rejected)
    }

    pub(crate) fn rejected(&self) -> u64 {
        self.counts(|counts| counts.rejected)
    }

    /// Checks that accepted = done, at the end.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.counts(|counts| {
            let accepted = counts.received - counts.rejected;
            if accepted == counts.done && counts.open.is_empty() {
                return Ok(());
            }
            Err(format!(
                "{accepted} accepted != {} done; open: {:?}",
                counts.done, counts.open
            ))
        })
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.counts(|counts| {
            let accepted = counts.received - counts.rejected;
            writeln!(
                f,
                "{} received = {accepted} accepted + {} rejected",
                counts.received, counts.rejected
            )?;
            writeln!(f, "{} steps failed and were taken again", counts.failures)?;
            write!(f, "conservation: {accepted} accepted, {} done", counts.done)
        })
    }
}
