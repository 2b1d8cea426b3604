//! Calls to wakers, which are user code.

use crate::sync::swallow_panic;
use std::mem;
use std::task::Waker;

/// Up to `MOST` wakers to be called once the wait queue is unlocked.
pub(super) struct Wakers<const MOST: usize> {
    wakers: [Option<Waker>; MOST],
    len: usize,
}

impl<const MOST: usize> Wakers<MOST> {
    #[inline]
    pub(super) fn new() -> Self {
        Self {
            wakers: [(); MOST].map(|()| None),
            len: 0,
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds up to `count` wakers, while there is room and `next` returns one.
    #[inline]
    pub(super) fn fill(&mut self, count: usize, mut next: impl FnMut() -> Option<Waker>) {
        while self.len < count.min(MOST) {
            let Some(waker) = next() else {
                return;
            };
            self.wakers[self.len] = Some(waker);
            self.len += 1;
        }
    }

    /// Takes out and calls all wakers, and returns how many panicked.
    #[inline]
    pub(super) fn wake(&mut self) -> usize {
        let called = &mut self.wakers[..mem::take(&mut self.len)];
        let mut panicked = 0;
        for waker in called {
            panicked += usize::from(!waker.take().map_or(true, call));
        }
        panicked
    }
}

/// Calls a waker; returns false if it panicked.
fn call(waker: Waker) -> bool {
    swallow_panic(|| waker.wake())
}
