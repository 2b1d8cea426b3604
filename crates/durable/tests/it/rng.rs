//! A small random number generator (xorshift64*), and the cases of random tests.

/// Runs a case for each seed. `DURABLE_CASES` sets how many, `DURABLE_SEED` runs only one.
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

pub(crate) struct Rng(u64);

impl Rng {
    /// Different seeds give unrelated sequences, even consecutive ones.
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..8 {
            rng.next();
        }
        rng
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `end`, which is small.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() >> 32).unwrap() % end
    }

    pub(crate) fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    pub(crate) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}
