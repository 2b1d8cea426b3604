//! Threads that wait: a waker that unparks one.

use crate::sync::{spin_hint, thread, AtomicBool, Ordering, SMALL};
#[cfg(not(any(loom, shuttle)))]
use std::cell::Cell;
use std::sync::Arc;
use std::task::{Poll, Wake, Waker};
use std::time::{Duration, Instant};

/// How often a thread tries before it sleeps, at first at once, then yielding the processor in
/// between: some microseconds, about what it takes to put a thread to sleep and to wake it.
const SPINS: usize = if SMALL { 0 } else { 2 };
const YIELDS: usize = if SMALL { 0 } else { 24 };

/// Until when to wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    pub(crate) const NEVER: Self = Self(None);

    /// In so much time; never, if that is beyond what a clock can say.
    pub(crate) fn after(timeout: Duration) -> Self {
        Self(Instant::now().checked_add(timeout))
    }

    /// Sleeps until the thread is unparked or the time is over: false if it is over.
    fn park(self) -> bool {
        let Some(end) = self.0 else {
            thread::park();
            return true;
        };
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        thread::park_timeout(left);
        true
    }
}

/// A thread that can be woken.
struct Sleeper {
    thread: thread::Thread,
    woken: AtomicBool,
}

impl Sleeper {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            thread: thread::current(),
            woken: AtomicBool::new(false),
        })
    }

    /// Runs `wait` with the sleeper of the current thread, or with a new one: if that is in use,
    /// because a waker that is called while this thread waits waits itself, or gone with the thread.
    fn with_current<R>(wait: impl FnOnce(&Arc<Self>) -> R) -> R {
        #[cfg(any(loom, shuttle))]
        return wait(&Self::new());
        #[cfg(not(any(loom, shuttle)))]
        {
            std::thread_local! {
                static CURRENT: Cell<Option<Arc<Sleeper>>> = const { Cell::new(None) };
            }
            let current = CURRENT.try_with(Cell::take).ok().flatten();
            let current = current.unwrap_or_else(Self::new);
            let result = wait(&current);
            let _ = CURRENT.try_with(|place| place.set(Some(current)));
            result
        }
    }

    /// Sleeps until it is woken: false if the time is over first.
    fn sleep(&self, deadline: Deadline) -> bool {
        // ORDERING: Acquire; pairs with the Release in `wake_by_ref`.
        while !self.woken.swap(false, Ordering::Acquire) {
            if !deadline.park() {
                return false;
            }
        }
        true
    }
}

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // ORDERING: Release; pairs with the Acquire in `sleep`.
        if !self.woken.swap(true, Ordering::Release) {
            self.thread.unpark();
        }
    }
}

/// Tries for a moment while `may_try`: what comes soon costs no sleep. Not at all if [`SMALL`].
#[allow(clippy::reversed_empty_ranges, clippy::absurd_extreme_comparisons)] // of `SMALL`
pub(crate) fn spin<R>(
    may_try: impl Fn() -> bool,
    attempt: &mut impl FnMut() -> Option<R>,
) -> Option<R> {
    for turn in 0..SPINS + YIELDS {
        if !may_try() {
            return None;
        }
        let result = attempt();
        if result.is_some() {
            return result;
        }
        if turn < SPINS {
            spin_hint();
        } else {
            thread::yield_now();
        }
    }
    None
}

/// Polls until it is ready, and sleeps in between; `None` when the time is over.
pub(crate) fn block<R>(deadline: Deadline, mut poll: impl FnMut(&Waker) -> Poll<R>) -> Option<R> {
    Sleeper::with_current(|sleeper| {
        let waker = Waker::from(Arc::clone(sleeper));
        loop {
            if let Poll::Ready(result) = poll(&waker) {
                return Some(result);
            }
            if !sleeper.sleep(deadline) {
                return None;
            }
        }
    })
}
