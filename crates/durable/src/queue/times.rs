//! Times of the queue's clock, and those of the wall clock, which are written.

use crate::format::Schedule;
use crate::order::Place;
use crate::store::{millis, StoreInner};
use requeue::{Clock, SystemClock};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The clocks of a queue.
pub(crate) struct Times {
    pub(crate) clock: Arc<dyn Clock>,
    store: Arc<StoreInner>,
    /// The times of both when the queue was opened, if the wall clock goes on with the other one.
    opened: Option<(Instant, Duration)>,
}

/// What both clocks said at one time: for many items, which need not read them each.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    pub(super) now: Instant,
    wall: Duration,
}

impl Times {
    /// Those of a queue with this clock, or that of the system.
    pub(super) fn new(clock: Option<Arc<dyn Clock>>, store: &Arc<StoreInner>) -> Self {
        let opened = clock.as_ref().filter(|_| store.has_system_time());
        Self {
            opened: opened.map(|clock| (clock.now(), store.wall())),
            clock: clock.unwrap_or_else(|| Arc::new(SystemClock)),
            store: Arc::clone(store),
        }
    }

    /// The wall clock's time since the Unix epoch. That of the system goes on with the queue's clock, if this is another one.
    fn wall(&self) -> Duration {
        match self.opened {
            Some((start, wall)) => wall + self.clock.now().saturating_duration_since(start),
            None => self.store.wall(),
        }
    }

    /// The same, in milliseconds.
    pub(crate) fn wall_time(&self) -> u64 {
        millis(self.wall())
    }

    /// A time of the queue's clock, by the wall clock: not earlier.
    pub(super) fn due_in_store(&self, due: Instant) -> u64 {
        let left = due.saturating_duration_since(self.clock.now());
        let due = self.wall().saturating_add(left).as_nanos();
        u64::try_from(due.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }

    /// A time of the wall clock, by the queue's clock.
    pub(super) fn instant(&self, time: u64) -> Option<Instant> {
        self.moment().instant(time)
    }

    pub(super) fn moment(&self) -> Moment {
        Moment {
            now: self.clock.now(),
            wall: self.wall(),
        }
    }
}

impl Moment {
    pub(super) fn wall_time(self) -> u64 {
        millis(self.wall)
    }

    /// The place that is written so.
    pub(super) fn place(self, schedule: Schedule) -> Place {
        Place {
            priority: schedule.priority,
            due: schedule.due.and_then(|due| self.instant(due)),
        }
    }

    /// A time of the wall clock, by the queue's clock.
    pub(super) fn instant(self, time: u64) -> Option<Instant> {
        let time = Duration::from_millis(time);
        match time.checked_sub(self.wall) {
            Some(left) => self.now.checked_add(left),
            None => self.now.checked_sub(self.wall.saturating_sub(time)),
        }
    }
}
