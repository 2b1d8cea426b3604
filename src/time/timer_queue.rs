//! A queue of timers: wakers, and when to call them.

use crate::sync::swallow_panic;
use std::cmp::Reverse;
use std::collections::hash_map::DefaultHasher;
use std::collections::{BinaryHeap, HashMap};
use std::fmt::{self, Write};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

/// The capacity that is kept when no timer is left.
const KEPT_CAPACITY: usize = 64;

/// A time, and a number that orders timers set for the same time.
type Position = (Instant, u64);

/// A waker to be called.
///
/// Two entries are equal if they would wake the same task.
pub(super) struct TimerEntry {
    waker: Waker,
    digest: u64,
}

/// A hash of the `Debug` output of a waker, which before Rust 1.83 is the only way to read its identity.
///
/// If the outputs of different wakers are equal, lookups take longer; if those of one waker differ, a task may have
/// two timers.
#[derive(Default)]
struct Digest(DefaultHasher);

/// Timers in the order of their times, one for each waker.
#[derive(Default)]
pub(super) struct TimerQueue {
    /// The positions of timers, and of some that were set to an earlier time since. Not an ordered map, which is ten times as
    /// long in a binary.
    pub(super) queue: BinaryHeap<Reverse<Position>>,
    /// The timers by the numbers of their positions.
    timers: HashMap<u64, Arc<TimerEntry>>,
    positions: HashMap<Arc<TimerEntry>, Position>,
    set: u64,
}

impl TimerEntry {
    pub(super) fn new(waker: &Waker) -> Arc<Self> {
        let mut digest = Digest::default();
        // Writing to a digest cannot fail.
        let _ = write!(digest, "{waker:?}");
        Arc::new(Self {
            waker: waker.clone(),
            digest: digest.0.finish(),
        })
    }

    /// Calls the waker, and drops it.
    pub(super) fn fire(self: Arc<Self>) {
        swallow_panic(|| self.waker.wake_by_ref());
        self.discard();
    }

    /// Drops the waker.
    pub(super) fn discard(self: Arc<Self>) {
        swallow_panic(|| drop(self));
    }
}

impl PartialEq for TimerEntry {
    fn eq(&self, other: &Self) -> bool {
        self.waker.will_wake(&other.waker)
    }
}

impl Eq for TimerEntry {}

impl Hash for TimerEntry {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.digest);
    }
}

impl Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

/// None of these methods calls user code, so they may be called under a lock.
impl TimerQueue {
    /// Adds a timer. If there is an equal one, that is kept with the earlier of the two times. The caller then discards its
    /// own reference, which may be the last one.
    pub(super) fn set(&mut self, at: Instant, timer: &Arc<TimerEntry>) {
        self.set += 1;
        let position = (at, self.set);
        let known = self.positions.get(timer).copied();
        if known.map_or(true, |known| at < known.0) {
            let moved = known.and_then(|known| self.timers.remove(&known.1));
            let timer = moved.unwrap_or_else(|| Arc::clone(timer));
            self.positions.insert(Arc::clone(&timer), position);
            self.timers.insert(self.set, timer);
            self.queue.push(Reverse(position));
        }
        if self.queue.len() > KEPT_CAPACITY.max(2 * self.timers.len()) {
            let timers = &self.timers;
            self.queue
                .retain(|Reverse((_, set))| timers.contains_key(set));
        }
    }

    /// Removes the timers that are due, and returns them in the order of their times.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<Arc<TimerEntry>> {
        self.take(|at| at <= now)
    }

    fn take(&mut self, is_due: impl Fn(Instant) -> bool) -> Vec<Arc<TimerEntry>> {
        let mut due = Vec::new();
        while self.first().is_some_and(&is_due) {
            let position = self.queue.pop();
            let timer = position.and_then(|Reverse((_, set))| self.timers.remove(&set));
            if let Some(timer) = timer {
                self.positions.remove(&timer);
                due.push(timer);
            }
        }
        if self.positions.is_empty() {
            self.queue.shrink_to(KEPT_CAPACITY);
            self.timers.shrink_to(KEPT_CAPACITY);
            self.positions.shrink_to(KEPT_CAPACITY);
        }
        due
    }

    pub(super) fn len(&self) -> usize {
        self.timers.len()
    }

    /// The time of the first timer, or an earlier one.
    pub(super) fn first(&self) -> Option<Instant> {
        self.queue.peek().map(|Reverse((at, _))| *at)
    }

    /// Returns all timers, in the order of their times.
    #[cfg(not(any(loom, shuttle)))]
    pub(super) fn into_all(mut self) -> impl Iterator<Item = Arc<TimerEntry>> {
        self.take(|_| true).into_iter()
    }
}
