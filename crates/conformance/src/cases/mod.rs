//! The cases.

// Their names say what they are about, and they fail by a panic.
#![allow(missing_docs, clippy::missing_panics_doc)]

pub mod attempts;
pub mod batches;
pub mod bounded;
pub mod cancelled;
pub mod closing;
pub mod delays;
pub mod deliveries;
pub mod leased;
pub mod letters;
pub mod order;
pub mod settled_late;
pub mod strict_order;
pub mod tasks;
pub mod threads;
pub mod transactions;
pub mod waits;
