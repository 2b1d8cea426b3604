//! The state of one handle.

use super::mode::{ModeWord, Ready};
use super::shared::Shared;
use crate::bound::Permits;
use crate::order::{Order, StoredOf};
use crate::policy::Deliveries;
use crate::raw::{Endpoint, Holder, LocalCell};
use crate::wait::Waiter;
use std::sync::Arc;

/// A handle's [`Local`] in the cell that lends it to one user at a time.
pub(crate) type CellOf<T, O> = LocalCell<Local<T, O>>;

/// The state of one handle.
pub(crate) struct Local<T, O: Order<T>> {
    pub(super) shared: Arc<Shared<T, O>>,
    /// The queue's wait queue for items, without the indirection through `shared`.
    pub(super) ready: Ready,
    pub(super) endpoint: Endpoint<StoredOf<T, O>>,
    /// Added to the word for the pops of a transaction: makes them slow if the handle is watched.
    pub(super) extra_mode: ModeWord,
    /// Whether the queue is unbounded and does not register items.
    pub(super) plain: bool,
    /// Whether a push may find no room: the queue is bounded, or keys have limits.
    pub(super) may_find_full: bool,
    /// Whether it is the leader: the waiter that sleeps until the next due time.
    pub(super) is_leader: bool,
    pub(super) permits: Permits,
    /// Its waiters for an item and for room; it waits with one of them at a time.
    pub(super) item_waiter: Waiter,
    pub(super) room_waiter: Waiter,
    /// What the options keep of the transaction's deliveries.
    pub(super) deliveries: Deliveries<T, O>,
    /// The counts of the last commit over several queues.
    pub(super) concluded: CommitCounts,
}

/// The counts of a commit, of which waiters are to be notified.
#[derive(Clone, Copy, Default)]
pub(super) struct CommitCounts {
    /// Staged items that became ready.
    pub(super) published: usize,
    /// Held items that are the caller's now.
    pub(super) freed: usize,
}

impl<T, O: Order<T>> Local<T, O> {
    /// The state of a new handle with this name, if any.
    pub(crate) fn new(shared: Arc<Shared<T, O>>, name: Option<Arc<str>>) -> Self {
        let permits = Permits::new(shared.room());
        let endpoint = Endpoint::new(Arc::clone(shared.shards()));
        let deliveries = Deliveries::new(&shared, name, endpoint.number());
        Self {
            ready: shared.ready().clone(),
            plain: !permits.is_bounded() && !shared.registers(),
            may_find_full: permits.is_bounded() || shared.is_limited(),
            extra_mode: ModeWord::new(false, false, deliveries.are_watched()),
            shared,
            endpoint,
            is_leader: false,
            permits,
            item_waiter: Waiter::default(),
            room_waiter: Waiter::default(),
            deliveries,
            concluded: CommitCounts::default(),
        }
    }

    /// As [`Local::new`], in a cell.
    pub(crate) fn in_cell(shared: Arc<Shared<T, O>>, name: Option<Arc<str>>) -> CellOf<T, O> {
        LocalCell::new(Self::new(shared, name))
    }

    #[inline]
    pub(crate) fn shared(&self) -> &Arc<Shared<T, O>> {
        &self.shared
    }

    #[inline]
    pub(super) fn word(&self) -> ModeWord {
        self.ready.word()
    }

    #[inline]
    pub(crate) fn staged(&self) -> usize {
        self.endpoint.staged()
    }

    #[inline]
    pub(crate) fn held(&self) -> usize {
        self.endpoint.held()
    }

    /// What other threads can see of the transaction.
    pub(crate) fn holder(&self) -> Holder {
        self.endpoint.holder()
    }

    #[inline]
    pub(crate) fn deliveries(&self) -> &Deliveries<T, O> {
        &self.deliveries
    }

    /// See [`Shared::notify_end`].
    #[inline]
    pub(super) fn notify_end(&self, count: usize) {
        if self.ready.notify_end(count) {
            self.shared.ended(count > 0);
        }
    }
}

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
