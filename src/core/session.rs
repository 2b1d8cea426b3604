//! The state of a handle as its cell sees it: how waits, transactions and the handle end.

use super::local::{CellOf, Local};
use crate::order::{Order, StoredOf};
use crate::raw::{Endpoint, JointRecord, Party, Session, Tails, Unborrowed};
use crate::Reason;
use std::thread;

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
        self.prepare();
        self.get_mut().endpoint.collect(tails);
    }

    fn announce(&mut self, record: JointRecord) {
        self.get_mut().endpoint.announce(record);
    }

    fn conclude(&mut self) {
        let local = self.get_mut();
        local.concluded = (local.staged(), local.held());
        local.endpoint.conclude();
    }

    fn commit_held(&mut self) {
        let (local, unborrowed) = self.whole();
        local.endpoint.commit_concluded(&unborrowed);
    }
}

impl<T, O: Order<T>> Drop for Local<T, O> {
    fn drop(&mut self) {
        self.stop_waiting();
        self.item_waiter.release(&self.access.ready);
        if let Some(room) = self.access.shared.room() {
            self.room_waiter.release(&room.wait_queue);
        }
        self.deliveries.leave(&self.shared);
        self.permits.leave();
    }
}
