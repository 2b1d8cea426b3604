//! Whether a queue is idle: at one instant of the call no item was ready, held, staged or elsewhere.
//!
//! The instant is between two passes over the counters, which lie between the first and the second collect of the
//! strict Empty (`strict.rs`). There were no items then:
//!
//! - none was ready, as at each instant between the collects;
//! - none was in an order: this is checked before the counters, and an item gets there from a shard by a claim,
//!   which changes a version if it was made after the first collect;
//! - none was held by a transaction: the item was claimed before. If that was after the first collect the version has
//!   changed; if it was before, the first pass sees the item counted as taken;
//! - none was elsewhere: items get there from counters that hold them, and are put into a shard before they are
//!   removed from there;
//! - none was staged. A staging changes no version until it ends, and one may begin behind a pass while another
//!   transaction ends ahead of it. This is why there are two passes. Items staged between them, and no longer staged
//!   at the second one, were either published, which the second collect sees, or dropped, which their counters have
//!   counted.
//!
//! The counters in use are the same in both passes, otherwise both are repeated.

use crate::raw::registry::shards::Shards;
use crate::raw::registry::strict::Remainder;
use crate::sync::planted;

impl<T> Shards<T> {
    /// Whether no item is ready, held or staged, nor in an order or elsewhere, at one instant of the call.
    ///
    /// `none_in_order` and `none_elsewhere` are called as by [`Shards::left_when_closed`].
    pub(crate) fn is_idle(
        &self,
        none_in_order: impl Fn() -> bool,
        none_elsewhere: impl Fn() -> bool,
    ) -> bool {
        let none_open = || none_in_order() && self.none_open(&none_elsewhere);
        // A single collect first: it ends at the first shard with a ready item.
        self.collect_if_empty().is_some() && self.remainder(none_open) == Remainder::Nothing
    }

    /// Whether no transaction is open at the instant at which `none_elsewhere` is called.
    fn none_open(&self, none_elsewhere: impl Fn() -> bool) -> bool {
        loop {
            let counters = self.handles.used().version();
            let before = self.unstaged_unless_open();
            if before.is_none() || !none_elsewhere() {
                return false;
            }
            planted!("idle.walks-once", return true);
            let after = self.unstaged_unless_open();
            if after.is_none() {
                return false;
            }
            if after == before && self.handles.used().version() == counters {
                return true;
            }
        }
    }

    /// The sum of the numbers of all counters; `None` if a transaction is open.
    fn unstaged_unless_open(&self) -> Option<u64> {
        let mut counters = self.handles.in_use();
        counters.try_fold(0, |sum: u64, counters| {
            Some(sum.wrapping_add(counters.unstaged_unless_open()?))
        })
    }
}
