//! The room of a bounded queue: its permits, and those that wait for them.

use super::Capacity;
use crate::wait::{WaitQueue, WaitRoom, WaitWord};

/// The room of a bounded queue.
pub(crate) struct Room {
    pub(crate) capacity: Capacity,
    /// The wait queue for permits.
    pub(crate) wait_queue: WaitQueue,
}

impl Room {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            capacity: Capacity::new(limit),
            wait_queue: WaitQueue::new(WaitWord::default(), true),
        }
    }

    /// Releases permits that belong to no handle.
    pub(crate) fn give_back(&self, count: usize) {
        self.freed(self.capacity.give_shared(count));
    }

    /// Wakes waiters for `count` freed permits.
    #[inline]
    pub(crate) fn freed(&self, count: usize) {
        self.wait_queue.notify(count);
    }

    /// Takes a permit that will belong to no handle.
    pub(crate) fn take_one(&self) -> bool {
        self.capacity.take_shared()
    }
}

impl WaitRoom for Room {
    fn wait_queue(&self) -> &WaitQueue {
        &self.wait_queue
    }
}
