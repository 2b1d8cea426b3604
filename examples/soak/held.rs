//! What a transaction holds, as the checks see it.

use std::sync::atomic::Ordering;

use super::lanes::{mark_busy, Rules};
use super::ledger::{Job, Ledger};

/// Jobs that a transaction holds. It must be dropped before the transaction ends, so that this hold lies within that
/// of the queue: if two of these overlap where they must not, the holds of the queue do too.
pub(crate) struct Held<'s> {
    rules: &'s Rules,
    keys: Vec<u8>,
}

impl<'s> Held<'s> {
    pub(crate) fn new(rules: &'s Rules) -> Self {
        Self {
            rules,
            keys: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, ledger: &Ledger, job: &Job) {
        self.keys.push(job.key);
        // ORDERING: AcqRel, so that a hold that began after another one ended is counted after it.
        let held = 1 + self.rules.held.fetch_add(1, Ordering::AcqRel);
        if held > self.rules.max_held {
            let (name, most) = (self.rules.name, self.rules.max_held);
            ledger.fault(format_args!("{name}: {held} items are held, {most} may be"));
        }
        let Some(busy) = &self.rules.busy else {
            return;
        };
        if !mark_busy(&busy[usize::from(job.key)], true) {
            ledger.fault(format_args!("{job:?}: another item of its key is held"));
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        for key in &self.keys {
            if let Some(busy) = &self.rules.busy {
                mark_busy(&busy[usize::from(*key)], false);
            }
            // ORDERING: as in `add`.
            self.rules.held.fetch_sub(1, Ordering::AcqRel);
        }
    }
}
