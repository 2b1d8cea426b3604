//! Who sleeps until something is ready, or until there is room.
//!
//! A [`WaitQueue`] is where threads and tasks wait alike; a [`Waiter`] is one waiter's place in it. The
//! protocol, the same for items and for permits:
//!
//! | who | does |
//! |---|---|
//! | publisher | publishes; a light barrier; looks at the wait queue's word |
//! | waiter | tries; enters the wait queue, which changes the word; a heavy barrier; tries again; sleeps |
//! | woken waiter | tries; in vain, waits again at its old place; a barrier; tries again; sleeps |
//!
//! Of publisher and waiter at least one sees the other. A publisher of n things wakes the first n
//! waiters that were not woken yet. A waiter that leaves without having used its wake-up passes it on.
//!
//! Who waits first is woken first. A newcomer may still be faster than a waiter that is on its way, but
//! only once: a waiter that was woken in vain is *served* when it is woken again, and newcomers that
//! wait wait queue up behind it, until it leaves or has found nothing.

mod due_timer;
mod park;
mod wait_queue;
mod waiter;
mod waiter_list;
mod wake;
mod word;

#[cfg(all(loom, test))]
mod models;

pub(crate) use due_timer::DueTimer;
pub(crate) use park::{block, spin, Deadline, WakeTarget};
pub(crate) use wait_queue::WaitQueue;
pub(crate) use waiter::{WaitKind, Waiter, Waits, Wanted};
pub(crate) use word::ModeWord;
