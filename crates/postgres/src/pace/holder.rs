//! A pace that holds places of a concurrency limit.

use super::places::{Places, Question};
use super::source::Source;
use super::AGAIN;
use parking_lot::Mutex;
use requeue::{Limiter, Pace, RateSlot, WeakPace};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::time::timeout;

/// Returns a pace that holds places, which a task asks for.
pub(super) fn hold(source: Source, holder: i64, term: Duration) -> Pace {
    let shared = Arc::new(Shared {
        places: Mutex::new(Places::new(term, Instant::now())),
        changed: Notify::new(),
        pace: OnceLock::new(),
        source,
    });
    let pace = Pace::shared(Holder(Arc::clone(&shared)));
    let _ = shared.pace.set(pace.downgrade()); // the first time
    tokio::spawn(supply(shared, holder, term));
    pace
}

/// What the limiter and its task share.
struct Shared {
    places: Mutex<Places>,
    /// The task is to look at the places.
    changed: Notify,
    pace: OnceLock<WeakPace>,
    source: Source,
}

impl Shared {
    /// The pace, unless it was dropped.
    fn pace(&self) -> Option<Pace> {
        self.pace.get()?.upgrade()
    }

    fn wake_waiters(&self) {
        if let Some(pace) = self.pace() {
            pace.wake_waiters();
            self.source.db.shared.hub.nudge_all();
        }
    }
}

struct Holder(Arc<Shared>);

impl Limiter for Holder {
    fn start(&self, now: Instant) -> Result<RateSlot, Instant> {
        if self.0.places.lock().take(Instant::now()) {
            return Ok(RateSlot::new(now, 0));
        }
        self.0.changed.notify_one();
        Err(now + AGAIN)
    }

    fn cancel(&self, slot: RateSlot, _: Instant) {
        self.spend(slot);
    }

    fn give_back(&self, slot: RateSlot, _: Instant) {
        self.spend(slot);
    }

    fn spend(&self, _: RateSlot) {
        let mut places = self.0.places.lock();
        let has_room = places.free();
        let is_pressing = places.is_pressing();
        drop(places);
        if has_room {
            self.0.wake_waiters();
        }
        if is_pressing {
            self.0.changed.notify_one();
        }
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.0.changed.notify_one();
    }
}

/// Asks the server for places, and tells it that this process is alive, until the pace is dropped.
async fn supply(shared: Arc<Shared>, holder: i64, term: Duration) {
    while shared.pace().is_some() {
        let now = Instant::now();
        let wait = shared.places.lock().wait(now);
        if wait == Some(Duration::ZERO) {
            ask(&shared, holder, term).await;
            continue;
        }
        let changed = shared.changed.notified();
        let _ = timeout(wait.unwrap_or(Duration::MAX), changed).await;
    }
    let none = Question { kept: 0, more: 0 };
    let _ = timeout(term, shared.source.take_places(holder, none, term)).await;
}

async fn ask(shared: &Shared, holder: i64, term: Duration) {
    let asked = Instant::now();
    let question = shared.places.lock().question(asked);
    let answer = shared.source.take_places(holder, question, term).await;
    let has_room = shared.places.lock().answered(question, answer.ok(), asked);
    if has_room {
        shared.wake_waiters();
    }
}
