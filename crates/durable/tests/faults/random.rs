//! Random choices that a seed repeats.

use std::time::{SystemTime, UNIX_EPOCH};

/// The generator `SplitMix64`.
pub(crate) struct Random(u64);

impl Random {
    /// Of the seed in the environment, or a new one, which is printed.
    pub(crate) fn of_test(name: &str) -> Self {
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let seed = crate::count("DURABLE_SEED", clock.subsec_nanos().into());
        println!("{name}: DURABLE_SEED={seed}");
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let number = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ (number >> 31)
    }

    /// Less than `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    pub(crate) fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap()
    }

    pub(crate) fn pick<'s, T>(&mut self, from: &'s [T]) -> &'s T {
        &from[self.index(from.len())]
    }
}
