//! Waits for an item, for room or for the close: their wake-ups, their order, and their timeouts.

mod any;
mod batches;
mod cancelled;
mod closing;
mod closing_threads;
mod comebacks;
mod deadlines;
mod delays;
mod ends;
mod events;
mod executors;
mod fairness;
mod hold_any;
mod idle;
mod leader;
mod overdue;
mod owned;
#[cfg(feature = "tokio")]
mod paused;
mod peeks;
mod pop_batches;
#[cfg(feature = "stream")]
mod stream;
mod turns;
mod verbs;
mod wakeups;
