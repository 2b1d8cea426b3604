//! A waker whose clone, wake and drop panic as planned.

use std::future::Future;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

use crate::plan::{Alive, Call, Plan};

/// Counts the wake-ups.
pub(crate) struct Bell {
    rings: AtomicUsize,
    alive: Alive,
}

impl Bell {
    pub(crate) fn new(plan: &Arc<Plan>) -> Arc<Self> {
        let (rings, alive) = (AtomicUsize::new(0), Alive::new(plan));
        Arc::new(Self { rings, alive })
    }

    pub(crate) fn was_rung(&self) -> bool {
        self.rings.load(Ordering::SeqCst) > 0
    }

    fn ring(&self) {
        self.rings.fetch_add(1, Ordering::SeqCst);
        self.alive.0.reach(Call::Wake);
    }

    /// Polls a future with a waker that rings this bell, and that is not dropped: the poller's own waker does not panic.
    pub(crate) fn poll<F: Future + Unpin>(self: &Arc<Self>, future: &mut F) -> Poll<F::Output> {
        let data = Arc::as_ptr(self).cast();
        // SAFETY: the functions keep the contract of a waker; `data` is that of an `Arc`, as they expect, which outlives
        // the waker, and whose count the waker does not give up, as it is not dropped.
        let waker = unsafe { Waker::from_raw(RawWaker::new(data, &TABLE)) };
        let waker = ManuallyDrop::new(waker);
        Pin::new(future).poll(&mut Context::from_waker(&waker))
    }
}

static TABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, discard);

/// The bell of a waker, which keeps its count.
///
/// # Safety
///
/// `data` is that of the waker in [`Bell::poll`], or of a clone of it, and is alive.
unsafe fn bell(data: *const ()) -> ManuallyDrop<Arc<Bell>> {
    // SAFETY: by contract `data` is the address in an `Arc`, whose count is not given up here.
    ManuallyDrop::new(unsafe { Arc::from_raw(data.cast()) })
}

/// Panics before anything was cloned.
unsafe fn clone(data: *const ()) -> RawWaker {
    // SAFETY: called by a waker that is alive.
    let bell = unsafe { bell(data) };
    bell.alive.0.reach(Call::CloneWaker);
    RawWaker::new(Arc::into_raw(Arc::clone(&bell)).cast(), &TABLE)
}

/// Panics after the waker is gone.
unsafe fn wake(data: *const ()) {
    // SAFETY: called by a waker that ends by it.
    ManuallyDrop::into_inner(unsafe { bell(data) }).ring();
}

unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: called by a waker that is alive.
    unsafe { bell(data) }.ring();
}

/// Panics after the waker is gone.
unsafe fn discard(data: *const ()) {
    // SAFETY: called by a waker that ends by it.
    let bell = ManuallyDrop::into_inner(unsafe { bell(data) });
    let plan = Arc::clone(&bell.alive.0);
    drop(bell);
    plan.reach(Call::DropWaker);
}
