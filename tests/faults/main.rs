//! Faults: allocations that fail, user code that panics, clocks that jump, values that are leaked, forks.
//!
//! | variable | is | default |
//! |---|---|---|
//! | `REQUEUE_STRESS` | how many more of the possible panics and failed allocations are injected | 1 |

#[path = "../common/mod.rs"]
mod common;

mod aborts;
mod allocations;
mod allocator;
mod amount;
mod bell;
mod forgotten;
mod forks;
mod jumps;
mod ledger;
mod orders;
mod own_steps;
mod panics;
mod plan;
mod pools;
mod probes;
mod steps;
mod tour;
mod waits;
