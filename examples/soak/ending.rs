//! Records what a commit did.

use requeue::Expired;

use super::lanes::{Lane, Put};
use super::ledger::Job;
use super::whole::Soak;

impl Soak {
    /// Records the end of a transaction by `try_commit`, which held this number of items and staged these.
    pub(crate) fn ended<O: Put>(
        &self,
        lane: &Lane<O>,
        end: Result<impl Iterator<Item = Job>, Expired>,
        held: usize,
        staged: &[Job],
    ) {
        let Ok(taken) = end else {
            return self.expired(lane);
        };
        let mut count = 0;
        for job in taken {
            lane.consume(&self.ledger, &self.counts, &job);
            count += 1;
        }
        if count != held {
            let name = lane.rules.name;
            self.ledger.fault(format_args!(
                "{name}: a commit returned {count} items of {held}"
            ));
        }
        for job in staged {
            lane.accept(&self.ledger, &self.counts, job);
        }
    }

    /// A commit failed: an item was taken back, which is possible with leases only.
    pub(crate) fn expired<O: Put>(&self, lane: &Lane<O>) {
        self.counts.expired.one();
        if !lane.rules.leased {
            let name = lane.rules.name;
            self.ledger
                .fault(format_args!("{name}: a commit without leases failed"));
        }
    }
}
