//! The cases.

// Their names say what they are about, and they fail by a panic.
#![allow(missing_docs, clippy::missing_panics_doc)]

pub mod attempts;
pub mod batches;
pub mod bounded;
pub mod cancelled;
pub mod closed_now;
pub mod closing;
pub mod delays;
pub mod deliveries;
pub mod duplicates;
pub mod errors;
pub mod leased;
pub mod letters;
pub mod order;
pub mod removed;
pub mod settled_late;
pub mod strict_order;
pub mod tail;
pub mod tasks;
pub mod threads;
pub mod transactions;
pub mod ttl;
pub mod unique;
pub mod unique_at_once;
pub mod waits;
pub mod weighed;
