//! Samples while somebody looks, and those who look.

use crate::web::App;
use parking_lot::Mutex;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{sleep, timeout, Instant};

/// The most viewers at a time.
pub(crate) const VIEWERS: usize = 32;
/// The time between samples while somebody looks, and otherwise if the board samples [always](crate::Board::always).
const TICK: Duration = Duration::from_secs(1);
const SLOW_TICK: Duration = Duration::from_secs(10);
/// A sample may take this part of the time.
const SHARE: u32 = 100;
const LONGEST: Duration = Duration::from_secs(60);
/// A viewer who has taken nothing for so long is slow, or gone: it loses its place.
const STALLED: Duration = Duration::from_secs(30);
/// How long the queues may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug)]
struct Viewer {
    id: u64,
    /// When it last took something.
    seen: Instant,
}

#[derive(Debug, Default)]
struct State {
    viewers: Vec<Viewer>,
    next: u64,
    is_ticking: bool,
}

/// Those who look.
#[derive(Debug)]
pub(crate) struct Live {
    state: Mutex<State>,
    /// The number of samples. A slow viewer misses some instead of having them kept.
    ticks: watch::Sender<u64>,
}

impl Default for Live {
    fn default() -> Self {
        let (state, ticks) = (Mutex::default(), watch::Sender::new(0));
        Self { state, ticks }
    }
}

impl Live {
    /// Ends the places of viewers that take nothing, and says how many are left.
    fn drop_stalled(&self) -> usize {
        let (mut state, now) = (self.state.lock(), Instant::now());
        state.viewers.retain(|viewer| now - viewer.seen < STALLED);
        state.viewers.len()
    }
}

/// The place of a viewer, until it is dropped.
pub(crate) struct Place {
    app: Arc<App>,
    id: u64,
    ticks: watch::Receiver<u64>,
    is_first: bool,
}

impl Place {
    /// A place, if there is one.
    pub(crate) fn take(app: &Arc<App>) -> Option<Self> {
        let mut state = app.live.state.lock();
        if state.viewers.len() >= VIEWERS {
            return None;
        }
        let id = state.next;
        state.next += 1;
        state.viewers.push(Viewer {
            id,
            seen: Instant::now(),
        });
        drop(state);
        start(app);
        Some(Self {
            app: Arc::clone(app),
            id,
            ticks: app.live.ticks.subscribe(),
            is_first: true,
        })
    }

    /// Waits for a sample. `None` if the place is lost.
    pub(crate) async fn next(&mut self) -> Option<&App> {
        if !std::mem::take(&mut self.is_first) {
            self.ticks.changed().await.ok()?;
        }
        let mut state = self.app.live.state.lock();
        let own = state
            .viewers
            .iter_mut()
            .find(|viewer| viewer.id == self.id)?;
        own.seen = Instant::now();
        drop(state);
        Some(&self.app)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.app.live.state.lock();
        state.viewers.retain(|viewer| viewer.id != self.id);
    }
}

/// Starts the samples, unless they are running.
pub(crate) fn start(app: &Arc<App>) {
    let mut state = app.live.state.lock();
    if !std::mem::replace(&mut state.is_ticking, true) {
        tokio::spawn(tick(Arc::downgrade(app)));
    }
}

/// Samples for as long as somebody looks.
async fn tick(app: Weak<App>) {
    let mut pause = Duration::ZERO;
    loop {
        sleep(pause).await;
        let Some(app) = app.upgrade() else {
            return;
        };
        let viewers = app.live.drop_stalled();
        if viewers == 0 && !app.always {
            let mut state = app.live.state.lock();
            state.is_ticking = !state.viewers.is_empty(); // one may have come since
            if !state.is_ticking {
                return;
            }
        }
        let began = Instant::now();
        app.sample().await;
        app.live.ticks.send_modify(|ticks| *ticks += 1);
        let tick = if viewers == 0 { SLOW_TICK } else { TICK };
        pause = (began.elapsed() * SHARE).clamp(tick, LONGEST);
    }
}

impl App {
    /// Samples all queues.
    pub(crate) async fn sample(&self) {
        // One at a time: others that wait find new figures.
        let asked = Instant::now();
        let mut last = self.sampled.lock().await;
        if last.is_some_and(|last| last >= asked) {
            return;
        }
        let error = match timeout(PATIENCE, self.sample_each()).await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("the queues do not answer".into()),
        };
        *self.error.lock() = error;
        *last = Some(Instant::now());
    }

    /// Samples all queues, unless they were a moment ago.
    pub(crate) async fn sample_if_old(&self) {
        let last = *self.sampled.lock().await;
        if last.is_none_or(|last| last.elapsed() >= TICK) {
            self.sample().await;
        }
    }
}
