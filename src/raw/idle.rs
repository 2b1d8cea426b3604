//! Whether a queue is idle: at one instant of the call nothing was ready, held, staged or elsewhere.
//!
//! The instant is the one between two walks over the counters, which lie between the two passes of the strict
//! Empty (`strict.rs`). Why nothing was there then:
//!
//! - nothing was ready, as at each instant between the passes;
//! - nothing was in an order: it was asked before the counters, and what comes there comes from a shard by a
//!   claim, which changes a version if it was made after the first pass;
//! - no transaction held an item: the item was claimed before. If that was after the first pass its version has
//!   changed; if it was before, the first walk sees the item counted as taken;
//! - nothing was elsewhere: items go there from counters that hold them, and leave for a shard first;
//! - no transaction had staged something. Stagings leave no version while they last, and one may begin behind the
//!   walk while another transaction ends before it. So there are two walks. What was staged between them, and
//!   is not any more when the second one comes by, was either published, which the second pass sees, or dropped,
//!   which its counters has counted.
//!
//! The counters in use are the same at both walks, or both are made again.

use super::shards::Shards;
use super::strict::Remainder;
use crate::sync::planted;

impl<T> Shards<T> {
    /// Whether nothing is ready, held or staged, nor in an order or elsewhere, at one instant of the call.
    ///
    /// `none_in_order` and `none_elsewhere` are asked as by [`Shards::left_when_closed`].
    pub(crate) fn is_idle(
        &self,
        none_in_order: impl Fn() -> bool,
        none_elsewhere: impl Fn() -> bool,
    ) -> bool {
        let rests = || none_in_order() && self.rests_while(&none_elsewhere);
        // First without the versions: where something is ready that ends at the first shard that has some.
        self.collect_if_empty().is_some() && self.remainder(rests) == Remainder::Nothing
    }

    /// Whether no counters is open at the instant at which `none_elsewhere` is asked.
    fn rests_while(&self, none_elsewhere: impl Fn() -> bool) -> bool {
        loop {
            let counters = self.handles().version();
            let before = self.unstaged_unless_open();
            if before.is_none() || !none_elsewhere() {
                return false;
            }
            planted!("idle.walks-once", return true);
            let after = self.unstaged_unless_open();
            if after.is_none() {
                return false;
            }
            if after == before && self.handles().version() == counters {
                return true;
            }
        }
    }

    /// The numbers of all counters, added up; `None` if one is open.
    fn unstaged_unless_open(&self) -> Option<u64> {
        let mut counters = self.handles().in_use();
        counters.try_fold(0, |sum: u64, counters| {
            Some(sum.wrapping_add(counters.unstaged_unless_open()?))
        })
    }
}
