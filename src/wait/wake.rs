//! Calls to wakers, which are user code.

use crate::sync::swallow_panic;
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::mem;
// From std: no model defers wakers.
use std::sync::atomic::{AtomicUsize, Ordering};
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
    // ORDERING: Relaxed; a thread that defers wakers has counted itself before.
    if DEFERRERS.load(Ordering::Relaxed) > 0 {
        return call_or_defer(waker);
    }
    swallow_panic(|| waker.wake())
}

/// How many [`DeferredWakes`] there are: most programs have none, and need not look at what a thread has.
static DEFERRERS: AtomicUsize = AtomicUsize::new(0);

struct Deferred {
    /// How many of them this thread has.
    by: Cell<usize>,
    wakers: RefCell<Vec<Waker>>,
}

std::thread_local! {
    static DEFERRED: Deferred = const {
        Deferred {
            by: Cell::new(0),
            wakers: RefCell::new(Vec::new()),
        }
    };
}

#[cold]
#[inline(never)]
fn call_or_defer(waker: Waker) -> bool {
    if DEFERRED.try_with(|deferred| deferred.by.get() > 0) != Ok(true) {
        return swallow_panic(|| waker.wake());
    }
    DEFERRED.with(|deferred| deferred.wakers.borrow_mut().push(waker));
    true
}

/// While it lives, this thread calls no wakers of waits: it calls them when the last one is dropped. For crates that use a queue while
/// they have a lock, which the task of a waker may take.
#[doc(hidden)]
#[derive(Debug)]
pub struct DeferredWakes(PhantomData<*const ()>);

impl DeferredWakes {
    #[must_use]
    #[allow(clippy::new_without_default)] // it does something
    pub fn new() -> Self {
        // ORDERING: Relaxed; pairs with `call` of this thread.
        DEFERRERS.fetch_add(1, Ordering::Relaxed);
        DEFERRED.with(|deferred| deferred.by.set(deferred.by.get() + 1));
        Self(PhantomData)
    }
}

impl Drop for DeferredWakes {
    fn drop(&mut self) {
        let wakers = DEFERRED.with(|deferred| {
            deferred.by.set(deferred.by.get() - 1);
            let is_last = deferred.by.get() == 0;
            is_last.then(|| deferred.wakers.take())
        });
        // ORDERING: Relaxed; as above.
        DEFERRERS.fetch_sub(1, Ordering::Relaxed);
        wakers
            .into_iter()
            .flatten()
            .for_each(|waker| _ = call(waker));
    }
}
