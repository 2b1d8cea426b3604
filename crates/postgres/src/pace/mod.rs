//! Limits that several processes share: rates, and numbers of items in flight.
//!
//! # Rates
//!
//! The server keeps the mark of a generic cell rate algorithm for each rate, in a row. A process does not ask for each start: a
//! task asks for slots, up to half a second before their time, as many as were used lately. A [`Limiter`] hands
//! them out.
//!
//! The server's clock counts. A process knows when it has asked and when the answer came, so it knows between which times the
//! clock of the server is. A slot is used when the clock surely shows its time, and not when it may show more than that and the
//! *lateness*: a slot that is used later than planned would follow the next one too closely. The lateness is part of the
//! tolerance of the algorithm, so a rate whose burst is not shorter than the lateness is never exceeded.
//!
//! A slot that was not used goes back to the server, at the value of what is left of its interval: the mark of the server moves
//! back, as described in the documentation of the limiter of `requeue`. If the rate was changed since, it is worth nothing.
//!
//! # Concurrency limits
//!
//! The server keeps how many places each holder has. A holder that has not been heard of for a term is dead, and its places
//! are free. Each pace is a holder. If there are not enough places for all, each holder is entitled to an equal share, and
//! those that were served least recently to one of the rest; a holder with more gives places back as its items finish.

mod concurrency;
mod places;
mod rate;
mod slots;
mod source;
mod start;

pub use concurrency::Concurrency;
pub use rate::Rate;
pub(crate) use start::Start;

use parking_lot::Mutex;
use requeue::{Limiter, Pace, WeakPace};
use source::Source;
use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::timeout;

/// The time after which a start is to be tried again if nothing is known. The waiters are woken earlier.
const AGAIN: Duration = Duration::from_secs(1);

/// What a limiter shares with the task that asks the server for it.
struct Supply<S> {
    /// What the server has granted.
    granted: Mutex<S>,
    /// The task is to look at it.
    changed: Notify,
    pace: OnceLock<WeakPace>,
    source: Source,
}

/// A limiter that hands out what the server has granted.
struct Supplied<S>(Arc<Supply<S>>);

impl<S> Supply<S> {
    /// Returns a pace, which this task supplies until it is dropped.
    fn pace<F: Future<Output = ()> + Send + 'static>(
        source: Source,
        granted: S,
        task: impl FnOnce(Arc<Self>) -> F,
    ) -> Pace
    where
        Supplied<S>: Limiter,
    {
        let supply = Arc::new(Self {
            granted: Mutex::new(granted),
            changed: Notify::new(),
            pace: OnceLock::new(),
            source,
        });
        let pace = Pace::shared(Supplied(Arc::clone(&supply)));
        let _ = supply.pace.set(pace.downgrade()); // the first time
        tokio::spawn(task(supply));
        pace
    }

    /// The pace, unless it was dropped.
    fn used(&self) -> Option<Pace> {
        self.pace.get()?.upgrade()
    }

    fn wake_waiters(&self) {
        if let Some(pace) = self.used() {
            pace.wake_waiters();
            self.source.db.shared.hub.nudge_all();
        }
    }

    /// Waits for a change.
    async fn changed(&self, wait: Option<Duration>) {
        let _ = timeout(wait.unwrap_or(Duration::MAX), self.changed.notified()).await;
    }
}

impl<S> Drop for Supplied<S> {
    fn drop(&mut self) {
        self.0.changed.notify_one();
    }
}
