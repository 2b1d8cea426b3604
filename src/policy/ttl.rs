//! The time to live of items, by the times of their pushes.

use crate::time::later;
use std::time::Duration;

/// What becomes of items whose [time to live](crate::Builder::ttl) is over: see
/// [`Builder::on_expired`](crate::Builder::on_expired).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AfterTtl {
    /// They are dropped.
    #[default]
    Drop,
    /// They become [dead letters](crate::Queue::dead_letters). Those for which there is no room are dropped.
    DeadLetter,
}

/// How long items live.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ttl {
    pub(crate) span: Duration,
    /// Whether an item may live for a shorter time.
    #[cfg_attr(not(feature = "broker"), allow(dead_code))]
    pub(crate) is_max: bool,
    pub(crate) after: AfterTtl,
    /// Whether the overflow function drops those of them that become dead letters.
    pub(crate) drops_letters: bool,
}

impl Ttl {
    /// When the time of an item with this time stamp is over.
    pub(crate) fn end(&self, since: u64) -> u64 {
        later(since.saturating_sub(1), self.span)
    }

    /// The time stamp of an item whose time is over at this deadline.
    pub(crate) fn begin(&self, deadline: u64) -> u64 {
        deadline.saturating_sub(later(0, self.span)) + 1
    }

    /// The last time stamp of those whose time is over; 0 if there are none.
    pub(crate) fn over(&self, now: u64) -> u64 {
        let first = now.checked_sub(later(0, self.span));
        first.map_or(0, |first| first + 1)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_an_item_is_the_first_time_at_which_it_is_over() {
        let ttl = |nanos| Ttl {
            span: Duration::from_nanos(nanos),
            is_max: true,
            after: AfterTtl::Drop,
            drops_letters: false,
        };
        for (nanos, since) in [(1, 1), (5, 1), (5, 9), (1_000, 7)] {
            let (ttl, is_over) = (ttl(nanos), |ttl: Ttl, now| since <= ttl.over(now));
            assert!(is_over(ttl, ttl.end(since)));
            assert!(!is_over(ttl, ttl.end(since) - 1));
        }
        let forever = ttl(u64::MAX);
        assert_eq!(
            (forever.over(u64::MAX - 2), forever.end(9)),
            (0, u64::MAX - 1)
        );
    }
}
