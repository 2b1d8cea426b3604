//! The resident set of this process.

use std::fs;

/// The growth that is accepted, in bytes.
///
/// The unconsumed items of a round are at most `ROUND`, 65,536, of some 60 bytes in a queue: 4 MiB if all of them wait
/// in one queue. A round whose deepest queue is as deep as never before may so add 4 MiB that the allocator keeps, and
/// as much again in the memory of another thread. This does not depend on the number of rounds; a leak does.
pub(crate) const BOUND: u64 = 8 << 20;

const PAGE: u64 = 4096;

/// The resident set in bytes; `None` where there is no `/proc`. Pages are taken to have 4 KiB.
pub(crate) fn resident() -> Option<u64> {
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * PAGE)
}

/// In MiB, for printing.
#[allow(clippy::cast_precision_loss)] // printed with one decimal
pub(crate) fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// The resident set after the first rounds and after the last one.
#[derive(Clone, Copy, Default)]
pub(crate) struct Memory {
    warm: Option<u64>,
    last: Option<u64>,
}

impl Memory {
    /// Takes a sample after a round. The first ones are overwritten until the queues are `warm`.
    pub(crate) fn sample(&mut self, resident: Option<u64>, warm: bool) {
        if !warm || self.warm.is_none() {
            self.warm = resident;
        }
        self.last = resident;
    }

    /// A line for the report; an error if the memory grew too much.
    pub(crate) fn check(&self) -> Result<String, String> {
        let (Some(warm), Some(last)) = (self.warm, self.last) else {
            return Ok("memory: unknown on this system".into());
        };
        let line = format!(
            "memory: {:.1} MiB after the warm-up, {:.1} MiB at the end, at most {:.0} MiB more are accepted",
            mib(warm),
            mib(last),
            mib(BOUND)
        );
        if last <= warm + BOUND {
            return Ok(line);
        }
        Err(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_after_the_warm_up_is_an_error() {
        let mut memory = Memory::default();
        memory.sample(Some(BOUND), false);
        memory.sample(Some(3 * BOUND), false);
        memory.sample(Some(4 * BOUND), true);
        assert!(memory.check().is_ok());
        memory.sample(Some(4 * BOUND + 1), true);
        assert!(memory.check().is_err());
    }
}
