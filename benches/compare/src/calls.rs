//! The system calls and context switches of a thread: what waiting costs beside time.
//!
//! Each thread counts its own calls, by an increment beside a call of the system, and reads the count before and after
//! its work. So no thread waits for another, and the timed rounds themselves are counted.

#[cfg_attr(
    all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64")
    ),
    path = "calls/linux.rs"
)]
mod system;

pub(crate) use self::system::{of_this_thread, COUNTED};

use std::ops::{AddAssign, Sub};

pub(crate) const KINDS: usize = 9;

/// The names of what is counted.
pub(crate) const NAMES: [&str; KINDS] = [
    "futex waits",
    "waits in vain",
    "futex wakes",
    "wakes in vain",
    "membarriers",
    "yields",
    "sleeps",
    "voluntary switches",
    "involuntary switches",
];

/// How often each kind happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Calls([u64; KINDS]);

impl Calls {
    /// The numbers for 1,000 of so many items, in the order of the names.
    #[allow(clippy::cast_precision_loss)]
    pub(crate) fn per_thousand(&self, items: u64) -> [f64; KINDS] {
        self.0.map(|number| number as f64 * 1e3 / items as f64)
    }
}

impl AddAssign for Calls {
    fn add_assign(&mut self, other: Self) {
        let numbers = self.0.iter_mut().zip(other.0);
        numbers.for_each(|(number, other)| *number += other);
    }
}

impl Sub for Calls {
    type Output = Self;

    fn sub(mut self, earlier: Self) -> Self {
        let numbers = self.0.iter_mut().zip(earlier.0);
        numbers.for_each(|(number, earlier)| *number -= earlier);
        self
    }
}
