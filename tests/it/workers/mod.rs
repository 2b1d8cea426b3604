//! Pools of workers, and queues of closures.

mod generic;
#[cfg(feature = "tokio")]
mod in_flight;
mod jobs;
mod owned;
mod remote;
mod resize;
mod status;
#[cfg(feature = "tokio")]
mod task_items;
#[cfg(feature = "tokio")]
mod tasks;
mod threads;
mod together;
