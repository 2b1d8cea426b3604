//! Pools of workers, and queues of closures.

mod generic;
mod jobs;
mod owned;
mod resize;
mod status;
#[cfg(feature = "tokio")]
mod task_items;
#[cfg(feature = "tokio")]
mod tasks;
mod threads;
mod together;
