//! Transactions, handles and single calls.

#[path = "../common/mod.rs"]
mod common;

mod aborted;
mod attempts;
mod between_handles;
mod blame;
mod borrows;
mod channel;
mod commit_all;
mod deliveries;
mod discard;
mod drops;
mod foundationdb;
mod handles;
mod held;
mod idle_handles;
mod ids;
mod layouts;
mod owned;
mod panics;
mod peek;
mod reclaim;
mod removal;
mod retain;
mod service_fabric;
mod snapshot;
mod stats;
mod transactions;
mod types;
mod verbs;
