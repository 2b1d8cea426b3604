//! Calling wakers, which are user code.

use crate::sync::swallow_panic;
use std::mem;
use std::task::Waker;

/// How many wakers are called for each time that the wait queue is locked.
const ROUND: usize = 8;

/// Wakers that are called once the wait queue is unlocked.
pub(super) struct Wakers {
    wakers: [Option<Waker>; ROUND],
    len: usize,
}

impl Wakers {
    pub(super) fn new() -> Self {
        Self {
            wakers: [(); ROUND].map(|()| None),
            len: 0,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.len == ROUND
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn add(&mut self, waker: Waker) {
        self.wakers[self.len] = Some(waker);
        self.len += 1;
    }

    /// Calls them all, and says how many panicked.
    pub(super) fn wake(&mut self) -> usize {
        let called = &mut self.wakers[..mem::take(&mut self.len)];
        let wakers = called.iter_mut().filter_map(Option::take);
        wakers.map(call).filter(|called| !called).count()
    }
}

/// Calls a waker: false if it panicked.
fn call(waker: Waker) -> bool {
    swallow_panic(|| waker.wake())
}
