//! Asymmetric barriers: light on the frequent side, heavy on the rare one.
//!
//! Two threads each store and then load what the other stores; at least one of them must see the
//! other's store. That takes a full fence between store and load on both sides, or a *light* one
//! on one side and a *heavy* one on the other. On Linux the heavy one is `membarrier(2)`, which
//! makes every running thread of the process pass a fence, and the light one binds the compiler only.
//! Elsewhere both are full fences, also under Miri, which has no `membarrier`, and in the models, which can disable each
//! by its name. Shuttle's `fence` does nothing, which is correct there: shuttle is sequentially consistent, whatever the
//! orderings say.

use crate::sync::{fence, is_weakened, Ordering, SMALL};
#[cfg(all(target_os = "linux", not(any(loom, shuttle, miri))))]
use asymmetric as kind;
#[cfg(any(not(target_os = "linux"), loom, shuttle, miri))]
use symmetric as kind;

/// Chooses the kind of barriers, once for the process. Until then both are full fences.
pub(crate) fn prepare() {
    kind::prepare();
}

/// Whether a light barrier costs nothing.
pub(crate) fn is_asymmetric() -> bool {
    kind::is_asymmetric()
}

/// A compiler barrier: a light barrier where the other side's is certainly heavy.
#[inline]
pub(crate) fn compiler() {
    // ORDERING: SeqCst; pairs with a heavy barrier.
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
}

/// A heavy barrier, which takes some microseconds. It pairs with [`compiler`] even after the kernel has started to refuse.
///
/// The caller, or whoever created the structure that it works on, has called [`prepare`].
pub(crate) fn heavy_against_compiler(name: &'static str) {
    if !kind::fence_all_threads() {
        kind::wait_for_stores();
        full(name);
    }
}

/// A compiler barrier, except in the models and under Miri, where it is a full one; pairs with [`heavy_for_detach`].
#[inline]
pub(crate) fn light_for_detach(name: &'static str) {
    if SMALL {
        full(name);
    } else {
        compiler();
    }
}

/// Makes all threads pass a full barrier; pairs with [`light_for_detach`]. Returns false if the system cannot do it.
pub(crate) fn heavy_for_detach(name: &'static str) -> bool {
    if SMALL {
        full(name);
    }
    SMALL || kind::fence_all_threads()
}

/// A full barrier, which pairs with itself and with a heavy one.
#[inline]
pub(crate) fn full(name: &'static str) {
    if !is_weakened(name) {
        // ORDERING: SeqCst; pairs with another full fence, or with a heavy barrier.
        fence(Ordering::SeqCst);
    }
}

#[cfg(any(not(target_os = "linux"), loom, shuttle, miri))]
mod symmetric {
    pub(super) fn prepare() {}

    #[inline]
    pub(super) fn is_asymmetric() -> bool {
        false
    }

    pub(super) fn fence_all_threads() -> bool {
        false
    }

    pub(super) fn wait_for_stores() {}
}

#[cfg(all(target_os = "linux", not(any(loom, shuttle, miri))))]
mod asymmetric {
    use crate::sync::{AtomicU8, Ordering};
    use std::sync::Once;
    use std::thread;
    use std::time::Duration;

    /// Full fences on both sides.
    const SYMMETRIC: u8 = 0;
    const ASYMMETRIC: u8 = 1;
    /// Refused just now: light barriers may have been compiler barriers a moment ago.
    const REFUSED: u8 = 2;

    static STATE: AtomicU8 = AtomicU8::new(SYMMETRIC);

    /// A generous bound on how long a store may stay in a processor's store buffer.
    const SETTLED: Duration = Duration::from_millis(1);

    pub(super) fn prepare() {
        static CHOICE: Once = Once::new();
        CHOICE.call_once(|| {
            if membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) {
                // ORDERING: Relaxed; threads that do not see it yet use full fences, which pair as well.
                STATE.store(ASYMMETRIC, Ordering::Relaxed);
            }
        });
    }

    #[inline]
    fn state() -> u8 {
        // ORDERING: Relaxed; see `prepare` and `refused`.
        STATE.load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn is_asymmetric() -> bool {
        state() == ASYMMETRIC
    }

    /// Makes all threads pass a fence; false if the system does not support it.
    pub(super) fn fence_all_threads() -> bool {
        match state() {
            SYMMETRIC => false,
            ASYMMETRIC if membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED) => true,
            _ => {
                refused();
                false
            }
        }
    }

    /// Handles that the kernel has started to refuse, because of a new sandbox or a lack of memory, for example. From now on
    /// light barriers are full fences; stores behind an earlier one get time to reach memory.
    #[cold]
    fn refused() {
        // ORDERING: Relaxed, both; the sleep makes the first visible before the second.
        STATE.store(REFUSED, Ordering::Relaxed);
        thread::sleep(SETTLED);
        STATE.store(SYMMETRIC, Ordering::Relaxed);
    }

    /// Gives the stores of other threads time to reach memory, where they cannot be made to pass a fence.
    pub(super) fn wait_for_stores() {
        thread::sleep(SETTLED);
    }

    fn membarrier(command: libc::c_int) -> bool {
        // SAFETY: the call takes three integers and accesses no memory of this process.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    }
}
