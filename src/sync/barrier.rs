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
use std::sync::atomic::AtomicBool;
use std::sync::Once;
use std::thread;
use std::time::Duration;

/// Whether the call can exist.
const HAS_CALL: bool = cfg!(all(target_os = "linux", not(any(loom, shuttle, miri))));

/// Whether the call has worked so far. An atomic of std in the models too, which never make the call.
static WORKS: AtomicBool = AtomicBool::new(false);

/// A generous bound on how long a store may stay in a processor's store buffer.
const SETTLED: Duration = Duration::from_millis(1);

/// Chooses the kind of barriers, once for the process. Until then both are full fences.
pub(crate) fn prepare() {
    static CHOICE: Once = Once::new();
    // ORDERING: Relaxed; threads that do not see it yet do without the call.
    CHOICE.call_once(|| WORKS.store(membarrier(true), std::sync::atomic::Ordering::Relaxed));
}

/// Whether a light barrier costs nothing.
#[inline]
pub(crate) fn is_asymmetric() -> bool {
    // ORDERING: Relaxed; as in `prepare`.
    HAS_CALL && WORKS.load(std::sync::atomic::Ordering::Relaxed)
}

/// Makes all threads pass a fence; false if the system does not do it. It may begin to refuse, because of a new sandbox or a
/// lack of memory, for example.
fn fence_all_threads() -> bool {
    let fenced = is_asymmetric() && membarrier(false);
    if !fenced {
        // ORDERING: Relaxed; as in `prepare`.
        WORKS.store(false, std::sync::atomic::Ordering::Relaxed);
    }
    fenced
}

/// Registers the process for the call, or makes it.
fn membarrier(registers: bool) -> bool {
    #[cfg(machine)]
    if !registers {
        super::machine::event(super::machine::Event::Membarrier);
        return true;
    }
    #[cfg(all(target_os = "linux", not(any(loom, shuttle, miri))))]
    {
        let command = if registers {
            libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED
        } else {
            libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED
        };
        // SAFETY: the call takes three integers and accesses no memory of this process.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    }
    #[cfg(not(all(target_os = "linux", not(any(loom, shuttle, miri)))))]
    {
        let _ = registers;
        HAS_CALL
    }
}

/// A compiler barrier: a light barrier where the other side's is certainly heavy.
#[inline]
pub(crate) fn compiler() {
    // ORDERING: SeqCst; pairs with a heavy barrier.
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
}

/// A light barrier, which pairs with a heavy one.
#[inline]
pub(crate) fn light(name: &'static str) {
    // Before the kind is read too: a compiler that reads it earlier than the caller's store would leave a moment in
    // which the other side has begun to rely on full fences, and this one has none.
    compiler();
    if !is_asymmetric() {
        full(name);
    }
    compiler();
}

/// A heavy barrier, which takes some microseconds. It pairs with [`light`] and [`compiler`] even after the kernel has started to refuse.
///
/// The caller, or whoever created the structure that it works on, has called [`prepare`].
pub(crate) fn heavy_against_compiler(name: &'static str) {
    if !fence_all_threads() {
        if HAS_CALL {
            // The stores of other threads get time to reach memory.
            thread::sleep(SETTLED);
        }
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
    SMALL || fence_all_threads()
}

/// A full barrier, which pairs with itself and with a heavy one.
#[inline]
pub(crate) fn full(name: &'static str) {
    if !is_weakened(name) {
        // ORDERING: SeqCst; pairs with another full fence, or with a heavy barrier.
        fence(Ordering::SeqCst);
    }
}
