//! Checks that all items that entered the queue have left it.

use std::fmt;

use requeue::Stats;

use super::tally::Tally;

/// The jobs as the workers saw them: each is pushed once, and counted or reported once.
pub(crate) struct Balance {
    pushed: u64,
    committed: u64,
    reported: u64,
}

impl Balance {
    pub(crate) fn of(tally: &Tally) -> Self {
        Self {
            pushed: tally.pushed,
            committed: tally.total().files + tally.directories + tally.symlinks + tally.others,
            reported: tally.unreadable.len() as u64,
        }
    }

    /// Checks that the workers' counts are consistent, and agree with those of the queue, which must be drained.
    pub(crate) fn check(&self, stats: &Stats) -> Result<(), String> {
        if !self.holds() {
            return Err(format!("jobs were lost or duplicated: {self}"));
        }
        let ours = (self.pushed, self.committed + self.reported, 0, 0);
        if ours == (stats.pushed, stats.committed, stats.ready, stats.held) {
            Ok(())
        } else {
            Err(format!(
                "the queue contradicts its workers: {self}, but {stats:?}"
            ))
        }
    }

    fn holds(&self) -> bool {
        self.pushed == self.committed + self.reported
    }
}

impl fmt::Display for Balance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            pushed,
            committed,
            reported,
        } = self;
        let sign = if self.holds() { "=" } else { "!=" };
        write!(
            f,
            "{pushed} pushed {sign} {committed} committed + {reported} reported"
        )
    }
}

#[cfg(test)]
mod tests {
    use requeue::Queue;

    use super::*;

    fn check(pushed: u64, committed: u64, reported: u64, queue: &Queue<()>) -> Result<(), String> {
        let balance = Balance {
            pushed,
            committed,
            reported,
        };
        balance.check(&queue.stats())
    }

    fn pushed_and_popped(pushed: u64, popped: u64) -> Queue<()> {
        let queue = Queue::unbounded();
        (0..pushed).for_each(|_| queue.push(()).unwrap());
        (0..popped).for_each(|_| queue.pop().unwrap());
        queue
    }

    #[test]
    fn a_drained_queue_balances() {
        assert_eq!(check(3, 2, 1, &pushed_and_popped(3, 3)), Ok(()));
    }

    #[test]
    fn a_lost_or_doubled_job_is_noticed() {
        let queue = pushed_and_popped(3, 3);
        let lost = check(3, 2, 0, &queue).unwrap_err();
        assert!(
            lost.contains("3 pushed != 2 committed + 0 reported"),
            "{lost}"
        );
        assert!(check(3, 3, 1, &queue).is_err());
    }

    #[test]
    fn a_queue_of_another_opinion_is_noticed() {
        let contradicted = check(2, 1, 1, &pushed_and_popped(3, 3)).unwrap_err();
        assert!(contradicted.contains("contradicts"), "{contradicted}");
        assert!(check(3, 3, 0, &pushed_and_popped(3, 2)).is_err());
    }
}
