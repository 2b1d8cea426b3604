//! The state of one handle.

use super::end::CommitCounts;
use super::shared::Shared;
use super::wait;
use crate::bound::Permits;
use crate::order::{Order, StoredOf};
use crate::policy::Deliveries;
use crate::raw::{Endpoint, JointRecord, LocalCell, Party, Session, Tails, Unborrowed};
use crate::wait::{ModeWord, WaitQueue, Waiter, Wanted};
use crate::Reason;
use std::sync::Arc;
use std::thread;

/// A handle's [`Local`] in the cell that lends it to one user at a time.
pub(crate) type CellOf<T, O> = LocalCell<Local<T, O>>;

/// The state of one handle.
pub(crate) struct Local<T, O: Order<T>> {
    pub(super) shared: Arc<Shared<T, O>>,
    /// The queue's wait queue for items, without the indirection through `shared`.
    pub(super) ready: Arc<WaitQueue>,
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

impl<T, O: Order<T>> Local<T, O> {
    /// The state of a new handle with this name, if any.
    pub(crate) fn new(shared: Arc<Shared<T, O>>, name: Option<Arc<str>>) -> Self {
        let permits = Permits::new(shared.room());
        let endpoint = Endpoint::new(Arc::clone(shared.shards()));
        let deliveries = Deliveries::new(&shared, name, endpoint.number());
        Self {
            ready: Arc::clone(shared.ready()),
            plain: !permits.is_bounded() && !shared.registers(),
            may_find_full: permits.is_bounded() || shared.is_limited(),
            extra_mode: ModeWord::standing(false, deliveries.are_watched()),
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

    /// Leaves the wait queues, and releases the permits gathered for a batch that will not be pushed.
    #[inline]
    pub(crate) fn stop_waiting(&mut self) {
        wait::stop_waiting_for(self, Wanted::Item);
        if self.permits.is_bounded() {
            self.permits.give_back_gathered();
            wait::stop_waiting_for(self, Wanted::Room);
        }
    }
}

impl<T, O: Order<T>> Session for Local<T, O> {
    type Stored = StoredOf<T, O>;

    #[inline]
    fn endpoint(&mut self) -> &mut Endpoint<StoredOf<T, O>> {
        &mut self.endpoint
    }

    fn end_waiting(&mut self) {
        self.stop_waiting();
        if self.end_peek() {
            self.shared.notify_end(1);
        }
    }

    fn settle(&mut self, unborrowed: &Unborrowed<'_>) {
        if self.endpoint.is_taken() {
            self.endpoint.drop_taken(unborrowed);
        }
        self.abort_for(&Reason::Forgotten.into(), unborrowed);
    }

    fn abort(&mut self, unborrowed: &Unborrowed<'_>) {
        let reason = if thread::panicking() {
            Reason::Panicked
        } else {
            Reason::Aborted
        };
        self.abort_for(&reason.into(), unborrowed);
    }
}

impl<T, O: Order<T>> Party for CellOf<T, O> {
    fn collect(&mut self, tails: &mut Tails) {
        self.get_mut().endpoint.collect(tails);
    }

    fn announce(&mut self, record: JointRecord) {
        self.get_mut().endpoint.announce(record);
    }

    fn conclude(&mut self) {
        let (local, unborrowed) = self.whole();
        local.concluded = CommitCounts {
            published: local.staged(),
            freed: local.held(),
        };
        local.endpoint.conclude(&unborrowed);
    }
}

impl<T, O: Order<T>> Drop for Local<T, O> {
    fn drop(&mut self) {
        self.stop_waiting();
        self.item_waiter.release(&self.ready);
        if let Some(room) = self.shared.room() {
            self.room_waiter.release(&room.wait_queue);
        }
        self.deliveries.leave(&self.shared);
        self.permits.leave()();
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
