//! Items, and the check of what came out against what went in.

use std::ops::{AddAssign, Range};

/// An item of some size, with a number.
pub(crate) trait Payload: Clone + Default + Send + 'static {
    fn of(number: u64) -> Self;
    fn number(&self) -> u64;
}

impl Payload for u64 {
    fn of(number: u64) -> Self {
        number
    }

    fn number(&self) -> u64 {
        *self
    }
}

/// An item of several words.
#[derive(Clone)]
pub(crate) struct Words<const N: usize>([u64; N]);

impl<const N: usize> Default for Words<N> {
    fn default() -> Self {
        Self([0; N])
    }
}

impl<const N: usize> Payload for Words<N> {
    fn of(number: u64) -> Self {
        Self([number; N])
    }

    fn number(&self) -> u64 {
        self.0[N - 1]
    }
}

/// What the numbers of some items have in common only with the same items, in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) count: u64,
    sum: u64,
    xor: u64,
}

impl Tally {
    pub(crate) fn of(numbers: Range<u64>) -> Self {
        let mut tally = Self::default();
        numbers.for_each(|number| tally.add(number));
        tally
    }

    pub(crate) fn add(&mut self, number: u64) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(number);
        self.xor ^= number;
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.count += other.count;
        self.sum = self.sum.wrapping_add(other.sum);
        self.xor ^= other.xor;
    }
}

/// Maps consecutive numbers to pseudo-random ones (Steele, Lea, Flood, "Fast splittable pseudorandom number
/// generators", 2014).
pub(crate) fn spread(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}
