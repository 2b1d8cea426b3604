//! Loom models of the protocols.
mod shard;

use super::lanes::Lanes;
use super::producer::Producer;
use super::shard::Shard;
use super::visit::{Take, Visit};
use crate::sync::AtomicU64;
use std::sync::Arc;

/// Explores all executions, with as many preemptions as `LOOM_MAX_PREEMPTIONS` says, or two.
fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(2));
    builder.check(run);
}
