//! Calls to wakers, which are user code.

use crate::sync::swallow_panic;
use std::mem;
use std::task::Waker;

/// How many wakers are taken out each time the wait queue is locked.
const NUM_WAKERS: usize = 8;

/// Wakers to be called once the wait queue is unlocked.
pub(super) struct Wakers {
    wakers: [Option<Waker>; NUM_WAKERS],
    len: usize,
}

impl Wakers {
    pub(super) fn new() -> Self {
        Self {
            wakers: [(); NUM_WAKERS].map(|()| None),
            len: 0,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.len == NUM_WAKERS
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn add(&mut self, waker: Waker) {
        self.wakers[self.len] = Some(waker);
        self.len += 1;
    }

    /// Takes out and calls all wakers, and returns how many panicked.
    pub(super) fn wake(&mut self) -> usize {
        let called = &mut self.wakers[..mem::take(&mut self.len)];
        let wakers = called.iter_mut().filter_map(Option::take);
        wakers.map(call).filter(|called| !called).count()
    }
}

/// Calls a waker; returns false if it panicked.
fn call(waker: Waker) -> bool {
    swallow_panic(|| waker.wake())
}
