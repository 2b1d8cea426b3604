//! Random choices that a seed repeats, and the cases of random tests.

/// Runs a case for each seed. `DURABLE_CASES` sets how many, `DURABLE_SEED` runs only one.
#[allow(dead_code)] // shared by several test programs
pub(crate) fn cases(count: u64, case: impl Fn(u64)) {
    let variable = |name| {
        let value = std::env::var(name).ok()?;
        Some(value.parse().expect("a number"))
    };
    let seeds = match variable("DURABLE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..variable("DURABLE_CASES").unwrap_or(count),
    };
    for seed in seeds {
        eprintln!("DURABLE_SEED={seed}");
        case(seed);
    }
}

/// The generator `SplitMix64`.
pub(crate) struct Random(u64);

#[allow(dead_code)] // as above
impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let number = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ (number >> 31)
    }

    /// Less than `end`; 0 if `end` is 0.
    pub(crate) fn below<N: TryFrom<u64> + TryInto<u64>>(&mut self, end: N) -> N {
        let end = end.try_into().unwrap_or(u64::MAX);
        let number = N::try_from(self.next() % end.max(1));
        number.unwrap_or_else(|_| unreachable!("it is less than one of this type"))
    }

    pub(crate) fn percent(&mut self, chance: u32) -> bool {
        self.below(100_u32) < chance
    }

    pub(crate) fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }
}
