//! The gate: decides whether an item may be started now, regardless of how many are ready.
//!
//! It is closed while the queue is paused, while the concurrency limit is reached, and until its pace allows
//! the next start. Waiters see the opening of a gate as they see a push: the state is changed first, then they
//! are notified.

use super::last::Last;
use super::shared_limiter::LimiterRef;
use super::{Pace, RateSlot};
use crate::sync::{lock, planted, swallow_panic, AtomicUsize, Mutex, Ordering};
use crate::time::{later, Time, NEVER};
use std::mem;
use std::time::Instant;

const PAUSED: usize = 1;
const PACED: usize = 1 << 1;
const LIMITED: usize = 1 << 2;

/// The conditions that one queue checks before it delivers an item.
pub(crate) struct Gate {
    /// The conditions to check; 0 if there are none.
    flags: AtomicUsize,
    /// Until when the queue is paused, if it is; [`NEVER`]: until it is resumed. The pause is changed under this lock, so that
    /// one whose time has passed ends no later one.
    paused_until: Mutex<u64>,
    paced: Mutex<Paced>,
    /// The concurrency limit: `usize::MAX` if there is none.
    most: usize,
    /// The items in flight, counted only if there is a limit.
    held: AtomicUsize,
}

/// The pace of a queue, and its starts, including those at earlier paces.
#[derive(Clone)]
struct Paced {
    pace: Pace,
    last: Last<Instant>,
    starts: u64,
}

/// A slot that was taken, the limiter it was taken from, and when.
pub(crate) struct Start {
    shared: LimiterRef,
    slot: RateSlot,
    at: Instant,
}

impl Gate {
    pub(crate) fn new(pace: Pace, max_held: Option<usize>) -> Self {
        let paced = if pace.is_unlimited() { 0 } else { PACED };
        let limited = if max_held.is_some() { LIMITED } else { 0 };
        Self {
            flags: AtomicUsize::new(paced | limited),
            paused_until: Mutex::new(NEVER),
            paced: Mutex::new(Paced {
                pace,
                last: Last::NO_START,
                starts: 0,
            }),
            most: max_held.unwrap_or(usize::MAX),
            held: AtomicUsize::new(0),
        }
    }

    #[inline]
    fn flags(&self) -> usize {
        // ORDERING: Relaxed; a waiter passes a barrier before it, which pairs with that of the thread that
        // opens the gate. The pace is accessed under its lock.
        self.flags.load(Ordering::Relaxed)
    }

