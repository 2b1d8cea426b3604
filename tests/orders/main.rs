//! Queues of other orders: fair by key, by priority and schedule.

#[path = "../common/mod.rs"]
mod common;

mod fair;
mod own_queue;
mod priority;
mod snapshot;
