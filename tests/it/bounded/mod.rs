//! Limits: of the items in a queue, of the held items, and of the rate of starts.

mod budget;
mod capacity;
mod gate;
mod leases;
mod pace;
mod pace_changes;
#[cfg(not(any(loom, shuttle)))]
mod pace_governor;
mod pace_limiters;
mod permits;
mod weigh;
mod weights;
