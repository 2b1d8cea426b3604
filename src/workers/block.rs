//! A thread that drives futures.

use crate::wait::Sleeper;
use crate::Wait;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

/// The current thread, as a driver of futures, one after the other.
pub(super) struct Driver {
    sleeper: Arc<Sleeper>,
    waker: Waker,
}

impl Driver {
    pub(super) fn new() -> Self {
        let sleeper = Sleeper::new();
        let waker = Waker::from(Arc::clone(&sleeper));
        Self { sleeper, waker }
    }

    /// Waits for the future.
    #[inline]
    pub(super) fn drive<F: Future>(&self, future: F) -> F::Output {
        let output = self.drive_by(future, None);
        output.expect("it waits without a deadline")
    }

    /// Waits for the future, for as long as `wait` says by the system's clock.
    pub(super) fn drive_until<F: Future>(&self, future: F, wait: Wait) -> Option<F::Output> {
        self.drive_by(future, wait.deadline(Instant::now()))
    }

    #[inline]
    fn drive_by<F: Future>(&self, future: F, deadline: Option<Instant>) -> Option<F::Output> {
        let mut future = pin!(future);
        let mut context = Context::from_waker(&self.waker);
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return Some(output);
            }
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return None;
            }
            self.sleeper.park(deadline);
        }
    }
}

/// Waits for a future on the current thread.
pub(super) fn block_on<F: Future>(future: F) -> F::Output {
    Driver::new().drive(future)
}

#[cfg(all(loom, test))]
mod models {
    use super::block_on;
    use crate::sync::model::model;
    use crate::sync::{AtomicU32, Ordering};
    use loom::thread;
    use std::future::poll_fn;
    use std::mem;
    use std::sync::Arc;
    use std::task::Poll;

    /// The second wake-up does not unpark the thread if the first one has not been noticed: only the flag says that it
    /// happened. The other thread is not joined: loom's join does not bear a wake-up that comes late.
    #[test]
    fn a_poll_sees_what_came_before_its_wake_up() {
        model(|| {
            let value = Arc::new(AtomicU32::new(0));
            let mut begun = false;
            block_on(poll_fn(|context| {
                if value.load(Ordering::Relaxed) == 1 {
                    return Poll::Ready(());
                }
                if !mem::replace(&mut begun, true) {
                    let (value, waker) = (Arc::clone(&value), context.waker().clone());
                    thread::spawn(move || {
                        waker.wake_by_ref();
                        value.store(1, Ordering::Relaxed);
                        waker.wake();
                    });
                }
                Poll::Pending
            }));
        });
    }
}
