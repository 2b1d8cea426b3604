//! Atomics whose accesses are events.

use super::{address, event, Event};
use std::sync::atomic::{self, Ordering};

/// An atomic, each access to which is an event first.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Simulated<A>(A);

impl<A> Simulated<A> {
    fn read(&self) -> &A {
        event(Event::Read(address(self)));
        &self.0
    }

    fn locked(&self) -> &A {
        event(Event::Locked(address(self)));
        &self.0
    }

    /// A sequentially consistent store is an exchange, as compilers make it for x86.
    fn written(&self, ordering: Ordering) -> &A {
        if ordering == Ordering::SeqCst {
            return self.locked();
        }
        event(Event::Write(address(self)));
        &self.0
    }
}

macro_rules! atomics {
    ($($name:ident $(<$target:ident>)?: $value:ty;)+) => {$(
        #[doc = concat!("The `", stringify!($name), "` of std.")]
        pub type $name$(<$target>)? = Simulated<atomic::$name$(<$target>)?>;

        #[allow(missing_docs, clippy::missing_errors_doc)] // as in std
        impl$(<$target>)? Simulated<atomic::$name$(<$target>)?> {
            pub const fn new(value: $value) -> Self {
                Self(atomic::$name::new(value))
            }

            pub fn load(&self, ordering: Ordering) -> $value {
                self.read().load(ordering)
            }

            pub fn store(&self, value: $value, ordering: Ordering) {
                self.written(ordering).store(value, ordering);
            }

            pub fn swap(&self, value: $value, ordering: Ordering) -> $value {
                self.locked().swap(value, ordering)
            }

            pub fn compare_exchange(&self, old: $value, new: $value, success: Ordering, failure: Ordering) -> Result<$value, $value> {
                self.locked().compare_exchange(old, new, success, failure)
            }

            /// Never fails spuriously.
            pub fn compare_exchange_weak(&self, old: $value, new: $value, success: Ordering, failure: Ordering) -> Result<$value, $value> {
                self.compare_exchange(old, new, success, failure)
            }

            pub fn fetch_update(&self, set: Ordering, fetch: Ordering, mut update: impl FnMut($value) -> Option<$value>) -> Result<$value, $value> {
                let mut old = self.load(fetch);
                while let Some(new) = update(old) {
                    match self.compare_exchange(old, new, set, fetch) {
                        Ok(old) => return Ok(old),
                        Err(now) => old = now,
                    }
                }
                Err(old)
            }

            /// Exclusive accesses are no events.
            pub fn get_mut(&mut self) -> &mut $value {
                self.0.get_mut()
            }

            pub fn into_inner(self) -> $value {
                self.0.into_inner()
            }
        }
    )+};
}

atomics! {
    AtomicBool: bool;
    AtomicPtr<T>: *mut T;
    AtomicU32: u32;
    AtomicU64: u64;
    AtomicU8: u8;
    AtomicUsize: usize;
}

macro_rules! fetches {
    ($($name:ident: $value:ty, $($fetch:ident)+;)+) => {$(
        #[allow(missing_docs)] // as in std
        impl Simulated<atomic::$name> {$(
            pub fn $fetch(&self, value: $value, ordering: Ordering) -> $value {
                self.locked().$fetch(value, ordering)
            }
        )+}
    )+};
}

fetches! {
    AtomicBool: bool, fetch_and fetch_or;
    AtomicU32: u32, fetch_add fetch_sub fetch_and fetch_or fetch_min;
    AtomicU64: u64, fetch_add fetch_sub fetch_and fetch_or fetch_min;
    AtomicU8: u8, fetch_add fetch_sub fetch_and fetch_or fetch_min;
    AtomicUsize: usize, fetch_add fetch_sub fetch_and fetch_or fetch_min;
}

/// A fence: an event if the processor has one too.
pub fn fence(ordering: Ordering) {
    if ordering == Ordering::SeqCst {
        event(Event::Fence);
    }
    atomic::fence(ordering);
}
