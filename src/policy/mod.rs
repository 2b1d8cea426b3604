//! The options of a queue, each in a module of its own.
//!
//! Failed deliveries: [`retry`] has the rules, [`delay`] the delayed items, [`dead`] the dead letters. The state of a
//! transaction that is visible to others, and the items that can be reclaimed from it: [`mod@watch`] and [`lease`]; what
//! is kept of each held item is in a table by its position, [`held`].
//! Events: [`telemetry`].

pub(crate) mod dead;
pub(crate) mod delay;
pub(crate) mod held;
pub(crate) mod lease;
pub(crate) mod retry;
pub(crate) mod telemetry;
pub(crate) mod watch;
