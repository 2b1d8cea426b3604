//! A port: what a handle owns, a seat at the lanes and a side towards those who wait.
//!
//! Here the rules of waiting, capacity and closing meet the lanes, which know none of them.

mod batch;
mod pop;
mod push;
mod staging;
mod visit;

use crate::core::shared::Shared;
use crate::core::side::Side;
use crate::order::{EntryOf, Order, StoredOf};
use crate::policy::retry::Cause;
use crate::raw::{Party, Record, Seat, Session, Stored, Tails};
use crate::sync::{defer, planted, step};
use crate::Reason;
use std::mem;
use std::sync::Arc;
use std::thread;

/// One handle's access to a queue.
pub(crate) struct Port<T, O: Order<T>> {
    // Dropped first: its post is under the number of the seat's desk.
    side: Side<T, O>,
    seat: Seat<StoredOf<T, O>>,
    /// What the last commit over several queues did here.
    concluded: Outcome,
}

/// What a commit has done, and those are to be told of who wait.
#[derive(Clone, Copy, Default)]
pub(crate) struct Outcome {
    /// Items that are ready now.
    published: usize,
    /// Items that are the caller's now.
    pub(crate) freed: usize,
}

impl<T, O: Order<T>> Port<T, O> {
    pub(crate) fn new(shared: Arc<Shared<T, O>>, name: Option<Arc<str>>) -> Self {
        let mut seat = Seat::new(Arc::clone(shared.lanes()));
        let side = Side::new(shared, seat.desk(), name);
        Self {
            seat,
            side,
            concluded: Outcome::default(),
        }
    }

    #[inline]
    pub(crate) fn side(&self) -> &Side<T, O> {
        &self.side
    }

    #[inline]
    pub(crate) fn seat(&self) -> &Seat<StoredOf<T, O>> {
        &self.seat
    }

    /// Ends what a forgotten transaction or future left.
    #[inline]
    pub(crate) fn settle(&mut self) {
        if self.seat.is_unsettled() {
            self.settle_forgotten();
        }
    }

    #[cold]
    fn settle_forgotten(&mut self) {
        self.end_waiting();
        if self.seat.is_taken() {
            self.seat.drop_taken();
        }
        self.abort_for(&Reason::Forgotten.into());
    }

    /// Begins the waiting of a future.
    pub(crate) fn begin_waiting(&mut self) {
        self.settle();
        self.seat.mark_lent();
    }

    /// Ends the waiting of a future.
    #[inline(never)]
    pub(crate) fn end_waiting(&mut self) {
        self.seat.end_loan();
        self.side.leave_lines();
        if self.seat.put_back() {
            self.side.shared().ended(1);
        }
    }

    /// Ends the waiting of a future that was forgotten.
    #[inline]
    pub(crate) fn end_forgotten(&mut self) {
        if self.seat.is_lent() {
            self.end_waiting();
        }
    }
}

/// Ends that are no commits.
impl<T, O: Order<T>> Port<T, O> {
    /// Undoes the transaction.
    pub(crate) fn abort_for(&mut self, cause: &Cause) {
        self.end_forgotten();
        let held_any = self.seat.held() > 0;
        let parted = self.side.part_with_lost(&mut self.seat);
        let dead = self.side.part_with_failed(&mut self.seat, cause);
        let held = self.seat.give_back();
        self.seat.end_staging();
        planted!("port.frees-held", self.side.end_transaction(held, 0));
        self.side.end_transaction(dead, 0);
        self.side.pay_for_aborted();
        step!("port.aborts-unsaid", self.side.ready().ended(held));
        if dead > 0 {
            self.side.drop_excess_letters();
        }
        if held_any {
            self.side.note_end();
        }
        // Also if the destructor of something else panics.
        let _staged = defer(|| self.side.drop_staged(&mut self.seat));
        drop(parted);
    }
}

/// What the failure of a run is told with.
#[cfg(not(any(loom, shuttle)))]
impl<T, O: Order<T>> Port<T, O> {
    /// How many items are held, and how often the one was delivered that was delivered most often.
    pub(crate) fn deliveries(&mut self) -> (usize, u32) {
        let (mut items, mut attempts) = (0, 0);
        self.seat.visit(|_, tag| {
            items += 1;
            attempts = tag.attempts.max(attempts);
        });
        (items, attempts)
    }
}

/// Commits.
impl<T, O: Order<T>> Port<T, O> {
    /// Commits, all but the waking: that is [`Port::wake_for`].
    #[inline(always)]
    #[allow(clippy::inline_always)] // a few stores
    pub(crate) fn commit(&mut self) -> Outcome {
        self.end_forgotten();
        let (published, freed) = self.seat.commit();
        Outcome { published, freed }
    }

    /// What [`commit_together`](crate::raw::commit_together) did here.
    pub(crate) fn concluded(&mut self) -> Outcome {
        mem::take(&mut self.concluded)
    }

    /// Wakes those who wait for what the commit has published or freed.
    #[inline]
    pub(crate) fn wake_for(&self, outcome: Outcome) {
        self.side.end_transaction(outcome.freed, outcome.published);
        self.side.ready().ended(outcome.published);
    }

    /// Ends the leases of what was committed, tells those who listen, and returns the copies, whose
    /// destructors are user code.
    pub(crate) fn end_guard(&mut self, held_any: bool) -> Vec<EntryOf<T, O>> {
        self.side.pay_for_committed();
        self.side.leave_held(&mut self.seat);
        let copies = self.side.end_leases();
        if held_any {
            self.side.note_end();
        }
        copies
    }

    /// Takes out the next committed item.
    #[inline]
    pub(crate) fn take_out(&mut self) -> Option<T> {
        self.seat.take_out().map(Stored::into_item)
    }

    /// Drops the committed items that were not taken out.
    #[inline]
    pub(crate) fn drop_taken(&mut self) {
        self.seat.drop_taken();
    }
}

impl<T, O: Order<T>> Session for Port<T, O> {
    #[inline]
    fn begin(&mut self) {
        self.settle();
    }

    fn abort(&mut self) {
        let reason = if thread::panicking() {
            Reason::Panicked
        } else {
            Reason::Aborted
        };
        self.abort_for(&reason.into());
    }
}

impl<T, O: Order<T>> Party for Port<T, O> {
    fn collect(&mut self, tails: &mut Tails) {
        self.seat.collect(tails);
    }

    fn announce(&mut self, record: Record) {
        Party::announce(&mut self.seat, record);
    }

    fn conclude(&mut self) {
        self.concluded = Outcome {
            published: self.seat.staged(),
            freed: self.seat.held(),
        };
        self.seat.conclude();
    }
}

impl<T, O: Order<T>> Drop for Port<T, O> {
    fn drop(&mut self) {
        step!("port.drops-unsettled", self.settle());
    }
}
