//! What one thread or task has seen of a queue, in its order.

use std::collections::HashMap;

use requeue::Item;

use super::lanes::{InOrder, Rules};
use super::ledger::{Job, Ledger};

/// Checks the order of the items that were never delivered before: those of a handle ascend.
#[derive(Default)]
pub(crate) struct Observer {
    /// The last number by stream and key.
    last: HashMap<(u32, u8), u32>,
}

impl Observer {
    /// A transaction took `item`.
    pub(crate) fn delivered(&mut self, ledger: &Ledger, rules: &Rules, item: &Item<'_, Job>) {
        if ledger.delivered(item, item.attempts(), rules.leased) {
            self.see(ledger, rules, item);
        }
    }

    /// A pop without a transaction took `job`, before it is recorded as consumed.
    pub(crate) fn popped(&mut self, ledger: &Ledger, rules: &Rules, job: &Job) {
        // A late worker records its attempt late, so a leased item may have been delivered before.
        if !rules.leased && ledger.is_first(job) {
            self.see(ledger, rules, job);
        }
    }

    fn see(&mut self, ledger: &Ledger, rules: &Rules, job: &Job) {
        let key = match rules.in_order {
            InOrder::Handle => 0,
            InOrder::Key => job.key,
            InOrder::Priority | InOrder::No => return,
        };
        let last = self.last.insert((job.stream, key), job.number);
        if last.is_some_and(|last| last >= job.number) {
            let name = rules.name;
            ledger.fault(format_args!(
                "{name}: {job:?} came after {last:?} of the same handle"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::counts::Counts;
    use super::super::lanes::Lanes;
    use super::super::rng::Rng;
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_first_delivery_that_was_overtaken_is_a_fault() {
        let ledger = Arc::new(Ledger::new());
        let lane = Lanes::new(&ledger, &Arc::new(Counts::default())).plain;
        let make = || lane.job(&ledger, 7, &mut Rng::new(1)).unwrap();
        let (first, second, third) = (make(), make(), make());
        let mut observer = Observer::default();
        observer.popped(&ledger, &lane.rules, &first);
        observer.popped(&ledger, &lane.rules, &third);
        assert_eq!(ledger.fault_count(), 0);
        observer.popped(&ledger, &lane.rules, &second);
        assert_eq!(ledger.fault_count(), 1);
    }
}
