//! Whether a queue is idle: at one instant of the call nothing was ready, held, staged or elsewhere.
//!
//! The instant is the one between two walks over the desks, which lie between the two passes of the strict
//! Empty (`strict.rs`). Why nothing was there then:
//!
//! - nothing was ready, as at each instant between the passes;
//! - nothing was in an order: it was asked before the desks, and what comes there comes from a lane by a
//!   claim, which changes a mark if it was made after the first pass;
//! - no transaction held an item: the item was claimed before. If that was after the first pass its mark has
//!   changed; if it was before, the first walk sees the item counted as taken;
//! - nothing was elsewhere: items go there from desks that hold them, and leave for a lane first;
//! - no transaction had staged something. Stagings leave no mark while they last, and one may begin behind the
//!   walk while another transaction ends before it. So there are two walks. What was staged between them, and
//!   is not any more when the second one comes by, was either published, which the second pass sees, or dropped,
//!   which its desk has counted.
//!
//! The desks in use are the same at both walks, or both are made again.

use super::lanes::Lanes;
use super::strict::Remainder;
use crate::sync::planted;

impl<T> Lanes<T> {
    /// Whether nothing is ready, held or staged, nor in an order or elsewhere, at one instant of the call.
    ///
    /// `none_in_order` and `none_elsewhere` are asked as by [`Lanes::left_when_closed`].
    pub(crate) fn is_idle(
        &self,
        none_in_order: impl Fn() -> bool,
        none_elsewhere: impl Fn() -> bool,
    ) -> bool {
        let rests = || none_in_order() && self.rests_while(&none_elsewhere);
        // First without the marks: where something is ready that ends at the first lane that has some.
        self.marks_if_empty().is_some() && self.remainder(rests) == Remainder::Nothing
    }

    /// Whether no desk is open at the instant at which `none_elsewhere` is asked.
    fn rests_while(&self, none_elsewhere: impl Fn() -> bool) -> bool {
        loop {
            let desks = self.desks().version();
            let before = self.unstaged_unless_open();
            if before.is_none() || !none_elsewhere() {
                return false;
            }
            planted!("idle.walks-once", return true);
            let after = self.unstaged_unless_open();
            if after.is_none() {
                return false;
            }
            if after == before && self.desks().version() == desks {
                return true;
            }
        }
    }

    /// The numbers of all desks, added up; `None` if one is open.
    fn unstaged_unless_open(&self) -> Option<u64> {
        let mut desks = self.desks().in_use();
        desks.try_fold(0, |sum: u64, desk| {
            Some(sum.wrapping_add(desk.unstaged_unless_open()?))
        })
    }
}
