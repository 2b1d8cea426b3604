//! The gate: whether an item may be taken just now, whatever is ready.
//!
//! It is shut while the queue is paused, while as many items are held as may be, and until its pace allows
//! the next start. To those who wait a gate that opens is a publication as any other: it is changed, and
//! then they are looked for.

use super::last::Last;
use crate::sync::{lock, planted, swallow_panic, AtomicUsize, Mutex, Ordering};
use crate::time::{later, Time};
use crate::{Limiter, Pace, RateSlot};
use std::mem;
use std::time::Instant;

const PAUSED: usize = 1;
const PACED: usize = 1 << 1;
const LIMITED: usize = 1 << 2;

/// What one queue asks before it gives out items.
pub(crate) struct Gate {
    /// What there is to ask: 0 if nothing.
    flags: AtomicUsize,
    paced: Mutex<Paced>,
    /// The most items that may be held, if there is a limit.
    most: usize,
    /// Items that are held, where there is a limit.
    held: AtomicUsize,
}

/// The pace of a queue, and what was started at it and at those before.
#[derive(Clone)]
struct Paced {
    pace: Pace,
    last: Last<Instant>,
    starts: u64,
}

/// A turn that was had, when, and the pace that gave it.
pub(crate) struct Start {
    pace: Pace,
    turn: RateSlot,
    at: Instant,
}

impl Gate {
    pub(crate) fn new(pace: Pace, max_held: Option<usize>) -> Self {
        let paced = if pace.is_unlimited() { 0 } else { PACED };
        let limited = if max_held.is_some() { LIMITED } else { 0 };
        Self {
            flags: AtomicUsize::new(paced | limited),
            paced: Mutex::new(Paced {
                pace,
                last: Last::default(),
                starts: 0,
            }),
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
        lock(&self.paced).pace.clone()
    }

    /// Changes the pace, and returns the old one, whose destructor is user code. The caller then wakes
    /// those who wait.
    ///
    /// The new one is told of what was started, which is user code too, before anything is started at it.
    pub(crate) fn set_pace(&self, mut pace: Pace) -> Pace {
        loop {
            let known = lock(&self.paced).clone();
            if let Some(last) = known.last.get().filter(|_| !pace.is_same(&known.pace)) {
                pace.take_over(&known.pace, last);
            }
            let replaced = self.replace_pace(pace, known.starts);
            swallow_panic(|| drop(known));
            match replaced {
                Ok(old) => return old,
                Err(again) => pace = again,
            }
        }
    }

    /// Changes the pace, if nothing was started since there were so many starts, and returns the other one.
    fn replace_pace(&self, pace: Pace, starts: u64) -> Result<Pace, Pace> {
        let mut paced = lock(&self.paced);
        if paced.starts != starts && !planted!("gate.replaces-anyway") {
            return Err(pace);
        }
        self.show(&pace);
        Ok(mem::replace(&mut paced.pace, pace))
    }

    /// Shows whether there is a pace to ask. Under the lock.
    fn show(&self, pace: &Pace) {
        // ORDERING: Relaxed, both; as in `flags`.
        if pace.is_unlimited() {
            self.flags.fetch_and(!PACED, Ordering::Relaxed);
        } else {
            self.flags.fetch_or(PACED, Ordering::Relaxed);
        }
    }

    /// Takes a turn, if one is needed; or says when one may be had.
    pub(crate) fn start(&self, time: &Time) -> Result<Option<Start>, u64> {
        while self.is_paced() {
            let (pace, now) = (self.pace(), time.clock_now());
            // Counted from now, since all times before the queue was made are one.
            let turn = pace
                .start(now)
                .map_err(|at| later(time.nanos(now), at.saturating_duration_since(now)))?;
            let start = Start {
                pace,
                turn,
                at: now,
            };
            if self.note(&start) {
                return Ok(Some(start));
            }
            swallow_panic(|| start.cancel(now));
        }
        Ok(None)
    }

    /// Takes note of a start, unless the queue has another pace by now, which does not know of it.
    fn note(&self, start: &Start) -> bool {
        let mut paced = lock(&self.paced);
        let is_current = paced.pace.is_same(&start.pace) || planted!("gate.notes-any");
        if is_current {
            paced.last.note(start.at);
            paced.starts += 1;
        }
        is_current
    }

    /// Nothing was started.
    pub(crate) fn cancel(&self, start: Start, now: Instant) {
        lock(&self.paced).last.forget(start.at);
        start.cancel(now);
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
    fn cancel(self, now: Instant) {
        self.pace.cancel(self.turn, now);
    }

    /// What was started was not committed.
    pub(crate) fn give_back(self, now: Instant) {
        self.pace.give_back(self.turn, now);
    }
}
