//! Alarms: wakers, and when to call them.

use crate::sync::swallow_panic;
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Write};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

/// Room that is kept when no alarm is left.
const KEPT: usize = 64;

/// A time, and a number for those that are set for the same time.
type Position = (Instant, u64);

/// A waker that is to be called.
///
/// Equal to every alarm that would wake the same.
pub(super) struct Alarm {
    waker: Waker,
    digest: u64,
}

/// What tells a waker from others: before Rust 1.83 it shows that only in print.
///
/// If it tells too little, a look into the set takes longer; if too much, a task may have two alarms.
#[derive(Default)]
struct Digest(DefaultHasher);

/// Alarms in the order of their times, one for each waker.
#[derive(Default)]
pub(super) struct Alarms {
    queue: BTreeMap<Position, Arc<Alarm>>,
    positions: HashMap<Arc<Alarm>, Position>,
    set: u64,
}

impl Alarm {
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
    pub(super) fn ring(self: Arc<Self>) {
        swallow_panic(|| self.waker.wake_by_ref());
        self.discard();
    }

    /// Drops the waker.
    pub(super) fn discard(self: Arc<Self>) {
        swallow_panic(|| drop(self));
    }
}

impl PartialEq for Alarm {
    fn eq(&self, other: &Self) -> bool {
        self.waker.will_wake(&other.waker)
    }
}

impl Eq for Alarm {}

impl Hash for Alarm {
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

/// None of these calls user code, so that they may be called under a lock.
impl Alarms {
    /// Adds an alarm. If there is an equal one the earlier time of the two counts; the alarm is not
    /// needed then, and comes back.
    pub(super) fn set(&mut self, at: Instant, alarm: Arc<Alarm>) -> Option<Arc<Alarm>> {
        self.set += 1;
        let position = (at, self.set);
        let Some(known) = self.positions.get_mut(&alarm) else {
            self.positions.insert(Arc::clone(&alarm), position);
            self.queue.insert(position, alarm);
            return None;
        };
        if at < known.0 {
            let moved = self.queue.remove(known);
            self.queue.extend(moved.map(|moved| (position, moved)));
            *known = position;
        }
        Some(alarm)
    }

    /// Takes out those whose time has come, in the order of their times.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<Arc<Alarm>> {
        let mut due = Vec::new();
        while let Some(entry) = self.queue.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let alarm = entry.remove();
            self.positions.remove(&alarm);
            due.push(alarm);
        }
        if self.positions.is_empty() {
            self.positions.shrink_to(KEPT);
        }
        due
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }
}

/// What the timer needs besides.
#[cfg(not(any(loom, shuttle)))]
impl Alarms {
    /// When the first one is due.
    pub(super) fn first(&self) -> Option<Instant> {
        self.queue.keys().next().map(|&(at, _)| at)
    }

    /// All of them, in the order of their times.
    pub(super) fn into_all(self) -> impl Iterator<Item = Arc<Alarm>> {
        self.queue.into_values()
    }
}
