//! Failed deliveries: items that are retried, reclaimed or dead, and user code that panics or is reentrant.

#[path = "../common/mod.rs"]
mod common;

mod clocks;
mod dead_letters;
mod lease_copies;
mod lease_losses;
mod lease_orders;
mod lease_recovery;
mod leased_deliveries;
mod leases;
mod meddling;
mod retry;
