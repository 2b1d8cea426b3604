//! The atomics of std, which give way to other threads now and then: for tests under `--cfg yields`.
//!
//! Before an access the thread sometimes yields or sleeps for some microseconds, so that others run between any two
//! accesses of a protocol, and not only where the scheduler interrupts it.

use std::cell::Cell;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{self, Ordering};
use std::thread;
use std::time::Duration;

/// One of this number of accesses yields.
const YIELDS: u64 = 16;
/// One of this number of accesses sleeps, for less than this number of microseconds, or about as long as that takes at least.
const SLEEPS: u64 = 256;
const MICROS: u64 = 32;

/// An atomic, each use of which may give way first.
#[derive(Debug, Default)]
#[repr(transparent)]
pub(crate) struct Yielding<A>(A);

impl<A> Deref for Yielding<A> {
    type Target = A;

    #[inline]
    fn deref(&self) -> &A {
        give_way();
        &self.0
    }
}

/// Exclusive accesses do not give way.
impl<A> DerefMut for Yielding<A> {
    #[inline]
    fn deref_mut(&mut self) -> &mut A {
        &mut self.0
    }
}

macro_rules! yielding {
    ($($name:ident $(<$target:ident>)?: $value:ty;)+) => {$(
        pub(crate) type $name$(<$target>)? = Yielding<atomic::$name$(<$target>)?>;

        impl$(<$target>)? Yielding<atomic::$name$(<$target>)?> {
            #[inline]
            pub(crate) const fn new(value: $value) -> Self {
                Self(atomic::$name::new(value))
            }
        }
    )+};
}

yielding! {
    AtomicBool: bool;
    AtomicPtr<T>: *mut T;
    AtomicU32: u32;
    AtomicU64: u64;
    AtomicU8: u8;
    AtomicUsize: usize;
}

#[inline]
pub(crate) fn fence(ordering: Ordering) {
    give_way();
    atomic::fence(ordering);
}

/// Yields, sleeps, or, mostly, does nothing.
fn give_way() {
    let number = random();
    if number % SLEEPS == 0 {
        thread::sleep(Duration::from_micros(number / SLEEPS % MICROS));
    } else if number % YIELDS == 0 {
        thread::yield_now();
    }
}

/// The next number of Marsaglia's 64-bit xorshift ("Xorshift RNGs", 2003), from another one for each thread.
fn random() -> u64 {
    std::thread_local! {
        static LAST: Cell<u64> = const { Cell::new(0) };
    }
    LAST.with(|last| {
        let mut number = match last.get() {
            0 => RandomState::new().build_hasher().finish() | 1,
            number => number,
        };
        number ^= number << 13;
        number ^= number >> 7;
        number ^= number << 17;
        last.set(number);
        number
    })
}