    /// Whether there are no conditions to check.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.flags() == 0
    }

    /// Until when the queue is paused, if it is. The time may have passed.
    pub(crate) fn paused_until(&self) -> Option<u64> {
        (self.flags() & PAUSED != 0).then(|| *lock(&self.paused_until))
    }

    /// Whether a waiter has to ask again as time passes, since there is a pace, or a pause that may end.
    pub(crate) fn is_paced(&self) -> bool {
        self.flags() & (PACED | PAUSED) != 0
    }

    /// The caller must then plan the end of the pause.
    pub(crate) fn pause_until(&self, until: u64) {
        let mut paused_until = lock(&self.paused_until);
        *paused_until = until;
        // ORDERING: Relaxed; as in `flags`.
        self.flags.fetch_or(PAUSED, Ordering::Relaxed);
    }

    /// Ends a pause whose time has passed at `now`, at [`NEVER`] any. The caller must then wake the waiters.
    pub(crate) fn resume(&self, now: u64) {
        let paused_until = lock(&self.paused_until);
        if *paused_until <= now || planted!("gate.resumes-any") {
            // ORDERING: Relaxed; as in `flags`.
            self.flags.fetch_and(!PAUSED, Ordering::Relaxed);
        }
    }

    pub(crate) fn pace(&self) -> Pace {
        lock(&self.paced).pace.clone()
    }

    /// Changes the pace, and returns the old one, whose destructor is user code. The caller must then wake
    /// the waiters.
    ///
    /// Before anything is started at the new pace it takes over the earlier starts, which also runs user code, and so without
    /// the lock: if something was started meanwhile it begins again. So each pace counts all starts.
    #[cfg(feature = "rate")]
    pub(crate) fn set_pace(&self, mut pace: Pace) -> Pace {
        loop {
            let known = lock(&self.paced).clone();
            if let Some(last) = known
                .last
                .get()
                .filter(|_| pace.shared != known.pace.shared)
            {
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

    /// Replaces the pace and returns the old one, if the number of starts is still `starts`; else returns `pace`.
    fn replace_pace(&self, pace: Pace, starts: u64) -> Result<Pace, Pace> {
        let mut paced = lock(&self.paced);
        if paced.starts != starts && !planted!("gate.replaces-anyway") {
            return Err(pace);
        }
        // ORDERING: Relaxed, both; as in `flags`. Under the lock, so that the flag is that of the last pace.
        if pace.is_unlimited() {
            self.flags.fetch_and(!PACED, Ordering::Relaxed);
        } else {
            self.flags.fetch_or(PACED, Ordering::Relaxed);
        }
        Ok(mem::replace(&mut paced.pace, pace))
    }

    /// Takes a slot if one is needed, or returns the time at which one is available.
    pub(crate) fn start(&self, time: &Time) -> Result<Option<Start>, u64> {
        while self.is_paced() {
            let Some(shared) = self.pace().shared else {
                break; // replaced meanwhile
            };
            let at = time.clock_now();
            // Relative to now, since all times before the queue was created are represented as 0.
            let slot = shared
                .limiter()
                .start(at)
                .map_err(|then| later(time.nanos(at), then.saturating_duration_since(at)))?;
            let start = Start { shared, slot, at };
            if self.record(&start) {
                return Ok(Some(start));
            }
            // Moved, since it may be the last reference to its limiter, whose destructor is user code too.
            swallow_panic(move || start.shared.limiter().cancel(start.slot, at));
        }
        Ok(None)
    }

    /// Records a start; `false` if the pace was replaced meanwhile, as the new one has not counted it.
    fn record(&self, start: &Start) -> bool {
        let mut paced = lock(&self.paced);
        let is_current =
            paced.pace.shared.as_ref() == Some(&start.shared) || planted!("gate.notes-any");
        if is_current {
            paced.last.record(start.at);
            paced.starts += 1;
        }
        is_current
    }

    /// Returns a slot with which nothing was started.
    pub(crate) fn cancel(&self, start: Start, now: Instant) {
        lock(&self.paced).last.cancel(start.at);
        start.shared.limiter().cancel(start.slot, now);
    }

    /// Whether the number of items in flight is below the limit.
    pub(crate) fn has_room(&self) -> bool {
        // ORDERING: Relaxed; as in `flags`.
        self.held.load(Ordering::Relaxed) < self.most
    }

    /// Whether there is a concurrency limit, so that items in flight are counted.
    pub(crate) fn is_limited(&self) -> bool {
        self.flags() & LIMITED != 0
    }

    /// Counts one more item in flight, unless the limit is reached.
    pub(crate) fn count_in(&self) -> bool {
        let more = |held: usize| (held < self.most).then_some(held + 1);
        // ORDERING: Relaxed, both; it publishes nothing, and a caller that is refused and waits is woken as in `flags`.
        let counted = self
            .held
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        counted.is_ok()
    }

    /// Counts items that are no longer in flight. The caller must then wake as many waiters.
    pub(crate) fn count_out(&self, items: usize) {
        if items > 0 {
            // ORDERING: Relaxed; as in `flags`.
            self.held.fetch_sub(items, Ordering::Relaxed);
        }
    }
}

impl Start {
    /// The item that was started was committed.
    pub(crate) fn spend(self) {
        self.shared.limiter().spend(self.slot);
    }

    /// Gives the slot back: the item that was started was not committed.
    pub(crate) fn give_back(self, now: Instant) {
        self.shared.limiter().give_back(self.slot, now);
    }
}
