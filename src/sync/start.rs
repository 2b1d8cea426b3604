//! Where counters begin: at 0, except under `--cfg near_wrap`, where tests pass the ends of their ranges.

/// How many steps a counter is then before it wraps.
const STEPS: u64 = 2;
/// How far a counter that must not reach its end is then before it: farther than any test counts.
const FAR: u64 = 1 << 40;

/// The start of a counter of `bits` bits that wraps.
pub(crate) const fn start(bits: u32) -> u64 {
    if cfg!(near_wrap) {
        (u64::MAX >> (u64::BITS - bits)) - (STEPS - 1)
    } else {
        0
    }
}

/// The start of a counter that does not wrap, and must not reach `end`.
pub(crate) const fn start_before(end: u64) -> u64 {
    if cfg!(near_wrap) {
        end - FAR
    } else {
        0
    }
}
