//! Asymmetric barriers: light where it is often, heavy where it is seldom.
//!
//! Two threads each store and then load what the other stores; at least one of them must see the
//! other's store. That takes a full fence between store and load on both sides, or a [`light`] one
//! on one side and a [`heavy`] one on the other. On Linux the heavy one is `membarrier(2)`, which
//! makes every running thread of the process pass a fence, and the light one binds the compiler only.
//! Elsewhere both are full fences.

use crate::sync::fence;
#[cfg(all(target_os = "linux", not(loom)))]
use asymmetric as kind;
#[cfg(any(not(target_os = "linux"), loom))]
use symmetric as kind;

/// Chooses the barriers, once for the process. Until then both are full fences.
pub(crate) fn prepare() {
    kind::prepare();
}

/// Whether a light barrier costs nothing.
pub(crate) fn is_asymmetric() -> bool {
    kind::is_asymmetric()
}

/// Binds the compiler: a light barrier where the other side's is heavy for certain.
#[inline]
pub(crate) fn compiler() {
    // ORDERING: SeqCst; pairs with a heavy barrier.
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
}

/// The barrier of the side that must be fast; pairs with [`heavy`].
#[inline]
pub(crate) fn light() {
    if is_asymmetric() {
        compiler();
    } else {
        full();
    }
}

/// The barrier of the side that may be slow, some microseconds; pairs with [`light`] and [`full`].
pub(crate) fn heavy() {
    if !kind::fence_all_threads() {
        full();
    }
}

/// A barrier that pairs with any of them.
#[inline]
pub(crate) fn full() {
    // ORDERING: SeqCst; pairs with another full fence, or with that of a heavy barrier.
    fence(crate::sync::Ordering::SeqCst);
}

#[cfg(any(not(target_os = "linux"), loom))]
mod symmetric {
    pub(super) fn prepare() {}

    #[inline]
    pub(super) fn is_asymmetric() -> bool {
        false
    }

    pub(super) fn fence_all_threads() -> bool {
        false
    }
}

#[cfg(all(target_os = "linux", not(loom)))]
mod asymmetric {
    use crate::sync::{AtomicBool, Ordering};
    use std::sync::Once;
    use std::thread;
    use std::time::Duration;

    static AVAILABLE: AtomicBool = AtomicBool::new(false);

    /// How long a store may stay in a processor's buffer, by far.
    const SETTLED: Duration = Duration::from_millis(1);

    pub(super) fn prepare() {
        static CHOICE: Once = Once::new();
        CHOICE.call_once(|| {
            if membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) {
                // ORDERING: Relaxed; who does not see it yet uses full fences, which pair as well.
                AVAILABLE.store(true, Ordering::Relaxed);
            }
        });
    }

    #[inline]
    pub(super) fn is_asymmetric() -> bool {
        // ORDERING: Relaxed; see `prepare` and `fence_all_threads`.
        AVAILABLE.load(Ordering::Relaxed)
    }

    /// Makes all threads pass a fence; false if that is not to be had.
    ///
    /// The kernel may begin to refuse, when a sandbox is put up, say. Then all use full fences from
    /// now on, and what threads stored behind a light one just now has time to reach memory.
    pub(super) fn fence_all_threads() -> bool {
        if !is_asymmetric() {
            return false;
        }
        if membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED) {
            return true;
        }
        // ORDERING: Relaxed; the wait makes it seen.
        AVAILABLE.store(false, Ordering::Relaxed);
        thread::sleep(SETTLED);
        false
    }

    fn membarrier(command: libc::c_int) -> bool {
        // SAFETY: the call takes three integers and touches no memory of ours.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    }
}
