//! A rack: an order, and what it takes items in by.

use super::Order;
use crate::agenda::Agenda;
use crate::raw::{Entry, Intake};
use crate::sync::{lock, AtomicU64, Mutex, MutexGuard, Ordering};
use crate::time::NEVER;
use std::sync::{Arc, TryLockError};

/// Room that is kept for items that come back.
const KEPT: usize = 256;

/// The rank of a rack that has nothing ready.
pub(super) const NONE: u64 = u64::MAX;

/// An order under its lock.
pub(super) struct Rack<T, O> {
    stock: Mutex<Stock<T, O>>,
    /// The rank of the next item, a hint to those who choose among racks.
    rank: AtomicU64,
}

/// An order, and what it is filled by.
pub(super) struct Stock<T, O> {
    pub(super) order: O,
    intake: Intake<T>,
    /// Items that come back, empty between two uses.
    returned: Vec<Entry<T>>,
    agenda: Arc<Agenda>,
    /// For when its next item was last planned.
    planned: u64,
    /// How often another rack was looked at beside this one.
    looks: usize,
}

impl<T, O: Order<T>> Rack<T, O> {
    pub(super) fn new(order: O, intake: Intake<T>, agenda: Arc<Agenda>) -> Self {
        Self {
            stock: Mutex::new(Stock {
                order,
                intake,
                returned: Vec::new(),
                agenda,
                planned: NEVER,
                looks: 0,
            }),
            rank: AtomicU64::new(NONE),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Stock<T, O>> {
        lock(&self.stock)
    }

    /// The lock, unless another thread has it.
    pub(super) fn try_lock(&self) -> Option<MutexGuard<'_, Stock<T, O>>> {
        match self.stock.try_lock() {
            Ok(stock) => Some(stock),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    pub(super) fn rank(&self) -> u64 {
        // ORDERING: Relaxed; a hint.
        self.rank.load(Ordering::Relaxed)
    }

    /// Says what the rank is, to be called with the lock.
    pub(super) fn show_rank(&self, stock: &Stock<T, O>) {
        let rank = stock.rank();
        if self.rank() != rank {
            // ORDERING: Relaxed; a hint.
            self.rank.store(rank, Ordering::Relaxed);
        }
    }
}

impl<T, O: Order<T>> Stock<T, O> {
    /// Takes in what is visible in the lanes: true, if something of that may be due before what was known.
    #[inline]
    pub(super) fn take_in(&mut self) -> bool {
        let Self {
            order,
            intake,
            returned,
            ..
        } = self;
        if intake.has_returned() {
            intake.take_returned(returned);
            while let Some(entry) = returned.pop() {
                order.come_back(entry);
            }
            returned.shrink_to(KEPT);
        }
        intake.take_arrived(|entry| order.arrive(entry));
        let earlier = self.order.next_due() < self.planned;
        if earlier {
            self.plan();
        }
        earlier
    }

    /// Makes ready what is due, plans the next, and says how many items are ready by that.
    pub(super) fn advance(&mut self, now: u64) -> usize {
        let count = self.order.advance(now);
        self.plan();
        count
    }

    fn plan(&mut self) {
        self.planned = self.order.next_due();
        self.agenda.plan(self.planned);
    }

    /// Leaves the lanes, so that their memory can go back.
    pub(super) fn leave_lanes(&mut self) {
        self.intake.leave();
    }

    /// Counts one look at another rack.
    pub(super) fn look(&mut self) -> usize {
        self.looks = self.looks.wrapping_add(1);
        self.looks
    }

    pub(super) fn rank(&self) -> u64 {
        if self.order.ready() == 0 {
            NONE
        } else {
            self.order.rank().min(NONE - 1)
        }
    }
}
