//! Calls to wakers, which are user code.

use crate::sync::swallow_panic;
use std::mem;
use std::task::Waker;

/// How many wakers are taken out at most each time the wait queue is locked. With one, a push that wakes eight tasks takes 10 %
/// longer.
const MAX_WAKERS: usize = 8;

/// Up to [`MAX_WAKERS`] wakers to be called once the wait queue is unlocked.
#[derive(Default)]
pub(super) struct Wakers {
    wakers: [Option<Waker>; MAX_WAKERS],
    pub(super) len: usize,
}

impl Wakers {
    /// Adds up to `count` wakers, while there is room and `next` returns one.
    pub(super) fn fill(&mut self, count: usize, mut next: impl FnMut() -> Option<Waker>) {
        while self.len < count.min(MAX_WAKERS) {
            let Some(waker) = next() else {
                return;
            };
            self.wakers[self.len] = Some(waker);
            self.len += 1;
        }
    }

    /// Takes out and calls all wakers, and returns how many panicked.
    pub(super) fn wake(&mut self) -> usize {
        let called = &mut self.wakers[..mem::take(&mut self.len)];
        let wakers = called.iter_mut().filter_map(Option::take);
        wakers.map(call).filter(|is_called| !is_called).count()
    }
}

/// Calls a waker; returns false if it panicked: a publisher must not fail because of it. The waiter counts as woken, and passes
/// that on when it leaves.
#[inline]
pub(super) fn call(waker: Waker) -> bool {
    swallow_panic(|| waker.wake())
}
