//! The room of a bounded queue: its permits, and those that wait for them.

use super::{Capacity, RecordOwner};
use crate::wait::{WaitQueue, WaitRoom, WaitWord};

/// The room of a bounded queue.
pub(crate) struct Room {
    pub(crate) capacity: Capacity,
    /// The wait queue for permits.
    pub(crate) wait_queue: WaitQueue,
    /// Whether it outlives a queue.
    pub(crate) is_shared: bool,
}

impl Room {
    /// `is_shared`: by several queues.
    pub(crate) fn new(limit: usize, is_shared: bool) -> Self {
        Self {
            capacity: Capacity::new(limit),
            wait_queue: WaitQueue::new(WaitWord::default(), true),
            is_shared,
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

    /// Takes permits that will belong to no handle: all, or none. Several are taken as by a handle that is made for that.
    pub(crate) fn take(&self, permits: usize) -> bool {
        if permits <= 1 {
            return permits == 0 || self.capacity.take_shared();
        }
        let mut owner = RecordOwner::new(&self.capacity);
        let takes = owner.take_all(&self.capacity, permits);
        let unsaid = owner.unsaid();
        owner.leave(&self.capacity);
        self.freed(unsaid);
        takes
    }
}

impl WaitRoom for Room {
    fn wait_queue(&self) -> &WaitQueue {
        &self.wait_queue
    }

    fn notify_planned(&self) {
        if self.is_shared {
            self.wait_queue.wake_all_waiting(); // some wait for other queues
        } else {
            self.wait_queue.notify(1);
        }
    }
}
