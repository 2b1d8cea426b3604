//! The state of one handle.

use super::access::Access;
use super::mode::{mode, SLOW_POPS};
use super::origin::Origin;
use super::shared::Shared;
use crate::order::Order;
use crate::policy::Deliveries;
use crate::raw::LocalCell;
use crate::wait::{WaitWord, Waiter};
use std::sync::Arc;

/// A handle's [`Local`] in the cell that lends it to one user at a time.
pub(crate) type CellOf<T, O> = LocalCell<Local<T, O>>;

/// The state of one handle: its access to the queue, what it waits for, and what the options keep of its transaction.
pub(crate) struct Local<T, O: Order<T>> {
    pub(super) access: Access<T, O>,
    /// Added to the word for the pops of a transaction: makes them slow if the handle is watched.
    pub(super) extra_mode: WaitWord,
    /// Whether it is the leader: the waiter that sleeps until the next due time.
    pub(super) is_leader: bool,
    /// Its waiters for an item and for room; it waits with one of them at a time.
    pub(super) item_waiter: Waiter,
    pub(super) room_waiter: Waiter,
    /// What the options keep of the transaction's deliveries.
    pub(super) deliveries: Deliveries<T, O>,
    /// How many items the last commit over several queues has published, and freed.
    pub(super) concluded: (usize, usize),
    /// What the deliveries that it has begun have in common, if there were any.
    pub(super) origin: Option<Arc<Origin<T, O>>>,
}

impl<T, O: Order<T>> Local<T, O> {
    /// The state of a new handle with this name, if any.
    pub(crate) fn new(shared: Arc<Shared<T, O>>, name: Option<Arc<str>>) -> Self {
        let access = Access::new(shared);
        let deliveries = Deliveries::new(&access.shared, name, access.endpoint.number());
        Self {
            access,
            extra_mode: mode([(deliveries.are_watched(), SLOW_POPS)]),
            is_leader: false,
            item_waiter: Waiter::default(),
            room_waiter: Waiter::default(),
            deliveries,
            concluded: (0, 0),
            origin: None,
        }
    }

    /// As [`Local::new`], in a cell.
    pub(crate) fn in_cell(shared: Arc<Shared<T, O>>, name: Option<Arc<str>>) -> CellOf<T, O> {
        LocalCell::new(Self::new(shared, name))
    }

    #[inline]
    pub(crate) fn deliveries(&self) -> &Deliveries<T, O> {
        &self.deliveries
    }
}

deref!([T, O: Order<T>] Local<T, O> => Access<T, O>, |local| &local.access, &mut local.access);

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use crate::Queue;

    #[test]
    fn a_named_handle_slows_no_other_pops() {
        let queue = Queue::<u32>::unbounded();
        let _named = queue.named_handle("worker");
        assert!(!queue.shared().word().slows_pop());
    }
}
