//! A pace that keeps when it let items start.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use requeue::{Limiter, Pace, RateSlot};

/// Gives the turns of a pace, and writes down when.
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

    /// When items were started, in that order.
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
        let turn = self.pace.start(now)?;
        self.lock().push(turn.at());
        Ok(turn)
    }

    /// Nothing was started.
    fn cancel(&self, turn: RateSlot, now: Instant) {
        self.lock().retain(|at| *at != turn.at());
        self.pace.cancel(turn, now);
    }

    fn give_back(&self, turn: RateSlot, now: Instant) {
        self.pace.give_back(turn, now);
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
    fn a_turn_that_is_not_used_is_no_start() {
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
