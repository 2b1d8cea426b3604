//! A limiter that records the starts that it allowed.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use requeue::{Limiter, Pace, RateSlot};

/// Delegates to a pace, and records the rate slots.
#[derive(Clone)]
pub(crate) struct Diary {
    pace: Pace,
    starts: Arc<Mutex<Vec<Instant>>>,
}

impl Diary {
    pub(crate) fn of(pace: Pace) -> Self {
        let starts = Arc::default();
        Self { pace, starts }
    }

    /// The times of the starts, sorted.
    pub(crate) fn starts(&self) -> Vec<Instant> {
        let mut starts = self.lock().clone();
        starts.sort();
        starts
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Instant>> {
        self.starts.lock().expect("nobody panics meanwhile")
    }
}

impl Limiter for Diary {
    fn start(&self, now: Instant) -> Result<RateSlot, Instant> {
        let slot = self.pace.start(now)?;
        self.lock().push(slot.at());
        Ok(slot)
    }

    /// A cancelled slot is not a start.
    fn cancel(&self, slot: RateSlot, now: Instant) {
        self.lock().retain(|at| *at != slot.at());
        self.pace.cancel(slot, now);
    }

    fn give_back(&self, slot: RateSlot, now: Instant) {
        self.pace.give_back(slot, now);
    }

    fn owed(&self, last: Instant) -> u32 {
        self.pace.owed(last)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_cancelled_slot_is_not_a_start() {
        let second = Duration::from_secs(1);
        let (diary, begin) = (Diary::of(Pace::every(second)), Instant::now());
        let unused = diary.start(begin).unwrap();
        diary.cancel(unused, begin);
        assert!(diary.start(begin).is_ok());
        assert_eq!(diary.start(begin), Err(begin + second));
        assert!(diary.start(begin + second).is_ok());
        assert_eq!(diary.starts(), [begin, begin + second]);
    }
}
