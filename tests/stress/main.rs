//! Many threads, random operations and random aborts, with checks of the observed results.
//!
//! Two kinds of tests. Some record: every call is stamped by a logical clock before and after, and [`history`] finds
//! results that are impossible for a correct queue. The others do not record, since the stamps order all calls and
//! could hide a missing barrier: [`room`], [`tokens`], [`tree`] and [`visibility`] check invariants of the items
//! themselves.
//!
//! `REQUEUE_STRESS` multiplies the work (1 by default). Every failure prints the `REQUEUE_SEED` that repeats the
//! random choices; the scheduling of the threads is not repeated.

mod actions;
mod cancel;
#[path = "../common/mod.rs"]
mod common;
mod deliveries;
mod ending;
mod failing;
mod harness;
mod history;
mod joint;
mod rank;
mod recorded_handle;
mod recorder;
mod retry;
mod room;
mod storms;
mod tokens;
mod transaction;
mod tree;
mod visibility;
