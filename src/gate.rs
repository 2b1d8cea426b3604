//! The gate: whether an item may be taken just now, whatever is ready.
//!
//! It is shut while the queue is paused, while as many items are held as may be, and until its pace allows
//! the next start. To those who wait a gate that opens is a publication as any other: it is changed, and
//! then they are looked for.

use crate::sync::{lock, AtomicUsize, Mutex, Ordering};
use crate::time::{later, Time};
use crate::{Pace, Turn, Turnstile};
use std::mem;
use std::time::Instant;

const PAUSED: usize = 1;
const PACED: usize = 1 << 1;
const LIMITED: usize = 1 << 2;

/// What one queue asks before it gives out items.
pub(crate) struct Gate {
    /// What there is to ask: 0 if nothing.
    flags: AtomicUsize,
    pace: Mutex<Pace>,
    /// The most items that may be held, if there is a limit.
    most: usize,
    /// Items that are held, where there is a limit.
    held: AtomicUsize,
}

/// A turn that was had, and the pace that gave it.
pub(crate) struct Start {
    pace: Pace,
    turn: Turn,
}

impl Gate {
    pub(crate) fn new(pace: Pace, max_held: Option<usize>) -> Self {
        let paced = if pace.is_unlimited() { 0 } else { PACED };
        let limited = if max_held.is_some() { LIMITED } else { 0 };
        Self {
            flags: AtomicUsize::new(paced | limited),
            pace: Mutex::new(pace),
            most: max_held.unwrap_or(usize::MAX),
            held: AtomicUsize::new(0),
        }
    }

    #[inline]
    fn flags(&self) -> usize {
        // ORDERING: Relaxed; who waits has a barrier before it that pairs with the one of who opens the
        // gate. The pace is reached under its lock.
        self.flags.load(Ordering::Relaxed)
    }

    /// Whether there is nothing to ask.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.flags() == 0
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.flags() & PAUSED != 0
    }

    pub(crate) fn is_paced(&self) -> bool {
        self.flags() & PACED != 0
    }

    pub(crate) fn pause(&self) {
        // ORDERING: Relaxed; as in `flags`.
        self.flags.fetch_or(PAUSED, Ordering::Relaxed);
    }

    /// The caller then wakes those who wait.
    pub(crate) fn resume(&self) {
        // ORDERING: Relaxed; as in `flags`.
        self.flags.fetch_and(!PAUSED, Ordering::Relaxed);
    }

    pub(crate) fn pace(&self) -> Pace {
        lock(&self.pace).clone()
    }

    /// Changes the pace, and returns the old one, whose destructor is user code. The caller then wakes
    /// those who wait.
    pub(crate) fn set_pace(&self, pace: Pace) -> Pace {
        let mut current = lock(&self.pace);
        // ORDERING: Relaxed, both; as in `flags`.
        if pace.is_unlimited() {
            self.flags.fetch_and(!PACED, Ordering::Relaxed);
        } else {
            self.flags.fetch_or(PACED, Ordering::Relaxed);
        }
        mem::replace(&mut current, pace)
    }

    /// Takes a turn, if one is needed; or says when one may be had.
    pub(crate) fn start(&self, time: &Time) -> Result<Option<Start>, u64> {
        if !self.is_paced() {
            return Ok(None);
        }
        let (pace, now) = (self.pace(), time.clock_now());
        match pace.start(now) {
            Ok(turn) => Ok(Some(Start { pace, turn })),
            // Counted from now, since all times before the queue was made are one.
            Err(at) => Err(later(time.nanos(now), at.saturating_duration_since(now))),
        }
    }

    /// Whether one item more may be held.
    pub(crate) fn has_room(&self) -> bool {
        // ORDERING: Relaxed; as in `flags`.
        self.held.load(Ordering::Relaxed) < self.most
    }

    /// Whether held items are counted.
    pub(crate) fn is_limited(&self) -> bool {
        self.flags() & LIMITED != 0
    }

    /// Counts one item more, if it may be held.
    pub(crate) fn count_in(&self) -> bool {
        let more = |held: usize| (held < self.most).then_some(held + 1);
        // ORDERING: Relaxed, both; it hands nothing on, and who is refused and waits is woken as in `flags`.
        let counted = self
            .held
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        counted.is_ok()
    }

    /// Counts items that are not held any more. The caller then wakes as many who wait.
    pub(crate) fn count_out(&self, items: usize) {
        if items > 0 {
            // ORDERING: Relaxed; as in `flags`.
            self.held.fetch_sub(items, Ordering::Relaxed);
        }
    }
}

impl Start {
    /// Nothing was started.
    pub(crate) fn cancel(self, now: Instant) {
        self.pace.cancel(self.turn, now);
    }

    /// What was started was not committed.
    pub(crate) fn give_back(self, now: Instant) {
        self.pace.give_back(self.turn, now);
    }
}
