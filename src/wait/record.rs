//! The record of a waiter: its entry in the list, and a state that it reads and leaves without the lock.

use crate::sync::{AtomicU8, Ordering};
use std::sync::Arc;
use std::task::Waker;

/// Identifies the entry of a waiter: its number. That of [`HEAD`] stands for none.
pub(super) type WaiterKey = usize;

/// The entry of no waiter, which is linked before the first one and after the last one.
pub(super) const HEAD: WaiterKey = 0;

/// The sequence number of a waiter, in the order of arrival.
pub(super) type Arrival = u64;

/// The number of a service, in the order in which they began.
pub(super) type Service = u64;

/// What a waiter has in its wait queue from its first wait on.
pub(super) struct Record {
    pub(super) key: WaiterKey,
    pub(super) state: Arc<State>,
}

/// An entry of the list.
#[derive(Default)]
pub(super) struct ListNode {
    pub(super) state: Arc<State>,
    pub(super) arrival: Arrival,
    /// Its neighbours; itself if it is not linked.
    pub(super) before: WaiterKey,
    pub(super) after: WaiterKey,
    /// `None`: it was woken, or is idle.
    pub(super) waker: Option<Waker>,
    /// Whether it was woken in vain.
    pub(super) vain: bool,
    /// The number of its service, if it was served since it waited last.
    pub(super) service: Option<Service>,
    /// Whether it keeps what it has obtained so far while it is the first.
    pub(super) gathers: bool,
}

/// The state of a waiter.
///
/// | state | meaning | set by |
/// |---|---|---|
/// | `IDLE` | it does not wait; its entry may still be linked | the waiter |
/// | `WAITING` | it waits, and was not woken | the waiter, under the lock |
/// | `FREE` | it was woken, and leaves without the lock once it has used its wake-up: nobody is to be woken then, and waiters that gather cannot come | who wakes it, under the lock |
/// | `WOKEN` | as `FREE`, but it can become awaited by a waiter that gathers | who wakes it, under the lock |
/// | `AWAITED` | it was woken, and others are to be woken when it leaves | under the lock |
///
/// ORDERING: Relaxed, all. A waiter that sees that it was woken attempts, and if it finds nothing attempts again under
/// the barrier of [`WaitQueue::wait_again`](super::WaitQueue::wait_again); one that does not see it asks under the lock.
/// What a waiter leaves without the lock is only its entry, whose other fields are used under the lock. A stale read of the
/// state of one that has left only delays unlinking its entry.
#[derive(Default)]
pub(super) struct State(AtomicU8);

impl State {
    pub(super) const IDLE: u8 = 0;
    pub(super) const WAITING: u8 = 1;
    pub(super) const WOKEN: u8 = 2;
    pub(super) const AWAITED: u8 = 3;
    pub(super) const FREE: u8 = 4;

    /// A hint without the lock. Under the lock, an idle waiter stays so until it acquires the lock.
    #[inline]
    pub(super) fn is(&self, state: u8) -> bool {
        // ORDERING: Relaxed; as above.
        self.0.load(Ordering::Relaxed) == state
    }

    #[inline]
    pub(super) fn set(&self, state: u8) {
        // ORDERING: Relaxed; as above.
        self.0.store(state, Ordering::Relaxed);
    }

    fn change(&self, from: u8, to: u8) -> bool {
        // ORDERING: Relaxed, both; as above. Of a waiter that leaves and a thread that awaits it, one is first.
        self.0
            .compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }

    /// Makes a woken waiter leave under the lock, unless it has left.
    pub(super) fn set_awaited(&self) {
        self.change(Self::WOKEN, Self::AWAITED);
    }

    /// Leaves without the lock, if it was woken where nobody else changes the state then.
    #[inline]
    pub(super) fn leave_freely(&self) -> bool {
        let is_free = self.is(Self::FREE);
        if is_free {
            self.set(Self::IDLE);
        }
        is_free
    }

    /// Leaves without the lock; false if others are to be woken.
    pub(super) fn leave(&self) -> bool {
        self.leave_freely() || self.change(Self::WOKEN, Self::IDLE)
    }
}
