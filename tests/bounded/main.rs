//! Bounds: how much a queue may hold, how much of it workers may hold, and how much may start when.

#[path = "../common/mod.rs"]
mod common;

mod capacity;
mod gate;
mod pace;
mod pace_changes;
#[cfg(not(any(loom, shuttle)))]
mod pace_governor;
mod permits;
