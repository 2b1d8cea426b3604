//! The start of an item of a queue in the database.

use requeue::{Limiter, Pace, RateSlot};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::time::Instant;

/// A slot of the pace of a queue, for one item. If it is dropped, the item was not committed.
pub(crate) struct Start {
    pace: Pace,
    slot: Option<RateSlot>,
}

impl Start {
    /// Takes up to `max` slots; and returns when to try again, if one was refused.
    pub(crate) fn take(pace: &Pace, max: usize) -> (Vec<Self>, Option<Instant>) {
        let mut starts = Vec::new();
        while starts.len() < max {
            match pace.start(Instant::now()) {
                Ok(slot) => starts.push(Self {
                    pace: pace.clone(),
                    slot: Some(slot),
                }),
                Err(again) => return (starts, Some(again)),
            }
        }
        (starts, None)
    }

    /// Ends the slot. The limiter is user code; its panics are caught.
    pub(crate) fn end(&mut self, end: impl FnOnce(&Pace, RateSlot)) {
        if let Some(slot) = self.slot.take() {
            let ended = catch_unwind(AssertUnwindSafe(|| end(&self.pace, slot)));
            let _ = ended.map_err(std::mem::forget); // a payload whose destructor may panic
        }
    }
}

impl Drop for Start {
    fn drop(&mut self) {
        self.end(|pace, slot| pace.give_back(slot, Instant::now()));
    }
}
