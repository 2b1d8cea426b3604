//! Many threads, random operations and random aborts, checked by what the threads saw.
//!
//! Two kinds of tests. Those that record: every call is stamped by a logical clock before and after,
//! and [`history`] finds what no correct queue could have answered. Those that do not: the stamps
//! order all calls and could hide a missing barrier, so [`room`], [`tokens`], [`tree`] and
//! [`visibility`] check invariants of the items themselves.
//!
//! `REQUEUE_STRESS` multiplies the work (1 by default). Every failure prints the `REQUEUE_SEED` that
//! gives the same random choices again; the scheduling of the threads stays free.

mod actions;
mod cancel;
#[path = "../common/mod.rs"]
mod common;
mod failing;
mod harness;
mod history;
mod joint;
mod port;
mod rank;
mod recorder;
mod retry;
mod room;
mod storms;
mod tokens;
mod transaction;
mod tree;
mod visibility;
