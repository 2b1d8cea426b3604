//! Waiting for items and for room.
//!
//! Threads and tasks alike wait in a [`WaitQueue`]; a [`Waiter`] is an entry of it. The protocol is the same for items
//! and for permits:
//!
//! | role | steps |
//! |---|---|
//! | publisher | publishes; reads the wait queue's word; takes its lock if somebody waits; otherwise a light barrier, and reads the word again |
//! | waiter | attempts, unless its last wait slept; enters the wait queue, which changes the word; a heavy barrier; attempts again; sleeps |
//! | woken waiter | attempts; if that succeeds, leaves without the lock; if it fails, waits again at its old position; a barrier; attempts again; sleeps |
//!
//! Of publisher and waiter at least one sees the other. A publisher of n things wakes the first n
//! waiters that were not woken yet. A waiter that leaves without having used its wake-up passes it on. A waiter keeps its
//! record in the wait queue from its first wait on, so that to wait again allocates nothing.
//!
//! Waiters are woken in FIFO order. A newcomer can overtake a woken waiter at most once: a waiter that was woken in
//! vain is *served* when it is woken again, and newcomers that wait queue up behind it until it leaves, its attempt
//! has failed, or others have given way to it in vain.

mod due_timer;
mod park;
mod record;
mod wait_queue;
mod waiter;
mod waiter_list;
mod wake;
mod word;

#[cfg(all(loom, test))]
mod models;

#[cfg(feature = "broker")]
pub(crate) use due_timer::AlarmCall;
pub(crate) use due_timer::{DueTimer, Room as WaitRoom};
#[cfg(feature = "workers")]
pub(crate) use park::Sleeper;
pub(crate) use park::{block, spin, SpinStart, WakeTarget};
pub(crate) use wait_queue::WaitQueue;
pub(crate) use waiter::{Waiter, Waits};
pub use wake::DeferredWakes;
pub(crate) use word::WaitWord;
