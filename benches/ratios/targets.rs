//! The targets of the queue.

/// In a scenario, the contender's time is at most this multiple of another's.
pub(crate) struct Target {
    pub(crate) scenario: &'static str,
    pub(crate) contender: &'static str,
    pub(crate) at_most: f64,
    pub(crate) against: &'static str,
}

const fn target(
    scenario: &'static str,
    contender: &'static str,
    at_most: f64,
    against: &'static str,
) -> Target {
    Target {
        scenario,
        contender,
        at_most,
        against,
    }
}

pub(crate) const TARGETS: &[Target] = &[
    target("pop", "requeue, transaction", 1.5, "requeue"),
    target("pair", "requeue", 0.25, "SegQueue"),
    target("batch of 32", "requeue", 0.2, "SegQueue"),
    target("batch of 32", "requeue", 1.0, "Mutex<VecDeque>"),
    target("batch of 32", "requeue, transaction", 0.2, "SegQueue"),
    target(
        "batch of 32",
        "requeue, transaction",
        1.0,
        "Mutex<VecDeque>",
    ),
    target("1P1C", "requeue", 0.5, "SegQueue"),
    target("2P2C", "requeue", 0.5, "SegQueue"),
    target("4P4C", "requeue", 0.5, "SegQueue"),
    target("1P3C", "requeue", 0.5, "SegQueue"),
    target("3P1C", "requeue", 0.5, "SegQueue"),
    target("2P2C, batches of 32", "requeue", 0.2, "SegQueue"),
    target("2P2C, batches of 32", "requeue", 1.0, "Mutex<VecDeque>"),
    target(
        "2P2C, batches of 32",
        "requeue, transaction",
        0.2,
        "SegQueue",
    ),
    target(
        "2P2C, batches of 32",
        "requeue, transaction",
        1.0,
        "Mutex<VecDeque>",
    ),
    target("end of 32 held", "abort", 4.0, "commit"),
    target("hold 32, end", "abort", 4.0, "commit"),
];
