//! Units of values, which follow from the names of metrics.

use std::fmt;
use std::ops::{Div, Mul};

/// A product of powers of seconds and bytes. Counts have no unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Unit {
    seconds: i32,
    bytes: i32,
}

pub(crate) const NONE: Unit = Unit {
    seconds: 0,
    bytes: 0,
};
pub(crate) const SECONDS: Unit = Unit {
    seconds: 1,
    bytes: 0,
};
const BYTES: Unit = Unit {
    seconds: 0,
    bytes: 1,
};

impl Unit {
    pub(crate) fn of_metric(name: &str) -> Self {
        let name = name.strip_suffix("_total").unwrap_or(name);
        match name.rsplit('_').next() {
            Some("seconds") => SECONDS,
            Some("bytes") => BYTES,
            _ => NONE,
        }
    }

    /// The names of this unit in Grafana.
    pub(crate) fn names(self) -> &'static [&'static str] {
        match (self.seconds, self.bytes) {
            (0, 0) => &["short", "percentunit"],
            (1, 0) => &["s"],
            (0, 1) => &["bytes"],
            (-1, 0) => &["cps"],
            (-1, 1) => &["binBps"],
            _ => &[],
        }
    }
}

impl Mul for Unit {
    type Output = Self;

    fn mul(self, by: Self) -> Self {
        Self {
            seconds: self.seconds + by.seconds,
            bytes: self.bytes + by.bytes,
        }
    }
}

impl Div for Unit {
    type Output = Self;

    fn div(self, by: Self) -> Self {
        Self {
            seconds: self.seconds - by.seconds,
            bytes: self.bytes - by.bytes,
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s^{} B^{}", self.seconds, self.bytes)
    }
}
