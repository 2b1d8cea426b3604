//! A result that one thread sends and another, or a task, waits for.

use parking_lot::{Condvar, Mutex};
use std::future::{poll_fn, Future};
use std::sync::Arc;
use std::task::{Poll, Waker};

pub(crate) struct Oneshot<R> {
    state: Mutex<State<R>>,
    sent: Condvar,
}

struct State<R> {
    result: Option<R>,
    waker: Option<Waker>,
}

impl<R> Oneshot<R> {
    pub(crate) fn new() -> Arc<Self> {
        let (result, waker) = (None, None);
        Arc::new(Self {
            state: Mutex::new(State { result, waker }),
            sent: Condvar::new(),
        })
    }

    pub(crate) fn send(&self, result: R) {
        let mut state = self.state.lock();
        state.result = Some(result);
        let waker = state.waker.take();
        self.sent.notify_all();
        drop(state);
        // Wakers are code of users, so not under the lock.
        waker.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn receive(&self) -> impl Future<Output = R> + '_ {
        poll_fn(|context| {
            let waker = context.waker().clone();
            let mut state = self.state.lock();
            let (result, unused) = match state.result.take() {
                Some(result) => (Poll::Ready(result), Some(waker)),
                None => (Poll::Pending, state.waker.replace(waker)),
            };
            drop(state);
            drop(unused);
            result
        })
    }

    /// Blocks the thread until the result is there.
    pub(crate) fn wait(&self) -> R {
        let mut state = self.state.lock();
        loop {
            match state.result.take() {
                Some(result) => return result,
                None => self.sent.wait(&mut state),
            }
        }
    }
}
