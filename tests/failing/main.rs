//! Deliveries that fail: items that are given back, taken back or dead, and user code that panics or meddles.

#[path = "../common/mod.rs"]
mod common;

mod clocks;
mod dead_letters;
mod lease_copies;
mod lease_losses;
mod lease_orders;
mod lease_recovery;
mod leases;
mod meddling;
mod retry;
