//! Waits for a future on a thread.

use parking_lot::{Condvar, Mutex};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

/// Wakes a thread that waits for a future.
#[derive(Default)]
struct Signal {
    woken: Mutex<bool>,
    wake: Condvar,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        *self.woken.lock() = true;
        self.wake.notify_one();
    }
}

/// Blocks the thread until the future is ready.
pub(super) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let signal = Arc::new(Signal::default());
    let waker = Waker::from(Arc::clone(&signal));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        let mut woken = signal.woken.lock();
        while !*woken {
            signal.wake.wait(&mut woken);
        }
        *woken = false;
    }
}
