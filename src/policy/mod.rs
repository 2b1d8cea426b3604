//! What a queue may be asked to do besides: each option in a room of its own.
//!
//! What becomes of items whose delivery failed: [`retry`] has the rules, [`delay`] those that are out of the way,
//! [`dead`] those that were given up. What others may know of a transaction, and take from it: [`mod@watch`] and
//! [`lease`]. Whom a queue tells of itself: [`telemetry`].

pub(crate) mod dead;
pub(crate) mod delay;
pub(crate) mod lease;
pub(crate) mod retry;
pub(crate) mod telemetry;
pub(crate) mod watch;
